"""What both kinds of release share: rows arrive, are counted by subject, and leave."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.deadlines import COMES, InputBatch, arrival, next_event, overfull
from shoal.engine.decisions import Out
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter
from shoal.engine.kernels.arrays import Records
from shoal.engine.kernels.counter import EVERYWHERE
from shoal.engine.kernels.held import Held, put
from shoal.engine.kernels.ring import wrap
from shoal.engine.space import Deadlines

__all__ = ["MARKS", "Bounds", "deadlines_now", "next_turn", "uncount"]

#: The number of groups so far, and the number of the instant.
MARKS = np.dtype([("groups", "i8"), ("instants", "i8")])


class Bounds(NamedTuple):
    """How long rows are held, how many of them (0: any number), and how early they are decided.

    To decide many rows takes time. Where the delay is in seconds, rows are due ``ahead`` seconds
    earlier for each row that is held, though never earlier than by a quarter of the delay.
    """

    deadlines: Deadlines
    capacity: int
    ahead: float


@kernel
def deadlines_now(rows: Held, bounds: Bounds) -> Deadlines:
    """Return how long rows are held, given how many there are."""
    seconds = bounds.deadlines.seconds
    lead = min(seconds / 4.0, rows.marks["n_rows"][0] * bounds.ahead)
    return Deadlines(bounds.deadlines.rows, seconds - lead)


@kernel
def next_turn(rows: Held, counts: Records, bounds: Bounds, batch: InputBatch, out: Out) -> int:
    """Return what happens next: `COMES`, the position of a row that is due, or `DONE`.

    A row that comes has been put. If there is no room for it, the oldest row is due.
    """
    marks = rows.marks
    if overfull(rows, bounds.capacity, out):
        return marks["oldest"][0]
    due = next_event(rows, deadlines_now(rows, bounds), batch, out)
    if due >= 0 and out.progress["published_s"][0] < marks["arrived"][0]:
        # One more row made the deadline earlier: before that row came.
        out.progress["published_s"][0] = marks["arrived"][0]
    if due == COMES:
        row = arrival(rows, batch)
        put(rows, row, 0)
        if counter.add(counts, EVERYWHERE, row.subject):
            marks["n_subjects"][0] += 1
    return due


@kernel
def uncount(rows: Held, counts: Records, position: int) -> None:
    """Count the subject of a row no longer that is about to leave."""
    subject = rows.rows["subject"][wrap(position, len(rows.rows))]
    if counter.remove(counts, EVERYWHERE, subject):
        rows.marks["n_subjects"][0] -= 1
