"""The rolling release: a row whose time is up leaves in a group that grows around it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.deadlines import COMES, DONE, HoldingEngine, InputBatch
from shoal.engine.decisions import Out
from shoal.engine.groups import may_be_group, publish, suppress
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter, held
from shoal.engine.kernels.array_tools import in_order, picked
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.boxes import Sides
from shoal.engine.kernels.held import Held, positions_of
from shoal.engine.kernels.ring import wrap
from shoal.engine.space import Space
from shoal.engine.tide import columns as held_columns
from shoal.engine.tide.columns import Columns, rows_of
from shoal.engine.tide.forming import rules_for
from shoal.engine.tide.grid import Boxes, Fixed, Grid, GridRows, boxes_for, grid_of, grid_rows
from shoal.engine.tide.grow import TAKEN, Candidates, Rules, candidates_for
from shoal.engine.tide.held_rows import MARKS, Bounds, next_turn, uncount
from shoal.engine.tide.nearest import group_around
from shoal.engine.tide.prices import Prices, learn, no_prices, price_of

__all__ = ["RollingEngine"]

#: How long a row was held is counted in this many parts of its longest time: 2**20 is its square.
AGES = 1024
#: The bits behind the point of such a part.
PACE = 20


class RollingState(NamedTuple):
    """The whole state of a run."""

    held: Held
    columns: Columns
    counter: Records
    prices: Prices
    marks: Records


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
        # A row that isn't taken can wait for others like it.
        rules = rules_for(space.limits)._replace(takes_equals=False)
        self._task = _Task(space.sides, grid, rules, Bounds(space.deadlines, capacity, 0.0))
        state = RollingState(
            held=held.empty(space.n_quasi, space.n_sensitive, window=space.window.rows),
            columns=held_columns.no_columns(space.n_quasi, 2 * held.SMALLEST),
            counter=counter.empty(2 * held.SMALLEST),
            prices=no_prices(grid),
            marks=np.zeros(1, MARKS),
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
    n = len(state.columns.positions)
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
    price = price_of(task.grid, state.prices, row, 0) // task.rules.least
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
        positions = positions_of(rows)
    if not may_be_group(task.rules.limits, rows, positions) and n_subjects >= least:
        positions = _around(task, state, room, due, out)
    if may_be_group(task.rules.limits, rows, positions):
        for i in range(len(positions)):
            _uncount(state, positions[i])
        publish(task.sides, rows, positions, state.marks, out)
    else:
        _uncount(state, due)
        suppress(rows, due, state.marks, out)


@kernel
def _around(task: _Task, state: RollingState, room: _Room, due: int, out: Out) -> Ints:
    """Return the positions of a group around a row, in order; none if there isn't any."""
    columns, rows = state.columns, state.held
    held_columns.close_holes(columns, rows, held_columns.HOLES)
    n = columns.marks["n"][0]
    _write_bias(task, state, out, n, room.bias)
    found, seed = rows_of(columns), rows.rows["following"][wrap(due, len(rows.rows))]
    near = _like(room.near, found)
    n_members = group_around(
        task.grid, task.rules, found, n, room.bias, columns.subjects, _sensitive(task, state, n),
        seed, near, room.cost, room.boxes, 0, room.members,
    )  # fmt: skip
    members = room.members[:n_members]
    if n_members > 0:
        learn(task.grid, state.prices, found, members, room.boxes.totals["loss"][0])
    return in_order(picked(columns.positions, members))


@kernel
def _like(near: Candidates, rows: GridRows) -> Candidates:
    """Return the same room for candidates that have gaps and are points only if these rows do."""
    lo, hi = near.rows.lo, near.rows.hi
    some = GridRows(lo, lo if rows.are_points else hi, rows.has_gaps, rows.are_points)
    return Candidates(
        some, near.who, near.subjects, near.bias, near.cost, near.parts, near.part
    )  # fmt: skip


@kernel
def _write_bias(task: _Task, state: RollingState, out: Out, n: int, bias: Fixed) -> None:
    """Write what rows cost beside the growth of a box: their prices, and less the older they are.

    Age counts in parts of the longest time that a row may be held, from 0 to `AGES`.
    """
    positions, prices, deadlines = (
        state.columns.positions,
        state.columns.prices,
        task.bounds.deadlines,
    )
    published, seconds = out.progress["published"][0], out.progress["published_s"][0]
    mean = state.prices.means["loss"][0] // task.rules.least
    longest = deadlines.rows if deadlines.rows > 0 else task.bounds.capacity
    pace = (AGES << PACE) // longest if longest > 0 else 0
    for i in range(n):
        age = min(((published - positions[i]) * pace) >> PACE, AGES)
        bias[i] = -(prices[i] + ((mean * age * age) >> 20)) if positions[i] >= 0 else TAKEN
    if deadlines.seconds > 0.0:
        rows = state.held.rows
        for i in range(n):
            if positions[i] >= 0:
                waited = seconds - rows["time"][wrap(positions[i], len(rows))]
                age = min(max(int(waited / deadlines.seconds * AGES), 0), AGES)
                bias[i] = min(bias[i], -(prices[i] + ((mean * age * age) >> 20)))


@kernel
def _sensitive(task: _Task, state: RollingState, n: int) -> Ints:
    """Return the sensitive codes of the rows in the columns, where a promise needs them."""
    rows, positions = state.held, state.columns.positions
    found = np.zeros((n if task.rules.asks else 0, rows.sensitive.shape[1]), np.int64)
    for i in range(len(found)):
        for j in range(found.shape[1]):
            if positions[i] >= 0:
                found[i, j] = rows.sensitive[wrap(positions[i], len(rows.rows)), j]
    return found


@kernel
def _uncount(state: RollingState, position: int) -> None:
    """Forget what is known of a row beside the row itself."""
    held_columns.remove(state.columns, state.held, position)
    uncount(state.held, state.counter, position)
