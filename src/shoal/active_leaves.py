"""The active set: rows in the leaves of an R-tree, and how much each leaf is to be published.

Reference: B. Zhou, Y. Han, J. Pei, B. Jiang, Y. Tao, Y. Jia, "Continuous Privacy Preserving
Publishing of Data Streams", EDBT 2009, §4.1 and §4.2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal._jit import kernel
from shoal.kernels import chains, counter, queue, rtree
from shoal.kernels.arrays import Floats, Ints, Records
from shoal.kernels.boxes import Sides, box_of, join
from shoal.kernels.chains import Chains
from shoal.kernels.criteria import Limits
from shoal.kernels.halves import halves
from shoal.kernels.held import Held, gather
from shoal.kernels.lists import picked, where
from shoal.kernels.queue import Queue
from shoal.kernels.rtree import Tree, Wanted
from shoal.space import Deadlines
from shoal.waiting import may_be_group

__all__ = ["MARKS", "Rules", "State", "close_leaf", "leave_leaf", "members", "move_samples",
           "place", "weigh_all"]  # fmt: skip

#: A leaf has at most so many times the rows that a group needs: one that can't be cut, though it
#: has twice as many, takes in some more that may help, and no others.
FULL = 4
#: A leaf that loses nothing at all counts as one that loses this: it is the first to go, and yet
#: as many rows leave as come.
LEAST_LOSS = 1e-9
#: Beyond this, how much longer a leaf would have to wait makes no difference. (e^100 is 10^43.)
MOST_URGENT = 100.0
#: A leaf in which no sample lies counts as if half of one did.
HALF_A_SAMPLE = 0.5

#: How many groups there have been, the number of the instant, what time it is, when the next leaf
#: is due (infinity: no leaf is, or instants are rows), the mean time between two rows, and the time
#: of the latest.
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


class State(NamedTuple):
    """All that a run remembers. ``until`` says until when a row that was held may be held again."""

    held: Held
    until: Floats
    tree: Tree
    queue: Queue
    counter: Records
    chains: Chains
    marks: Records
    rng: Ints


class Rules(NamedTuple):
    """What a run obeys: space, promise and knobs.

    ``needed`` are the fewest subjects of a group, and ``diverse`` says whether it takes more than
    their number; ``decay`` is log(1 + alpha); ``samples`` is 0 where density isn't asked, and
    ``neighbours`` 0 where no row is held back; ``clock`` is the quasi attribute that is the time.
    """

    sides: Sides
    limits: Limits
    deadlines: Deadlines
    needed: int
    diverse: bool
    capacity: int
    instant: float
    decay: float
    samples: int
    sampled: int
    neighbours: int
    clock: int


# -- rows in leaves -------------------------------------------------------------------------------


@kernel
def members(state: State, leaf: int) -> Ints:
    """The positions of the rows of a leaf, in the order in which they joined it."""
    mask = len(state.held.rows) - 1
    positions = np.empty(state.tree.leaves["n_rows"][leaf], np.int64)
    position = state.tree.leaves["first"][leaf]
    for i in range(len(positions)):
        positions[i] = position
        position = state.held.rows["following"][position & mask]
    return positions


@kernel
def place(rules: Rules, state: State, position: int) -> None:
    """Let a row that is in no leaf join one, which is cut if that makes it large enough."""
    tree, rows = state.tree, state.held
    at = position & (len(rows.rows) - 1)
    row = Wanted(rows.lo[at], rows.hi[at], rows.rows["subject"][at], FULL * rules.needed)
    node = rtree.choose_node(rules.sides, tree, row.lo, row.hi)
    leaf = -1
    if node >= 0:
        leaf = rtree.find_leaf(rules.sides, tree, state.counter, node, row)
        if leaf < 0:
            leaf = rtree.find_leaf_anywhere(rules.sides, tree, state.counter, row)
    is_new = leaf < 0
    if is_new:
        leaf = rtree.add_leaf(tree, node, 2 * rules.needed)
    if counter.add(state.counter, counter.EVERYWHERE, row.subject):
        rows.marks["n_subjects"][0] += 1
    widened = _join_leaf(rules, state, position, leaf)
    if is_new:
        rtree.split_node(rules.sides, tree, tree.leaves["node"][leaf])
    if tree.leaves["n_rows"][leaf] >= tree.leaves["next_try"][leaf] and _cut(rules, state, leaf):
        return
    if widened:
        _count_samples(rules, state, leaf)
    _ripen(rules, state, leaf)


@kernel
def _join_leaf(rules: Rules, state: State, position: int, leaf: int) -> bool:
    """Put a row into a leaf; whether the leaf's box has changed."""
    leaves, rows = state.tree.leaves, state.held
    mask = len(rows.rows) - 1
    at = position & mask
    rows.rows["cluster"][at] = leaf
    rows.rows["following"][at] = -1
    if leaves["n_rows"][leaf] == 0:
        leaves["first"][leaf] = position
    else:
        rows.rows["following"][leaves["last"][leaf] & mask] = position
    leaves["last"][leaf] = position
    leaves["n_rows"][leaf] += 1
    counter.add(state.counter, leaf, rows.rows["subject"][at])
    return rtree.widen_leaf(rules.sides, state.tree, leaf, rows.lo[at], rows.hi[at])


@kernel
def _cut(rules: Rules, state: State, leaf: int) -> bool:
    """Make two leaves of one, if both may be published; whether that was done."""
    tree = state.tree
    positions = members(state, leaf)
    rows = gather(state.held, positions)
    half = halves(rules.sides, rows.lo, rows.hi, rules.needed)
    first, second = picked(positions, where(half, 0)), picked(positions, where(half, 1))
    if rules.diverse and not (
        may_be_group(rules.limits, state.held, first)
        and may_be_group(rules.limits, state.held, second)
    ):
        tree.leaves["next_try"][leaf] = len(positions) + max(1, rules.needed // 2)
        return False
    node = _dissolve(state, leaf, positions)
    for part in (first, second):
        new = rtree.add_leaf(tree, node, 2 * rules.needed)
        for position in part:
            _join_leaf(rules, state, position, new)
        _count_samples(rules, state, new)
        _ripen(rules, state, new)
    rtree.split_node(rules.sides, tree, node)
    return True


@kernel
def _dissolve(state: State, leaf: int, positions: Ints) -> int:
    """Take a leaf away from its rows; give its node, which is left as it is."""
    mask = len(state.held.rows) - 1
    for position in positions:
        counter.remove(state.counter, leaf, state.held.rows["subject"][position & mask])
    queue.put(state.queue, leaf, 0.0, 0)
    return rtree.remove_leaf(state.tree, leaf)


@kernel
def close_leaf(rules: Rules, state: State, leaf: int) -> Ints:
    """Take a leaf out of the tree, and give its rows, which are held but in no leaf then."""
    positions = members(state, leaf)
    rtree.tidy_node(rules.sides, state.tree, _dissolve(state, leaf, positions))
    for position in positions:
        _uncount(state, position)
    return positions


@kernel
def leave_leaf(rules: Rules, state: State, position: int) -> None:
    """One row leaves its leaf, whose box shrinks to the others."""
    tree, rows = state.tree, state.held
    leaf = rows.rows["cluster"][position & (len(rows.rows) - 1)]
    others = members(state, leaf)
    others = picked(others, where((others == position).astype(np.int64), 0))
    if len(others) == 0:
        close_leaf(rules, state, leaf)
        return
    counter.remove(state.counter, leaf, rows.rows["subject"][position & (len(rows.rows) - 1)])
    _uncount(state, position)
    mask = len(rows.rows) - 1
    lo, hi = rows.lo[others[0] & mask].copy(), rows.hi[others[0] & mask].copy()
    for i in range(len(others)):
        at = others[i] & mask
        join(rules.sides, lo, hi, rows.lo[at], rows.hi[at])
        rows.rows["following"][at] = others[i + 1] if i + 1 < len(others) else -1
    tree.leaves["first"][leaf] = others[0]
    tree.leaves["last"][leaf] = others[-1]
    tree.leaves["n_rows"][leaf] = len(others)
    rtree.shrink_leaf(rules.sides, tree, leaf, lo, hi)
    _count_samples(rules, state, leaf)
    _ripen(rules, state, leaf)


@kernel
def _uncount(state: State, position: int) -> None:
    subject = state.held.rows["subject"][position & (len(state.held.rows) - 1)]
    if counter.remove(state.counter, counter.EVERYWHERE, subject):
        state.held.marks["n_subjects"][0] -= 1


# -- how much a leaf is to be published -----------------------------------------------------------


@kernel
def _ripen(rules: Rules, state: State, leaf: int) -> None:
    """The rows of a leaf have changed: may it be published, and how much is it to be?"""
    leaves = state.tree.leaves
    mature = leaves["n_rows"][leaf] >= rules.needed
    if mature and rules.diverse:
        mature = may_be_group(rules.limits, state.held, members(state, leaf))
    leaves["mature"][leaf] = mature
    _weigh(rules, state, leaf)


@kernel
def _weigh(rules: Rules, state: State, leaf: int) -> None:
    """Put a leaf into the queue, by what it loses and how long it would have to wait to be cut.

    The paper's probability is this weight times beta or gamma, by which the expected number of rows
    that leave is that of those that come; so they need not be known here.
    """
    if not state.tree.leaves["mature"][leaf]:
        queue.put(state.queue, leaf, 0.0, 0)
        return
    n_rows = state.tree.leaves["n_rows"][leaf]
    loss = state.tree.loss[leaf]
    if rules.clock >= 0:
        # The side that tells when rows came reaches to now, unless none of them says when it came.
        latest = min(state.marks["now"][0], rules.sides.attributes["highest"][rules.clock])
        waited = latest - state.tree.hi[rules.clock, leaf]
        if 0.0 < waited < np.inf:
            loss += waited * rules.sides.attributes["unit"][rules.clock]
    weight = 1.0 / (n_rows * max(loss, LEAST_LOSS))
    if rules.samples > 0:
        n_samples = max(float(state.tree.leaves["n_samples"][leaf]), HALF_A_SAMPLE)
        missing = max(0, 2 * rules.needed - n_rows)
        urgency = rules.decay * missing * rules.samples / n_samples
        if rules.instant > 0.0:
            urgency *= state.marks["gap"][0] / rules.instant
        weight *= math.exp(min(urgency, MOST_URGENT))
    queue.put(state.queue, leaf, weight, n_rows)


@kernel
def weigh_all(rules: Rules, state: State) -> None:
    """Where weights depend on what time it is, bring them up to date."""
    if rules.clock < 0 and (rules.instant == 0.0 or rules.samples == 0):
        return
    for leaf in range(state.tree.marks["leaf_numbers"][0]):
        if state.tree.leaves["birth"][leaf] >= 0:
            _weigh(rules, state, leaf)


# -- samples --------------------------------------------------------------------------------------


@kernel
def move_samples(rules: Rules, state: State, position: int, lo: Floats, hi: Floats) -> None:
    """A row comes: samples that leave the window make room, and leaves count those they cover."""
    changed = np.empty(rules.samples, np.int64)
    n = chains.arrives(state.chains, state.rng, position, lo, hi, changed)
    if n == 0:
        return
    found = np.empty(state.tree.marks["leaf_numbers"][0], np.int64)
    for c in changed[:n]:
        _count_in_leaves(rules, state, c, -1, found)
        chains.renew(state.chains, c)
        _count_in_leaves(rules, state, c, 1, found)


@kernel
def _count_in_leaves(rules: Rules, state: State, c: int, by: int, found: Ints) -> None:
    lo, hi = box_of(state.chains.lo, c), box_of(state.chains.hi, c)
    for leaf in found[: rtree.covering(state.tree, lo, hi, found)]:
        state.tree.leaves["n_samples"][leaf] += by
        _weigh(rules, state, leaf)


@kernel
def _count_samples(rules: Rules, state: State, leaf: int) -> None:
    """Count the samples in a leaf whose box is new."""
    if rules.samples > 0:
        lo, hi = box_of(state.tree.lo, leaf), box_of(state.tree.hi, leaf)
        state.tree.leaves["n_samples"][leaf] = chains.n_inside(state.chains, lo, hi)
