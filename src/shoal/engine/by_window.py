"""The family of algorithms that publish a stream window by window (thesis, chapter 6).

Rows wait until the policy's window advances past them. Then each expired row leaves in a group of
rows of that window. The algorithms differ in how they cut the rows of a window into parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.engine.base import Engine, Out, Publishes
from shoal.engine.deadlines import COMES, DONE, HoldingEngine, InputBatch, arrival, next_event
from shoal.engine.jit import kernel
from shoal.engine.kernels import held, rng
from shoal.engine.kernels.arrays import Bools, Floats, Ints, Records, power_of_two
from shoal.engine.kernels.boxes import set_row
from shoal.engine.kernels.held import Held, RowArrays, due_at, forget, gather, is_held, put
from shoal.engine.kernels.parts import Parts, in_parts, repaired
from shoal.engine.kernels.predicate import Limits, meets, needed
from shoal.engine.kernels.ring import wrap
from shoal.engine.kernels.window_counts import window_counts_of
from shoal.engine.space import Deadlines, Space, WindowSpan
from shoal.engine.whole_table import Partitioner, Publication, publish_parts, suppress

__all__ = ["ByWindow", "ByWindowEngine", "ByWindowState"]

#: Enough further rows have arrived: the window advances.
ADVANCES = 0
#: A row is due by the clock, or the stream has ended.
DUE = 1
#: The position where the window begins, the number of groups so far, the number of the instant, the
#: number of pending groups, and the window that these were measured against.
MARKS = np.dtype(
    [
        ("base", "i8"),
        ("groups", "i8"),
        ("instants", "i8"),
        ("n_remembered", "i8"),
        ("remembered", "i8"),
    ]
)


class ByWindowState(NamedTuple):
    """The state of a run.

    ``latest`` is a ring of the sensitive codes of the latest rows, decided or not, by position. The
    boxes of pending groups (formed and not published) are in ``lo`` and ``hi``; a row of the i-th
    is held as one of cluster i + 1, and a row without a group as one of cluster 0.
    """

    held: Held
    latest: Ints
    lo: Floats
    hi: Floats
    marks: Records
    rng: Ints


@dataclass(frozen=True, kw_only=True)
class ByWindow(Partitioner):
    """An anonymizer that cuts the rows of a window into parts."""

    publishes: ClassVar[Publishes] = "windows"

    def _start(self, space: Space, seed: bytes) -> Engine:
        return ByWindowEngine(space, seed, self)


class ByWindowEngine(HoldingEngine):
    """One run of a `ByWindow` anonymizer."""

    state: ByWindowState

    def __init__(self, space: Space, seed: bytes, anonymizer: Partitioner) -> None:
        self._anonymizer = anonymizer
        span = space.window
        most = span.rows // int(needed(space.limits))
        state = ByWindowState(
            held=held.empty(space.n_quasi, space.n_sensitive),
            latest=np.zeros((power_of_two(span.rows + span.advance), space.n_sensitive), np.int64),
            lo=np.zeros((most, space.n_quasi)),
            hi=np.zeros((most, space.n_quasi)),
            marks=np.zeros(1, MARKS),
            rng=rng.seeded(seed, "decide"),
        )
        # A bound in rows is kept by the advance of the window: only seconds need deadlines.
        self._deadlines = Deadlines(0, space.deadlines.seconds)
        super().__init__(space, state, seed)

    def _reserve(self, n: int) -> None:
        rows = self.state.held
        span = int(rows.marks["upcoming"][0] - rows.marks["oldest"][0]) + n + 1
        span = min(span, self.space.window.rows + self.space.window.advance + 2)
        if span > len(rows.rows):
            self.state = self.state._replace(held=held.grown(rows, span))

    def _run(self, batch: InputBatch, out: Out) -> None:
        span, marks = self.space.window, self.state.marks
        while True:
            event = _next_event(self.state, span, self._deadlines, batch, out)
            if event == DONE:
                return
            marks["instants"] += 1
            base, n = int(marks["base"][0]), int(self.state.held.marks["upcoming"][0])
            if event == ADVANCES:
                self._advance_window(base + span.rows, base + span.advance, out)
            elif batch.at_end and not self._is_late():
                self._end(out)
            else:
                self._advance_window(
                    min(n, base + span.rows), base + min(span.advance, n - base), out
                )

    def _is_late(self) -> bool:
        """Whether a row is due by the clock."""
        rows, seconds = self.state.held, self._deadlines.seconds
        return bool(seconds and due_at(rows, seconds) <= rows.marks["now"][0])

    def _end(self, out: Out) -> None:
        """End the stream: the window advances to the last row, and all rows leave."""
        span, marks = self.space.window, self.state.marks
        n = int(self.state.held.marks["upcoming"][0])
        while n - (base := int(marks["base"][0])) > span.rows:
            self._advance_window(base + span.rows, min(base + span.advance, n - span.rows), out)
        self._advance_window(n, n, out)

    # -- one window ----------------------------------------------------------------------------

    def _advance_window(self, end: int, expired: int, out: Out) -> None:
        """Decide the rows before ``expired``, measured against the window that ends at ``end``."""
        state, marks = self.state, self.state.marks
        base = int(marks["base"][0])
        marks["base"] = expired
        if len(_held_between(state.held, base, expired)) == 0:
            return
        window = window_counts_of(_latest(state.latest, max(0, end - self.space.window.rows), end))
        limits = self.space.limits._replace(window=window)
        positions = _held_between(state.held, base, end)
        rows = gather(state.held, positions)
        if meets(limits, rows.subjects, rows.sensitive):
            self._direct(limits, rows, positions, end, expired, out)
        else:
            self._indirect(out)
        self._suppress(base, expired, out)

    def _direct(
        self, limits: Limits, rows: RowArrays, positions: Ints, end: int, expired: int, out: Out
    ) -> None:
        """Form groups of the rows of a window, and publish those that have an expired row."""
        found = self._anonymizer.parts(self.space, limits, rows, self.state.rng)
        parts, _ = repaired(self.space.sides, limits, rows, found)
        leaves = _with_early(parts, positions, expired)
        staying = _chosen(parts, leaves, False)
        self._publish(rows, positions, _chosen(parts, leaves, True), end, out)
        _remember(self.state.held, positions, staying)
        n, state = len(staying.lo), self.state
        state.lo[:n], state.hi[:n] = staying.lo, staying.hi
        state.marks["n_remembered"], state.marks["remembered"] = n, end

    def _indirect(self, out: Out) -> None:
        """Publish all pending groups, under the window that they were measured against."""
        state, marks = self.state, self.state.marks
        n = int(marks["n_remembered"][0])
        if n == 0:
            return
        positions, cluster = _remembered(state.held)
        order, starts = in_parts(cluster, n)
        parts = Parts(order, starts, state.lo[:n], state.hi[:n])
        rows = gather(state.held, positions)
        self._publish(rows, positions, parts, int(marks["remembered"][0]), out)
        marks["n_remembered"] = 0

    def _suppress(self, begin: int, end: int, out: Out) -> None:
        """Suppress expired rows without a group: at the end, or where a window advanced early."""
        positions = _held_between(self.state.held, begin, end)
        rows, all_of_them = gather(self.state.held, positions), np.arange(len(positions))
        shown = Publication(positions, 0, -1, int(self.state.marks["instants"][0]))
        suppress(rows, all_of_them, shown, out)
        _forget(self.state.held, positions, all_of_them)

    def _publish(
        self, rows: RowArrays, positions: Ints, parts: Parts, window: int, out: Out
    ) -> None:
        marks = self.state.marks
        shown = Publication(positions, int(marks["groups"][0]), window, int(marks["instants"][0]))
        publish_parts(self.space.sides, rows, parts, shown, out)
        _forget(self.state.held, positions, parts.rows)
        marks["groups"] += len(parts.starts) - 1


# -- rows arrive and leave ------------------------------------------------------------------------


@kernel
def _next_event(
    state: ByWindowState, span: WindowSpan, deadlines: Deadlines, batch: InputBatch, out: Out
) -> int:
    """Take in rows until the window advances, a row is due, or the input is used up."""
    rows = state.held
    while True:
        turn = next_event(rows, deadlines, batch, out)
        if turn == DONE:
            return DONE
        if turn != COMES:
            return DUE
        row = arrival(rows, batch)
        position = put(rows, row, 0)
        for j in range(len(row.sensitive)):
            state.latest[wrap(position, len(state.latest)), j] = row.sensitive[j]
        if position + 1 == state.marks["base"][0] + span.rows + span.advance:
            out.progress["published"][0] = position
            out.progress["published_s"][0] = np.nan if np.isnan(row.time) else rows.marks["now"][0]
            return ADVANCES


@kernel
def _latest(latest: Ints, begin: int, end: int) -> Ints:
    """Return the sensitive codes of the rows of a window."""
    codes = np.empty((end - begin, latest.shape[1]), np.int64)
    for i in range(end - begin):
        for j in range(latest.shape[1]):
            codes[i, j] = latest[wrap(begin + i, len(latest)), j]
    return codes


@kernel
def _held_between(rows: Held, begin: int, end: int) -> Ints:
    """Return the positions of held rows between two positions, in order."""
    positions = np.empty(max(end - begin, 0), np.int64)
    n = 0
    for position in range(begin, end):
        if is_held(rows, position):
            positions[n] = position
            n += 1
    return positions[:n]


@kernel
def _forget(rows: Held, positions: Ints, chosen: Ints) -> None:
    for i in chosen:
        forget(rows, positions[i])


@kernel
def _with_early(parts: Parts, positions: Ints, expired: int) -> Bools:
    """Say for each part whether it has a row before ``expired``."""
    early = np.zeros(len(parts.starts) - 1, np.bool_)
    for p in range(len(early)):
        for i in parts.rows[parts.starts[p] : parts.starts[p + 1]]:
            early[p] = early[p] or positions[i] < expired
    return early


@kernel
def _chosen(parts: Parts, flags: Bools, wanted: bool) -> Parts:
    """Return the parts whose flag is ``wanted``."""
    n, at = 0, 0
    rows, starts = np.empty_like(parts.rows), np.zeros_like(parts.starts)
    lo, hi = np.empty_like(parts.lo), np.empty_like(parts.hi)
    for p in range(len(flags)):
        if flags[p] != wanted:
            continue
        for i in parts.rows[parts.starts[p] : parts.starts[p + 1]]:
            rows[at] = i
            at += 1
        set_row(lo, n, parts.lo[p])
        set_row(hi, n, parts.hi[p])
        n += 1
        starts[n] = at
    return Parts(rows[:at], starts[: n + 1], lo[:n].copy(), hi[:n].copy())


@kernel
def _remember(rows: Held, positions: Ints, parts: Parts) -> None:
    """Note for each held row which of the pending parts it is in, if any."""
    for position in positions:
        if is_held(rows, position):
            rows.rows["cluster"][wrap(position, len(rows.rows))] = 0
    for p in range(len(parts.starts) - 1):
        for i in parts.rows[parts.starts[p] : parts.starts[p + 1]]:
            rows.rows["cluster"][wrap(positions[i], len(rows.rows))] = p + 1


@kernel
def _remembered(rows: Held) -> tuple[Ints, Ints]:
    """Return the positions of rows in pending parts, and the part of each."""
    begin, end = rows.marks["oldest"][0], rows.marks["upcoming"][0]
    positions, part = np.empty(end - begin, np.int64), np.empty(end - begin, np.int64)
    n = 0
    for position in range(begin, end):
        cluster = rows.rows["cluster"][wrap(position, len(rows.rows))]
        if cluster > 0:
            positions[n], part[n] = position, cluster - 1
            n += 1
    return positions[:n], part[:n]
