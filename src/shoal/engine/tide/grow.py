"""GROW: widen a box from one row, always by the row that it costs least, until it is a group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import inlined, kernel
from shoal.engine.kernels.array_tools import picked, picked_rows
from shoal.engine.kernels.arrays import Bools, Ints
from shoal.engine.kernels.predicate import Limits, meets
from shoal.engine.tide.grid import WHOLE, Boxes, Fixed, Grid, GridRows, begin, side_of, take, widen

__all__ = [
    "NO_LIMIT",
    "TAKEN",
    "Candidates",
    "Rules",
    "candidates_for",
    "cheapest",
    "distances",
    "drop",
    "grow",
    "restart",
    "update",
]

#: A group that breaks the promise is tested again with 1 / FURTHER more rows, at least: a promise
#: that needs many rows would cost the square of their number.
FURTHER = 8
#: The cost of a row that is in a group already: more than any other cost.
TAKEN = 1 << 30
#: More than any group loses.
NO_LIMIT = 1 << 62


class Rules(NamedTuple):
    """What a group needs: at least ``least`` subjects, and what else is promised, if ``asks``.

    Where it asks, the promise is tested at ``least`` rows and then after ``step`` further ones, or
    an eighth more. ``measured`` is the first sensitive attribute that is measured, or -1.
    ``takes_equals`` says that a group of equal rows takes the others like them, too, if these are
    too few for a group of their own: nothing costs less.
    """

    limits: Limits
    least: int
    step: int
    asks: bool
    measured: int
    takes_equals: bool


class Candidates(NamedTuple):
    """Rows that a box can grow by.

    ``who`` has their numbers, ``subjects`` numbers for their subjects, ``bias`` what each costs
    beside the growth of the box. ``cost`` is the sum of its ``parts`` by attribute and the bias;
    ``part`` is room for one attribute.
    """

    rows: GridRows
    who: Ints
    subjects: Ints
    bias: Fixed
    cost: Fixed
    parts: Fixed
    part: Fixed


@kernel
def candidates_for(n: int, n_quasi: int, is_wide: bool, has_gaps: bool) -> Candidates:
    """Return room for n candidates; those that aren't wide have one array for both ends."""
    lo = np.empty((n_quasi, n), np.int32)
    hi = np.empty((n_quasi, n), np.int32) if is_wide else lo
    rows = GridRows(lo, hi, has_gaps, not is_wide)
    return Candidates(
        rows,
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.zeros(n, np.int32),
        np.empty(n, np.int32),
        np.empty((n_quasi, n), np.int32),
        np.empty(n, np.int32),
    )


@inlined
def _write_lengths(a: int, rows: GridRows, n: int, lo: int, hi: int, part: Fixed) -> None:
    """Write by how much each row widens an interval."""
    low, high = np.int32(lo), np.int32(hi)
    for i in range(n):
        below = np.int32(low - rows.lo[a, i])
        above = np.int32(rows.hi[a, i] - high)
        part[i] = np.int32(max(below, np.int32(0)) + max(above, np.int32(0)))


@inlined
def _write_nodes(grid: Grid, a: int, rows: GridRows, n: int, node: int, part: Fixed) -> None:
    """Write by how much each row raises a node, climbing the tree level by level."""
    loss, share = grid.nodes["loss"][node], grid.attributes["share"][a]
    is_lowest = True
    while grid.nodes["parent"][node] != node:
        lo, hi = np.int32(grid.nodes["lo"][node]), np.int32(grid.nodes["hi"][node])
        node = grid.nodes["parent"][node]
        more = np.int32((grid.nodes["loss"][node] - loss) * share // WHOLE)
        if is_lowest:
            for i in range(n):
                outside = (rows.lo[a, i] < lo) | (rows.hi[a, i] > hi)
                part[i] = more if outside else np.int32(0)
        else:
            for i in range(n):
                part[i] = more if (rows.lo[a, i] < lo) | (rows.hi[a, i] > hi) else part[i]
        is_lowest = False
    if is_lowest:
        for i in range(n):
            part[i] = 0


@inlined
def _write_part(
    grid: Grid, a: int, rows: GridRows, n: int, boxes: Boxes, g: int, part: Fixed
) -> None:
    """Write how much more each row costs one side of a box.

    Rows without a value widen no side, as their ends are; what they cost comes afterwards.
    """
    lo, hi, node = side_of(boxes, a, g)
    lacks = boxes.lacks[a, g]
    is_number = grid.attributes["first_leaf"][a] < 0
    is_empty = lo > hi
    if not is_empty and is_number:
        _write_lengths(a, rows, n, lo, hi, part)
    elif not is_empty:
        _write_nodes(grid, a, rows, n, node, part)
    if not rows.has_gaps:
        return
    mixing = np.int32(grid.attributes["mixing"][a])
    for i in range(n):
        has = rows.lo[a, i] <= rows.hi[a, i]
        if is_empty:
            own = rows.hi[a, i] - rows.lo[a, i] if is_number else np.int32(0)
            part[i] = own + mixing if has else np.int32(0)
        elif not has and not lacks:
            part[i] = mixing


@inlined
def _add_lengths(a: int, rows: GridRows, n: int, lo: int, hi: int, cost: Fixed) -> None:
    """Add by how much each row widens an interval."""
    low, high = np.int32(lo), np.int32(hi)
    if rows.are_points:
        for i in range(n):
            at = rows.lo[a, i]
            below, above = np.int32(low - at), np.int32(at - high)
            cost[i] += np.int32(max(below, np.int32(0)) + max(above, np.int32(0)))
        return
    for i in range(n):
        below = np.int32(low - rows.lo[a, i])
        above = np.int32(rows.hi[a, i] - high)
        cost[i] += np.int32(max(below, np.int32(0)) + max(above, np.int32(0)))


@inlined
def _add_nodes(grid: Grid, a: int, rows: GridRows, n: int, node: int, cost: Fixed) -> None:
    """Add by how much each row raises a node: at each level more, for the rows outside of it."""
    loss, share, before = grid.nodes["loss"][node], grid.attributes["share"][a], np.int32(0)
    while grid.nodes["parent"][node] != node:
        lo, hi = np.int32(grid.nodes["lo"][node]), np.int32(grid.nodes["hi"][node])
        node = grid.nodes["parent"][node]
        whole = np.int32((grid.nodes["loss"][node] - loss) * share // WHOLE)
        more = np.int32(whole - before)
        before = whole
        if rows.are_points:
            for i in range(n):
                at = rows.lo[a, i]
                cost[i] += more if (at < lo) | (at > hi) else np.int32(0)
        else:
            for i in range(n):
                outside = (rows.lo[a, i] < lo) | (rows.hi[a, i] > hi)
                cost[i] += more if outside else np.int32(0)


@kernel
def distances(
    grid: Grid, rows: GridRows, n: int, boxes: Boxes, g: int, cost: Fixed, part: Fixed
) -> None:
    """Add to ``cost`` how much more a box would lose with each of n rows; ``part`` is room."""
    if rows.has_gaps:
        for a in range(len(boxes.lo)):
            _write_part(grid, a, rows, n, boxes, g, part)
            for i in range(n):
                cost[i] += part[i]
        return
    for a in range(len(boxes.lo)):
        lo, hi, node = side_of(boxes, a, g)
        if grid.attributes["first_leaf"][a] < 0:
            _add_lengths(a, rows, n, lo, hi, cost)
        else:
            _add_nodes(grid, a, rows, n, node, cost)


@inlined
def _change_lengths(a: int, near: Candidates, n: int, lo: int, hi: int) -> None:
    """Bring the costs up to date in a number."""
    low, high = np.int32(lo), np.int32(hi)
    rows, parts, cost = near.rows, near.parts, near.cost
    for i in range(n):
        below = np.int32(low - rows.lo[a, i])
        above = np.int32(rows.hi[a, i] - high)
        new = np.int32(max(below, np.int32(0)) + max(above, np.int32(0)))
        cost[i] += new - parts[a, i]
        parts[a, i] = new


@inlined
def _change_part(a: int, near: Candidates, n: int, part: Fixed) -> None:
    """Bring the costs up to date in an attribute whose part is known."""
    parts, cost = near.parts, near.cost
    for i in range(n):
        cost[i] += part[i] - parts[a, i]
        parts[a, i] = part[i]


@inlined
def update(grid: Grid, near: Candidates, n: int, boxes: Boxes, g: int) -> None:
    """Bring the costs up to date in the sides that the latest row changed."""
    for a in range(len(boxes.lo)):
        if not boxes.changed[a, g]:
            continue
        lo, hi, _ = side_of(boxes, a, g)
        if not near.rows.has_gaps and grid.attributes["first_leaf"][a] < 0:
            _change_lengths(a, near, n, lo, hi)
        else:
            _write_part(grid, a, near.rows, n, boxes, g, near.part)
            _change_part(a, near, n, near.part)


@inlined
def cheapest(cost: Fixed, n: int) -> int:
    """Return the first row with the least cost. (Two loops: the first one is vectorized.)"""
    least = np.int32(2147483647)
    for i in range(n):
        least = min(least, cost[i])
    at = 0
    while cost[at] != least:
        at += 1
    return at


@kernel
def drop(near: Candidates, n: int, part: Ints) -> int:
    """Move the candidates without a group together, in their order; return how many there are."""
    m = 0
    for j in range(n):
        if part[near.who[j]] < 0:
            near.subjects[m] = j
            near.who[m] = near.who[j]
            m += 1
    rows, kept = near.rows, near.subjects
    for a in range(len(rows.lo)):
        for j in range(m):
            rows.lo[a, j] = rows.lo[a, kept[j]]
        if not rows.are_points:
            for j in range(m):
                rows.hi[a, j] = rows.hi[a, kept[j]]
    for j in range(m):
        near.subjects[j] = j
    return m


@inlined
def restart(near: Candidates, n: int) -> None:
    """Make all of n candidates cost what they cost a box without rows."""
    for i in range(n):
        near.cost[i] = near.bias[i]
    for a in range(len(near.parts)):
        for i in range(n):
            near.parts[a, i] = 0


@kernel
def grow(
    grid: Grid, rules: Rules, sensitive: Ints, near: Candidates, n: int, seed: int, boxes: Boxes,
    g: int, members: Ints, most: int,
) -> int:  # fmt: skip
    """Grow box g from one of n candidates, and write the members; return how many there are.

    A subject has one row in it. 0 if the promise isn't kept with any number of rows, or if nothing
    but a number of subjects is promised and these would lose ``most`` or more together.
    """
    restart(near, n)
    taken = np.zeros(n, np.bool_)
    begin(boxes, g)
    n_members, asked, i = 0, rules.least, seed
    while True:
        near.cost[i] = TAKEN
        if not taken[near.subjects[i]]:
            taken[near.subjects[i]] = True
            members[n_members] = i
            n_members += 1
            is_changed = widen(grid, boxes, g, near.rows, i)
            if n_members >= asked:
                if not rules.asks or _may_leave(rules, sensitive, near, members[:n_members]):
                    if rules.takes_equals and boxes.totals["loss"][g] == 0:
                        return _with_equals(
                            grid, rules, sensitive, near, n, taken, boxes, g, members
                        )
                    return n_members
                asked = n_members + max(rules.step, n_members // FURTHER)
            if is_changed:
                if not rules.asks and boxes.totals["loss"][g] * rules.least >= most:
                    return 0
                update(grid, near, n, boxes, g)
        i = cheapest(near.cost, n)
        if near.cost[i] >= TAKEN // 2:
            break
    # The last few may be fewer than a step.
    if n_members >= rules.least and _may_leave(rules, sensitive, near, members[:n_members]):
        return n_members
    return 0


@kernel
def _with_equals(
    grid: Grid, rules: Rules, sensitive: Ints, near: Candidates, n: int, taken: Bools,
    boxes: Boxes, g: int, members: Ints,
) -> int:  # fmt: skip
    """Add the candidates that cost nothing if they are too few for a group of their own.

    The group has lost nothing. Return how many members there are.
    """
    n_members = boxes.totals["count"][g]
    more = n_members
    for i in range(n):
        if near.cost[i] == 0 and not taken[near.subjects[i]]:
            if more - n_members == rules.least - 1:
                return n_members
            taken[near.subjects[i]] = True
            members[more] = i
            more += 1
    if rules.asks and not _may_leave(rules, sensitive, near, members[:more]):
        return n_members
    for j in range(n_members, more):
        take(grid, boxes, g, near.rows, members[j])
    return more


@kernel
def _may_leave(rules: Rules, sensitive: Ints, near: Candidates, members: Ints) -> bool:
    """Whether some candidates may be a group."""
    codes = picked_rows(sensitive, picked(near.who, members))
    return meets(rules.limits, picked(near.subjects, members), codes)
