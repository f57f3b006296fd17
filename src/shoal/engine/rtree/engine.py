"""Runs of the R-tree family: rows wait in leaves, which are published at random.

The algorithms differ in the probability that a leaf is published, and in whether rows are held
back. Everything else is here.

Reference: Zhou et al., EDBT 2009, Algorithms 1 and 2.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.engine.base import Out
from shoal.engine.deadlines import COMES, DONE, HoldingEngine, InputBatch, arrival, next_event
from shoal.engine.jit import inlined, kernel, on_demand
from shoal.engine.kernels import counter, held, rng
from shoal.engine.kernels.arrays import Floats, Ints, power_of_two
from shoal.engine.kernels.held import Held, due_at, put
from shoal.engine.kernels.ring import wrap
from shoal.engine.rtree import chain_sampling as chains
from shoal.engine.rtree import coverage, queue
from shoal.engine.rtree import tree as rtree
from shoal.engine.rtree.leaves import place
from shoal.engine.rtree.release import force, gather_unmature, publish_leaf
from shoal.engine.rtree.state import MARKS, TreeRules, TreeState
from shoal.engine.rtree.weights import draw_dues, move_samples, refresh
from shoal.engine.space import Codes, Space
from shoal.errors import ParameterError

__all__ = ["TreeEngine"]

#: Just above 1: more than the rounding of the sums of weights amounts to.
ROUNDED = 1.0 + 1e-9


class TreeEngine(HoldingEngine):
    """One run of an algorithm of this family."""

    state: TreeState

    def __init__(self, space: Space, seed: bytes, rules: TreeRules) -> None:
        self._rules = rules
        d, room = space.n_quasi, held.SMALLEST
        scale = _scale(space, rules)
        marks = np.zeros(1, MARKS)
        marks["now"], marks["due"], marks["before"] = -np.inf, np.inf, np.nan
        state = TreeState(
            held=held.empty(d, space.n_sensitive),
            until=np.full(room, np.inf),
            tree=rtree.empty(d, room),
            queue=queue.empty(room),
            coverage=coverage.empty(d, room if rules.odds.samples else 0),
            counter=counter.empty(2 * room),
            chains=chains.empty(rules.odds.samples, rules.sampled, d, scale=scale),
            marks=marks,
            rng=rng.seeded(seed, "decide"),
        )
        super().__init__(space, state, seed)
        self._bound_rows(rules.capacity)
        self._counts_rows = rules.each_row

    @property
    def next_deadline(self) -> float | None:
        """The time at which a leaf or the oldest held row is due, or None."""
        due = float(self.state.marks["due"][0])
        hard = super().next_deadline
        if due == np.inf:
            return hard
        return due if hard is None else min(due, hard)

    def _push(self, codes: Codes, out: Out) -> None:
        if self._rules.odds.instant and not np.isfinite(codes.times).all():
            raise ParameterError(
                "Codes.times",
                "must be finite, since an instant lasts some seconds",
                got=f"{np.count_nonzero(~np.isfinite(codes.times))} that aren't",
            )
        super()._push(codes, out)

    def _reserve(self, n: int) -> None:
        super()._reserve(n)
        # There are at most as many leaves as rows.
        room = power_of_two(min(self.n_held + n, self._most_held) + 1)
        if room > len(self.state.tree.loss):
            tree, due = rtree.grown(self.state.tree, room), queue.grown(self.state.queue, room)
            known = self.state.coverage
            if self._rules.odds.samples:
                known = coverage.grown(known, room)
            self.state = self.state._replace(tree=tree, queue=due, coverage=known)

    def _grow(self, larger: Held) -> None:
        before, until = self.state.held, np.full(len(larger.rows), np.inf)
        positions = np.arange(before.marks["oldest"][0], before.marks["upcoming"][0])
        until[positions % len(until)] = self.state.until[positions % len(before.rows)]
        self.state = self.state._replace(until=until)
        super()._grow(larger)

    def _run(self, batch: InputBatch, out: Out) -> None:
        _run(self._rules, self.state, batch, out)


def _scale(space: Space, rules: TreeRules) -> Floats:
    """Return how sides of boxes are mapped to bytes."""
    numbers, trees = rules.sides.attributes, space.shown.attributes["first_leaf"] >= 0
    lowest, highest = numbers["lowest"], numbers["highest"]
    by_ones = (numbers["step"] == 1.0) & (lowest == np.floor(lowest))
    by_ones &= highest == np.floor(highest)
    return chains.scale_of(lowest, highest, trees | by_ones)


@kernel
def _run(rules: TreeRules, state: TreeState, batch: InputBatch, out: Out) -> None:
    """Take in rows, publish leaves at random and fire deadlines between and after the rows."""
    rows, settled = state.held, False
    timed, moved = rules.odds.instant > 0.0, np.empty(rules.odds.samples, np.int64)
    while True:
        if timed and _leaf_is_first(rules, state, batch):
            _on_time(rules, state, out)
            continue
        due = next_event(rows, rules.deadlines, batch, out)
        if due == DONE:
            if batch.at_end:
                state.marks["instants"][0] += 1
                # Leaves that weren't mature may have been merged with the one that was due.
                state.marks["due"][0] = np.inf
            break
        if due == COMES:
            _take_in(rules, state, batch, moved, out)
            continue
        if batch.at_end and not settled:
            settled = True
            gather_unmature(rules, state, out)
            # That may have decided the row that was due, or even all rows.
            continue
        # The current time is this deadline; the time of the next row is later.
        if out.progress["published_s"][0] > state.marks["now"][0]:
            state.marks["now"][0] = out.progress["published_s"][0]
        force(rules, state, due, out)
        if not batch.at_end:
            state.marks["instants"][0] += 1
        if timed:
            _draw_due(rules, state)


@inlined
def _take_in(rules: TreeRules, state: TreeState, batch: InputBatch, moved: Ints, out: Out) -> None:
    """Take in a row; where instants are rows, decide which leaf is published."""
    rows, marks, timed = state.held, state.marks, rules.odds.instant > 0.0
    row = arrival(rows, batch)
    position = rows.marks["upcoming"][0]
    marks["now"][0] = rows.marks["now"][0]
    if timed:
        _update_gap(rules, state, position, row.time)
    if rules.odds.samples > 0:
        move_samples(state, position, row.lo, row.hi, moved)
    put(rows, row, 0)
    state.until[wrap(position, len(rows.rows))] = np.inf
    place(rules, state, position)
    before = out.progress["n_decided"][0]
    out.progress["published"][0] = position
    out.progress["published_s"][0] = np.nan if np.isnan(row.time) else rows.marks["now"][0]
    if not timed:
        if rules.drawn:
            _publish_due(rules, state, float(position), out)
        else:
            _flip(rules, state, float(position), out)
    while rules.capacity > 0 and rows.marks["n_rows"][0] > rules.capacity:
        force(rules, state, rows.marks["oldest"][0], out)
    if out.progress["n_decided"][0] > before:
        marks["instants"][0] += 1
    if timed:
        _draw_due(rules, state)


@inlined
def _flip(rules: TreeRules, state: TreeState, now: float, out: Out) -> None:
    """Publish at most one leaf, chosen at random by the weights.

    One draw decides for all leaves. The expected number of published rows is 1, as many as have
    arrived: the probability of a leaf is its weight over the sum of weights times rows (Theorems 2
    and 4). A leaf has at least as many rows as a group needs, which bounds the sum of all these
    probabilities: most draws are above, and need no weights.
    """
    if state.tree.marks["n_mature"][0] == 0:
        return
    drawn = rng.uniform(state.rng)
    if drawn * rules.odds.needed > ROUNDED:
        return
    refresh(rules, state)
    upto = drawn * queue.rows(state.queue)
    if upto < queue.weight(state.queue):
        publish_leaf(rules, state, queue.pick(state.queue, upto), now, out)


@on_demand
def _publish_due(rules: TreeRules, state: TreeState, now: float, out: Out) -> None:
    """Publish all leaves that are due at this instant, where due times are drawn once.

    Rows that are held back may make new leaves mature, which may be due at once.
    """
    draw_dues(rules, state, now)
    while queue.earliest(state.queue) <= now:
        publish_leaf(rules, state, queue.first_due(state.queue), now, out)
        draw_dues(rules, state, now)


# -- instants in seconds --------------------------------------------------------------------------


@kernel
def _update_gap(rules: TreeRules, state: TreeState, position: int, time: float) -> None:
    """Update the mean time between two rows."""
    marks = state.marks
    if position > 0:
        late = time - marks["before"][0] - marks["gap"][0]
        marks["gap"][0] += late / min(position, rules.sampled)
    marks["before"][0] = time


@kernel
def _draw_due(rules: TreeRules, state: TreeState) -> None:
    """Draw when the next leaf is due, since the tree has changed.

    Leaves are published at the rate at which rows arrive. Since the waiting time is memoryless, the
    time since the last draw doesn't matter. Where due times are drawn once, it is the earliest.
    """
    marks = state.marks
    if rules.drawn:
        draw_dues(rules, state, marks["now"][0])
        marks["due"][0] = queue.earliest(state.queue)
        return
    marks["due"][0] = np.inf
    if state.tree.marks["n_mature"][0] == 0 or marks["gap"][0] == 0.0:
        return
    refresh(rules, state)
    often = queue.weight(state.queue) / queue.rows(state.queue) / marks["gap"][0]
    wait = -math.log(1.0 - rng.uniform(state.rng)) / often
    marks["due"][0] = marks["now"][0] + wait


@kernel
def _leaf_is_first(rules: TreeRules, state: TreeState, batch: InputBatch) -> bool:
    """Whether a leaf is due before anything else happens."""
    due, cursor, times = state.marks["due"][0], batch.cursor, batch.codes.times
    marks = state.held.marks
    if due == np.inf or state.tree.marks["n_mature"][0] == 0:
        return False
    # A row that has to leave for the one that has arrived leaves before time passes.
    last = marks["upcoming"][0] - 1 - rules.deadlines.rows
    if cursor["just_put"][0] and rules.deadlines.rows > 0 and marks["oldest"][0] == last:
        return False
    now, i = marks["now"][0], cursor["upcoming"][0]
    if batch.now > now:
        now = batch.now
    if i < len(times) and times[i] > now:
        now = times[i]
    if rules.deadlines.seconds > 0.0 and due_at(state.held, rules.deadlines.seconds) <= due:
        return False
    return due <= now


@kernel
def _on_time(rules: TreeRules, state: TreeState, out: Out) -> None:
    """Publish the leaf that is due."""
    marks = state.marks
    marks["now"][0] = marks["due"][0]
    out.progress["published"][0] = state.held.marks["upcoming"][0]
    out.progress["published_s"][0] = marks["now"][0]
    if rules.drawn:
        leaf = queue.first_due(state.queue)
    else:
        refresh(rules, state)
        leaf = queue.pick(state.queue, rng.uniform(state.rng) * queue.weight(state.queue))
    publish_leaf(rules, state, leaf, marks["now"][0] / rules.odds.instant, out)
    marks["instants"][0] += 1
    _draw_due(rules, state)
