"""The writing thread of a run: it labels, writes and traces what the deciding thread decided."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.arrow.hold import ARRIVED_S, ROW
from shoal.arrow.order import Departures
from shoal.arrow.publishing import fitting, make_publisher, make_tracer, subject_type, subjects_in
from shoal.arrow.release import Publish, Publisher, Release
from shoal.arrow.trace import Tracer, trace_schema
from shoal.arrow.z.release import ZPublisher
from shoal.arrow.z.trace import ZTracer, z_trace_schema
from shoal.engine.kernels.arrays import Ints
from shoal.io.base import CommitMark, DurableSink, Sink, SinkFactory
from shoal.spec.schema import Schema

__all__ = ["PlainSinkFactory", "SinkFactory", "Writer"]

#: The most batches that wait to be written.
QUEUE = 4
#: How often, in seconds, a deciding thread that waits for the sink lets its figures be shown.
POLL = 0.1
#: After this many idle seconds, the sink is flushed.
IDLE = 0.05


class PlainSinkFactory:
    """Opens a sink that is written once, from its beginning."""

    def __init__(self, opener: Callable[[pa.Schema], Sink]) -> None:
        self._opener = opener

    def check(self) -> None:
        """Accept any state: existing rows are overwritten."""

    def open(self, schema: pa.Schema, mark: CommitMark | None) -> Sink:
        """Open the sink; a mark is ignored."""
        return self._opener(schema)


class Writer:
    """Write departures in their order, in a thread of its own.

    Parameters
    ----------
    schema, publish
        The columns, and how a release looks.
    output, trace
        Open the sinks of the output and of the trace, once their columns are known.
    on_release
        Called in the writing thread with each release that was written.
    with_gaps
        Whether missing values stay missing in the output.
    per_value
        Whether each value is decided and traced on its own (`Policy.per_value`).
    inspect
        Called with each release before it is written, with the departures that it was made of and
        the places of their rows in the output; nothing is written once it has raised.
    """

    def __init__(
        self,
        schema: Schema,
        publish: Publish,
        output: SinkFactory,
        trace: SinkFactory | None,
        on_release: Callable[[Release], None] | None,
        *,
        with_gaps: bool = False,
        per_value: bool = False,
        inspect: Callable[[Release, Departures, Ints], None] | None = None,
    ) -> None:
        self._schema, self._publish, self._with_gaps = schema, publish, with_gaps
        self._per_value = per_value
        self._output, self._trace = output, trace
        # Where a resumed run continues: the next row of the output, and the marks of the sinks.
        self._seq = 0
        self._marks: dict[str, CommitMark] | None = None
        self._changes: Sequence[Mapping[str, Any]] = ()
        self._on_release, self._inspect = on_release, inspect
        self._tasks: queue.Queue[Callable[[], None] | None] = queue.Queue(QUEUE)
        self._failure: BaseException | None = None
        self._is_abandoned = False
        self._publisher: Publisher | ZPublisher | None = None
        self._sink: Sink | None = None
        self._lines: Sink | None = None
        self._tracer: Tracer | ZTracer | None = None
        #: The number of rows that the sink has accepted, with those of the runs before: what a
        #: replay writes again doesn't count twice.
        self.n_written = 0
        self._clock: Callable[[], float] | None = None
        self._patience = np.inf
        self._on_wait: Callable[[], None] = lambda: None
        #: For how many seconds the deciding thread has waited because the sink was too slow.
        self.blocked_seconds = 0.0
        #: The number of rows decided in time but written too late. It only grows, so that another
        #: thread can read it.
        self.n_late = 0
        self._thread = threading.Thread(target=self._work, name="shoal-writer", daemon=True)

    def open(self, types: pa.Schema) -> None:
        """Open output and trace when the types of the payload are known; do nothing if open."""
        if self._publisher is not None:
            return
        self._publisher = make_publisher(
            self._schema, self._publish, types,
            first=self._seq, with_gaps=self._with_gaps, per_value=self._per_value,
        )  # fmt: skip
        marks = self._marks
        if self._trace is not None:
            subject = subject_type(self._schema, types)
            mark = None if marks is None else marks.get("trace", {})
            columns = (z_trace_schema if self._per_value else trace_schema)(subject)
            self._lines = self._trace.open(columns, mark)
            for change in self._changes:
                self._lines.write(_change_line(columns, change))
            self._tracer = make_tracer(
                self._schema, self._lines, subject, per_value=self._per_value
            )
        mark = None if marks is None else marks.get("output", {})
        self._sink = self._output.open(self._publisher.schema, mark)
        self._thread.start()
        # Not here: a pipe that nobody has opened waits for a reader.
        self._put(self._idle)

    @property
    def n_waiting(self) -> int:
        """The number of tasks that aren't done, with the one that is being done."""
        return self._tasks.unfinished_tasks

    @property
    def is_away(self) -> bool:
        """Whether the sink reports that it can't reach its destination."""
        return bool(getattr(self._sink, "is_away", False))

    def give_up(self) -> None:
        """Make a sink that waits for its broker give up with an error."""
        stop = getattr(self._sink, "stop", None)
        if stop is not None:
            stop()

    @property
    def is_open(self) -> bool:
        """Whether output and trace are open."""
        return self._publisher is not None

    def check_new(self) -> None:
        """Raise if the output or the trace of a new job has rows already."""
        for factory in (self._output, self._trace):
            if factory is not None:
                factory.check()

    def resume(
        self,
        seq: int,
        marks: dict[str, CommitMark],
        changes: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Continue with row ``seq`` of the output and the sinks at their marks; before `open`.

        ``changes`` are those of the job that the trace doesn't tell of yet.
        """
        self._seq, self._marks, self._changes = seq, marks, changes
        self.n_written = seq

    def write(
        self,
        departures: Departures,
        before: Callable[[], None] | None = None,
        *,
        is_replay: bool = False,
    ) -> None:
        """Write departures, after calling ``before`` in the writing thread."""
        self._put(lambda: self._write(departures, is_replay=is_replay), before)

    def count_late(self, clock: Callable[[], float], patience: float) -> None:
        """Count rows that are written more than ``patience`` seconds after their arrival."""
        self._clock, self._patience = clock, patience

    def while_blocked(self, on_wait: Callable[[], None]) -> None:
        """Have ``on_wait`` called in the deciding thread, again and again while it must wait."""
        self._on_wait = on_wait

    def barrier(self, then: Callable[[int, dict[str, CommitMark]], None]) -> None:
        """Call ``then`` with seq and marks once all earlier tasks are written and durable."""
        self._put(lambda: then(self._next_seq(), self._commit()))

    def drain(self) -> None:
        """Wait until all tasks are done; raise the failure of the thread, if any."""
        self._wait_until(self._are_done)
        self.check()

    def ahead(self) -> list[str]:
        """Return which sinks hold more than was written to them, after all tasks."""
        self.drain()
        return [
            getattr(sink, "name", f"the {name}")
            for name, sink in (("output", self._sink), ("trace", self._lines))
            if isinstance(sink, DurableSink) and sink.n_ahead
        ]

    def quarantined(
        self,
        rows: Sequence[int],
        subjects: Sequence[Any],
        before: Callable[[], None] | None = None,
    ) -> None:
        """Trace rows that couldn't be used."""
        tracer = self._tracer
        if tracer is not None:
            kind = tracer.subject
            # A subject that doesn't fit the type of its column is traced as missing.
            values = [fitting(subject, kind) for subject in subjects]
            lines = pa.array(values, kind)
            self._put(lambda: tracer.quarantined(np.array(rows), lines), before)

    def held(self, rows: Ints, payload: pa.RecordBatch) -> None:
        """Trace rows that are still held when the run ends early."""
        tracer = self._tracer
        # Values that are decided on their own are never held.
        if isinstance(tracer, Tracer):
            inputs, arrived_s = (np.asarray(payload.column(name)) for name in (ROW, ARRIVED_S))
            subjects = subjects_in(self._schema, payload)
            self._put(lambda: tracer.held(inputs, subjects, rows, arrived_s))

    def check(self) -> None:
        """Raise the failure of the writing thread, if any."""
        if self._failure is not None:
            raise self._failure

    def close(self, types: pa.Schema, *, failed: bool = False) -> None:
        """Write what is left and close both sinks; after a failure, abandon durable ones."""
        # A resumable output is created only when there is something to write, noted before.
        if not failed and self._marks is None:
            try:
                self.open(types)
            except BaseException as error:
                self._failure = error
        self._is_abandoned = failed
        if self._thread.ident is None:
            self._close_sinks()
        else:
            self._enqueue(None)
            self._wait_until(self._are_done)
            self._thread.join()
        self.check()

    def _put(self, task: Callable[[], None], before: Callable[[], None] | None = None) -> None:
        def run_task() -> None:
            if before is not None:
                before()
            task()

        self._enqueue(run_task)

    def _enqueue(self, task: Callable[[], None] | None) -> None:
        """Add a task for the writing thread; None is the last one."""

        def is_added(seconds: float) -> bool:
            try:
                self._tasks.put(task, timeout=seconds)
            except queue.Full:
                return False
            return True

        # A sink that stands still stops the deciding thread here, and that the reading thread: a
        # few batches wait, and no more are read. A failed thread still takes tasks.
        self._wait_until(is_added)

    def _are_done(self, seconds: float) -> bool:
        """Wait for all tasks for at most so many seconds; return whether they are done."""
        tasks = self._tasks
        with tasks.all_tasks_done:
            return tasks.all_tasks_done.wait_for(lambda: not tasks.unfinished_tasks, seconds)

    def _wait_until(self, is_over: Callable[[float], bool]) -> None:
        """Call this, which waits for so many seconds, until it is true; show figures meanwhile."""
        begin = time.monotonic()
        while not is_over(POLL):
            now = time.monotonic()
            self.blocked_seconds += now - begin
            begin = now
            self._on_wait()

    def _work(self) -> None:
        while True:
            try:
                task = self._tasks.get(timeout=IDLE)
            except queue.Empty:
                self._attempt(self._idle)
                continue
            if task is None:
                self._close_sinks()
            else:
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

    def _close_sinks(self) -> None:
        for sink in (self._sink, self._lines):
            if sink is not None:
                try:
                    if isinstance(sink, DurableSink) and (self._is_abandoned or self._failure):
                        sink.abandon()
                    else:
                        sink.close()
                except BaseException as error:
                    self._failure = self._failure or error

    def _idle(self) -> None:
        assert self._sink is not None
        self._sink.flush()

    def _next_seq(self) -> int:
        return self._seq if self._publisher is None else self._publisher.upcoming

    def _commit(self) -> dict[str, CommitMark]:
        sinks = {"output": self._sink, "trace": self._lines}
        return {name: s.commit() for name, s in sinks.items() if isinstance(s, DurableSink)}

    def _write(self, departures: Departures, *, is_replay: bool) -> None:
        assert self._publisher is not None
        assert self._sink is not None
        release, seq = self._publisher.release(departures)
        if release.n_rows:
            if self._inspect is not None:
                self._inspect(release, departures, seq)
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


def _change_line(columns: pa.Schema, change: Mapping[str, Any]) -> pa.RecordBatch:
    """Return the line of a trace that tells of a change of the job.

    Its numbers are those of the first row under the new promise. What was promised before is in
    its outcome: the columns stay as they were when the trace was begun.
    """
    said = {name: change[name] for name in ("time", "what", "weaker", "sections")}
    line = {
        "row": change["rows_in"],
        "outcome": f"changed {json.dumps(said, sort_keys=True, ensure_ascii=False)}",
        "arrived": change["taken_in"],
        "arrived_s": change["latest"],
        "seq": change["published"],
    }
    arrays = [pa.array([line.get(column.name)], column.type) for column in columns]
    return pa.record_batch(arrays, schema=columns)
