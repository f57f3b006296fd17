"""The release in batches: when the oldest row is due, all held rows leave at once.

Which rows leave when depends on arrivals alone. So several batches of one push can be formed at the
same time, each with random numbers of its own, and are published in their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from shoal.engine.deadlines import COMES, DONE, HoldingEngine, InputBatch
from shoal.engine.decisions import Out
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter, held, rng
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.counter import EVERYWHERE
from shoal.engine.kernels.held import (
    Held,
    RowArrays,
    due_at,
    forget,
    gather,
    positions_of,
    window_of,
)
from shoal.engine.kernels.parts import Parts, repaired
from shoal.engine.kernels.predicate import Limits, any_measured, breakable, meets, needed
from shoal.engine.kernels.ring import wrap
from shoal.engine.space import Space
from shoal.engine.tide.forming import Forming
from shoal.engine.tide.held_rows import (
    MARKS,
    Bounds,
    deadlines_now,
    next_turn,
    uncount,
)
from shoal.engine.whole_table import Publication, publish_parts, suppress

__all__ = ["BatchEngine"]

#: The seconds that it takes to decide a row, about twice as many as on one core of a usual machine;
#: and where groups are measured against a window, so that each attempt counts all sensitive values.
AHEAD, AHEAD_MEASURED = 2e-5, 5e-4
#: The fewest rows that are worth a thread: fewer are formed while it would wake up.
WORTH_A_THREAD = 1_000


class BatchState(NamedTuple):
    """The whole state of a run."""

    held: Held
    counter: Records
    marks: Records
    rng: Ints


class _Leaving(NamedTuple):
    """Rows that leave together, and what is published with them.

    ``groups`` returns their groups, and the rows that are in none; None: all are suppressed.
    ``progress`` says when they were due.
    """

    rows: RowArrays
    positions: Ints
    groups: Callable[[], tuple[Parts, Ints]] | None
    window: int
    instant: int
    progress: Records


class BatchEngine(HoldingEngine):
    """One run of TIDE, batch by batch."""

    state: BatchState

    def __init__(self, space: Space, seed: bytes, forming: Forming, capacity: int) -> None:
        self._forming, self._threads = forming, forming.threads
        # What is measured against the latest rows must be formed before further ones come.
        is_alone = self._threads.n == 1 or any_measured(space.limits)
        self._most_waiting = 0 if is_alone else 2 * self._threads.n
        self._leaving: deque[_Leaving] = deque()
        ahead = AHEAD_MEASURED if any_measured(space.limits) else AHEAD
        self._bounds = Bounds(space.deadlines, capacity, ahead)
        self._least = int(needed(space.limits))
        self._breakable = bool(breakable(space.limits))
        state = BatchState(
            held=held.empty(space.n_quasi, space.n_sensitive, window=space.window.rows),
            counter=counter.empty(2 * held.SMALLEST),
            marks=np.zeros(1, MARKS),
            rng=rng.seeded(seed, "decide"),
        )
        super().__init__(space, state, seed)

    @property
    def next_deadline(self) -> float | None:
        """The time at which the held rows are due, early enough to decide them all in time."""
        if not self.space.deadlines.seconds or not self.n_held:
            return None
        seconds = deadlines_now(self.state.held, self._bounds).seconds
        return float(due_at(self.state.held, seconds))

    def _run(self, batch: InputBatch, out: Out) -> None:
        while _until_due(self.state, self._bounds, batch, out) != DONE:
            self._decide(batch.at_end, out)
            self.state.marks["instants"] += 1
            self._publish(self._most_waiting, out)
        self._publish(0, out)

    def _decide(self, at_end: bool, out: Out) -> None:
        """Decide the oldest row, and with it all rows that can leave."""
        rows = self.state.held
        everything = positions_of(rows)
        due = everything if at_end else everything[:1]
        if rows.marks["n_subjects"][0] < self._least:
            self._leave(due, self._gathered(due), None, out)
            return
        limits = self._of_now(self.space.limits)
        n = len(everything)
        if not at_end:
            n = _n_leaving(rows, everything, self._least, counter.empty(self._least))
        for positions in [everything[:n], everything][: 1 + (n < len(everything))]:
            found = self._gathered(positions)
            if meets(limits, found.subjects, found.sensitive):
                self._leave(positions, found, limits, out)
                return
        # No part of rows that lack people or values has more of them, but a part may be more even.
        if not self._breakable:
            self._leave(due, self._gathered(due), None, out)
        elif at_end:
            self._leave(everything, found, limits, out)
        else:
            members = self._forming.around(limits, found)
            chosen = everything[members] if len(members) else due
            self._leave(chosen, self._gathered(chosen), limits if len(members) else None, out)

    def _gathered(self, positions: Ints) -> RowArrays:
        return gather(self.state.held, positions)

    def _leave(self, positions: Ints, rows: RowArrays, limits: Limits | None, out: Out) -> None:
        """Let rows leave in groups, or suppress them all if there are no limits."""
        groups: Callable[[], tuple[Parts, Ints]] | None = None
        if limits is not None:
            groups = partial(self._groups, limits, rows, rng.forked(self.state.rng))
            if len(positions) >= WORTH_A_THREAD:
                groups = self._threads.begin(groups)
        instant, window = int(self.state.marks["instants"][0]), int(window_of(self.state.held))
        self._leaving.append(
            _Leaving(rows, positions, groups, window, instant, out.progress.copy())
        )
        _leave_all(self.state, positions)

    def _groups(self, limits: Limits, rows: RowArrays, random: Ints) -> tuple[Parts, Ints]:
        """Form groups, check them, and merge them until they keep the promise.

        Rows that are in no group come second.
        """
        found = self._forming.parts(limits, rows, random)
        return repaired(self.space.sides, limits, rows, found)

    def _publish(self, most: int, out: Out) -> None:
        """Publish rows that leave, the first ones first, until at most so many batches wait."""
        marks = self.state.marks
        while len(self._leaving) > most:
            rows, positions, groups, window, instant, progress = self._leaving.popleft()
            for field in ("published", "published_s"):
                out.progress[field] = progress[field]
            shown = Publication(positions, int(marks["groups"][0]), window, instant)
            lost = np.arange(len(positions))
            if groups is not None:
                parts, lost = groups()
                publish_parts(self.space.sides, rows, parts, shown, out)
                marks["groups"] += len(parts.starts) - 1
            suppress(rows, lost, shown, out)


@kernel
def _until_due(state: BatchState, bounds: Bounds, batch: InputBatch, out: Out) -> int:
    """Take in rows until one is due; return its position, or `DONE`."""
    turn = COMES
    while turn == COMES:
        turn = next_turn(state.held, state.counter, bounds, batch, out)
    return turn


@kernel
def _n_leaving(rows: Held, positions: Ints, least: int, seen: Records) -> int:
    """Return how many rows leave: all but the youngest, of as many people as a group needs.

    So there is a group at the end of the stream, whenever that comes. ``seen`` is an empty counter.
    """
    n, found = len(positions), 0
    while n > 0 and found < least:
        n -= 1
        subject = rows.rows["subject"][wrap(positions[n], len(rows.rows))]
        if counter.add(seen, EVERYWHERE, subject):
            found += 1
    return n if n > 0 else len(positions)


@kernel
def _leave_all(state: BatchState, positions: Ints) -> None:
    for position in positions:
        uncount(state.held, state.counter, position)
        forget(state.held, position)
