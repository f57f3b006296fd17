"""Mondrian: rows are cut recursively, at medians or along hierarchies, while all pieces may leave.

Strict and multidimensional (LeFevre, DeWitt, Ramakrishnan, 2006): equal values stay on one side of
a cut. Pieces are checked by the limits of the policy, so that one kernel serves every criterion.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import order_of, picked
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.boxes import Sides, box_loss, cover, hull
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts, may_leave, parts_of
from shoal.engine.kernels.predicate import Limits, needed

__all__ = ["Cuts", "median_parts"]


class Cuts(NamedTuple):
    """How rows are cut; what stands here only decides which of the allowed cuts is made.

    ``widest``: the side is cut whose values span the largest weighted share of their domain,
    categories in the order of their leaves; else the one that loses most. ``by_node``: categories
    are cut into the children of the lowest node above them, in ``trees``; else at the median of
    their codes. ``retry``: if the first side can't be cut, the next one is tried.
    """

    trees: Sides
    widest: bool
    by_node: bool
    retry: bool


@kernel
def median_parts(sides: Sides, limits: Limits, rows: RowArrays, cuts: Cuts) -> Parts:
    """Cut rows as long as all pieces may leave; return parts from left to right.

    Rows that may not leave even together are one part, unless parts of them may.
    """
    n = len(rows.subjects)
    order, ranks = np.arange(n), _ranks(sides, rows)
    starts = np.zeros(n + 1, np.int64)
    # The leftmost piece is cut first. So the parts before `begin` are done, and the stack needs
    # only the ends of the others, the leftmost last.
    ends, depth = np.empty(n + 1, np.int64), 1
    ends[0] = n
    n_parts, begin = 0, 0
    while depth > 0:
        end = ends[depth - 1]
        sizes = _cut(sides, limits, rows, ranks, cuts, order[begin:end])
        for i in range(len(sizes) - 1, 0, -1):
            end -= sizes[i]
            ends[depth] = end
            depth += 1
        if len(sizes) > 0:
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
        of_attribute = _ranked(centres)[0]
        for i in range(len(centres)):
            ranks[d, i] = of_attribute[i]
    return ranks


@kernel
def _cut(
    sides: Sides, limits: Limits, rows: RowArrays, ranks: Ints, cuts: Cuts, members: Ints
) -> Ints:
    """Sort some rows by the pieces of a cut; return the size of each piece, none: no cut."""
    fewest, uncut = needed(limits), np.empty(0, np.int64)
    if len(members) < 2 * fewest:
        return uncut
    lengths = _widths(sides, rows, members) if cuts.widest else _side_losses(sides, rows, members)
    for _ in range(len(lengths)):
        d = _largest(lengths)
        if lengths[d] <= 0.0:
            return uncut
        lengths[d] = 0.0
        if cuts.by_node and cuts.trees.attributes["first_leaf"][d] >= 0:
            places, n_pieces = _children(cuts.trees, rows, d, members)
        else:
            places, n_pieces = _halves(picked(ranks[d], members))
        if n_pieces > 1 and _cut_up(limits, rows, members, places, fewest, n_pieces):
            return _sizes(places, n_pieces)
        if not cuts.retry:
            return uncut
    return uncut


@kernel
def _cut_up(
    limits: Limits, rows: RowArrays, members: Ints, places: Ints, fewest: int, n_pieces: int
) -> bool:
    """Sort rows stably by their pieces, unless one may not leave; return whether that was done."""
    sizes = _sizes(places, n_pieces)
    for size in sizes:
        if size < fewest:
            return False
    pieces = _sorted_out(members, places, sizes)
    begin = 0
    for size in sizes:
        if not may_leave(limits, rows, pieces[begin : begin + size]):
            return False
        begin += size
    for i in range(len(members)):
        members[i] = pieces[i]
    return True


@kernel
def _halves(places: Ints) -> tuple[Ints, int]:
    """Return the half of each place, and how many halves there are: 1 if all are equal."""
    last = _last_on_the_left(places)
    if last < 0:
        return places, 1
    halves = np.empty_like(places)
    for i in range(len(places)):
        halves[i] = 0 if places[i] <= last else 1
    return halves, 2


@kernel
def _children(trees: Sides, rows: RowArrays, d: int, members: Ints) -> tuple[Ints, int]:
    """Return for each row which child of the lowest node above all of them it is under.

    Children with rows are counted from left to right. There is one piece only if a row lies under
    no child: the value of that row is missing, and stands for any value of the node.
    """
    lo, hi = np.inf, -np.inf
    for i in members:
        lo, hi = min(lo, rows.lo[d, i]), max(hi, rows.hi[d, i])
    above = cover(trees, d, lo, hi)
    begins = np.empty(len(members))
    for i in range(len(members)):
        child = cover(trees, d, rows.lo[d, members[i]], rows.hi[d, members[i]])
        if child == above:
            return np.zeros(len(members), np.int64), 1
        while trees.nodes["parent"][child] != above:
            child = trees.nodes["parent"][child]
        begins[i] = trees.nodes["lo"][child]
    return _ranked(begins)


@kernel
def _ranked(numbers: Floats) -> tuple[Ints, int]:
    """Return the rank of each number, and how many different numbers there are."""
    ranks = np.empty(len(numbers), np.int64)
    before, rank = -np.inf, -1
    for i in order_of(numbers):
        if numbers[i] != before:
            before = numbers[i]
            rank += 1
        ranks[i] = rank
    return ranks, rank + 1


@kernel
def _widths(sides: Sides, rows: RowArrays, members: Ints) -> Floats:
    """Return the weighted share of its domain that each attribute of some rows spans."""
    widths = np.zeros(len(rows.lo))
    for d in range(len(widths)):
        lowest, highest = sides.attributes["lowest"][d], sides.attributes["highest"][d]
        lo, hi = np.inf, -np.inf
        for i in members:
            lo, hi = min(lo, rows.lo[d, i]), max(hi, rows.hi[d, i])
        # A tree with a single leaf has no length.
        if highest > lowest:
            widths[d] = (hi - lo) * (sides.attributes["weight"][d] / (highest - lowest))
    return widths


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
def _sizes(places: Ints, n_pieces: int) -> Ints:
    """Return how many rows each piece has."""
    sizes = np.zeros(n_pieces, np.int64)
    for place in places:
        sizes[place] += 1
    return sizes


@kernel
def _sorted_out(members: Ints, places: Ints, sizes: Ints) -> Ints:
    """Return the rows piece after piece; within a piece they keep their order."""
    fill = np.zeros(len(sizes), np.int64)
    for p in range(1, len(sizes)):
        fill[p] = fill[p - 1] + sizes[p - 1]
    pieces = np.empty_like(members)
    for i in range(len(members)):
        pieces[fill[places[i]]] = members[i]
        fill[places[i]] += 1
    return pieces
