"""REPAIR: form three neighbouring groups again from random seeds, and keep what loses less.

Where groups are measured against a window, every other time no group may have more than its share
of the sensitive values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels import rng
from shoal.engine.kernels.array_tools import column, picked_rows
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.predicate import meets
from shoal.engine.tide.grid import (
    Boxes,
    Fixed,
    Grid,
    GridRows,
    begin,
    boxes_for,
    copy_box,
    joint_loss,
    take,
    take_first,
)
from shoal.engine.tide.grow import (
    NO_LIMIT,
    Candidates,
    Rules,
    candidates_for,
    distances,
    drop,
    grow,
)
from shoal.engine.tide.levels import Levels, levels_of
from shoal.engine.tide.shares import regrow_in_shares
from shoal.engine.tide.start import insert
from shoal.engine.tide.top_down import cut_in_shares

__all__ = ["POOLED", "repair"]

#: The number of groups that are formed again together.
POOLED = 3
#: The neighbours of a group are searched among this many groups beside it in their order, and as
#: many others that are evenly apart, from a random one on; among all where there are no more.
BESIDE = 32
#: The ways to form groups again, where they are measured: one of them is drawn each time.
GROW, SHARES, CUT, WAYS = range(4)


class _Chains(NamedTuple):
    """The rows of each group as a linked list."""

    first: Ints
    following: Ints


class _Around(NamedTuple):
    """Room to search the neighbours of a group: their numbers, boxes and costs."""

    who: Ints
    boxes: GridRows
    cost: Fixed
    part: Fixed


@kernel
def _room_around(n_quasi: int) -> _Around:
    n = 2 * BESIDE
    boxes = GridRows(
        np.empty((n_quasi, n), np.int32), np.empty((n_quasi, n), np.int32), False, False
    )
    return _Around(np.empty(n, np.int64), boxes, np.empty(n, np.int32), np.empty(n, np.int32))


@kernel
def _write_joint_growth(
    grid: Grid, has_gaps: bool, boxes: Boxes, g: int, room: _Around, n: int
) -> None:
    """Write how much more group g would lose with each of n others."""
    if has_gaps:
        # A box may have values and lack them: it isn't like a row.
        for j in range(n):
            room.cost[j] = joint_loss(grid, boxes, g, room.who[j]) - boxes.totals["loss"][g]
        return
    for a in range(len(boxes.lo)):
        for j in range(n):
            room.boxes.lo[a, j] = boxes.lo[a, room.who[j]]
        for j in range(n):
            room.boxes.hi[a, j] = boxes.hi[a, room.who[j]]
    for j in range(n):
        room.cost[j] = 0
    distances(grid, room.boxes, n, boxes, g, room.cost, room.part)


@kernel
def _nearest(
    grid: Grid, has_gaps: bool, boxes: Boxes, n_groups: int, g: int, draws: Ints, room: _Around,
    chosen: Ints,
) -> int:  # fmt: skip
    """Choose the groups with which group g would lose least more; return how many there are.

    ``chosen`` begins with g itself.
    """
    n = min(2 * BESIDE, n_groups)
    first = rng.below(draws, n_groups) if n_groups > 2 * BESIDE else 0
    for j in range(n):
        h = j
        if n_groups > 2 * BESIDE:
            h = g - BESIDE // 2 + j if j < BESIDE else first + (j - BESIDE) * n_groups // BESIDE
            h += n_groups if h < 0 else 0
            h -= n_groups if h >= n_groups else 0
        room.who[j] = h
    _write_joint_growth(grid, has_gaps, boxes, g, room, n)
    loss, count = boxes.totals["loss"][g], boxes.totals["count"][g]
    # The two that are best so far; of equals, the one that came first.
    best = second = -1
    least = less = NO_LIMIT
    for j in range(n):
        h = room.who[j]
        n_rows = boxes.totals["count"][h]
        growth = (loss + room.cost[j]) * (count + n_rows) - boxes.totals["loss"][h] * n_rows
        if growth >= less or h in (g, best, second):
            continue
        if growth < least:
            best, second, least, less = h, best, growth, least
        else:
            second, less = h, growth
    chosen[0], chosen[1], chosen[2] = g, best, second
    return 1 + (best >= 0) + (second >= 0)


@kernel
def _pooled(near: Candidates, rows: GridRows, chains: _Chains, chosen: Ints) -> int:
    """Make candidates of the rows of some groups; return how many there are."""
    m = 0
    for g in chosen:
        i = chains.first[g]
        while i >= 0:
            for a in range(len(rows.lo)):
                near.rows.lo[a, m] = rows.lo[a, i]
            if not rows.are_points:
                for a in range(len(rows.lo)):
                    near.rows.hi[a, m] = rows.hi[a, i]
            near.who[m] = i
            near.subjects[m] = m
            m += 1
            i = chains.following[i]
    return m


@kernel
def _regrow(
    grid: Grid, rules: Rules, rows: GridRows, sensitive: Ints, near: Candidates, m: int,
    draws: Ints, boxes: Boxes, members: Ints, part: Ints, most: int,
) -> int:  # fmt: skip
    """Form groups of m candidates, and write them to ``part``; return how many groups there are.

    0 if all rows together would lose ``most`` or more, or if the promise can't be kept.
    """
    for j in range(m):
        part[near.who[j]] = -1
    n_groups, sum_of_losses = 0, 0
    while m >= rules.least:
        n_members = m
        if m == rules.least:
            take_first(grid, boxes, n_groups, near.rows, m)
            for j in range(m):
                members[j] = j
        else:
            seed = rng.below(draws, m)
            n_members = grow(
                grid, rules, sensitive, near, m, seed, boxes, n_groups, members,
                most - sum_of_losses,
            )  # fmt: skip
        if n_members == 0 and not rules.asks:
            return 0
        if n_members == 0:
            break
        for j in range(n_members):
            part[near.who[members[j]]] = n_groups
        sum_of_losses += boxes.totals["loss"][n_groups] * boxes.totals["count"][n_groups]
        n_groups += 1
        if sum_of_losses >= most:
            return 0
        m = drop(near, m, part)
    if n_groups == 0:
        return 0
    for j in range(m):
        part[near.who[j]] = insert(grid, boxes, 0, n_groups, rows, near.who[j])
    sum_of_losses = 0
    for g in range(n_groups):
        sum_of_losses += boxes.totals["loss"][g] * boxes.totals["count"][g]
    return n_groups if sum_of_losses < most else 0


@on_demand
def _recut(
    grid: Grid, rules: Rules, rows: GridRows, sensitive: Ints, levels: Levels, who: Ints,
    boxes: Boxes, part: Ints, most: int,
) -> int:  # fmt: skip
    """Cut some rows, and write the groups to ``part``; return how many groups there are.

    0 if all rows together would lose ``most`` or more.
    """
    n_groups = cut_in_shares(grid, rules, rows, sensitive, levels, who, part)
    for g in range(n_groups):
        begin(boxes, g)
    for i in who:
        take(grid, boxes, part[i], rows, i)
    sum_of_losses = 0
    for g in range(n_groups):
        sum_of_losses += boxes.totals["loss"][g] * boxes.totals["count"][g]
    return n_groups if sum_of_losses < most else 0


@on_demand
def _all_meet(rules: Rules, sensitive: Ints, who: Ints, part: Ints, n_groups: int) -> bool:
    """Whether every group of some rows, each of another subject, keeps the promise."""
    for g in range(n_groups):
        chosen = np.empty(len(who), np.int64)
        n = 0
        for i in who:
            if part[i] == g:
                chosen[n] = i
                n += 1
        if not meets(rules.limits, chosen[:n], picked_rows(sensitive, chosen[:n])):
            return False
    return True


@kernel
def repair(
    grid: Grid, rules: Rules, rows: GridRows, sensitive: Ints, part: Ints, n_groups: int,
    times: int, draws: Ints,
) -> int:  # fmt: skip
    """Improve groups of rows, each of another subject, and return how many groups there are.

    ``part`` has the group of each row. Groups that are adjacent by number should be near.
    """
    n, d = len(part), len(rows.lo)
    room = max(n // rules.least, n_groups) + POOLED
    boxes = boxes_for(room, d)
    chains = _Chains(np.full(room, -1, np.int64), np.full(n, -1, np.int64))
    for g in range(n_groups):
        begin(boxes, g)
    for i in range(n - 1, -1, -1):
        _join(grid, boxes, chains, part[i], rows, i)
    near = candidates_for(n, d, not rows.are_points, rows.has_gaps)
    formed, members, chosen = boxes_for(room, d), np.empty(n, np.int64), np.empty(room, np.int64)
    new, who, around = np.empty(n, np.int64), np.empty(n, np.int64), _room_around(d)
    block, values, levels = (
        np.empty(n, np.int64),
        np.empty(0, np.int64),
        levels_of(rules, sensitive),
    )
    if rules.measured >= 0:
        values = column(sensitive, rules.measured)
    for _ in range(times):
        g, h = rng.below(draws, n_groups), rng.below(draws, n_groups)
        if boxes.totals["loss"][h] > boxes.totals["loss"][g]:
            g = h
        n_chosen = _nearest(grid, rows.has_gaps, boxes, n_groups, g, draws, around, chosen)
        way = rng.below(draws, WAYS) if rules.measured >= 0 else GROW
        before = 0
        for c in range(n_chosen):
            totals = boxes.totals[chosen[c]]
            before += totals["loss"] * totals["count"]
        m = _pooled(near, rows, chains, chosen[:n_chosen])
        for j in range(m):
            who[j] = near.who[j]
        if way == SHARES:
            n_formed = regrow_in_shares(
                grid, rules, values, near, m, n_chosen, draws, formed, members, new, block, before
            )
        elif way == CUT:
            n_formed = _recut(grid, rules, rows, sensitive, levels, who[:m], formed, new, before)
        else:
            n_formed = _regrow(
                grid, rules, rows, sensitive, near, m, draws, formed, members, new, before
            )
        if n_formed == 0:
            continue
        if rules.asks and not _all_meet(rules, sensitive, who[:m], new, n_formed):
            continue
        n_groups = _replace(
            boxes, chains, n_groups, formed, n_formed, chosen, n_chosen, new, who[:m]
        )
    for g in range(n_groups):
        i = chains.first[g]
        while i >= 0:
            part[i] = g
            i = chains.following[i]
    return n_groups


@kernel
def _join(grid: Grid, boxes: Boxes, chains: _Chains, g: int, rows: GridRows, i: int) -> None:
    """Add a row to a group, before all others."""
    take(grid, boxes, g, rows, i)
    chains.following[i] = chains.first[g]
    chains.first[g] = i


@kernel
def _replace(
    boxes: Boxes, chains: _Chains, n_groups: int, formed: Boxes, n_formed: int, chosen: Ints,
    n_chosen: int, new: Ints, who: Ints,
) -> int:  # fmt: skip
    """Replace the chosen groups by those that were formed; return how many groups there are.

    Formed groups that are more than the chosen ones come last. If they are fewer, the last groups
    move into the places that become free.
    """
    for c in range(n_chosen, n_formed):
        chosen[c] = n_groups
        n_groups += 1
    for c in range(max(n_chosen, n_formed)):
        chains.first[chosen[c]] = -1
    for c in range(n_formed):
        copy_box(formed, c, boxes, chosen[c])
    for j in range(len(who) - 1, -1, -1):
        g = chosen[new[who[j]]]
        chains.following[who[j]] = chains.first[g]
        chains.first[g] = who[j]
    for _ in range(n_formed, n_chosen):
        # The largest free place first, so that no free one is moved.
        free = -1
        for f in range(n_formed, n_chosen):
            free = max(free, chosen[f])
        for f in range(n_formed, n_chosen):
            if chosen[f] == free:
                chosen[f] = -1
        n_groups -= 1
        if free < n_groups:
            copy_box(boxes, n_groups, boxes, free)
            chains.first[free] = chains.first[n_groups]
            chains.first[n_groups] = -1
    return n_groups
