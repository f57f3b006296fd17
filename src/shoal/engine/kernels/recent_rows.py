"""The latest rows of a stream, held or not: those of the window that groups are measured against.

A ring of their sensitive codes, so that the oldest can be removed when a new one arrives, and the
`WindowCounts` of all rows in it. Where nothing is measured the ring is empty and costs nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels.arrays import Ints, power_of_two
from shoal.engine.kernels.ring import wrap
from shoal.engine.kernels.window_counts import (
    WindowCounts,
    add_row,
    empty_counts,
    remove_row,
    with_room,
)

__all__ = ["RecentRows", "add", "empty", "with_room_for"]


class RecentRows(NamedTuple):
    """A ring of the sensitive codes of the latest rows, by position, and their counts.

    ``span`` has one entry: the number of rows in the window (0: nothing is measured).
    """

    sensitive: Ints
    window: WindowCounts
    span: Ints


def empty(n_sensitive: int, span: int) -> RecentRows:
    """Return a ring for the latest ``span`` rows, none of which has arrived."""
    return RecentRows(
        np.zeros((0, n_sensitive), np.int64), empty_counts(n_sensitive), np.array([span], np.int64)
    )


def with_room_for(recent: RecentRows, upcoming: int, n: int) -> RecentRows:
    """Return the same rows with room for n more, given the position of the next one.

    There is never more room than a window needs, however long the stream is.
    """
    span, places = int(recent.span[0]), len(recent.sensitive)
    wanted = power_of_two(min(span, upcoming + n))
    if span and wanted > places:
        # A ring shorter than the window still has all rows: none has left the window.
        ring = np.zeros((wanted, recent.sensitive.shape[1]), np.int64)
        ring[:places] = recent.sensitive
        recent = recent._replace(sensitive=ring)
    most = int(recent.window.n.max(initial=0))
    wanted = power_of_two(min(span, most + n)) if span else 0
    if wanted > recent.window.values.shape[1]:
        recent = recent._replace(window=with_room(recent.window, wanted))
    return recent


@kernel
def add(recent: RecentRows, position: int, sensitive: Ints) -> None:
    """Add a row to the window; if that is full, its oldest row leaves."""
    if recent.span[0] > 0:
        _move(recent, position, sensitive)


@on_demand
def _move(recent: RecentRows, position: int, sensitive: Ints) -> None:
    span = recent.span[0]
    if position >= span:
        remove_row(recent.window, recent.sensitive[wrap(position - span, len(recent.sensitive))])
    for j in range(len(sensitive)):
        recent.sensitive[wrap(position, len(recent.sensitive)), j] = sensitive[j]
    add_row(recent.window, sensitive)
