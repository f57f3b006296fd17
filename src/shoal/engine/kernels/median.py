"""Mondrian: rows are cut at medians recursively, as long as both halves may leave.

Strict and multidimensional (LeFevre, DeWitt, Ramakrishnan, 2006): equal values stay on one side of
a cut. Halves are checked by the limits of the policy, so that one kernel serves every criterion.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import order_of, picked
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.boxes import Sides, box_loss, hull
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts, may_leave, parts_of
from shoal.engine.kernels.predicate import Limits, needed

__all__ = ["median_parts"]


@kernel
def median_parts(sides: Sides, limits: Limits, rows: RowArrays) -> Parts:
    """Cut rows at medians as long as both halves may leave; return parts from left to right.

    Rows that may not leave even together are one part, unless parts of them may.
    """
    n = len(rows.subjects)
    order, ranks = np.arange(n), _ranks(sides, rows)
    starts = np.zeros(n + 1, np.int64)
    # Left halves are cut first. So the parts before `begin` are done, and the stack needs only the
    # ends of the others, the leftmost last.
    ends, depth = np.empty(n + 1, np.int64), 1
    ends[0] = n
    n_parts, begin = 0, 0
    while depth > 0:
        end = ends[depth - 1]
        n_left = _cut(sides, limits, rows, ranks, order[begin:end])
        if n_left > 0:
            ends[depth] = begin + n_left
            depth += 1
            continue
        n_parts += 1
        starts[n_parts] = end
        begin = end
        depth -= 1
    return parts_of(sides, rows, order, starts[: n_parts + 1].copy())


@kernel
def _ranks(sides: Sides, rows: RowArrays) -> Ints:
    """Return the rank of the centre of each row, by attribute; equal centres have equal ranks.

    A missing value that stands for any value lies in the middle.
    """
    ranks = np.empty(rows.lo.shape, np.int64)
    for d in range(len(ranks)):
        middle = (sides.attributes["lowest"][d] + sides.attributes["highest"][d]) / 2.0
        centres = np.full(len(rows.subjects), middle)
        for i in range(len(centres)):
            if rows.lo[d, i] <= rows.hi[d, i]:
                centres[i] = (rows.lo[d, i] + rows.hi[d, i]) / 2.0
        before, rank = -np.inf, -1
        for i in order_of(centres):
            if centres[i] != before:
                before = centres[i]
                rank += 1
            ranks[d, i] = rank
    return ranks


@kernel
def _cut(sides: Sides, limits: Limits, rows: RowArrays, ranks: Ints, members: Ints) -> int:
    """Move the left half of some rows before the right one; return its size, 0: no cut is valid."""
    fewest = needed(limits)
    if len(members) < 2 * fewest:
        return 0
    losses = _side_losses(sides, rows, members)
    for _ in range(len(losses)):
        d = _largest(losses)
        if losses[d] <= 0.0:
            return 0
        losses[d] = 0.0
        places = picked(ranks[d], members)
        last = _last_on_the_left(places)
        if last < 0:
            continue
        halves, n_left = _sorted_out(members, places, last)
        if min(n_left, len(halves) - n_left) < fewest:
            continue
        left, right = halves[:n_left], halves[n_left:]
        if may_leave(limits, rows, left) and may_leave(limits, rows, right):
            for i in range(len(members)):
                members[i] = halves[i]
            return n_left
    return 0


@kernel
def _side_losses(sides: Sides, rows: RowArrays, members: Ints) -> Floats:
    """Return the loss of each side of the box of some rows."""
    lo, hi = hull(sides, rows.lo, rows.hi, members)
    losses = np.empty(len(lo))
    # An empty side loses nothing.
    low, high = np.full(len(lo), np.inf), np.full(len(lo), -np.inf)
    for d in range(len(lo)):
        low[d], high[d] = lo[d], hi[d]
        losses[d] = box_loss(sides, low, high)
        low[d], high[d] = np.inf, -np.inf
    return losses


@kernel
def _largest(losses: Floats) -> int:
    """Return the index of the largest number; of equal ones the first."""
    best = 0
    for d in range(1, len(losses)):
        if losses[d] > losses[best]:
            best = d
    return best


@kernel
def _last_on_the_left(places: Ints) -> int:
    """Return the median, or the place before it if nothing is above it; -1 if all are equal.

    The median of n sorted places is the one at (n - 1) // 2, found by bisection.
    """
    low, high = places[0], places[0]
    for place in places:
        low, high = min(low, place), max(high, place)
    if low == high:
        return -1
    highest = high
    wanted = (len(places) - 1) // 2
    while low < high:
        middle = (low + high) // 2
        below = 0
        for place in places:
            below += place <= middle
        if below > wanted:
            high = middle
        else:
            low = middle + 1
    return low if low < highest else low - 1


@kernel
def _sorted_out(members: Ints, places: Ints, last: int) -> tuple[Ints, int]:
    """Return the rows, those up to a place first (stably), and how many these are."""
    n_left = 0
    for place in places:
        n_left += place <= last
    halves = np.empty_like(members)
    left, right = 0, n_left
    for i in range(len(members)):
        if places[i] <= last:
            halves[left] = members[i]
            left += 1
        else:
            halves[right] = members[i]
            right += 1
    return halves, n_left
