"""The data of the demo: made-up people in real time, and sinks in memory for the audit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.algorithms import find
from shoal.audit import Report, audit
from shoal.datasets import census
from shoal.errors import ParameterError
from shoal.io.base import BadRow, Chunk
from shoal.io.typed import plain_batch
from shoal.run.pipeline import Pipeline
from shoal.spec.policy import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.spec.schema import Schema

__all__ = ["ALGORITHM", "MemorySink", "PacedSource", "RunCapture", "make_pipeline", "make_stream"]

#: The algorithm, with its default knobs. `make setup` compiles its kernels.
ALGORITHM = "tide"
#: The quasi attributes of the census in the demo: few enough for a narrow terminal.
QUASI = ("age", "sex", "marital_status", "occupation")
#: Chunks per second.
CHUNKS_PER_SECOND = 30
#: The most chunks that are sent at once after a pause; the rest of the pause is lost time.
MOST_AT_ONCE = 4
#: The delay: rows of this many seconds, and at least this many times k. All that are held leave at
#: once, so it is also the time between two releases. A longer one loses less, but seems stuck.
DELAY_SECONDS, DELAY_GROUPS = 1.5, 10
#: The least number of different diagnoses in a group.
DIAGNOSES = 3
#: The most rows, since all are kept in memory for the audit.
MOST_ROWS = 2_000_000


def make_stream(seconds: float, rate: int, seed: int) -> tuple[Schema, pa.Table]:
    """Return the schema and the rows of a demo.

    >>> schema, rows = make_stream(2.0, rate=100, seed=7)
    >>> schema.columns
    ('person', 'age', 'sex', 'marital_status', 'occupation', 'diagnosis')
    >>> rows.num_rows
    200
    """
    if rate < 1:
        raise ParameterError("demo.rate", "must be at least 1 row per second", got=rate)
    if not 0 < seconds * rate <= MOST_ROWS:
        raise ParameterError(
            "demo.seconds",
            f"must be above 0, and make no more than {MOST_ROWS:,} rows",
            got=f"{seconds:g} s of {rate:,} rows/s",
        )
    n_rows = max(1, round(seconds * rate))
    made = census(n_rows, subjects=-(-n_rows // 2), seed=seed)
    schema = Schema(
        subject="person",
        quasi=[attribute for attribute in made.schema.quasi if attribute.name in QUASI],
        sensitive=made.schema.sensitive,
    )
    table = made.table()
    numbers = table.column("person_id").cast(pa.string())
    people = pc.binary_join_element_wise("person", numbers, "-")
    return schema, table.append_column("person", people).select(schema.columns).combine_chunks()


def make_pipeline(schema: Schema, k: int, rate: int, seed: bytes | None) -> Pipeline:
    """Return the pipeline of the demo.

    >>> schema, _ = make_stream(1.0, rate=100, seed=7)
    >>> make_pipeline(schema, k=5, rate=100, seed=None).policy.delay
    Delay(rows=150, seconds=None, clock=None)
    """
    policy = Policy(
        KAnonymity(k),
        DistinctLDiversity(min(k, DIAGNOSES)),
        delay=Delay(rows=max(round(DELAY_SECONDS * rate), DELAY_GROUPS * k)),
    )
    return Pipeline(schema, policy, find(ALGORITHM)(), seed=seed)


class PacedSource:
    """A source that yields the rows of a table in real time, a few at once.

    It ends when the time is up, even if a slow run has not read all rows.

    Parameters
    ----------
    table
        The rows.
    rate
        Rows per second.
    seconds
        The duration.
    came
        Called with each batch and the position of its first row, before it is yielded.
    clock
        Returns the time in seconds.
    """

    def __init__(
        self,
        table: pa.Table,
        rate: float,
        seconds: float,
        came: Callable[[pa.RecordBatch, int], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.schema_names = tuple(table.column_names)
        self._table = table
        self._rate, self._seconds = rate, seconds
        self._came = came
        self._clock = clock
        self._closed = Event()

    def __iter__(self) -> Iterator[Chunk]:
        begin, given = self._clock(), 0
        end = begin + self._seconds
        most = max(1, round(MOST_AT_ONCE * self._rate / CHUNKS_PER_SECOND))
        while given < self._table.num_rows and not self._closed.is_set():
            now = min(self._clock(), end)
            due = round((now - begin) * self._rate) - given
            if due > most:
                begin += (due - most) / self._rate
                due = most
            if due > 0:
                batch = self._table.slice(given, due).combine_chunks().to_batches()[0]
                if self._came is not None:
                    self._came(batch, given)
                rows = np.arange(given, given + batch.num_rows, dtype=np.int64)
                given += batch.num_rows
                yield Chunk(batch, rows, [])
            if now >= end:
                return
            self._closed.wait(1 / CHUNKS_PER_SECOND)

    def describe(self) -> str:
        """Return a name of the source, for messages."""
        return "the rows of the demo"

    def close(self) -> None:
        """Stop yielding rows."""
        self._closed.set()


class MemorySink:
    """A sink that keeps batches in memory, with plain columns as in a file.

    Parameters
    ----------
    schema
        The columns.
    on_write
        Called with each batch.
    """

    def __init__(
        self, schema: pa.Schema, on_write: Callable[[pa.RecordBatch], None] | None = None
    ) -> None:
        self._schema = schema
        self._on_write = on_write
        self._batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Keep a batch."""
        self._batches.append(plain_batch(batch, self._schema))
        if self._on_write is not None:
            self._on_write(batch)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def table(self) -> pa.Table:
        """Return all rows."""
        return pa.Table.from_batches(self._batches, self._schema)


@dataclass
class RunCapture:
    """Capture output, trace and bad rows of a run in memory, for the audit.

    Parameters
    ----------
    traced
        Called with each batch of the trace.
    """

    traced: Callable[[pa.RecordBatch], None] | None = None
    published: MemorySink | None = None
    trace: MemorySink | None = None
    bad: list[BadRow] = field(default_factory=list, repr=False)

    def open_sink(self, schema: pa.Schema) -> MemorySink:
        """Open the sink of the output."""
        self.published = MemorySink(schema)
        return self.published

    def open_trace(self, schema: pa.Schema) -> MemorySink:
        """Open the sink of the trace."""
        self.trace = MemorySink(schema, self.traced)
        return self.trace

    def judge(self, pipeline: Pipeline, original: pa.Table) -> Report:
        """Audit the run."""
        assert self.published is not None
        assert self.trace is not None
        return audit(
            pipeline.schema,
            pipeline.policy,
            self.published.table(),
            trace=self.trace.table(),
            original=original,
            n_quarantined=len(self.bad),
        )
