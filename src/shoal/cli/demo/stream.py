"""The stream of the demo: made-up people in real time, and a memory for what becomes of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.algorithms.castle import Castle
from shoal.audit import Report, audit
from shoal.datasets import census
from shoal.errors import ParameterError
from shoal.io.base import BadRow, Chunk
from shoal.io.typed import plain_batch
from shoal.run.pipeline import Pipeline
from shoal.spec.policy import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.spec.schema import Schema

__all__ = ["Memory", "Paced", "Story", "recipe", "stream"]

#: The quasi attributes of the census that are shown: few enough for a narrow terminal.
QUASI = ("age", "sex", "marital_status", "occupation")
#: How often in a second some rows arrive.
CHUNKS_PER_SECOND = 30
#: After a hitch, at most so many chunks are made good at once; the rest of it is lost time.
MOST_AT_ONCE = 4
#: A row waits for at most this many seconds' worth of rows, and for enough people at any rate.
DELAY_SECONDS, DELAY_GROUPS = 2, 10
#: How many different diagnoses each group must have.
DIAGNOSES = 3
#: More clusters than the default: the demo's rate leaves time for finer groups.
CLUSTERS = 200
#: All rows are kept in memory for the audit.
MOST_ROWS = 2_000_000


def stream(seconds: float, rate: int, seed: int) -> tuple[Schema, pa.Table]:
    """Make the rows of a demo, and the schema of what is shown of them.

    >>> schema, rows = stream(2.0, rate=100, seed=7)
    >>> schema.columns
    ('person', 'age', 'sex', 'marital_status', 'occupation', 'diagnosis')
    >>> rows.num_rows
    200
    """
    if rate < 1:
        raise ParameterError("demo.rate", "must be at least 1 row a second", got=rate)
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


def recipe(schema: Schema, k: int, rate: int, seed: bytes | None) -> Pipeline:
    """Make the pipeline of the demo.

    >>> schema, _ = stream(1.0, rate=100, seed=7)
    >>> recipe(schema, k=5, rate=100, seed=None).policy.delay
    Delay(rows=200, seconds=None, clock=None)
    """
    policy = Policy(
        KAnonymity(k),
        DistinctLDiversity(min(k, DIAGNOSES)),
        delay=Delay(rows=max(DELAY_SECONDS * rate, DELAY_GROUPS * k)),
    )
    return Pipeline(schema, policy, Castle(clusters=CLUSTERS), seed=seed)


class Paced:
    """A source that gives the rows of a table in real time, a few at once.

    It ends when the time is up: rows that a slow run left no time for are never given.

    Parameters
    ----------
    table
        The rows.
    rate
        How many in a second.
    seconds
        For how long.
    came
        Told of each batch, and the position of its first row, just before it is given.
    clock
        Tells the time in seconds.
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
        """What is read, for a message."""
        return "the rows of the demo"

    def close(self) -> None:
        """Give nothing more."""
        self._closed.set()


class Memory:
    """A sink that keeps what it is given; it is plain, as it would be in a file.

    Parameters
    ----------
    schema
        The columns.
    tell
        Told of each batch as it comes.
    """

    def __init__(
        self, schema: pa.Schema, tell: Callable[[pa.RecordBatch], None] | None = None
    ) -> None:
        self._schema = schema
        self._tell = tell
        self._batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Keep some rows."""
        self._batches.append(plain_batch(batch, self._schema))
        if self._tell is not None:
            self._tell(batch)

    def flush(self) -> None:
        """Nothing waits to be written."""

    def close(self) -> None:
        """Nothing is open."""

    def table(self) -> pa.Table:
        """All that was kept."""
        return pa.Table.from_batches(self._batches, self._schema)


@dataclass
class Story:
    """What a run leaves behind, for the audit: output, trace and bad rows, all in memory.

    Parameters
    ----------
    traced
        Told of each batch of the trace as it is written.
    """

    traced: Callable[[pa.RecordBatch], None] | None = None
    published: Memory | None = None
    trace: Memory | None = None
    bad: list[BadRow] = field(default_factory=list, repr=False)

    def open_sink(self, schema: pa.Schema) -> Memory:
        """Keep the output."""
        self.published = Memory(schema)
        return self.published

    def open_trace(self, schema: pa.Schema) -> Memory:
        """Keep the trace."""
        self.trace = Memory(schema, self.traced)
        return self.trace

    def judge(self, pipeline: Pipeline, original: pa.Table) -> Report:
        """Let the audit look at everything."""
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
