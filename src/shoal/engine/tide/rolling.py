"""The rolling release: a row whose time is up leaves in a group that grows around it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.deadlines import COMES, DONE, HoldingEngine, InputBatch
from shoal.engine.decisions import GROUP, SUPPRESSED, Out, decide, write_box
from shoal.engine.groups import may_be_group, shape
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter, held, rng
from shoal.engine.kernels.array_tools import in_order
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.boxes import Box, Sides
from shoal.engine.kernels.held import Held
from shoal.engine.kernels.ring import wrap
from shoal.engine.space import Space
from shoal.engine.tide import columns as held_columns
from shoal.engine.tide.columns import Columns, rows_of
from shoal.engine.tide.forming import rules_for
from shoal.engine.tide.grid import Boxes, Fixed, Grid, boxes_for, grid_of, grid_rows
from shoal.engine.tide.grow import TAKEN, Candidates, Rules, candidates_for
from shoal.engine.tide.held_rows import MARKS, Bounds, held_positions, leave, next_turn
from shoal.engine.tide.nearest import group_around
from shoal.engine.tide.prices import Prices, learn, no_prices, price_of

__all__ = ["RollingEngine"]

#: How long a row was held is counted in this many parts of its longest time.
AGES = 1024


class RollingState(NamedTuple):
    """The whole state of a run."""

    held: Held
    columns: Columns
    counter: Records
    prices: Prices
    marks: Records
    rng: Ints


class _Task(NamedTuple):
    """What doesn't change in a run."""

    sides: Sides
    grid: Grid
    rules: Rules
    bounds: Bounds


class _Room(NamedTuple):
    """Room for a search."""

    near: Candidates
    bias: Fixed
    cost: Fixed
    boxes: Boxes
    members: Ints


class RollingEngine(HoldingEngine):
    """One run of TIDE, group by group."""

    state: RollingState

    def __init__(self, space: Space, seed: bytes, capacity: int) -> None:
        grid = grid_of(space.sides)
        self._task = _Task(
            space.sides, grid, rules_for(space.limits), Bounds(space.deadlines, capacity)
        )
        state = RollingState(
            held=held.empty(space.n_quasi, space.n_sensitive, window=space.window.rows),
            columns=held_columns.no_columns(space.n_quasi, 2 * held.SMALLEST),
            counter=counter.empty(2 * held.SMALLEST),
            prices=no_prices(grid),
            marks=np.zeros(1, MARKS),
            rng=rng.seeded(seed, "decide"),
        )
        super().__init__(space, state, seed)

    def _grow(self, larger: Held) -> None:
        super()._grow(larger)
        # Twice the room, so that holes are closed rarely.
        roomier = held_columns.grown(self.state.columns, 2 * len(larger.rows))
        self.state = self.state._replace(columns=roomier)

    def _run(self, batch: InputBatch, out: Out) -> None:
        rules = self._task.rules._replace(limits=self._of_now(self._task.rules.limits))
        _run(self._task._replace(rules=rules), self.state, batch, out)
        if batch.at_end:
            self.state.marks["instants"] += 1


@kernel
def _run(task: _Task, state: RollingState, batch: InputBatch, out: Out) -> None:
    """Take in rows and decide those that are due, between the rows and after them."""
    n = len(state.columns.slots)
    room = _Room(
        candidates_for(n, len(state.columns.lo), True, True),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        boxes_for(1, len(state.columns.lo)),
        np.empty(n, np.int64),
    )
    while True:
        turn = next_turn(state.held, state.counter, task.bounds, batch, out)
        if turn == DONE:
            break
        if turn == COMES:
            _note(task, state)
            continue
        _decide(task, state, room, turn, batch.at_end, out)
        if not batch.at_end:
            state.marks["instants"][0] += 1


@kernel
def _note(task: _Task, state: RollingState) -> None:
    """Add the latest row to the columns, at its price."""
    position = state.held.marks["upcoming"][0] - 1
    at, d = wrap(position, len(state.held.rows)), len(state.columns.lo)
    lo, hi = np.empty((d, 1)), np.empty((d, 1))
    for a in range(d):
        lo[a, 0] = state.held.lo[at, a]
        hi[a, 0] = state.held.hi[at, a]
    row = grid_rows(task.grid, lo, hi)
    price = price_of(task.grid, state.prices, row, 0)
    held_columns.append(state.columns, state.held, row, position, price)


@kernel
def _decide(
    task: _Task, state: RollingState, room: _Room, due: int, at_end: bool, out: Out
) -> None:
    """Publish a row that is due in a group, or suppress it."""
    rows, least = state.held, task.rules.least
    n_subjects = rows.marks["n_subjects"][0]
    positions = np.empty(0, np.int64)
    if at_end and least <= n_subjects < 2 * least:
        # The last rows leave together: they are too few for two groups.
        positions = held_positions(rows)
    if not may_be_group(task.rules.limits, rows, positions) and n_subjects >= least:
        positions = _around(task, state, room, due, out)
    if may_be_group(task.rules.limits, rows, positions):
        _publish(task, state, positions, out)
        return
    gaps = rows.rows["gaps"][wrap(due, len(rows.rows))]
    decide(out, due, SUPPRESSED, -1, state.marks["instants"][0], gaps)
    _remove(state, due)


@kernel
def _around(task: _Task, state: RollingState, room: _Room, due: int, out: Out) -> Ints:
    """Return the positions of a group around a row, in order; none if there isn't any."""
    columns, rows = state.columns, state.held
    held_columns.close_holes(columns, rows, held_columns.HOLES)
    n, slots = columns.marks["n"][0], columns.slots
    mean = state.prices.means["loss"][0]
    sensitive = np.empty((n, rows.sensitive.shape[1]), np.int64)
    for i in range(n):
        position = slots["position"][i]
        if position < 0:
            room.bias[i] = TAKEN
            continue
        at = wrap(position, len(rows.rows))
        age = _age(task.bounds, rows, position, out)
        price = slots["price"][i] + (mean * age * age) // (AGES * AGES)
        room.bias[i] = -(price // task.rules.least)
        for j in range(rows.sensitive.shape[1]):
            sensitive[i, j] = rows.sensitive[at, j]
    seed = rows.rows["following"][wrap(due, len(rows.rows))]
    found = rows_of(columns)
    n_members = group_around(
        task.grid, task.rules, found, n, room.bias, slots["subject"][:n].copy(), sensitive, seed,
        room.near, room.cost, room.boxes, 0, room.members,
    )  # fmt: skip
    positions = np.empty(n_members, np.int64)
    for j in range(n_members):
        positions[j] = slots["position"][room.members[j]]
    if n_members > 0:
        learn(
            task.grid, state.prices, found, room.members[:n_members],
            room.boxes.totals["loss"][0],
        )  # fmt: skip
    return in_order(positions)


@kernel
def _age(bounds: Bounds, rows: Held, position: int, out: Out) -> int:
    """Return how long a row was held, in parts of the longest time that it may be: 0 to `AGES`."""
    age, deadlines = 0, bounds.deadlines
    if deadlines.rows > 0:
        age = (out.progress["published"][0] - position) * AGES // deadlines.rows
    if deadlines.seconds > 0.0:
        waited = out.progress["published_s"][0] - rows.rows["time"][wrap(position, len(rows.rows))]
        age = max(age, int(waited / deadlines.seconds * AGES))
    return min(max(age, 0), AGES)


@kernel
def _publish(task: _Task, state: RollingState, positions: Ints, out: Out) -> None:
    """Publish rows as the next group."""
    rows, marks = state.held, state.marks
    found, lo, hi = shape(task.sides, task.sides, rows, positions)
    number = marks["groups"][0]
    shown = Box(found.loss, number, found.n_rows, found.n_subjects, found.gaps, found.window)
    box = write_box(out, lo, hi, shown)
    for position in positions:
        gaps = rows.rows["gaps"][wrap(position, len(rows.rows))]
        decide(out, position, GROUP, box, marks["instants"][0], gaps)
        _remove(state, position)
    marks["groups"][0] += 1


@kernel
def _remove(state: RollingState, position: int) -> None:
    held_columns.remove(state.columns, state.held, position)
    leave(state.held, state.counter, position)
