"""The latest rows of a stream, held or not: the window that groups are measured against.

A ring of their sensitive codes, so that the oldest can be taken out when a new one comes, and the
`WindowCounts` of all that are in it. Where nothing is measured the ring has no places, and costs
nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Ints, power_of_two
from shoal.engine.kernels.window_counts import WindowCounts, enter, nothing, quit_by, room_for

__all__ = ["Recent", "empty", "note", "roomy"]


class Recent(NamedTuple):
    """The sensitive codes of the latest rows, each at its position modulo the length, a power of
    two; the same as counts; and how many rows are the latest (one entry, 0: nothing is measured).
    """

    sensitive: Ints
    window: WindowCounts
    span: Ints


def empty(n_sensitive: int, span: int) -> Recent:
    """A window of so many rows, none of which has come."""
    return Recent(
        np.zeros((0, n_sensitive), np.int64), nothing(n_sensitive), np.array([span], np.int64)
    )


def roomy(recent: Recent, upcoming: int, n: int) -> Recent:
    """The same rows with room for n more, given the position that the next one gets.

    There is never more room than a window needs, however long the stream is.
    """
    span, places = int(recent.span[0]), len(recent.sensitive)
    wanted = power_of_two(min(span, upcoming + n))
    if span and wanted > places:
        # No row has left yet: a ring that isn't as long as the window has all of them.
        ring = np.zeros((wanted, recent.sensitive.shape[1]), np.int64)
        ring[:places] = recent.sensitive
        recent = recent._replace(sensitive=ring)
    most = int(recent.window.n.max(initial=0))
    wanted = power_of_two(min(span, most + n)) if span else 0
    if wanted > recent.window.values.shape[1]:
        recent = recent._replace(window=room_for(recent.window, wanted))
    return recent


@kernel
def note(recent: Recent, position: int, sensitive: Ints) -> None:
    """A row comes into the window; if that is full, its oldest row leaves."""
    span, mask = recent.span[0], len(recent.sensitive) - 1
    if span == 0:
        return
    if position >= span:
        quit_by(recent.window, recent.sensitive[(position - span) & mask])
    for j in range(len(sensitive)):
        recent.sensitive[position & mask, j] = sensitive[j]
    enter(recent.window, sensitive)
