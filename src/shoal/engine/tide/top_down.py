"""Cut rows in two, again and again: where the halves lose least, and both keep the promise.

One half has the rows within a range, the other one the rest. Where the half within the range has
too much of some sensitive values, these rows go to the rest: that has everything else already, so
they hardly make it wider. So each half has about its share of all values, and can be cut again.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import column, in_order, order_of, picked_rows
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.predicate import meets
from shoal.engine.tide.grid import Boxes, Grid, GridRows, begin, boxes_for, side_of, take
from shoal.engine.tide.grow import Rules
from shoal.engine.tide.levels import Levels

__all__ = ["cut_in_shares"]

#: A number is cut between at most this many parts of the rows.
PIECES = 8
#: A half that breaks the promise is trimmed by an eighth, two eighths, and so on.
TRIMS = 8


@kernel
def _ranges(grid: Grid, rows: GridRows, members: Ints, boxes: Boxes, a: int) -> Ints:
    """Return what can be cut off in one attribute: ranges of numbers or of leaves."""
    lowest, highest, own = side_of(boxes, a, 0)
    if lowest >= highest:
        return np.empty((0, 2), np.int64)
    if grid.attributes["first_leaf"][a] < 0:
        found, ends = np.empty((PIECES - 1, 2), np.int64), np.empty(len(members), np.int64)
        m, n = 0, 0
        for i in members:
            if rows.lo[a, i] <= rows.hi[a, i]:
                ends[m] = rows.hi[a, i]
                m += 1
        ends = in_order(ends[:m])
        for piece in range(1, PIECES):
            hi = ends[m * piece // PIECES]
            if hi >= highest or (n > 0 and found[n - 1, 1] == hi):
                continue
            found[n, 0], found[n, 1] = lowest, hi
            n += 1
        return found[:n]
    found, n = np.empty((len(grid.nodes), 2), np.int64), 0
    for node in range(own + 1, len(grid.nodes)):
        if grid.nodes["parent"][node] == node:
            break
        if grid.nodes["parent"][node] == own:
            found[n, 0], found[n, 1] = grid.nodes["lo"][node], grid.nodes["hi"][node]
            n += 1
    return found[:n]


@kernel
def _split(rows: GridRows, members: Ints, a: int, lo: int, hi: int) -> tuple[Ints, int]:
    """Return the rows, those within a range first (stably), and how many these are."""
    n_left = 0
    for i in members:
        n_left += rows.lo[a, i] <= rows.hi[a, i] and rows.lo[a, i] >= lo and rows.hi[a, i] <= hi
    halves = np.empty(len(members), np.int64)
    left, right = 0, n_left
    for i in members:
        if rows.lo[a, i] <= rows.hi[a, i] and rows.lo[a, i] >= lo and rows.hi[a, i] <= hi:
            halves[left] = i
            left += 1
        else:
            halves[right] = i
            right += 1
    return halves, n_left


@kernel
def _lost(grid: Grid, rows: GridRows, members: Ints, boxes: Boxes) -> int:
    """Return what rows lose together as one group, and leave their box in ``boxes``."""
    begin(boxes, 0)
    for i in members:
        take(grid, boxes, 0, rows, i)
    return boxes.totals["loss"][0] * len(members)


@kernel
def _trimmed(levels: Levels, n_all: Ints, halves: Ints, n_left: int, n_kept: int) -> Ints:
    """Return the rows with this many on the left, whose values have no more than their shares.

    What is too much on the left goes to the right. Shares of the finest levels are the first to be
    given up.
    """
    n, depth = len(halves), len(levels.nodes)
    n_taken = np.zeros(levels.n, np.int64)
    kept = np.zeros(n, np.bool_)
    found = 0
    for n_levels in range(depth, -1, -1):
        for j in range(n_left):
            if kept[j] or found == n_kept:
                continue
            may = True
            for level in range(n_levels):
                node = levels.nodes[level, halves[j]]
                may = may and n_taken[node] * n < n_kept * n_all[node]
            if may:
                kept[j] = True
                found += 1
                for level in range(depth):
                    n_taken[levels.nodes[level, halves[j]]] += 1
    trimmed = np.empty(n, np.int64)
    left, right = 0, n_kept
    for j in range(n):
        if kept[j]:
            trimmed[left] = halves[j]
            left += 1
        else:
            trimmed[right] = halves[j]
            right += 1
    return trimmed


@kernel
def _cuts(grid: Grid, rules: Rules, rows: GridRows, members: Ints, before: int, box: Boxes) -> Ints:
    """Return all cuts that gain anything, the best first: the gain, the attribute and the range."""
    cuts, n = np.empty((PIECES * len(rows.lo) + len(grid.nodes), 4), np.int64), 0
    half = boxes_for(1, len(rows.lo))
    for a in range(len(rows.lo)):
        for found in _ranges(grid, rows, members, box, a):
            halves, n_left = _split(rows, members, a, found[0], found[1])
            if n_left < rules.least or n_left == len(members):
                continue
            gain = before - _lost(grid, rows, halves[:n_left], half)
            gain -= _lost(grid, rows, halves[n_left:], half)
            if gain > 0:
                cuts[n, 0], cuts[n, 1], cuts[n, 2], cuts[n, 3] = -gain, a, found[0], found[1]
                n += 1
    cuts = picked_rows(cuts, order_of(column(cuts[:n], 0)))
    for c in range(n):
        cuts[c, 0] = -cuts[c, 0]
    return cuts


@kernel
def _counted(levels: Levels, members: Ints) -> Ints:
    """Count the rows by level and value."""
    counts = np.zeros(levels.n, np.int64)
    for level in range(len(levels.nodes)):
        for i in members:
            counts[levels.nodes[level, i]] += 1
    return counts


@kernel
def _allowed(
    rules: Rules, sensitive: Ints, levels: Levels, n_all: Ints, halves: Ints, n_left: int
) -> tuple[Ints, int]:
    """Return halves that keep the promise, with as many rows on the left as can be; 0: none do."""
    n = len(halves)
    for piece in range(TRIMS, 0, -1):
        n_kept = n_left * piece // TRIMS
        if min(n_kept, n - n_kept) < rules.least:
            continue
        found = halves
        if piece < TRIMS:
            found = _trimmed(levels, n_all, halves, n_left, n_kept)
        left, right = found[:n_kept], found[n_kept:]
        if meets(rules.limits, left, picked_rows(sensitive, left)) and meets(
            rules.limits, right, picked_rows(sensitive, right)
        ):
            return found, n_kept
    return halves, 0


@kernel
def _cut(
    grid: Grid, rules: Rules, rows: GridRows, sensitive: Ints, levels: Levels, members: Ints
) -> int:
    """Move the rows of one half before those of the other; return how many, 0: no cut is valid."""
    if len(members) < 2 * rules.least:
        return 0
    box, half = boxes_for(1, len(rows.lo)), boxes_for(1, len(rows.lo))
    before = _lost(grid, rows, members, box)
    n_all = _counted(levels, members)
    most, n_best, best = 0, 0, members.copy()
    for cut in _cuts(grid, rules, rows, members, before, box):
        # To trim a half gains nothing, but for a box that gets smaller.
        if cut[0] <= most:
            break
        halves, n_left = _split(rows, members, cut[1], cut[2], cut[3])
        halves, n_left = _allowed(rules, sensitive, levels, n_all, halves, n_left)
        if n_left == 0:
            continue
        gain = before - _lost(grid, rows, halves[:n_left], half)
        gain -= _lost(grid, rows, halves[n_left:], half)
        if gain > most:
            most, n_best, best = gain, n_left, halves
    for j in range(len(members)):
        members[j] = best[j]
    return n_best


@kernel
def cut_in_shares(
    grid: Grid, rules: Rules, rows: GridRows, sensitive: Ints, levels: Levels, chosen: Ints,
    part: Ints,
) -> int:  # fmt: skip
    """Cut the chosen rows, each of another subject; write the parts, and return their number."""
    order = chosen.copy()
    ends, depth = np.empty(len(order) + 1, np.int64), 1
    ends[0] = len(order)
    n_parts, first = 0, 0
    while depth > 0:
        end = ends[depth - 1]
        n_left = _cut(grid, rules, rows, sensitive, levels, order[first:end])
        if n_left > 0:
            ends[depth] = first + n_left
            depth += 1
            continue
        for i in order[first:end]:
            part[i] = n_parts
        n_parts += 1
        first = end
        depth -= 1
    return n_parts
