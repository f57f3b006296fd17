"""The publishing queue: a weighted random choice of leaves, with weights that change often.

Two trees of sums over the leaves, of weights and of weights times rows: setting a weight and
finding a leaf take logarithmic time. Nothing is subtracted from sums, so that a leaf with 10^40
times the weight of the others leaves no rounding error when it is removed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, power_of_two

__all__ = ["Queue", "empty", "grown", "pick", "put", "rows", "weight"]


class Queue(NamedTuple):
    """Sums of weights, and of weights times rows: leaves in the second half, the root at 1."""

    weights: Floats
    rows: Floats


def empty(leaves: int) -> Queue:
    """Return an empty queue with room for ``leaves`` leaves."""
    n = 2 * power_of_two(max(leaves, 2))
    return Queue(np.zeros(n), np.zeros(n))


def grown(queue: Queue, leaves: int) -> Queue:
    """Return the same weights with more room."""
    larger = empty(leaves)
    for before, after in zip(queue, larger, strict=True):
        n, m = len(before) // 2, len(after) // 2
        after[m : m + n] = before[n:]
        while m > 1:
            after[m // 2 : m] = after[m : 2 * m : 2] + after[m + 1 : 2 * m : 2]
            m //= 2
    return larger


@kernel
def put(queue: Queue, leaf: int, weight: float, n_rows: int) -> None:
    """Set the weight of a leaf of ``n_rows`` rows; 0: it isn't in the queue."""
    weights, by_rows = queue.weights, queue.rows
    at = len(weights) // 2 + leaf
    weights[at] = weight
    by_rows[at] = weight * n_rows
    at //= 2
    while at > 0:
        weights[at] = weights[2 * at] + weights[2 * at + 1]
        by_rows[at] = by_rows[2 * at] + by_rows[2 * at + 1]
        at //= 2


@kernel
def weight(queue: Queue) -> float:
    """Return the sum of all weights."""
    return queue.weights[1]


@kernel
def rows(queue: Queue) -> float:
    """Return the sum of all weights times rows."""
    return queue.rows[1]


@kernel
def pick(queue: Queue, upto: float) -> int:
    """Return the first leaf, by number, at which the sum of weights exceeds ``upto``."""
    weights = queue.weights
    at = 1
    while 2 * at < len(weights):
        at *= 2
        # Rounding must not lead to a leaf of weight 0.
        if upto >= weights[at] and weights[at + 1] > 0.0:
            upto -= weights[at]
            at += 1
    return at - len(weights) // 2
