"""How rows leave the active set: leaves that are due, and rows at their deadline.

Reference: Zhou et al., EDBT 2009, §4.3 for the rows that are held back.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.engine.base import Out
from shoal.engine.groups import may_be_group, publish, suppress
from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels.array_tools import in_order, order_of, picked, where
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.kernels.boxes import box_loss, box_of, boxes_at, join, joined_losses
from shoal.engine.kernels.held import gather
from shoal.engine.kernels.linked_lists import members
from shoal.engine.kernels.predicate import count_subjects
from shoal.engine.kernels.ring import wrap
from shoal.engine.rtree import chain_sampling as chains
from shoal.engine.rtree.leaves import close_leaf, leave_leaf, place
from shoal.engine.rtree.node_split import halves
from shoal.engine.rtree.state import TreeRules, TreeState
from shoal.engine.rtree.tree import nearest_leaf
from shoal.engine.waiting import MANY, nobody_can

__all__ = ["force", "gather_unmature", "publish_leaf"]


@kernel
def publish_leaf(rules: TreeRules, state: TreeState, leaf: int, now: float, out: Out) -> None:
    """Publish a leaf that is due, without those of its rows that are held back."""
    positions = members(state.held.rows, state.tree.leaves, leaf)
    stays = np.zeros(len(positions), np.bool_)
    if rules.neighbours > 0:
        _hold_back(rules, state, leaf, positions, now, stays)
    close_leaf(rules, state, leaf)
    publish(
        rules.sides,
        state.held,
        picked(positions, where(stays.astype(np.int64), 0)),
        state.marks,
        out,
    )
    for position in in_order(picked(positions, where(stays.astype(np.int64), 1))):
        place(rules, state, position)


# -- rows that are held back ----------------------------------------------------------------------


@on_demand
def _hold_back(
    rules: TreeRules, state: TreeState, leaf: int, positions: Ints, now: float, stays: Bools
) -> None:
    """Choose the rows of a leaf that are expected to lose less with rows still to arrive.

    A row that was held back once isn't held back again after its ``until``: its expected gain was
    computed from the loss that it would have had then.
    """
    loss = state.tree.loss[leaf]
    alone = _losses_alone(rules, state, leaf, positions)
    for _ in range(len(positions) - rules.odds.needed):
        best = -1
        for i in range(len(positions)):
            if stays[i] or not alone[i] * math.exp(rules.odds.decay) < loss:
                continue
            if not state.until[wrap(positions[i], len(state.held.rows))] > now:
                continue
            if (
                best < 0
                or alone[i] < alone[best]
                or (alone[i] == alone[best] and positions[i] > positions[best])
            ):
                best = i
        if best < 0:
            return
        stays[best] = True
        rest = picked(positions, where(stays.astype(np.int64), 0))
        if rules.diverse and not may_be_group(rules.limits, state.held, rest):
            stays[best] = False
            return
        at = wrap(positions[best], len(state.held.rows))
        if state.until[at] == np.inf and alone[best] > 0.0 and rules.odds.decay > 0.0:
            state.until[at] = now + math.log(loss / alone[best]) / rules.odds.decay


@kernel
def _losses_alone(rules: TreeRules, state: TreeState, leaf: int, positions: Ints) -> Floats:
    """Return for each row its loss with the nearest samples in the leaf (the paper's SC).

    Infinite where there aren't enough samples. A row isn't a neighbour of itself.
    """
    losses = np.full(len(positions), np.inf)
    sides, known = rules.sides, state.chains
    inside = chains.inside(known, box_of(state.tree.lo, leaf), box_of(state.tree.hi, leaf))
    if len(inside) < rules.neighbours:
        return losses
    los, his = boxes_at(known.lo.T, inside), boxes_at(known.hi.T, inside)
    joined, free = np.empty(len(inside)), np.empty(len(inside), np.bool_)
    for i in range(len(positions)):
        at = wrap(positions[i], len(state.held.rows))
        lo, hi = state.held.lo[at].copy(), state.held.hi[at].copy()
        for j in range(len(inside)):
            free[j] = known.positions[inside[j]] != positions[i]
        found = 0
        while found < rules.neighbours:
            joined_losses(sides, los, his, len(inside), lo, hi, joined)
            nearest = -1
            for j in range(len(inside)):
                if free[j] and (nearest < 0 or joined[j] < joined[nearest]):
                    nearest = j
            if nearest < 0:
                break
            free[nearest] = False
            join(sides, lo, hi, box_of(los, nearest), box_of(his, nearest))
            found += 1
        if found == rules.neighbours:
            losses[i] = box_loss(sides, lo, hi)
    return losses


# -- rows at their deadline -----------------------------------------------------------------------


@on_demand
def force(rules: TreeRules, state: TreeState, position: int, out: Out) -> None:
    """Decide a row: publish it with its leaf, with several leaves, or suppress it."""
    rows = state.held
    leaf = rows.rows["cluster"][wrap(position, len(rows.rows))]
    if state.tree.leaves["mature"][leaf]:
        publish(rules.sides, state.held, close_leaf(rules, state, leaf), state.marks, out)
    elif not _publish_merged(rules, state, leaf, out):
        leave_leaf(rules, state, position)
        suppress(rows, position, state.marks, out)


@on_demand
def gather_unmature(rules: TreeRules, state: TreeState, out: Out) -> None:
    """At the end of the stream, first publish leaves that can't leave alone, merged with others."""
    leaves = state.tree.leaves
    while True:
        eldest = -1
        for leaf in range(state.tree.marks["leaf_numbers"][0]):
            if leaves["birth"][leaf] < 0 or leaves["mature"][leaf]:
                continue
            if eldest < 0 or leaves["birth"][leaf] < leaves["birth"][eldest]:
                eldest = leaf
        if eldest < 0 or not _publish_merged(rules, state, eldest, out):
            return


@on_demand
def _publish_merged(rules: TreeRules, state: TreeState, leaf: int, out: Out) -> bool:
    """Publish a leaf that isn't mature with its nearest leaves; return whether it was possible."""
    tree = state.tree
    if nobody_can(rules.limits, state.held):
        return False
    taken = np.zeros(tree.marks["leaf_numbers"][0], np.int64)
    union = members(state.held.rows, tree.leaves, leaf)
    lo, hi = box_of(tree.lo, leaf), box_of(tree.hi, leaf)
    taken[leaf] = 1
    # Leaves share no row, but may share a subject: `may_be_group` counts the people again.
    for _ in range(MANY):
        leaf = nearest_leaf(rules.sides, tree, lo, hi, taken)
        if leaf < 0:
            return False
        taken[leaf] = 1
        join(rules.sides, lo, hi, box_of(tree.lo, leaf), box_of(tree.hi, leaf))
        union = np.concatenate((union, members(state.held.rows, tree.leaves, leaf)))
        if len(union) >= rules.odds.needed and may_be_group(rules.limits, state.held, union):
            break
    else:
        union = _with_far_ones(rules, state, union, lo, hi, taken)
        if len(union) == 0:
            return False
    for other in range(len(taken)):
        if taken[other]:
            close_leaf(rules, state, other)
    _publish_in_parts(rules, state, in_order(union), out)
    return True


@kernel
def _with_far_ones(
    rules: TreeRules, state: TreeState, union: Ints, lo: Floats, hi: Floats, taken: Ints
) -> Ints:
    """Add further leaves, by their loss with the box so far, until all may be a group.

    That is checked each time the rows have doubled, and at the end. Empty: no group is possible.
    """
    tree, n = state.tree, len(union)
    joined = np.empty(len(taken))
    joined_losses(rules.sides, tree.lo, tree.hi, len(taken), lo, hi, joined)
    everybody = np.empty(state.held.marks["n_rows"][0], np.int64)
    for i in range(n):
        everybody[i] = union[i]
    tested, left = n, tree.marks["n_leaves"][0]
    for leaf in range(len(taken)):
        left -= taken[leaf]
    order = order_of(tree.leaves["birth"].astype(np.float64)[: len(taken)])
    for leaf in picked(order, order_of(joined[order])):
        if taken[leaf] or tree.leaves["birth"][leaf] < 0:
            continue
        taken[leaf] = 1
        left -= 1
        for position in members(state.held.rows, tree.leaves, leaf):
            everybody[n] = position
            n += 1
        if n >= 2 * tested or left == 0:
            tested = n
            if may_be_group(rules.limits, state.held, everybody[:n]):
                return everybody[:n].copy()
    return everybody[:0].copy()


@kernel
def _publish_in_parts(rules: TreeRules, state: TreeState, positions: Ints, out: Out) -> None:
    """Publish rows as two groups if there are enough of them and both may be, else as one."""
    rows = gather(state.held, positions)
    if count_subjects(rows.subjects) >= 2 * rules.odds.needed:
        half = halves(rules.sides, rows.lo, rows.hi, rules.odds.needed)
        first, second = picked(positions, where(half, 0)), picked(positions, where(half, 1))
        if may_be_group(rules.limits, state.held, first) and may_be_group(
            rules.limits, state.held, second
        ):
            publish(rules.sides, state.held, first, state.marks, out)
            publish(rules.sides, state.held, second, state.marks, out)
            return
    publish(rules.sides, state.held, positions, state.marks, out)
