"""The writing thread of a run: labels, output and trace, beside the thread that decides."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from shoal.arrow.hold import ARRIVED_S, ROW
from shoal.arrow.order import Departures
from shoal.arrow.publishing import fitting, publisher_of, subject_type, subjects_in, tracer_of
from shoal.arrow.release import Publish, Publisher, Release
from shoal.arrow.trace import Tracer, trace_schema
from shoal.arrow.z.release import CellPublisher
from shoal.arrow.z.trace import CellTracer, cell_trace_schema
from shoal.engine.kernels.arrays import Ints
from shoal.io.base import CommitMark, DurableSink, Sink
from shoal.spec.schema import Schema

__all__ = ["Outlet", "Plain", "Writer"]

#: How many batches may wait to be written.
QUEUE = 4
#: After so many seconds without work, what a sink has gathered is handed over.
IDLE = 0.05


@runtime_checkable
class Outlet(Protocol):
    """A recipe for a sink: what a run opens when it knows the columns."""

    def check(self) -> None:
        """Refuse if there are rows already: a job that starts anew mustn't add to them."""
        ...

    def open(self, schema: pa.Schema, mark: CommitMark | None) -> Sink:
        """Open it: at a mark where a job goes on, or anew."""
        ...


class Plain:
    """An outlet for a sink that is written once, from its beginning."""

    def __init__(self, opener: Callable[[pa.Schema], Sink]) -> None:
        self._opener = opener

    def check(self) -> None:
        """Refuse nothing: what is there is overwritten."""

    def open(self, schema: pa.Schema, mark: CommitMark | None) -> Sink:
        """Open it."""
        return self._opener(schema)


class Writer:
    """Take what leaves, in order, and write it in a thread of its own.

    Parameters
    ----------
    schema, publish
        The columns, and how a release looks.
    outlet, trace
        Opened once with the columns of the output and of the trace, when they are known.
    on_release
        Called with each release after it was written, in the writing thread.
    with_gaps
        Whether what is missing of a row stays missing in the output.
    per_value
        Whether each value is decided and traced on its own (`Policy.per_value`).
    """

    def __init__(
        self,
        schema: Schema,
        publish: Publish,
        outlet: Outlet,
        trace: Outlet | None,
        on_release: Callable[[Release], None] | None,
        *,
        with_gaps: bool = False,
        per_value: bool = False,
    ) -> None:
        self._schema, self._publish, self._with_gaps = schema, publish, with_gaps
        self._per_value = per_value
        self._outlet, self._trace = outlet, trace
        #: Where the output and its sinks stand, for a run that goes on.
        self._seq = 0
        self._marks: dict[str, CommitMark] | None = None
        self._on_release = on_release
        self._tasks: queue.Queue[Callable[[], None] | None] = queue.Queue(QUEUE)
        self._failure: BaseException | None = None
        self._publisher: Publisher | CellPublisher | None = None
        self._sink: Sink | None = None
        self._lines: Sink | None = None
        self._tracer: Tracer | CellTracer | None = None
        #: How many rows the sink has taken without complaint.
        self.n_written = 0
        self._clock: Callable[[], float] | None = None
        self._patience = np.inf
        #: How many rows were decided in time and handed over too late. It only grows, so that it
        #: can be read while it is counted.
        self.n_late = 0
        self._thread = threading.Thread(target=self._work, name="shoal-writer", daemon=True)

    def open(self, types: pa.Schema) -> None:
        """Open output and trace, once, when the types of the payload are known."""
        if self._publisher is not None:
            return
        self._publisher = publisher_of(
            self._schema, self._publish, types,
            first=self._seq, with_gaps=self._with_gaps, per_value=self._per_value,
        )  # fmt: skip
        marks = self._marks
        if self._trace is not None:
            subject = subject_type(self._schema, types)
            mark = None if marks is None else marks.get("trace", {})
            columns = cell_trace_schema if self._per_value else trace_schema
            self._lines = self._trace.open(columns(subject), mark)
            self._tracer = tracer_of(self._schema, self._lines, subject, per_value=self._per_value)
        mark = None if marks is None else marks.get("output", {})
        self._sink = self._outlet.open(self._publisher.schema, mark)
        self._sink.flush()
        self._thread.start()

    @property
    def n_waiting(self) -> int:
        """How many tasks wait."""
        return self._tasks.qsize()

    @property
    def is_away(self) -> bool:
        """Whether the sink knows that it doesn't reach where it writes to."""
        return bool(getattr(self._sink, "is_away", False))

    def give_up(self) -> None:
        """Let a sink that waits for somebody else end its waiting, by an error."""
        stop = getattr(self._sink, "stop", None)
        if stop is not None:
            stop()

    @property
    def is_open(self) -> bool:
        """Whether output and trace are open."""
        return self._publisher is not None

    def check_new(self) -> None:
        """Refuse to start a job anew whose outlets have rows already."""
        for outlet in (self._outlet, self._trace):
            if outlet is not None:
                outlet.check()

    def resume(self, seq: int, marks: dict[str, CommitMark]) -> None:
        """Go on with row ``seq`` of the output, the sinks being at their marks; before `open`."""
        self._seq, self._marks = seq, marks

    def leaving(
        self,
        departures: Departures,
        before: Callable[[], None] | None = None,
        *,
        is_replay: bool = False,
    ) -> None:
        """Rows leave, after ``before`` has been called in the writing thread."""
        self._put(lambda: self._write(departures, is_replay=is_replay), before)

    def keep_time(self, clock: Callable[[], float], patience: float) -> None:
        """Count rows that were decided in time, but are handed over after so many seconds."""
        self._clock, self._patience = clock, patience

    def barrier(self, then: Callable[[int, dict[str, CommitMark]], None]) -> None:
        """Once all that was put before is written and durable, call with seq and marks."""
        self._put(lambda: then(self._place(), self._commit()))

    def drain(self) -> None:
        """Wait until all tasks are done; raise what went wrong."""
        self._tasks.join()
        self.check()

    @property
    def n_ahead(self) -> int:
        """How much the sinks have of what they haven't been given, when all tasks are done."""
        self.drain()
        sinks = (self._sink, self._lines)
        return sum(sink.n_ahead for sink in sinks if isinstance(sink, DurableSink))

    def quarantined(
        self,
        rows: Sequence[int],
        subjects: Sequence[Any],
        before: Callable[[], None] | None = None,
    ) -> None:
        """Rows that couldn't be used, for the trace."""
        tracer = self._tracer
        if tracer is not None:
            kind = tracer.subject
            # A subject that doesn't fit its column is told as missing, which it is.
            values = [fitting(subject, kind) for subject in subjects]
            lines = pa.array(values, kind)
            self._put(lambda: tracer.quarantined(np.array(rows), lines), before)

    def held(self, rows: Ints, payload: pa.RecordBatch) -> None:
        """Rows that are still held when the run ends early, for the trace."""
        tracer = self._tracer
        # What is published one by one is never held.
        if isinstance(tracer, Tracer):
            inputs, arrived_s = (np.asarray(payload.column(name)) for name in (ROW, ARRIVED_S))
            subjects = subjects_in(self._schema, payload)
            self._put(lambda: tracer.held(inputs, subjects, rows, arrived_s))

    def check(self) -> None:
        """Raise what the writing thread failed with."""
        if self._failure is not None:
            raise self._failure

    def close(self, types: pa.Schema, *, failed: bool = False) -> None:
        """Write all that is left and finish both files; after a failure, what can go on stays."""
        # What will be gone on with is made when there is something to write, and noted before.
        if not failed and self._marks is None:
            try:
                self.open(types)
            except BaseException as error:
                self._failure = error
        if self._thread.ident is not None:
            self._tasks.put(None)
            self._thread.join()
        for sink in (self._sink, self._lines):
            if sink is not None:
                try:
                    if isinstance(sink, DurableSink) and (failed or self._failure):
                        sink.abandon()
                    else:
                        sink.close()
                except BaseException as error:
                    self._failure = self._failure or error
        self.check()

    def _put(self, task: Callable[[], None], before: Callable[[], None] | None = None) -> None:
        def in_turn() -> None:
            if before is not None:
                before()
            task()

        # A thread that has failed goes on taking tasks, so this never waits for ever.
        self._tasks.put(in_turn)

    def _work(self) -> None:
        while True:
            try:
                task = self._tasks.get(timeout=IDLE)
            except queue.Empty:
                self._attempt(self._idle)
                continue
            if task is not None:
                self._attempt(task)
            self._tasks.task_done()
            if task is None:
                return

    def _attempt(self, task: Callable[[], None]) -> None:
        if self._failure is None:
            try:
                task()
            except BaseException as error:
                self._failure = error

    def _idle(self) -> None:
        assert self._sink is not None
        self._sink.flush()

    def _place(self) -> int:
        return self._seq if self._publisher is None else self._publisher.upcoming

    def _commit(self) -> dict[str, CommitMark]:
        sinks = {"output": self._sink, "trace": self._lines}
        return {name: s.commit() for name, s in sinks.items() if isinstance(s, DurableSink)}

    def _write(self, departures: Departures, *, is_replay: bool) -> None:
        assert self._publisher is not None
        assert self._sink is not None
        release, seq = self._publisher.release(departures)
        if release.n_rows:
            self._sink.write(release.batch)
            self._sink.flush()
            self.n_written += release.n_rows
        if self._clock is not None and not is_replay:
            self._count_late(departures, self._clock())
        if self._tracer is not None:
            payload = departures.payload
            inputs, arrived_s = (np.asarray(payload.column(name)) for name in (ROW, ARRIVED_S))
            subjects = subjects_in(self._schema, payload)
            self._tracer.decided(departures, inputs, arrived_s, subjects, seq)
        if self._on_release is not None:
            self._on_release(release)

    def _count_late(self, departures: Departures, now: float) -> None:
        arrived_s = np.asarray(departures.payload.column(ARRIVED_S))
        in_time = departures.left_s - arrived_s <= self._patience
        self.n_late += int(np.count_nonzero(in_time & (now - arrived_s > self._patience)))
