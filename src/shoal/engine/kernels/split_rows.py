"""Split a cluster of which each row is of another subject: parts of a row and the nearest others.

Nothing has to be remembered about a subject, so that the nearest rows are found by selection
instead of one by one. The parts are those that `shoal.engine.kernels.split` would make.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import nth_smallest, where
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.kernels.boxes import Sides, box_of, boxes_at, joined_losses
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.rng import below

__all__ = ["cut_by_rows"]

#: One in so many distances is looked at first, to see which are small.
SAMPLED = 16


@kernel
def _nth_free(free: Bools, n: int) -> int:
    """Return the n-th, from 0, of the rows that are free. (Nothing is guessed until the end.)"""
    i = 0
    while True:
        n -= free[i]
        if n < 0:
            return i
        i += 1


@kernel
def _within(free: Bools, distance: Floats, limit: float, found: Ints) -> int:
    """Write the free rows within a limit, in order; return their number."""
    n = 0
    for i in range(len(free)):
        # Written in any case: a branch would be guessed wrong for many rows.
        found[n] = i
        n += free[i] & (distance[i] <= limit)
    return n


@kernel
def _likely_limit(free: Bools, distance: Floats, most: int, keys: Floats) -> float:
    """Return a distance within which there probably are enough free rows, and not many more."""
    n = 0
    for i in range(0, len(free), SAMPLED):
        keys[n] = distance[i]
        n += free[i]
    # As many of the sample as there should be, and twice the deviation of that number.
    expected = most / SAMPLED
    wanted = int(expected + 2.0 * math.sqrt(expected)) + 1
    return nth_smallest(keys, n, wanted) if wanted < n else np.inf


@kernel
def _nearest_free(free: Bools, distance: Floats, most: int, found: Ints, keys: Floats) -> None:
    """Write the nearest of the free rows, ``most`` in number; at equal distance the earlier ones.

    The others are only compared with a limit, which is taken from a sample of them.
    """
    n = _within(free, distance, _likely_limit(free, distance, most, keys), found)
    if n < most:
        n = _within(free, distance, np.inf, found)
    for i in range(n):
        keys[i] = distance[found[i]]
    farthest = nth_smallest(keys, n, most - 1)
    n_nearer = 0
    for i in range(n):
        n_nearer += distance[found[i]] < farthest
    n_tied, at = most - n_nearer, 0
    for i in range(n):
        row = found[i]
        if distance[row] < farthest:
            found[at] = row
            at += 1
        elif distance[row] == farthest and n_tied > 0:
            n_tied -= 1
            found[at] = row
            at += 1


@kernel
def cut_by_rows(sides: Sides, k: int, rng: Ints, rows: RowArrays, part: Ints) -> int:
    """Cut into parts of k rows each, around randomly chosen ones; return their number.

    Each row must have the part -1. The last rows, fewer than k, keep it.
    """
    n_parts, n_left = 0, len(part)
    distance, keys = np.empty(n_left), np.empty(n_left)
    found = np.empty(n_left + 1, np.int64)
    # The candidates: copies of the boxes, repacked whenever a third of the rows are placed.
    seen, near_lo, near_hi = np.arange(n_left), rows.lo, rows.hi
    free = np.full(n_left, True)
    while n_left >= k:
        if 3 * n_left < 2 * len(seen):
            seen = where(part, -1)
            are_points = near_lo is near_hi
            near_lo = boxes_at(rows.lo, seen)
            near_hi = near_lo if are_points else boxes_at(rows.hi, seen)
            free = np.full(n_left, True)
        seed = _nth_free(free, below(rng, n_left))
        free[seed] = False
        part[seen[seed]] = n_parts
        if k > 1:
            lo, hi = box_of(near_lo, seed), box_of(near_hi, seed)
            joined_losses(sides, near_lo, near_hi, len(seen), lo, hi, distance)
            _nearest_free(free, distance, k - 1, found, keys)
            for i in found[: k - 1]:
                free[i] = False
                part[seen[i]] = n_parts
        n_left -= k
        n_parts += 1
    return n_parts
