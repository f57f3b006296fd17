"""TIDE: all held rows leave at once, in groups that are formed together and repaired.

When the time of the oldest row is up, the rows that are held become groups: each grows from the
oldest row that is left, by the rows that it costs least. Then neighbouring groups are formed again,
as long as that loses less. Nothing is reused: no row ever leaves alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from shoal.engine.base import Engine
from shoal.engine.deadlines import (
    COMES,
    DONE,
    HoldingAnonymizer,
    HoldingEngine,
    InputBatch,
    arrival,
    next_event,
)
from shoal.engine.decisions import Out
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter, held, rng
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.counter import EVERYWHERE
from shoal.engine.kernels.held import Held, forget, gather, is_held, put, window_of
from shoal.engine.kernels.parts import repaired
from shoal.engine.kernels.predicate import Limits, breakable, meets, needed
from shoal.engine.kernels.ring import wrap
from shoal.engine.space import Deadlines, Space
from shoal.engine.tide.batch import Batches
from shoal.engine.whole_table import Publication, publish_parts, suppress

__all__ = ["Tide"]


@dataclass(frozen=True, kw_only=True)
class Tide(HoldingAnonymizer):
    """TIDE, for all promises.

    Parameters
    ----------
    effort
        How often rows are formed into groups again, in the mean. More loses less and takes longer.
    workers
        The number of threads. The result is the same for any number.
    capacity
        The maximum number of held rows; 0: the policy's delay is the only bound. A row that arrives
        when the capacity is reached makes the rows leave.
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.

    >>> import pyarrow as pa
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [20, 70, 22, 71]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=10))
    >>> anonymize(people, schema, policy, Tide())["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']
    """

    name: ClassVar[str] = "tide"
    reference: ClassVar[str] = "Shoal's own method, see docs/algorithms/tide.md"

    effort: int = 10
    workers: int = 1
    capacity: int = 0

    def __post_init__(self) -> None:
        self._at_least(0, "effort", "capacity")
        self._at_least(1, "workers")
        self._at_most(1000, "effort")
        self._at_most(64, "workers")

    def _start(self, space: Space, seed: bytes) -> Engine:
        return TideEngine(self, space, seed)


#: The number of groups so far, and the number of the instant.
MARKS = np.dtype([("groups", "i8"), ("instants", "i8")])


class TideState(NamedTuple):
    """The whole state of a run of TIDE."""

    held: Held
    counter: Records
    marks: Records
    rng: Ints


class TideEngine(HoldingEngine):
    """One run of `Tide`."""

    state: TideState

    def __init__(self, anonymizer: Tide, space: Space, seed: bytes) -> None:
        self._batches = Batches(space, anonymizer.effort, anonymizer.workers)
        self._capacity = anonymizer.capacity
        self._least = int(needed(space.limits))
        self._breakable = bool(breakable(space.limits))
        state = TideState(
            held=held.empty(space.n_quasi, space.n_sensitive, window=space.window.rows),
            counter=counter.empty(2 * held.SMALLEST),
            marks=np.zeros(1, MARKS),
            rng=rng.seeded(seed, "decide"),
        )
        super().__init__(space, state, seed)

    def _run(self, batch: InputBatch, out: Out) -> None:
        deadlines, state = self.space.deadlines, self.state
        while _until_due(state, deadlines, self._capacity, batch, out) != DONE:
            self._decide(batch.at_end, out)
            state.marks["instants"] += 1

    def _decide(self, at_end: bool, out: Out) -> None:
        """Decide the oldest row, and with it all that can leave."""
        limits = self._of_now(self.space.limits)
        everything = _held_positions(self.state.held)
        if self.state.held.marks["n_subjects"][0] < self._least:
            self._suppress(everything if at_end else everything[:1], out)
            return
        n, seen = len(everything), counter.empty(self._least)
        if not at_end:
            n = _n_leaving(self.state.held, everything, self._least, seen)
        for positions in (everything[:n], everything) if n < len(everything) else (everything,):
            rows = gather(self.state.held, positions)
            if meets(limits, rows.subjects, rows.sensitive):
                self._publish(limits, positions, out)
                return
        # No part of rows that lack people or values has them, but a part may be more even.
        if at_end and self._breakable:
            self._publish(limits, everything, out)
        else:
            self._suppress(everything if at_end else everything[:1], out)

    def _publish(self, limits: Limits, positions: Ints, out: Out) -> None:
        """Publish rows in groups. What isn't in any, though merged with others, is suppressed."""
        state, marks = self.state, self.state.marks
        rows = gather(state.held, positions)
        found = self._batches.parts(limits, rows, state.rng)
        parts, lost = repaired(self.space.sides, limits, rows, found)
        shown = Publication(
            positions, int(marks["groups"][0]), int(window_of(state.held)), int(marks["instants"][0])
        )
        publish_parts(self.space.sides, rows, parts, shown, out)
        suppress(rows, lost, shown, out)
        _leave(state, positions)
        marks["groups"] += len(parts.starts) - 1

    def _suppress(self, positions: Ints, out: Out) -> None:
        rows = gather(self.state.held, positions)
        shown = Publication(positions, 0, -1, int(self.state.marks["instants"][0]))
        suppress(rows, np.arange(len(positions)), shown, out)
        _leave(self.state, positions)


@kernel
def _until_due(
    state: TideState, deadlines: Deadlines, capacity: int, batch: InputBatch, out: Out
) -> int:
    """Take in rows until one is due; return its position, or `DONE`."""
    rows = state.held
    while True:
        due = next_event(rows, deadlines, batch, out)
        if due != COMES:
            return due
        row = arrival(rows, batch)
        position = put(rows, row, 0)
        if counter.add(state.counter, EVERYWHERE, row.subject):
            rows.marks["n_subjects"][0] += 1
        if capacity > 0 and rows.marks["n_rows"][0] > capacity:
            out.progress["published"][0] = position
            out.progress["published_s"][0] = np.nan if np.isnan(row.time) else rows.marks["now"][0]
            return rows.marks["oldest"][0]


@kernel
def _held_positions(rows: Held) -> Ints:
    """Return the positions of all held rows, in order."""
    positions = np.empty(rows.marks["n_rows"][0], np.int64)
    n = 0
    for position in range(rows.marks["oldest"][0], rows.marks["upcoming"][0]):
        if is_held(rows, position):
            positions[n] = position
            n += 1
    return positions


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
def _leave(state: TideState, positions: Ints) -> None:
    """Remove rows that were decided."""
    rows = state.held
    for position in positions:
        subject = rows.rows["subject"][wrap(position, len(rows.rows))]
        if counter.remove(state.counter, EVERYWHERE, subject):
            rows.marks["n_subjects"][0] -= 1
        forget(rows, position)
