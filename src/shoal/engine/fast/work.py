"""A round of one worker of FAST: it decides among its own rows, and leaves all others alone."""

from __future__ import annotations

import numpy as np

from shoal.engine.deadlines import InputBatch
from shoal.engine.decisions import GROUP, REUSE, decide, write_box
from shoal.engine.fast.rounds import put_later
from shoal.engine.fast.state import FastState, Round, Worker
from shoal.engine.groups import shape
from shoal.engine.jit import kernel
from shoal.engine.kernels import held_columns, rng
from shoal.engine.kernels.boxes import Box
from shoal.engine.kernels.held import Held, people
from shoal.engine.kernels.kept_groups import KeptGroups, best, keep, reusable, used_again
from shoal.engine.kernels.ring import wrap
from shoal.engine.on_deadline import OnDeadlineRules, neighbours_of

__all__ = ["work"]


@kernel
def work(
    rules: OnDeadlineRules,
    state: FastState,
    block: int,
    batch: InputBatch,
    ask: Round,
    worker: Worker,
) -> None:
    """Decide those rows of a worker that would be late in the next round, oldest first.

    If there is no room for another row, the oldest is one of them. The only shared state that this
    changes are the worker's own rows in the ring.
    """
    rows, own, out = state.held, worker.columns, worker.out
    if rules.capacity == 0:
        _take_blocks(rows, batch, ask, worker, block, len(state.draws))
    else:
        _take_own(rows, ask, worker)
    _copy_kept(state.kept, worker.kept)
    worker.n_left[0] = 0
    out.progress["n_decided"][0] = 0
    out.progress["n_boxes"][0] = 0
    out.progress["published"][0] = ask.published
    out.progress["published_s"][0] = ask.now
    urgent = np.empty(own.marks["n"][0], np.int64)
    n = 0
    for slot in range(len(urgent)):
        position = own.slots["position"][slot]
        is_oldest = ask.full and n == 0
        if position >= 0 and (is_oldest or _in_danger(rules, rows, position, ask)):
            urgent[n] = position
            n += 1
    for position in urgent[:n]:
        slot = rows.rows["following"][wrap(position, len(rows.rows))]
        if own.slots["position"][slot] == position:
            _decide_own(rules, rows, ask, worker, position)


@kernel
def _take_blocks(
    rows: Held, batch: InputBatch, ask: Round, worker: Worker, block: int, workers: int
) -> None:
    """Take in the blocks that have come since the last round and are the worker's."""
    upcoming = rows.marks["upcoming"][0]
    for number in range(ask.dealt // block, (upcoming - 1) // block + 1):
        if number % workers != worker.number:
            continue
        for position in range(max(number * block, ask.dealt), min((number + 1) * block, upcoming)):
            if position >= ask.begin:
                put_later(rows, batch, ask.begin, position, worker.number)
            held_columns.append(worker.columns, rows, position)


@kernel
def _copy_kept(kept: KeptGroups, own: KeptGroups) -> None:
    """Copy the kept groups: what a worker does with them is merged later."""
    n = len(kept.groups)
    for d in range(len(kept.lo)):
        for at in range(n):
            own.lo[d, at], own.hi[d, at] = kept.lo[d, at], kept.hi[d, at]
    for at in range(n):
        own.groups[at] = kept.groups[at]
        for i in range(kept.subject.shape[1]):
            own.subject[at, i] = kept.subject[at, i]
            for j in range(kept.sensitive.shape[2]):
                own.sensitive[at, i, j] = kept.sensitive[at, i, j]
    own.marks[0] = kept.marks[0]


@kernel
def _take_own(rows: Held, ask: Round, worker: Worker) -> None:
    """Take in the rows that have come since the last round and are the worker's."""
    for position in range(ask.dealt, rows.marks["upcoming"][0]):
        if rows.rows["cluster"][wrap(position, len(rows.rows))] == worker.number:
            held_columns.append(worker.columns, rows, position)


@kernel
def _decide_own(
    rules: OnDeadlineRules, rows: Held, ask: Round, worker: Worker, position: int
) -> None:
    """Decide a row of a worker among its own rows, if there are enough.

    A row that is to join a kept group in company is left to `_decide_left`.
    """
    at = wrap(position, len(rows.rows))
    lo, hi, subject = rows.lo[at], rows.hi[at], rows.rows["subject"][at]
    since = ask.moment - rules.age
    groups = reusable(worker.kept, rules.limits, lo, hi, subject, rows.sensitive[at], since)
    if len(groups) > 0 and not rules.best:
        if rules.together:
            _leave_to_all(worker, position)
            return
        _join(rules, rows, ask, worker, position, groups[rng.below(worker.draws, len(groups))])
        return
    held_columns.close_holes(worker.columns, rows, held_columns.DENSE)
    slot = rows.rows["following"][at]
    members = neighbours_of(rules, rows, worker.columns, slot)
    shown, box_lo, box_hi = shape(rules.sides, rules.shown, rows, members)
    known = best(worker.kept, groups, shown.loss)
    if known >= 0 and not rules.together:
        _join(rules, rows, ask, worker, position, known)
        return
    if known >= 0 or len(members) == 0:
        _leave_to_all(worker, position)
        return
    # Its number until the groups of all workers are merged: made of that of its box.
    box = worker.out.progress["n_boxes"][0]
    shown = Box(shown.loss, -1 - box, shown.n_rows, shown.n_subjects, shown.gaps, -1)
    write_box(worker.out, box_lo, box_hi, shown)
    subjects, sensitive = people(rows, members)
    keep(worker.kept, box_lo, box_hi, shown, ask.moment, subjects, sensitive)
    for member in members:
        gaps = rows.rows["gaps"][wrap(member, len(rows.rows))]
        decide(worker.out, member, GROUP, box, 0, gaps)
        rows.rows["cluster"][wrap(member, len(rows.rows))] = -1
        held_columns.remove(worker.columns, rows, member)


@kernel
def _leave_to_all(worker: Worker, position: int) -> None:
    """Leave a row to be decided among the rows of all workers."""
    worker.left[worker.n_left[0]] = position
    worker.n_left[0] += 1


@kernel
def _join(
    rules: OnDeadlineRules, rows: Held, ask: Round, worker: Worker, position: int, place: int
) -> None:
    """Let a row join a group that is kept or was made by the worker in this round."""
    shown, lo, hi = used_again(worker.kept, place, -1)
    box = write_box(worker.out, lo, hi, shown)
    worker.places[box] = place
    if rules.renews:
        worker.kept.groups["since"][place] = ask.moment
    gaps = rows.rows["gaps"][wrap(position, len(rows.rows))]
    decide(worker.out, position, REUSE, box, 0, gaps)
    rows.rows["cluster"][wrap(position, len(rows.rows))] = -1
    held_columns.remove(worker.columns, rows, position)


@kernel
def _in_danger(rules: OnDeadlineRules, rows: Held, position: int, ask: Round) -> bool:
    """Return whether the time of a row is up before the next round."""
    delay = rules.deadlines
    if ask.at_end or (delay.rows > 0 and position + delay.rows < ask.following):
        return True
    time = rows.rows["time"][wrap(position, len(rows.rows))]
    return delay.seconds > 0.0 and time + delay.seconds <= ask.until
