"""Try a job on some rows: encode and decide them as a run does, and keep nothing but counts.

There is no sink here: nothing can be published.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.arrow.columns import is_missing, is_text_kind, one_text
from shoal.engine.kernels.arrays import Bools, Ints
from shoal.io.base import Chunk, Source
from shoal.job import Job
from shoal.metrics.shortfall import Shortfall
from shoal.metrics.uniqueness import Uniqueness, uniqueness
from shoal.run.bad_row_limit import passed_at
from shoal.run.core import RunCore
from shoal.run.encoder import AHEAD, LATE
from shoal.run.unique import unique_columns

__all__ = ["ColumnCounts", "People", "Sample", "Trial"]

#: The most rows over which people are compared: a check has bounded memory, too.
COMPARED_ROWS = 1_000_000


class Sample:
    """The first rows of a source; all of them if there is no limit."""

    def __init__(self, source: Source, n_rows: int | None) -> None:
        self._source, self._left = source, n_rows
        #: Whether the source has no more rows than these.
        self.is_whole = False

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in self._source:
            n = len(chunk.rows) + len(chunk.bad)
            if self._left is not None and n > self._left:
                if self._left:
                    yield _head(chunk, self._left)
                return
            if self._left is not None:
                self._left -= n
            yield chunk
        self.is_whole = True


@dataclass(slots=True)
class ColumnCounts:
    """What a column has: its types, and how many of its values are missing or can't be used."""

    name: str
    role: str
    types: set[str] = field(default_factory=set)
    n_missing: int = 0
    problems: Counter[str] = field(default_factory=Counter)

    def look(self, column: Any) -> None:
        """Count the values of a batch."""
        kind = column.type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        self.types.add("text" if is_text_kind(kind) else str(kind))
        self.n_missing += int(np.count_nonzero(is_missing(column)))


class People:
    """Count the different subjects, and the rows of each."""

    def __init__(self) -> None:
        self._codes: Ints = np.empty(0, np.int64)
        self._n_rows: Ints = np.empty(0, np.int64)

    def add(self, subjects: Ints) -> None:
        """Count the subjects of rows."""
        codes = np.concatenate((self._codes, subjects))
        weights = np.concatenate((self._n_rows, np.ones(len(subjects), np.int64)))
        self._codes, place = np.unique(codes, return_inverse=True)
        self._n_rows = np.bincount(place, weights, minlength=len(self._codes)).astype(np.int64)

    @property
    def n_subjects(self) -> int:
        """The number of different subjects."""
        return len(self._codes)

    @property
    def most_rows(self) -> int:
        """The largest number of rows of one subject."""
        return int(self._n_rows.max(initial=0))


class Trial:
    """Take in chunks as a run of the job does; the figures are those of such a run.

    Where the delay is in seconds of the wall clock, no time passes: a file doesn't tell when its
    rows will arrive.
    """

    def __init__(self, job: Job) -> None:
        schema, policy = job.schema, job.policy
        self._schema = schema
        #: Whether the job counts seconds that the data doesn't tell.
        self.by_wall = policy.delay is not None and policy.delay.by_wall(schema)
        seed = job.pipeline.seed
        self._core = RunCore(
            schema, policy, job.anonymizer, job.publish,
            secrets.token_bytes(32) if seed is None else seed,
            by_clock=self.by_wall, with_subject=False,
        )  # fmt: skip
        self._encoder = self._core.encoder(self._observe)
        self._now = time.time()
        self._shortfall = Shortfall(schema, policy)
        self.summary = self._core.summary
        self.people = People()
        self.columns = {name: ColumnCounts(name, role) for name, role in _roles(job).items()}
        self._compared: list[pa.Table] = []
        self.n_compared = 0
        self.warnings: list[str] = []
        self._limit = job.bad_rows.limit
        #: The bad rows and all rows up to where a run would end because of too many bad ones.
        self.too_many: tuple[int, int] | None = None

    @property
    def shortfall(self) -> list[str]:
        """Sentences about why nothing would be published."""
        return self._shortfall.sentences()

    def add(self, chunk: Chunk) -> None:
        """Encode and decide the rows of a chunk."""
        for name, counts in self.columns.items():
            counts.look(chunk.batch.column(name))
        item = self._encoder.encode(chunk, self._now)
        self.too_many = self.too_many or passed_at(self.summary, item, self._limit)
        codes = item.encoded.codes
        if not self.summary.n_published:
            times = np.full(len(codes.subjects), self._now) if self.by_wall else None
            self._shortfall.add(codes, times)
        if self._schema.subject is not None:
            self.people.add(codes.subjects)
        self._compare(chunk.batch, item.encoded.good)
        if not self.warnings:
            self.warnings = list(unique_columns(self._schema, item.encoded.payload))
        secret = secrets.token_bytes(32) if self._core.needs_secret(item) else b""
        self._core.take_in(item, self._now, secret)

    def finish(self) -> None:
        """Decide the rows that are held."""
        self._core.flush(self._now)

    def uniqueness(self) -> Uniqueness | None:
        """Count who is unique on the quasi attributes; None if no row can be used."""
        if not self.n_compared:
            return None
        quasi = [name for attribute in self._schema.quasi for name in attribute.columns]
        return uniqueness(pa.concat_tables(self._compared), quasi, self._schema.subject)

    def column_of(self, reason: str) -> str | None:
        """Return the column that a reason is about, if it is about one."""
        if reason in (LATE, AHEAD):
            return self._schema.time
        named = [name for name in self.columns if reason.startswith(f"{name} ")]
        return max(named, key=len, default=None)

    def _observe(self, rows: Bools, reason: str) -> None:
        name = self.column_of(reason)
        n = int(np.count_nonzero(rows))
        if name is not None and n and reason != f"{name} is missing":
            self.columns[name].problems[reason] += n

    def _compare(self, batch: pa.RecordBatch, good: Ints) -> None:
        """Keep what people are compared by, as text, so that all chunks have one type."""
        good = good[: COMPARED_ROWS - self.n_compared]
        names = [name for attribute in self._schema.quasi for name in attribute.columns]
        names += [] if self._schema.subject is None else [self._schema.subject]
        taken = batch.select(list(dict.fromkeys(names))).take(pa.array(good))
        columns = {name: _text(taken.column(name)) for name in taken.schema.names}
        self._compared.append(pa.table(columns))
        self.n_compared += len(good)


def _roles(job: Job) -> dict[str, str]:
    schema = job.schema
    roles = {} if schema.subject is None else {schema.subject: "subject"}
    roles |= {} if schema.time is None else {schema.time: "time"}
    roles |= {name: "quasi" for attribute in schema.quasi for name in attribute.columns}
    roles |= {attribute.name: "sensitive" for attribute in schema.sensitive}
    return roles | dict.fromkeys(schema.keep, "keep")


def _text(column: Any) -> Any:
    text = one_text(column)
    if pa.types.is_dictionary(text.type):
        text = text.dictionary_decode()
    return text.cast(pa.binary())


def _head(chunk: Chunk, n_rows: int) -> Chunk:
    """Return the first rows of a chunk, good or bad."""
    bad = np.array([row.row for row in chunk.bad], np.int64)
    last = np.sort(np.concatenate((chunk.rows, bad)))[n_rows - 1]
    n_good = int(np.searchsorted(chunk.rows, last, side="right"))
    kept = [row for row in chunk.bad if row.row <= last]
    return Chunk(chunk.batch.slice(0, n_good), chunk.rows[:n_good], kept)
