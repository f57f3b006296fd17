"""What all workers of FAST decided, put together; and the rows that they left to all."""

from __future__ import annotations

import numpy as np

from shoal.engine.decisions import Out, decide, write_box
from shoal.engine.fast.state import FastState, Round, Worker
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter, held_columns
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.boxes import Box
from shoal.engine.kernels.held import Held, forget, is_held, people
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

__all__ = ["decide_left", "merge"]


@kernel
def merge(rules: OnDeadlineRules, state: FastState, worker: Worker, out: Out) -> None:
    """Take over the decisions of a worker: number its groups, and keep them."""
    boxes, first = worker.out.boxes, out.progress["n_boxes"][0]
    since = moment(rules, state.marks, out)
    number = np.empty(worker.out.progress["n_boxes"][0], np.int64)
    subjects, sensitive = people(state.held, np.empty(0, np.int64))
    for box in range(len(number)):
        made, lo, hi = boxes[box], worker.out.lo[box], worker.out.hi[box]
        number[box] = made["group"]
        if made["n_rows"] > 0:
            number[box] = state.marks["groups"][0]
            state.marks["groups"][0] += 1
        elif number[box] < 0:
            number[box] = number[-1 - number[box]]
        elif rules.renews and state.kept.groups["number"][worker.places[box]] == number[box]:
            # No new group has taken its place in the meantime.
            state.kept.groups["since"][worker.places[box]] = since
        shown = Box(made["loss"], number[box], made["n_rows"], made["n_subjects"], made["gaps"], -1)
        write_box(out, lo, hi, shown)
        if made["n_rows"] > 0:
            keep(state.kept, lo, hi, shown, since, subjects, sensitive)
    for i in range(worker.out.progress["n_decided"][0]):
        row, instant = worker.out.decided[i], state.marks["instants"][0]
        decide(out, row["row"], row["outcome"], first + row["box"], instant, row["gaps"])
        forget(state.held, row["row"])


@kernel
def decide_left(
    rules: OnDeadlineRules,
    state: FastState,
    everything: HeldColumns,
    subjects: Records,
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
