"""Form the groups of a pool again so that each has about the same share of all sensitive values.

Where groups are measured against a window, a group of the nearest rows is rarely like it: people
who live alike work alike. So rows are sorted by their first measured value and cut into blocks, and
no group may take more of a block than its share. Within the shares the nearest rows are taken.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels import rng
from shoal.engine.kernels.array_tools import order_of
from shoal.engine.kernels.arrays import Ints
from shoal.engine.tide.grid import Boxes, Grid, begin, widen
from shoal.engine.tide.grow import TAKEN, Candidates, Rules, cheapest, drop, restart, update

__all__ = ["regrow_in_shares"]

#: Rows are cut into 2, 4, … 2**FINEST blocks: few leave more choice, many are closer to the pool.
FINEST = 8
#: At most this many more groups than before are tried.
MORE = 2


@kernel
def _write_blocks(values: Ints, who: Ints, n_blocks: int, block: Ints) -> None:
    """Write the block of each row: its place among the values; equal values are in one block."""
    codes = np.empty(len(who), np.int64)
    for j in range(len(who)):
        codes[j] = values[who[j]]
    order = order_of(codes)
    first = 0
    for place in range(len(order)):
        if codes[order[place]] != codes[order[first]]:
            first = place
        block[who[order[place]]] = first * n_blocks // len(order)


@kernel
def _grow_in_shares(
    grid: Grid, near: Candidates, n: int, seed: int, boxes: Boxes, g: int, members: Ints,
    block: Ints, share: Ints, size: int,
) -> int:  # fmt: skip
    """Grow box g from one of n candidates, by at most ``share`` rows of each block."""
    restart(near, n)
    begin(boxes, g)
    n_members, i = 0, seed
    while True:
        near.cost[i] = TAKEN
        members[n_members] = i
        n_members += 1
        is_changed = widen(grid, boxes, g, near.rows, i)
        if n_members == size:
            return n_members
        b = block[near.who[i]]
        share[b] -= 1
        if share[b] == 0:
            for j in range(n):
                if block[near.who[j]] == b:
                    near.cost[j] = TAKEN
        if is_changed:
            update(grid, near, n, boxes, g)
        i = cheapest(near.cost, n)


@on_demand
def regrow_in_shares(
    grid: Grid, rules: Rules, values: Ints, near: Candidates, m: int, n_before: int,
    draws: Ints, boxes: Boxes, members: Ints, part: Ints, block: Ints, most: int,
) -> int:  # fmt: skip
    """Form groups of m candidates, and write them to ``part``; return how many groups there are.

    0 if all rows together would lose ``most`` or more.
    """
    n_groups = min(n_before + rng.below(draws, MORE + 1), m // rules.least)
    n_blocks = 2 << rng.below(draws, FINEST)
    _write_blocks(values, near.who[:m], n_blocks, block)
    for j in range(m):
        part[near.who[j]] = -1
    sum_of_losses = 0
    for g in range(n_groups):
        left = n_groups - g
        share = np.zeros(n_blocks, np.int64)
        for j in range(m):
            share[block[near.who[j]]] += 1
        for b in range(n_blocks):
            share[b] = -(-share[b] // left)
        seed = rng.below(draws, m)
        n_members = _grow_in_shares(
            grid, near, m, seed, boxes, g, members, block, share, -(-m // left)
        )
        for j in range(n_members):
            part[near.who[members[j]]] = g
        sum_of_losses += boxes.totals["loss"][g] * boxes.totals["count"][g]
        if sum_of_losses >= most:
            return 0
        m = drop(near, m, part)
    return n_groups
