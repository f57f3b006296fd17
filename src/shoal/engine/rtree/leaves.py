"""The active set: rows in the leaves of an R-tree.

Reference: B. Zhou, Y. Han, J. Pei, B. Jiang, Y. Tao, Y. Jia, "Continuous Privacy Preserving
Publishing of Data Streams", EDBT 2009, §4.1.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.groups import may_be_group
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter
from shoal.engine.kernels.array_tools import picked, where
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.boxes import hull, join
from shoal.engine.kernels.held import gather
from shoal.engine.kernels.linked_lists import append, members
from shoal.engine.kernels.ring import wrap
from shoal.engine.rtree import tree as rtree
from shoal.engine.rtree.node_split import halves
from shoal.engine.rtree.state import TreeRules, TreeState
from shoal.engine.rtree.tree import Wanted
from shoal.engine.rtree.weights import changed, removed
from shoal.engine.waiting import uncount

__all__ = ["close_leaf", "leave_leaf", "place"]

#: A leaf has at most this many times the rows that a group needs. A leaf that can't be split at
#: twice as many takes in some more rows, which may make a split possible.
FULL = 4

# Every array that is passed costs time at each call. So functions that are called for each row, or
# for each row of a leaf, take the arrays that they need instead of the whole state.


# -- rows in leaves -------------------------------------------------------------------------------


@kernel
def place(rules: TreeRules, state: TreeState, position: int) -> None:
    """Put a row that is in no leaf into one, and split the leaf if it is large enough."""
    tree, rows = state.tree, state.held
    at = wrap(position, len(rows.rows))
    needed = rules.odds.needed
    row = Wanted(rows.lo[at], rows.hi[at], rows.rows["subject"][at], FULL * needed)
    node = rtree.choose_node(rules.sides, tree, row.lo, row.hi)
    leaf = -1
    if node >= 0:
        leaf = rtree.find_leaf(rules.sides, tree, state.counter, node, row)
        if leaf < 0:
            leaf = rtree.find_leaf_anywhere(rules.sides, tree, state.counter, row)
    is_new = leaf < 0
    if is_new:
        leaf = rtree.add_leaf(tree, node, 2 * needed)
    if rules.each_row or counter.add(state.counter, counter.EVERYWHERE, row.subject):
        rows.marks["n_subjects"][0] += 1
    if not rules.each_row:
        counter.add(state.counter, leaf, row.subject)
    append(rows.rows, tree.leaves, position, leaf)
    widened = rtree.widen_leaf(rules.sides, tree, leaf, row.lo, row.hi)
    if is_new:
        rtree.split_node(rules.sides, tree, tree.leaves["node"][leaf])
    if tree.leaves["n_rows"][leaf] >= tree.leaves["next_try"][leaf] and _cut(rules, state, leaf):
        return
    mature = tree.leaves["n_rows"][leaf] >= needed
    if mature and rules.diverse:
        mature = _may_leave(rules, state, leaf)
    changed(rules, state, leaf, mature, widened)


@kernel
def _may_leave(rules: TreeRules, state: TreeState, leaf: int) -> bool:
    """Whether a leaf may be published as a group."""
    positions = members(state.held.rows, state.tree.leaves, leaf)
    return len(positions) >= rules.odds.needed and may_be_group(rules.limits, state.held, positions)


@kernel
def _cut(rules: TreeRules, state: TreeState, leaf: int) -> bool:
    """Split a leaf if both halves may be published; return whether it was split."""
    tree, rows = state.tree, state.held
    positions = members(rows.rows, tree.leaves, leaf)
    found = gather(rows, positions)
    half = halves(rules.sides, found.lo, found.hi, rules.odds.needed)
    for h in range(2):
        if rules.diverse and not may_be_group(
            rules.limits, rows, picked(positions, where(half, h))
        ):
            tree.leaves["next_try"][leaf] = len(positions) + max(1, rules.odds.needed // 2)
            return False
    node = _dissolve(rules, state, leaf, positions)
    for h in range(2):
        part = where(half, h)
        new = rtree.add_leaf(tree, node, 2 * rules.odds.needed)
        for i in part:
            if not rules.each_row:
                counter.add(state.counter, new, found.subjects[i])
            append(rows.rows, tree.leaves, positions[i], new)
        lo, hi = hull(rules.sides, found.lo, found.hi, part)
        rtree.widen_leaf(rules.sides, tree, new, lo, hi)
        changed(rules, state, new, _may_leave(rules, state, new), True)
    rtree.split_node(rules.sides, tree, node)
    return True


@kernel
def _dissolve(rules: TreeRules, state: TreeState, leaf: int, positions: Ints) -> int:
    """Remove a leaf but not its rows; return its node, which isn't adjusted."""
    subjects = state.held.rows["subject"]
    if not rules.each_row:
        for position in positions:
            counter.remove(state.counter, leaf, subjects[wrap(position, len(state.held.rows))])
    removed(rules, state, leaf)
    return rtree.remove_leaf(state.tree, leaf)


@kernel
def _uncount(rules: TreeRules, state: TreeState, positions: Ints) -> None:
    """Remove some held rows from the count of all subjects."""
    if rules.each_row:
        state.held.marks["n_subjects"][0] -= len(positions)
    else:
        uncount(state.held.rows, state.held.marks, state.counter, positions)


@kernel
def close_leaf(rules: TreeRules, state: TreeState, leaf: int) -> Ints:
    """Remove a leaf from the tree; return its rows, which are then held but in no leaf."""
    positions = members(state.held.rows, state.tree.leaves, leaf)
    rtree.tidy_node(rules.sides, state.tree, _dissolve(rules, state, leaf, positions))
    _uncount(rules, state, positions)
    return positions


@kernel
def leave_leaf(rules: TreeRules, state: TreeState, position: int) -> None:
    """Remove a row from its leaf, and shrink the leaf's box to the other rows."""
    tree, rows = state.tree, state.held
    at = wrap(position, len(rows.rows))
    leaf, subject = rows.rows["cluster"][at], rows.rows["subject"][at]
    positions = members(rows.rows, tree.leaves, leaf)
    if len(positions) == 1:
        close_leaf(rules, state, leaf)
        return
    if not rules.each_row:
        counter.remove(state.counter, leaf, subject)
    tree.leaves["n_rows"][leaf] = 0
    lo, hi = np.full(len(tree.lo), np.inf), np.full(len(tree.lo), -np.inf)
    for other in positions:
        if other == position:
            continue
        at = wrap(other, len(rows.rows))
        join(rules.sides, lo, hi, rows.lo[at], rows.hi[at])
        append(rows.rows, tree.leaves, other, leaf)
    _uncount(rules, state, np.array([position]))
    rtree.shrink_leaf(rules.sides, tree, leaf, lo, hi)
    changed(rules, state, leaf, _may_leave(rules, state, leaf), True)
