"""The rows that have arrived and aren't decided: a ring of arrays, indexed by position.

A row's place in the ring is its position modulo the length, a power of two. Positions between the
oldest held row and the newest fit in it at any time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal._jit import kernel
from shoal.kernels.arrays import Floats, Ints, power_of_two

__all__ = ["Held", "forget", "grown", "overdue", "put"]

SMALLEST = 256


class Held(NamedTuple):
    """Boxes, subjects, sensitive codes and times of the rows, and where the ring begins and ends.

    ``cluster`` is what a row belongs to, -1 if the row isn't held. ``upcoming`` is the position
    that the next row gets, ``oldest`` the first position that may be held, ``now`` the latest time.
    """

    lo: Floats
    hi: Floats
    subject: Ints
    sensitive: Ints
    time: Floats
    cluster: Ints
    upcoming: Ints
    oldest: Ints
    n_held: Ints
    now: Floats


def empty(n_quasi: int, n_sensitive: int, capacity: int = SMALLEST) -> Held:
    """A ring with nothing in it."""
    return Held(
        np.zeros((capacity, n_quasi)), np.zeros((capacity, n_quasi)),
        np.zeros(capacity, np.int64), np.zeros((capacity, n_sensitive), np.int64),
        np.zeros(capacity), np.full(capacity, -1, np.int64),
        np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64),
        np.full(1, -np.inf),
    )  # fmt: skip


def grown(held: Held, span: int) -> Held:
    """The same rows in a ring that has room for positions over a span."""
    old = len(held.cluster)
    if span <= old:
        return held
    larger = empty(held.lo.shape[1], held.sensitive.shape[1], power_of_two(span))
    positions = np.arange(held.oldest[0], held.upcoming[0])
    source, target = positions & (old - 1), positions & (len(larger.cluster) - 1)
    for before, after in zip(held[:6], larger[:6], strict=True):
        after[target] = before[source]
    for before, after in zip(held[6:], larger[6:], strict=True):
        after[:] = before
    return larger


@kernel
def put(
    held: Held, lo: Floats, hi: Floats, subject: int, sensitive: Ints, time: float, cluster: int
) -> int:
    """Take in the next row; give its position."""
    position = held.upcoming[0]
    at = position & (len(held.cluster) - 1)
    for d in range(len(lo)):
        held.lo[at, d] = lo[d]
        held.hi[at, d] = hi[d]
    for j in range(len(sensitive)):
        held.sensitive[at, j] = sensitive[j]
    held.subject[at] = subject
    held.time[at] = time
    held.cluster[at] = cluster
    held.upcoming[0] += 1
    held.n_held[0] += 1
    return position


@kernel
def forget(held: Held, position: int) -> None:
    """A row is decided; the ring begins at the oldest row that is still held."""
    mask = len(held.cluster) - 1
    held.cluster[position & mask] = -1
    held.n_held[0] -= 1
    while held.oldest[0] < held.upcoming[0] and held.cluster[held.oldest[0] & mask] < 0:
        held.oldest[0] += 1


@kernel
def overdue(held: Held, seconds: float, now: float) -> bool:
    """Whether the oldest held row has waited for so many seconds."""
    if held.n_held[0] == 0:
        return False
    return held.time[held.oldest[0] & (len(held.cluster) - 1)] + seconds <= now
