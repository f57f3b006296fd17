"""The start of a batch: groups grown one after the other, from the oldest row that is left.

What groups lose says whether they are a better start than other ones.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import picked, picked_rows
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.parts import in_parts
from shoal.engine.kernels.predicate import meets
from shoal.engine.tide.grid import (
    SCALE,
    WHOLE,
    Boxes,
    Fixed,
    Grid,
    GridRows,
    added,
    begin,
    boxes_for,
    take,
)
from shoal.engine.tide.grow import TAKEN, Rules, candidates_for
from shoal.engine.tide.nearest import group_around

__all__ = ["insert", "lost", "start"]

#: How much less of its loss counts, at most, for a category that all groups generalize.
DISCOUNT = 4 * WHOLE // 10
#: Holes are closed when one row in this many is taken.
HOLES = 8


@kernel
def _copied(rows: GridRows, chosen: Ints) -> GridRows:
    """Return copies of some rows."""
    d, n = len(rows.lo), len(chosen)
    lo = np.empty((d, n), np.int32)
    hi = lo if rows.are_points else np.empty((d, n), np.int32)
    for a in range(d):
        for i in range(n):
            lo[a, i] = rows.lo[a, chosen[i]]
            hi[a, i] = rows.hi[a, chosen[i]]
    return GridRows(lo, hi, rows.has_gaps, rows.are_points)


@kernel
def _close_holes(rows: GridRows, who: Ints, sensitive: Ints, bias: Fixed, n: int) -> int:
    """Move the rows that have no group together, in their order; return how many there are."""
    kept = np.empty(n, np.int64)
    m = 0
    for i in range(n):
        if bias[i] < TAKEN:
            kept[m] = i
            m += 1
    for a in range(len(rows.lo)):
        for j in range(m):
            rows.lo[a, j] = rows.lo[a, kept[j]]
        if not rows.are_points:
            for j in range(m):
                rows.hi[a, j] = rows.hi[a, kept[j]]
    for j in range(m):
        who[j] = who[kept[j]]
        bias[j] = 0
        for s in range(sensitive.shape[1]):
            sensitive[j, s] = sensitive[kept[j], s]
    return m


@kernel
def _discount(grid: Grid, boxes: Boxes, n_groups: int, n_general: Ints) -> None:
    """Let a category count less, the more groups had to generalize it, after one more group.

    Where it is lost in most groups anyway, it shouldn't decide which rows are together.
    """
    for a in range(len(n_general)):
        if grid.attributes["first_leaf"][a] >= 0:
            n_general[a] += boxes.lo[a, n_groups - 1] < boxes.hi[a, n_groups - 1]
            less = DISCOUNT * n_general[a] // (n_groups + 2)
            grid.attributes["share"][a] = WHOLE - less


@kernel
def start(
    grid: Grid, rules: Rules, rows: GridRows, sensitive: Ints, chosen: Ints, part: Ints
) -> int:
    """Form groups of the chosen rows, each of another subject.

    Write the number of the group of each to ``part``, and return how many groups there are. Rows
    that are left, too few for a group of their own, join the groups where they cost least.
    """
    d, n = len(rows.lo), len(chosen)
    discounted, n_general = (
        Grid(grid.attributes.copy(), grid.leaf_node, grid.nodes),
        np.zeros(d, np.int64),
    )
    some, codes, who = _copied(rows, chosen), picked_rows(sensitive, chosen), chosen.copy()
    near = candidates_for(n, d, not rows.are_points, rows.has_gaps)
    boxes = boxes_for(n // rules.least + 2, d)
    nobody = np.empty(0, np.int64)
    bias, cost, members = np.zeros(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int64)
    for i in chosen:
        part[i] = -1
    n_groups, left, seed = 0, n, 0
    while left >= rules.least:
        if n - left > n // HOLES:
            n, seed = _close_holes(some, who, codes, bias, n), 0
        while bias[seed] >= TAKEN:
            seed += 1
        n_members = group_around(
            discounted, rules, some, n, bias, nobody, codes, seed, near, cost, boxes, n_groups,
            members,
        )  # fmt: skip
        if n_members == 0:
            break
        for j in range(n_members):
            bias[members[j]] = TAKEN
            part[who[members[j]]] = n_groups
        left -= n_members
        n_groups += 1
        _discount(discounted, boxes, n_groups, n_general)
    for i in chosen:
        if n_groups == 0:
            part[i] = 0
        elif part[i] < 0:
            part[i] = insert(grid, boxes, 0, n_groups, rows, i)
    return max(1, n_groups)


@kernel
def insert(grid: Grid, boxes: Boxes, first: int, end: int, rows: GridRows, i: int) -> int:
    """Put a row into the box, of those from ``first`` to ``end``, where it costs all rows least."""
    best, least = -1, 0
    for g in range(first, end):
        loss, count = boxes.totals["loss"][g], boxes.totals["count"][g]
        if best >= 0 and loss >= least:
            continue
        cost = loss + (count + 1) * added(grid, boxes, g, rows, i)
        if best < 0 or cost < least:
            best, least = g, cost
    take(grid, boxes, best, rows, i)
    return best


@kernel
def lost(
    grid: Grid, rules: Rules, rows: GridRows, sensitive: Ints, chosen: Ints, part: Ints,
    n_groups: int,
) -> int:  # fmt: skip
    """Return what groups of the chosen rows, each of another subject, lose together.

    A group that breaks the promise has lost everything.
    """
    order, starts = in_parts(picked(part, chosen), n_groups)
    boxes, total = boxes_for(1, len(rows.lo)), 0
    for g in range(n_groups):
        members = picked(chosen, order[starts[g] : starts[g + 1]])
        loss = SCALE
        if meets(rules.limits, members, picked_rows(sensitive, members)):
            begin(boxes, 0)
            for i in members:
                take(grid, boxes, 0, rows, i)
            loss = boxes.totals["loss"][0]
        total += loss * len(members)
    return total
