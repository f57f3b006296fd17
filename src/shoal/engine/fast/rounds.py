"""When FAST has a round, what it knows of itself, and how rows come in between."""

from __future__ import annotations

import numpy as np

from shoal.engine.deadlines import COMES, InputBatch, arrival, next_event, overfull
from shoal.engine.decisions import Out
from shoal.engine.fast.state import FastState, Round
from shoal.engine.jit import kernel
from shoal.engine.kernels.held import Held, due_at, put
from shoal.engine.kernels.ring import wrap
from shoal.engine.on_deadline import OnDeadlineRules, moment

__all__ = ["ROUNDS", "ask_for", "put_later", "put_rest", "until_round"]

#: The number of rounds in a delay in rows.
ROUNDS = 2
#: The weight of the latest round in the estimated time of the next one.
LATEST = 0.25


@kernel
def until_round(
    rules: OnDeadlineRules, state: FastState, block: int, batch: InputBatch, out: Out
) -> int:
    """Take in rows until a round is due; return `DONE` if none is."""
    workers, marks = len(state.draws), state.held.marks
    while True:
        due = next_event(state.held, rules.deadlines, batch, out)
        if due != COMES:
            return due
        row = arrival(state.held, batch)
        position = put(state.held, row, (marks["upcoming"][0] // block) % workers)
        if overfull(state.held, rules.capacity, out):
            return position
        if rules.capacity == 0 and (position + 1) % (workers * block) == 0:
            out.progress["published"][0] = position
            out.progress["published_s"][0] = np.nan if np.isnan(row.time) else marks["now"][0]
            return position
        if rules.deadlines.seconds == 0.0:
            _take_many(rules, state, block, batch)


@kernel
def put_rest(state: FastState, block: int, batch: InputBatch) -> None:
    """Put the rows of a batch that no worker has put, since there was no round after them."""
    begin = _begin_of(state, batch)
    for position in range(max(begin, state.clock["dealt"][0]), state.held.marks["upcoming"][0]):
        put_later(state.held, batch, begin, position, (position // block) % len(state.draws))


@kernel
def _begin_of(state: FastState, batch: InputBatch) -> int:
    """Return the position of the first row of a batch."""
    return state.held.marks["upcoming"][0] - batch.cursor["upcoming"][0]


@kernel
def put_later(rows: Held, batch: InputBatch, begin: int, position: int, worker: int) -> None:
    """Put a row that was counted when it arrived; one with a time was put at once."""
    i = position - begin
    if not np.isnan(batch.codes.times[i]):
        return
    at = wrap(position, len(rows.rows))
    for d in range(batch.lo.shape[1]):
        rows.lo[at, d] = batch.lo[i, d]
        rows.hi[at, d] = batch.hi[i, d]
    for j in range(batch.codes.sensitive.shape[1]):
        rows.sensitive[at, j] = batch.codes.sensitive[i, j]
    rows.rows["subject"][at] = batch.codes.subjects[i]
    rows.rows["time"][at] = np.nan
    rows.rows["gaps"][at] = batch.gaps[i]
    rows.rows["cluster"][at] = worker
    rows.rows["following"][at] = -1


@kernel
def _ends_cycle(position: int, cycle: int) -> int:
    """Return the first position, from this one on, at which every worker has got a block."""
    return position + cycle - 1 - position % cycle


@kernel
def _take_many(rules: OnDeadlineRules, state: FastState, block: int, batch: InputBatch) -> None:
    """Take in all rows before the next one at which a row may be due or there may be a round.

    For these rows no check between rows is needed. Where they are dealt in blocks and have no time,
    they are only counted: their workers put them, all at once (`put_later`).
    """
    marks, cursor, times = state.held.marks, batch.cursor, batch.codes.times
    workers, upcoming = len(state.draws), marks["upcoming"][0]
    stop = _ends_cycle(upcoming, workers * block)
    if rules.capacity > 0:
        stop = upcoming + rules.capacity - marks["n_rows"][0]
    if rules.deadlines.rows > 0:
        if upcoming > marks["oldest"][0] + rules.deadlines.rows:
            return
        stop = min(stop, marks["oldest"][0] + rules.deadlines.rows)
    n = min(stop - upcoming, len(times) - cursor["upcoming"][0])
    cursor["just_put"][0] = False
    for _ in range(n):
        i = cursor["upcoming"][0]
        if times[i] > marks["now"][0]:
            marks["now"][0] = times[i]
        if times[i] > marks["arrived"][0]:
            marks["arrived"][0] = times[i]
        cursor["upcoming"][0] += 1
        if rules.capacity == 0 and np.isnan(times[i]):
            marks["upcoming"][0] += 1
            marks["n_rows"][0] += 1
        else:
            put(state.held, arrival(state.held, batch), (marks["upcoming"][0] // block) % workers)


@kernel
def ask_for(
    rules: OnDeadlineRules, state: FastState, block: int, batch: InputBatch, out: Out
) -> Round:
    """Return the round that is due now, and update the estimated time between rounds."""
    clock, workers = state.clock, len(state.draws)
    if rules.deadlines.seconds > 0.0:
        # The clock may be past the deadline already; the round still counts as on time.
        deadline = due_at(state.held, rules.deadlines.seconds)
        out.progress["published_s"][0] = min(out.progress["published_s"][0], deadline)
    now = out.progress["published_s"][0]
    if not np.isnan(now):
        if not np.isnan(clock["last_round"][0]):
            took = now - clock["last_round"][0]
            if np.isnan(clock["estimate"][0]):
                clock["estimate"][0] = took
            else:
                clock["estimate"][0] += (took - clock["estimate"][0]) * LATEST
        clock["last_round"][0] = now
    known = 0.0 if np.isnan(clock["estimate"][0]) else clock["estimate"][0]
    upcoming = state.held.marks["upcoming"][0]
    full = 0 < rules.capacity < state.held.marks["n_rows"][0]
    following = _ends_cycle(upcoming, workers * block)
    if rules.capacity > 0:
        # While there is no room, rounds follow one another; else as with blocks.
        following = upcoming if full else upcoming + rules.deadlines.rows // ROUNDS
    dealt = clock["dealt"][0]
    clock["dealt"][0] = upcoming
    if rules.capacity > 0:
        _deal(state, dealt)
    return Round(
        dealt,
        _begin_of(state, batch),
        out.progress["published"][0],
        now,
        moment(rules, state.marks, out),
        following,
        now + known,
        full,
        batch.at_end,
    )


@kernel
def _deal(state: FastState, dealt: int) -> None:
    """Deal the rows since ``dealt``, each to the worker with the fewest rows."""
    rows, n_rows = state.held.rows, np.empty(len(state.draws), np.int64)
    for worker in range(len(n_rows)):
        marks = state.columns.marks[worker]
        n_rows[worker] = marks["n"][0] - marks["n_holes"][0]
    for position in range(dealt, state.held.marks["upcoming"][0]):
        fewest = np.argmin(n_rows)
        n_rows[fewest] += 1
        rows["cluster"][wrap(position, len(rows))] = fewest
