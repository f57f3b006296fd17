"""The publishing weight of each leaf, and the samples that it depends on.

Weights are computed when they are used. At most instants they aren't, because a draw says that no
leaf is published whatever the weights are. So a leaf that has changed is only marked, and its
samples are counted and its weight is computed again at the next instant that needs it.

Reference: Zhou et al., EDBT 2009, §4.1 and §4.2.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.engine.jit import inlined, kernel, on_demand
from shoal.engine.kernels import rng
from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import box_of
from shoal.engine.rtree import chain_sampling as chains
from shoal.engine.rtree import coverage, queue
from shoal.engine.rtree import tree as rtree
from shoal.engine.rtree.queue import RECOUNT, STALE
from shoal.engine.rtree.state import LeafOdds, TreeRules, TreeState

__all__ = ["changed", "draw_dues", "move_samples", "refresh", "removed"]

#: The loss of a leaf that loses nothing, so that it leaves first but its weight stays finite.
LEAST_LOSS = 1e-9
#: The largest exponent of the urgency of a leaf. (e^100 is 10^43.)
MOST_URGENT = 100.0
#: The number of samples of a leaf without samples.
HALF_A_SAMPLE = 0.5


# -- leaves change --------------------------------------------------------------------------------


@inlined
def changed(rules: TreeRules, state: TreeState, leaf: int, mature: bool, reshaped: bool) -> None:
    """Note that the rows of a leaf have changed, whether it may leave, and if its box is another.

    A leaf that may leave keeps its due time while it grows; one that may not has none.
    """
    due = state.queue
    queue.widen(due, leaf)
    rtree.set_mature(state.tree, leaf, mature)
    if reshaped and rules.odds.samples > 0:
        coverage.fit(state.coverage, state.chains.scale, state.tree.lo, state.tree.hi, leaf)
        due.flags[leaf] = STALE | RECOUNT
    else:
        due.flags[leaf] |= STALE
    if rules.drawn:
        if not mature:
            queue.put_due(due, leaf, np.inf)
        elif queue.due_of(due, leaf) == np.inf:
            state.marks["undrawn"][0] = True


@inlined
def removed(rules: TreeRules, state: TreeState, leaf: int) -> None:
    """Note that a leaf is about to be removed."""
    rtree.set_mature(state.tree, leaf, False)
    state.queue.flags[leaf] |= STALE
    if rules.drawn:
        queue.put_due(state.queue, leaf, np.inf)


# -- weights --------------------------------------------------------------------------------------


@kernel
def refresh(rules: TreeRules, state: TreeState) -> None:
    """Bring the weights of all leaves up to date."""
    tree, due, flags = state.tree, state.queue, state.queue.flags
    renewed, n = np.empty(tree.marks["leaf_numbers"][0], np.int64), 0
    for leaf in range(len(renewed)):
        if flags[leaf] == 0 and not rules.restless:
            continue
        if tree.leaves["mature"][leaf]:
            if flags[leaf] & RECOUNT:
                lo, hi = box_of(tree.lo, leaf), box_of(tree.hi, leaf)
                state.coverage.n_samples[leaf] = chains.n_inside(state.chains, lo, hi)
            n_rows = tree.leaves["n_rows"][leaf]
            loss = _loss(rules.odds, tree.loss, tree.hi, state.marks, leaf)
            n_samples = state.coverage.n_samples[leaf] if rules.odds.samples > 0 else 0
            weight = _weight(rules.odds, n_rows, loss, n_samples, state.marks)
            queue.set_leaf(due, leaf, weight, n_rows)
            flags[leaf] = 0
        else:
            queue.set_leaf(due, leaf, 0.0, 0)
            # Samples are counted when the leaf is mature.
            flags[leaf] &= RECOUNT
        renewed[n] = leaf
        n += 1
    queue.sum_over(due, renewed[:n])


@inlined
def _loss(odds: LeafOdds, losses: Floats, his: Floats, marks: Records, leaf: int) -> float:
    """Return the loss of a row of a leaf, for its weight."""
    loss = losses[leaf]
    if odds.clock >= 0:
        # The side that is the time extends to now, unless no row has a value there.
        latest = his[odds.clock, leaf]
        if -np.inf < latest < min(marks["now"][0], odds.end):
            loss += (min(marks["now"][0], odds.end) - latest) * odds.per_second
    return max(loss, LEAST_LOSS)


@inlined
def _weight(odds: LeafOdds, n_rows: int, loss: float, n_samples: int, marks: Records) -> float:
    """Return the weight of a leaf, by its loss and by how long it would wait for a split.

    The paper's probability is this weight times beta or gamma, factors that make the expected
    number of rows that leave equal to that of rows that arrive; they aren't needed here.
    """
    weight = 1.0 / (n_rows * loss)
    if odds.samples > 0:
        seen = max(float(n_samples), HALF_A_SAMPLE)
        urgency = odds.decay * max(0, 2 * odds.needed - n_rows) * odds.samples / seen
        if odds.instant > 0.0:
            urgency *= marks["gap"][0] / odds.instant
        weight *= math.exp(min(urgency, MOST_URGENT))
    return weight


# -- due times ------------------------------------------------------------------------------------


@on_demand
def draw_dues(rules: TreeRules, state: TreeState, now: float) -> None:
    """Draw the due time of every leaf that may be published and has none.

    As Algorithm 1 has it: coins are flipped once for each leaf, with the probability of this
    instant, from this instant on. Where instants last, the time is exponential.
    """
    marks, tree, due = state.marks, state.tree, state.queue
    timed, gap = rules.odds.instant > 0.0, marks["gap"][0]
    if not marks["undrawn"][0] or (timed and gap == 0.0):
        return
    refresh(rules, state)
    for leaf in range(tree.marks["leaf_numbers"][0]):
        if not tree.leaves["mature"][leaf] or queue.due_of(due, leaf) < np.inf:
            continue
        chance = due.weights[due.width[0] + leaf] / queue.rows(due)
        drawn = math.log(1.0 - rng.uniform(state.rng)) if timed or chance < 1.0 else 0.0
        wait = 0.0
        if timed:
            wait = -drawn * gap / chance
        elif chance < 1.0:
            wait = math.floor(drawn / math.log1p(-chance))
        queue.put_due(due, leaf, now + wait)
    marks["undrawn"][0] = False


# -- samples --------------------------------------------------------------------------------------


@inlined
def move_samples(state: TreeState, position: int, lo: Floats, hi: Floats, moved: Ints) -> None:
    """Update the samples for a row that arrives, and the counts of leaves that cover them.

    ``moved`` is scratch space for as many numbers as there are samples.
    """
    known, tree = state.chains, state.tree
    n_moved = chains.arrives(known, state.rng, position, lo, hi, moved)
    n = tree.marks["leaf_numbers"][0]
    for c in moved[:n_moved]:
        for by in (-1, 1):
            if by > 0:
                chains.renew(known, c)
            coverage.add(
                state.coverage, known.scale, tree.lo, tree.hi, n, known.lo[c], known.hi[c], by,
                state.queue.flags, STALE,
            )  # fmt: skip
