"""What all workers of FAST decided, put together; and the rows that they left to all."""

from __future__ import annotations

import numpy as np

from shoal.engine.decisions import Out
from shoal.engine.fast.state import FastState, Round, Worker
from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels import counter, held_columns
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.boxes import Box
from shoal.engine.kernels.held import Held, is_held, people
from shoal.engine.kernels.held_columns import HeldColumns
from shoal.engine.kernels.kept_groups import keep
from shoal.engine.kernels.ring import wrap
from shoal.engine.on_deadline import (
    OnDeadlineRules,
    OnDeadlineState,
    covering,
    find_place,
    moment,
    neighbours,
    settle,
)

__all__ = ["decide_left", "hand_over", "merge"]


@kernel
def merge(
    rules: OnDeadlineRules, state: FastState, worker: Worker, pending: Records, out: Out
) -> None:
    """Take over the decisions of a worker: number its groups, keep them, and make room for all.

    The worker writes them there itself when it comes to its next round (`hand_over`): so that is
    done by all workers at once.
    """
    boxes, kept = worker.out.boxes, state.kept
    since = moment(rules, state.marks, out)
    n_rows, n_boxes = worker.out.progress["n_decided"][0], worker.out.progress["n_boxes"][0]
    nobody, nothing = people(state.held, np.empty(0, np.int64))
    for box in range(n_boxes):
        number = boxes["group"][box]
        if boxes["n_rows"][box] > 0:
            number = state.marks["groups"][0]
            state.marks["groups"][0] += 1
        elif number < 0:
            number = boxes["group"][-1 - number]
        elif rules.renews and kept.groups["number"][worker.places[box]] == number:
            # No new group has taken its place in the meantime.
            kept.groups["since"][worker.places[box]] = since
        boxes["group"][box] = number
        if boxes["n_rows"][box] > 0 and len(kept.groups) > 0:
            made = boxes[box]
            shown = Box(made["loss"], number, made["n_rows"], made["n_subjects"], made["gaps"], -1)
            keep(kept, worker.out.lo[box], worker.out.hi[box], shown, since, nobody, nothing)
    pending["n_rows"][0], pending["n_boxes"][0] = n_rows, n_boxes
    pending["row"][0] = out.progress["n_decided"][0]
    pending["box"][0] = out.progress["n_boxes"][0]
    pending["instant"][0] = state.marks["instants"][0]
    out.progress["n_decided"][0] += n_rows
    out.progress["n_boxes"][0] += n_boxes
    state.held.marks["n_rows"][0] -= n_rows


@kernel
def hand_over(worker: Worker, pending: Records, out: Out) -> None:
    """Write what a worker decided in its last round to where `merge` made room for it."""
    own, first = worker.out, pending["box"][0]
    for i in range(pending["n_boxes"][0]):
        for d in range(own.lo.shape[1]):
            out.lo[first + i, d] = own.lo[i, d]
            out.hi[first + i, d] = own.hi[i, d]
        out.boxes[first + i] = own.boxes[i]
    for i in range(pending["n_rows"][0]):
        at = pending["row"][0] + i
        out.decided[at] = own.decided[i]
        out.decided["box"][at] += first
        out.decided["instant"][at] = pending["instant"][0]
    pending["n_rows"][0] = 0
    pending["n_boxes"][0] = 0


@on_demand
def decide_left(
    rules: OnDeadlineRules,
    state: FastState,
    ask: Round,
    left: Ints,
    out: Out,
) -> None:
    """Decide the rows that their workers found no group for, among the rows of all.

    A row that finds none there either is suppressed when its time is up, and waits till then. One
    that finds too little company joins a kept group all the same: a round hides when it came better
    than its deadline would.
    """
    rows = state.held
    everything, subjects = _room_for(state)
    rows.marks["n_subjects"][0] = 0
    for position in range(rows.marks["oldest"][0], rows.marks["upcoming"][0]):
        if is_held(rows, position):
            held_columns.append(everything, rows, position)
            subject = rows.rows["subject"][wrap(position, len(rows.rows))]
            if counter.add(subjects, counter.EVERYWHERE, subject):
                rows.marks["n_subjects"][0] += 1
    whole = OnDeadlineState(rows, everything, subjects, state.kept, state.marks, state.rng)
    for position in left:
        if not is_held(rows, position) or find_place(rules, whole, position, ask.at_end, out):
            continue
        members = neighbours(rules, whole, position)
        if (
            len(members) > 0
            or _is_due(rules, rows, position, ask)
            or len(covering(rules, whole, position, out)) > 0
        ):
            settle(rules, whole, position, members, out)
    # Write the slots of all rows with their workers to the ring again.
    for worker in range(len(state.draws)):
        own = _of(state, worker)
        own.marks["n"][0] = 0
        own.marks["n_holes"][0] = 0
        own.marks["n_wide"][0] = 0
    for position in range(rows.marks["oldest"][0], rows.marks["upcoming"][0]):
        if is_held(rows, position):
            worker = rows.rows["cluster"][wrap(position, len(rows.rows))]
            held_columns.append(_of(state, worker), rows, position)


@kernel
def _room_for(state: FastState) -> tuple[HeldColumns, Records]:
    """Return empty columns and an empty counter for all held rows."""
    n, n_quasi, size = state.held.marks["n_rows"][0], state.held.lo.shape[1], 2
    while size < 2 * n + 2:
        size *= 2
    columns = HeldColumns(
        np.empty((n_quasi, n)),
        np.empty((n_quasi, n)),
        np.empty(n, held_columns.SLOT),
        np.zeros(1, held_columns.MARKS),
    )
    return columns, np.zeros(size, counter.ENTRY)


@kernel
def _of(state: FastState, worker: int) -> HeldColumns:
    """Return the columns of a worker."""
    rows = state.columns
    return HeldColumns(rows.lo[worker], rows.hi[worker], rows.slots[worker], rows.marks[worker])


@kernel
def _is_due(rules: OnDeadlineRules, rows: Held, position: int, ask: Round) -> bool:
    """Return whether the time of a row is up, or there is still no room for another row."""
    delay = rules.deadlines
    if ask.at_end or (delay.rows > 0 and position + delay.rows < rows.marks["upcoming"][0]):
        return True
    if 0 < rules.capacity < rows.marks["n_rows"][0]:
        return True
    time = rows.rows["time"][wrap(position, len(rows.rows))]
    return delay.seconds > 0.0 and time + delay.seconds <= ask.now
