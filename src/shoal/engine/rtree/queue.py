"""The publishing queue: a weighted random choice of leaves, and the times at which leaves are due.

Two trees of sums over the leaves, of weights and of weights times rows: setting a weight and
finding a leaf take logarithmic time. Nothing is subtracted from sums, so that a leaf with 10^40
times the weight of the others leaves no rounding error when it is removed. A third tree has the
earliest of the due times, where these are drawn once for each leaf.

The arrays have room for as many leaves as there may be; the trees are only as wide as the leaf
numbers in use need, because every level costs time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import inlined, kernel
from shoal.engine.kernels.arrays import Bytes, Floats, Ints, power_of_two

__all__ = [
    "RECOUNT", "STALE", "Queue", "due_of", "earliest", "empty", "first_due", "grown", "pick", "put",
    "put_due", "rows", "set_leaf", "sum_over", "weight", "widen",
]  # fmt: skip

#: Flags of a leaf: its weight isn't up to date; nor is the number of samples in it.
STALE, RECOUNT = 1, 2


class Queue(NamedTuple):
    """Sums of weights, sums of weights times rows, and earliest due times.

    Leaves are in the second half of the first ``2 * width`` entries, the root is at 1. ``flags``
    says of each leaf what has to be computed again before a weight is used.
    """

    weights: Floats
    rows: Floats
    due: Floats
    flags: Bytes
    width: Ints


def empty(leaves: int) -> Queue:
    """Return an empty queue with room for ``leaves`` leaves."""
    n = power_of_two(max(leaves, 2))
    return Queue(
        np.zeros(2 * n), np.zeros(2 * n), np.full(2 * n, np.inf), np.zeros(n, np.uint8),
        np.full(1, 2),
    )  # fmt: skip


def grown(queue: Queue, leaves: int) -> Queue:
    """Return the same queue with more room."""
    larger = empty(leaves)
    for name in Queue._fields:
        before = getattr(queue, name)
        getattr(larger, name)[: len(before)] = before
    return larger


@inlined
def widen(queue: Queue, leaf: int) -> None:
    """Make the trees wide enough for a leaf."""
    if leaf >= queue.width[0]:
        _widen(queue, leaf)


@kernel
def _widen(queue: Queue, leaf: int) -> None:
    width = queue.width[0]
    wider = width
    while wider <= leaf:
        wider *= 2
    for c in range(width - 1, -1, -1):
        queue.weights[wider + c] = queue.weights[width + c]
        queue.rows[wider + c] = queue.rows[width + c]
        queue.due[wider + c] = queue.due[width + c]
    for c in range(width, wider):
        queue.weights[wider + c] = 0.0
        queue.rows[wider + c] = 0.0
        queue.due[wider + c] = np.inf
    queue.width[0] = wider
    _sum_up(queue)
    for at in range(wider - 1, 0, -1):
        queue.due[at] = min(queue.due[2 * at], queue.due[2 * at + 1])


# -- weights --------------------------------------------------------------------------------------


@inlined
def set_leaf(queue: Queue, leaf: int, weight: float, n_rows: int) -> None:
    """Set the weight of a leaf but not the sums, which the caller brings up to date."""
    at = queue.width[0] + leaf
    queue.weights[at] = weight
    queue.rows[at] = weight * n_rows


@kernel
def _sum_up(queue: Queue) -> None:
    """Compute all sums again."""
    weights, by_rows = queue.weights, queue.rows
    for at in range(queue.width[0] - 1, 0, -1):
        weights[at] = weights[2 * at] + weights[2 * at + 1]
        by_rows[at] = by_rows[2 * at] + by_rows[2 * at + 1]


@kernel
def sum_over(queue: Queue, leaves: Ints) -> None:
    """Bring the sums up to date after the weights of some leaves were set."""
    n_levels, width = 0, queue.width[0]
    while 1 << n_levels < width:
        n_levels += 1
    if len(leaves) * n_levels > width:
        _sum_up(queue)
        return
    weights, by_rows = queue.weights, queue.rows
    for leaf in leaves:
        at = (width + leaf) // 2
        while at > 0:
            weights[at] = weights[2 * at] + weights[2 * at + 1]
            by_rows[at] = by_rows[2 * at] + by_rows[2 * at + 1]
            at //= 2


@kernel
def put(queue: Queue, leaf: int, weight: float, n_rows: int) -> None:
    """Set the weight of a leaf of ``n_rows`` rows; 0: it isn't in the queue."""
    widen(queue, leaf)
    set_leaf(queue, leaf, weight, n_rows)
    sum_over(queue, np.array([leaf]))


@inlined
def weight(queue: Queue) -> float:
    """Return the sum of all weights."""
    return queue.weights[1]


@inlined
def rows(queue: Queue) -> float:
    """Return the sum of all weights times rows."""
    return queue.rows[1]


@kernel
def pick(queue: Queue, upto: float) -> int:
    """Return the first leaf, by number, at which the sum of weights exceeds ``upto``."""
    weights, width = queue.weights, queue.width[0]
    at = 1
    while at < width:
        at *= 2
        # Rounding must not lead to a leaf of weight 0.
        if upto >= weights[at] and weights[at + 1] > 0.0:
            upto -= weights[at]
            at += 1
    return at - width


# -- due times ------------------------------------------------------------------------------------


@kernel
def put_due(queue: Queue, leaf: int, due: float) -> None:
    """Set the time at which a leaf is due; infinity: it has none."""
    times, at = queue.due, queue.width[0] + leaf
    times[at] = due
    at //= 2
    while at > 0:
        times[at] = min(times[2 * at], times[2 * at + 1])
        at //= 2


@inlined
def due_of(queue: Queue, leaf: int) -> float:
    """Return the time at which a leaf is due, or infinity."""
    return queue.due[queue.width[0] + leaf]


@inlined
def earliest(queue: Queue) -> float:
    """Return the earliest time at which a leaf is due, or infinity."""
    return queue.due[1]


@kernel
def first_due(queue: Queue) -> int:
    """Return the leaf that is due first; of several, the one with the lowest number."""
    times, width = queue.due, queue.width[0]
    at = 1
    while at < width:
        at *= 2
        if times[at] > times[at + 1]:
            at += 1
    return at - width
