"""The writing thread of a run: labels, output and trace, beside the thread that decides."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.io.base import Sink
from shoal.kernels.arrays import Ints
from shoal.order import Arranged
from shoal.release import Publish, Publisher, Release
from shoal.schema import Schema
from shoal.trace import Tracer, trace_schema

__all__ = ["ARRIVED_S", "ROW", "Writer"]

# Columns that the hold carries beside the payload. No column of a user can have such a name.
ROW, ARRIVED_S = "\0row", "\0arrived_s"

#: How many batches may wait to be written.
QUEUE = 4


class Writer:
    """Take what leaves, in order, and write it in a thread of its own.

    Parameters
    ----------
    schema, publish
        The columns, and how a release looks.
    open_sink, open_trace
        Called once with the columns of the output and of the trace, when they are known.
    on_release
        Called with each release after it was written, in the writing thread.
    """

    def __init__(
        self,
        schema: Schema,
        publish: Publish,
        open_sink: Callable[[pa.Schema], Sink],
        open_trace: Callable[[pa.Schema], Sink] | None,
        on_release: Callable[[Release], None] | None,
    ) -> None:
        self._schema, self._publish = schema, publish
        self._open_sink, self._open_trace = open_sink, open_trace
        self._on_release = on_release
        self._tasks: queue.Queue[Callable[[], None] | None] = queue.Queue(QUEUE)
        self._failure: BaseException | None = None
        self._publisher: Publisher | None = None
        self._sink: Sink | None = None
        self._lines: Sink | None = None
        self._tracer: Tracer | None = None
        #: How many rows the sink has taken without complaint.
        self.n_written = 0
        self._thread = threading.Thread(target=self._work, name="shoal-writer", daemon=True)

    def open(self, types: pa.Schema) -> None:
        """Open output and trace, once, when the types of the payload are known."""
        if self._publisher is not None:
            return
        payload = pa.schema([types.field(name) for name in self._schema.payload])
        self._publisher = Publisher(self._schema, self._publish, payload)
        if self._open_trace is not None:
            name = self._schema.subject
            subject = pa.int64() if name is None else types.field(name).type
            self._lines = self._open_trace(trace_schema(subject))
            self._tracer = Tracer(self._lines, subject)
        self._sink = self._open_sink(self._publisher.schema)
        self._sink.flush()
        self._thread.start()

    def leaving(self, arranged: Arranged) -> None:
        """Rows leave."""
        self._put(lambda: self._write(arranged))

    def quarantined(self, rows: Sequence[int], subjects: Sequence[Any]) -> None:
        """Rows that couldn't be used, for the trace."""
        tracer = self._tracer
        if tracer is not None:
            kind = tracer.subject
            # A subject that doesn't fit its column is told as missing, which it is.
            values = [_fitting(subject, kind) for subject in subjects]
            self._put(lambda: tracer.quarantined(np.array(rows), pa.array(values, kind)))

    def held(self, rows: Ints, payload: pa.RecordBatch) -> None:
        """Rows that are still held when the run ends early, for the trace."""
        tracer = self._tracer
        if tracer is not None:
            inputs, arrived_s = (np.asarray(payload.column(name)) for name in (ROW, ARRIVED_S))
            subjects = self._subjects(payload)
            self._put(lambda: tracer.held(inputs, subjects, rows, arrived_s))

    def check(self) -> None:
        """Raise what the writing thread failed with."""
        if self._failure is not None:
            raise self._failure

    def close(self, types: pa.Schema) -> None:
        """Write all that is left and finish both files."""
        try:
            self.open(types)
        except BaseException as error:
            self._failure = error
        if self._thread.ident is not None:
            self._put(None)
            self._thread.join()
        for sink in (self._sink, self._lines):
            if sink is not None:
                try:
                    sink.close()
                except BaseException as error:
                    self._failure = self._failure or error
        self.check()

    def _put(self, task: Callable[[], None] | None) -> None:
        # A thread that has failed goes on taking tasks, so this never waits for ever.
        self._tasks.put(task)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            if self._failure is None:
                try:
                    task()
                except BaseException as error:
                    self._failure = error

    def _write(self, arranged: Arranged) -> None:
        assert self._publisher is not None
        assert self._sink is not None
        release, seq = self._publisher.release(arranged)
        if release.n_rows:
            self._sink.write(release.batch)
            self._sink.flush()
            self.n_written += release.n_rows
        if self._tracer is not None:
            payload = arranged.payload
            inputs, arrived_s = (np.asarray(payload.column(name)) for name in (ROW, ARRIVED_S))
            subjects = self._subjects(payload)
            self._tracer.decided(arranged, inputs, arrived_s, subjects, seq)
        if self._on_release is not None:
            self._on_release(release)

    def _subjects(self, payload: pa.RecordBatch) -> Any:
        name = self._schema.subject
        # Where each row is a subject, the position in the input names it.
        return payload.column(ROW if name is None else name)


def _fitting(value: Any, kind: Any) -> Any:
    try:
        return pa.scalar(value, kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
