"""The active set: rows in the leaves of an R-tree, and the publishing weight of each leaf.

Reference: B. Zhou, Y. Han, J. Pei, B. Jiang, Y. Tao, Y. Jia, "Continuous Privacy Preserving
Publishing of Data Streams", EDBT 2009, §4.1 and §4.2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.engine.groups import may_be_group
from shoal.engine.jit import inlined, kernel
from shoal.engine.kernels import counter
from shoal.engine.kernels.array_tools import picked, where
from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import Sides, box_of, hull, join
from shoal.engine.kernels.held import Held, gather
from shoal.engine.kernels.linked_lists import append, members
from shoal.engine.kernels.predicate import Limits
from shoal.engine.kernels.ring import wrap
from shoal.engine.rtree import chain_sampling as chains
from shoal.engine.rtree import queue
from shoal.engine.rtree import tree as rtree
from shoal.engine.rtree.chain_sampling import Chains
from shoal.engine.rtree.node_split import halves
from shoal.engine.rtree.queue import Queue
from shoal.engine.rtree.tree import RTree, Wanted
from shoal.engine.space import Deadlines
from shoal.engine.waiting import uncount

__all__ = ["MARKS", "LeafOdds", "TreeRules", "TreeState", "close_leaf", "leave_leaf",
           "move_samples", "place", "weigh_all"]  # fmt: skip

#: A leaf has at most this many times the rows that a group needs. A leaf that can't be split at
#: twice as many takes in some more rows, which may make a split possible.
FULL = 4
#: The loss of a leaf that loses nothing, so that it leaves first but its weight stays finite.
LEAST_LOSS = 1e-9
#: The largest exponent of the urgency of a leaf. (e^100 is 10^43.)
MOST_URGENT = 100.0
#: The number of samples of a leaf without samples.
HALF_A_SAMPLE = 0.5

#: The number of groups so far, the number of the instant, the current time, when the next leaf is
#: due (infinity: none is, or instants are rows), the mean time between two rows, and the time of
#: the latest row.
MARKS = np.dtype(
    [
        ("groups", "i8"),
        ("instants", "i8"),
        ("now", "f8"),
        ("due", "f8"),
        ("gap", "f8"),
        ("before", "f8"),
    ]
)


class TreeState(NamedTuple):
    """The state of a run. ``until`` is the time until which a row may be held back again."""

    held: Held
    until: Floats
    tree: RTree
    queue: Queue
    counter: Records
    chains: Chains
    marks: Records
    rng: Ints


class LeafOdds(NamedTuple):
    """The parameters of the probability that a leaf is published.

    ``needed`` is the fewest subjects of a group; ``decay`` is log(1 + alpha); ``samples`` is 0
    where density isn't used; ``clock`` is the quasi attribute that is the time, or -1; ``end`` and
    ``per_second`` are the end of its range and the loss of a second.
    """

    needed: int
    decay: float
    samples: int
    instant: float
    clock: int
    end: float
    per_second: float


class TreeRules(NamedTuple):
    """The constants of a run: space, limits and knobs.

    ``diverse`` says whether a group needs more than enough subjects; ``sampled`` is the number of
    rows over which averages are taken; ``neighbours`` is 0 where no row is held back; ``restless``
    says whether the weights of leaves depend on the current time.
    """

    sides: Sides
    limits: Limits
    deadlines: Deadlines
    odds: LeafOdds
    diverse: bool
    capacity: int
    sampled: int
    neighbours: int
    restless: bool


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
    if counter.add(state.counter, counter.EVERYWHERE, row.subject):
        rows.marks["n_subjects"][0] += 1
    counter.add(state.counter, leaf, row.subject)
    append(rows.rows, tree.leaves, position, leaf)
    widened = rtree.widen_leaf(rules.sides, tree, leaf, row.lo, row.hi)
    if is_new:
        rtree.split_node(rules.sides, tree, tree.leaves["node"][leaf])
    if tree.leaves["n_rows"][leaf] >= tree.leaves["next_try"][leaf] and _cut(rules, state, leaf):
        return
    if widened and rules.odds.samples > 0:
        _count_samples(state.chains, tree, leaf)
    mature = tree.leaves["n_rows"][leaf] >= needed
    if mature and rules.diverse:
        mature = _may_leave(rules, state, leaf)
    tree.leaves["mature"][leaf] = mature
    _weigh(rules.odds, tree.leaves, tree.loss, tree.hi, state.queue, state.marks, leaf)


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
    node = _dissolve(state, leaf, positions)
    for h in range(2):
        part = where(half, h)
        new = rtree.add_leaf(tree, node, 2 * rules.odds.needed)
        for i in part:
            counter.add(state.counter, new, found.subjects[i])
            append(rows.rows, tree.leaves, positions[i], new)
        lo, hi = hull(rules.sides, found.lo, found.hi, part)
        rtree.widen_leaf(rules.sides, tree, new, lo, hi)
        _begin(rules, state, new)
    rtree.split_node(rules.sides, tree, node)
    return True


@kernel
def _begin(rules: TreeRules, state: TreeState, leaf: int) -> None:
    """Update the samples and the weight of a leaf whose rows and box are new."""
    tree = state.tree
    if rules.odds.samples > 0:
        _count_samples(state.chains, tree, leaf)
    tree.leaves["mature"][leaf] = _may_leave(rules, state, leaf)
    _weigh(rules.odds, tree.leaves, tree.loss, tree.hi, state.queue, state.marks, leaf)


@kernel
def _dissolve(state: TreeState, leaf: int, positions: Ints) -> int:
    """Remove a leaf but not its rows; return its node, which isn't adjusted."""
    subjects = state.held.rows["subject"]
    for position in positions:
        counter.remove(state.counter, leaf, subjects[wrap(position, len(state.held.rows))])
    queue.put(state.queue, leaf, 0.0, 0)
    return rtree.remove_leaf(state.tree, leaf)


@kernel
def close_leaf(rules: TreeRules, state: TreeState, leaf: int) -> Ints:
    """Remove a leaf from the tree; return its rows, which are then held but in no leaf."""
    positions = members(state.held.rows, state.tree.leaves, leaf)
    rtree.tidy_node(rules.sides, state.tree, _dissolve(state, leaf, positions))
    uncount(state.held.rows, state.held.marks, state.counter, positions)
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
    counter.remove(state.counter, leaf, subject)
    tree.leaves["n_rows"][leaf] = 0
    lo, hi = np.full(len(tree.lo), np.inf), np.full(len(tree.lo), -np.inf)
    for other in positions:
        if other == position:
            continue
        at = wrap(other, len(rows.rows))
        join(rules.sides, lo, hi, rows.lo[at], rows.hi[at])
        append(rows.rows, tree.leaves, other, leaf)
    uncount(rows.rows, rows.marks, state.counter, np.array([position]))
    rtree.shrink_leaf(rules.sides, tree, leaf, lo, hi)
    _begin(rules, state, leaf)


# -- the weights of leaves ------------------------------------------------------------------------


@kernel
def _weigh(
    odds: LeafOdds,
    leaves: Records,
    losses: Floats,
    his: Floats,
    due: Queue,
    marks: Records,
    leaf: int,
) -> None:
    """Set the weight of a leaf in the queue, by its loss and by how long it would wait for a split.

    The paper's probability is this weight times beta or gamma, factors that make the expected
    number of rows that leave equal to that of rows that arrive; they aren't needed here.
    """
    if not leaves["mature"][leaf]:
        queue.put(due, leaf, 0.0, 0)
        return
    n_rows, loss = leaves["n_rows"][leaf], losses[leaf]
    if odds.clock >= 0:
        # The side that is the time extends to now, unless no row has a value there.
        latest = his[odds.clock, leaf]
        if -np.inf < latest < min(marks["now"][0], odds.end):
            loss += (min(marks["now"][0], odds.end) - latest) * odds.per_second
    weight = 1.0 / (n_rows * max(loss, LEAST_LOSS))
    if odds.samples > 0:
        n_samples = max(float(leaves["n_samples"][leaf]), HALF_A_SAMPLE)
        urgency = odds.decay * max(0, 2 * odds.needed - n_rows) * odds.samples / n_samples
        if odds.instant > 0.0:
            urgency *= marks["gap"][0] / odds.instant
        weight *= math.exp(min(urgency, MOST_URGENT))
    queue.put(due, leaf, weight, n_rows)


@kernel
def weigh_all(rules: TreeRules, state: TreeState) -> None:
    """Update the weights of all leaves."""
    tree = state.tree
    for leaf in range(tree.marks["leaf_numbers"][0]):
        if tree.leaves["birth"][leaf] >= 0:
            _weigh(rules.odds, tree.leaves, tree.loss, tree.hi, state.queue, state.marks, leaf)


# -- samples --------------------------------------------------------------------------------------


@inlined
def move_samples(rules: TreeRules, state: TreeState, position: int, lo: Floats, hi: Floats) -> None:
    """Update the samples for a row that arrives, and the counts of leaves that cover them."""
    tree = state.tree
    changed = np.empty(rules.odds.samples, np.int64)
    n = chains.arrives(state.chains, state.rng, position, lo, hi, changed)
    if n == 0:
        return
    found = np.empty(tree.marks["leaf_numbers"][0], np.int64)
    for c in changed[:n]:
        for by in (-1, 1):
            if by > 0:
                chains.renew(state.chains, c)
            sample_lo, sample_hi = state.chains.lo[c], state.chains.hi[c]
            for leaf in found[: rtree.covering(tree, sample_lo, sample_hi, found)]:
                tree.leaves["n_samples"][leaf] += by
                _weigh(rules.odds, tree.leaves, tree.loss, tree.hi, state.queue, state.marks, leaf)


@kernel
def _count_samples(samples: Chains, tree: RTree, leaf: int) -> None:
    """Count the samples in a leaf whose box has changed."""
    lo, hi = box_of(tree.lo, leaf), box_of(tree.hi, leaf)
    tree.leaves["n_samples"][leaf] = chains.n_inside(samples, lo, hi)
