"""Grow a group among many rows: only those that are nearest to its first row are looked at."""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import by_first, picked
from shoal.engine.kernels.arrays import Ints
from shoal.engine.tide.grid import Boxes, Fixed, Grid, GridRows, begin, take
from shoal.engine.tide.grow import NO_LIMIT, TAKEN, Candidates, Rules, distances, grow

__all__ = ["group_around"]

#: A box grows by rows among this many times as many nearest ones as it needs; half as many times
#: if it needs more than MANY.
NEAR, MANY = 32, 20
#: The bins of the histogram by which the nearest rows are found.
BINS = 256


@kernel
def _n_below(cost: Fixed, n: int, bound: int) -> int:
    """Return how many of n rows cost less. (32-bit counts: the loop is vectorized.)"""
    limit, found = np.int32(bound), np.int32(0)
    for i in range(n):
        found = np.int32(found + (np.int32(1) if cost[i] < limit else np.int32(0)))
    return int(found)


@kernel
def _bound(cost: Fixed, n: int, wanted: int) -> int:
    """Return a cost below which there are at least ``wanted`` of n rows, if there are so many.

    It is the end of a bin of a histogram of all costs.
    """
    # Holes don't count: how many there are depends on how rows came.
    if wanted >= _n_below(cost, n, TAKEN // 2):
        return TAKEN // 2
    free, lowest, highest = np.int32(TAKEN // 2), np.int32(TAKEN), np.int32(-TAKEN)
    for i in range(n):
        lowest = min(lowest, cost[i])
        highest = max(highest, cost[i] if cost[i] < free else np.int32(-TAKEN))
    least, most, shift = int(lowest), int(highest), 0
    while (most - least) >> shift >= BINS:
        shift += 1
    # Some passes over all rows are faster than to count each bin: they are vectorized.
    few, enough = 0, BINS
    while enough - few > 1:
        middle = (few + enough) // 2
        if _n_below(cost, n, min(least + (middle << shift), TAKEN // 2)) >= wanted:
            enough = middle
        else:
            few = middle
    return least + (enough << shift)


@kernel
def _fill(
    near: Candidates, rows: GridRows, n: int, cost: Fixed, bias: Fixed, subjects: Ints, seed: int,
    below: int,
) -> int:  # fmt: skip
    """Make candidates of the seed and of the rows below a cost; return how many there are."""
    m = 1
    near.who[0] = seed
    for i in range(n):
        if cost[i] < below:
            near.who[m] = i
            m += 1
    for a in range(len(rows.lo)):
        for j in range(m):
            near.rows.lo[a, j] = rows.lo[a, near.who[j]]
        if not near.rows.are_points:
            for j in range(m):
                near.rows.hi[a, j] = rows.hi[a, near.who[j]]
    for j in range(m):
        near.bias[j] = bias[near.who[j]]
        near.subjects[j] = j
    if len(subjects) > 0:
        number = by_first(picked(subjects, near.who[:m]))
        for j in range(m):
            near.subjects[j] = number[j]
    return m


@kernel
def group_around(
    grid: Grid, rules: Rules, rows: GridRows, n: int, bias: Fixed, subjects: Ints, sensitive: Ints,
    seed: int, near: Candidates, cost: Fixed, boxes: Boxes, g: int, members: Ints,
) -> int:  # fmt: skip
    """Grow box g around one of n rows, and write its members; return how many there are (0: none).

    ``bias`` is what each row costs beside the growth of the box, `TAKEN` if it can't be had. Where
    each row is of another subject, ``subjects`` may be empty. ``near`` and ``cost`` are room.
    """
    begin(boxes, g)
    take(grid, boxes, g, rows, seed)
    for i in range(n):
        cost[i] = bias[i]
    distances(grid, rows, n, boxes, g, cost, near.part)
    cost[seed] = TAKEN
    times = NEAR if rules.least <= MANY else NEAR // 2
    below = _bound(cost, n, times * rules.least)
    while True:
        m = _fill(near, rows, n, cost, bias, subjects, seed, below)
        n_members = grow(grid, rules, sensitive, near, m, 0, boxes, g, members, NO_LIMIT)
        if n_members > 0 or below == TAKEN // 2:
            break
        below = TAKEN // 2
    for j in range(n_members):
        members[j] = near.who[members[j]]
    return n_members
