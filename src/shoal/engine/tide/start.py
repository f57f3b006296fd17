"""The start of a batch: groups grown one after the other, from the oldest row that is left."""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Ints
from shoal.engine.tide.grid import Boxes, Fixed, Grid, GridRows, added, begin, boxes_for, take
from shoal.engine.tide.grow import TAKEN, Candidates, Rules, candidates_for, distances, grow

__all__ = ["NEAR", "fill_candidates", "insert", "near_enough", "start"]

#: A box grows by rows among this many times as many nearest ones as it needs.
NEAR = 32
#: With more than this many needed rows, half as many times.
MANY = 20
#: The bins of the histogram by which the nearest rows are found: at least half of them are used.
BINS = 256
#: Holes are closed when one row in this many is taken.
HOLES = 8


@kernel
def near_enough(cost: Fixed, n: int, wanted: int) -> int:
    """Return a cost below which there are at least ``wanted`` of n rows, or `TAKEN` if all are."""
    if wanted >= n:
        return TAKEN
    least, most = TAKEN, -TAKEN
    for i in range(n):
        least = min(least, np.int64(cost[i]))
    for i in range(n):
        if cost[i] < TAKEN // 2:
            most = max(most, np.int64(cost[i]))
    shift = 0
    while (most - least) >> shift >= BINS:
        shift += 1
    counts = np.zeros(BINS, np.int64)
    for i in range(n):
        if cost[i] < TAKEN // 2:
            counts[(cost[i] - least) >> shift] += 1
    total, b = 0, 0
    while b < BINS and total < wanted:
        total += counts[b]
        b += 1
    return TAKEN if total < wanted else least + (b << shift)


@kernel
def fill_candidates(
    near: Candidates, rows: GridRows, who: Ints, cost: Fixed, n: int, below: int
) -> int:
    """Make candidates of the rows with a cost below ``below``; return how many there are.

    ``who`` has the numbers of the rows. Each is of a subject of its own.
    """
    m = 0
    for i in range(n):
        if cost[i] < below:
            near.who[m] = i
            m += 1
    for a in range(len(rows.lo)):
        for j in range(m):
            near.rows.lo[a, j] = rows.lo[a, near.who[j]]
            near.rows.hi[a, j] = rows.hi[a, near.who[j]]
    for j in range(m):
        near.who[j] = who[near.who[j]]
        near.subjects[j] = j
    return m


@kernel
def _close_holes(rows: GridRows, who: Ints, part: Ints, n: int) -> int:
    """Move the rows that have no group together, in their order; return how many there are."""
    kept = np.empty(n, np.int64)
    m = 0
    for i in range(n):
        if part[who[i]] < 0:
            kept[m] = i
            m += 1
    for a in range(len(rows.lo)):
        for j in range(m):
            rows.lo[a, j] = rows.lo[a, kept[j]]
            rows.hi[a, j] = rows.hi[a, kept[j]]
    for j in range(m):
        who[j] = who[kept[j]]
    return m


@kernel
def start(
    grid: Grid, rules: Rules, rows: GridRows, sensitive: Ints, wanted: Ints, part: Ints
) -> int:
    """Form groups of the wanted rows, each of another subject, in this order.

    Write the number of the group of each to ``part``, and return how many groups there are. Rows
    that are left, too few for a group of their own, join the groups that they cost least.
    """
    d, n = len(rows.lo), len(wanted)
    some = candidates_for(n, d, True, rows.has_gaps).rows
    for a in range(d):
        for i in range(n):
            some.lo[a, i] = rows.lo[a, wanted[i]]
            some.hi[a, i] = rows.hi[a, wanted[i]]
    for i in wanted:
        part[i] = -1
    near = candidates_for(n, d, True, rows.has_gaps)
    boxes = boxes_for(n // rules.least + 2, d)
    who, cost, members = wanted.copy(), np.empty(n, np.int32), np.empty(n, np.int64)
    times = NEAR if rules.least <= MANY else NEAR // 2
    n_groups, left, seed = 0, n, 0
    while left >= rules.least:
        if n - left >= n // HOLES + 1:
            n, seed = _close_holes(some, who, part, n), 0
        while part[who[seed]] >= 0:
            seed += 1
        begin(boxes, n_groups)
        take(grid, boxes, n_groups, some, seed)
        for i in range(n):
            cost[i] = 0 if part[who[i]] < 0 else TAKEN
        distances(grid, some, n, boxes, n_groups, cost)
        cost[seed] = -1
        below = near_enough(cost, n, times * rules.least)
        n_members = 0
        while n_members == 0:
            m = fill_candidates(near, some, who, cost, n, min(below, TAKEN // 2))
            first = 0
            while near.who[first] != who[seed]:
                first += 1
            n_members = grow(grid, rules, sensitive, near, m, first, boxes, n_groups, members)
            if below == TAKEN:
                break
            below = TAKEN
        if n_members == 0:
            break
        for j in range(n_members):
            part[near.who[members[j]]] = n_groups
        left -= n_members
        n_groups += 1
    if n_groups == 0:
        for i in wanted:
            part[i] = 0
        return 1
    for i in wanted:
        if part[i] < 0:
            part[i] = insert(grid, boxes, 0, n_groups, rows, i)
    return n_groups


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
