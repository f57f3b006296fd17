"""The sample that ``shoal model z`` looks at: the first rows of a file, as events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.cells import as_times, is_bytes_kind, is_missing, one_text, plain, words
from shoal.errors import JobError, Problem, ResourceError
from shoal.io import open_source
from shoal.job import Job
from shoal.kernels.arrays import Bools, Floats, Ints
from shoal.models.zanonymity import Events

__all__ = ["Columns", "Sample", "columns_of", "read_sample"]


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns tell who, what and when."""

    subject: str
    attributes: tuple[str, ...]
    time: str | None

    @property
    def all(self) -> tuple[str, ...]:
        """Every column that is read."""
        time = () if self.time is None else (self.time,)
        return tuple(dict.fromkeys((self.subject, *time, *self.attributes)))


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows, as events.

    ``n_rows`` were read, of which ``n_bad`` couldn't be used; ``is_sorted`` tells whether they were
    in the order of time, and ``is_whole`` whether there are no more.
    """

    events: Events
    n_rows: int
    n_bad: int
    is_sorted: bool
    is_whole: bool


def columns_of(
    job: Path | None, subject: str | None, attributes: Sequence[str], time: str | None
) -> Columns:
    """The columns that a job names, or those that the command line names instead."""
    if job is not None:
        schema = Job.load(job).schema
        subject = subject or schema.subject
        attributes = attributes or [attribute.name for attribute in schema.quasi]
        time = time or schema.time
    problems = []
    if subject is None:
        what = "must be named: whose sets of attributes are alike is counted by subject"
        problems.append(Problem("--subject", what, None, "Name a column, or a --job that does"))
    if not attributes:
        problems.append(
            Problem("--attribute", "must be named", None, "Name a column, or a --job that does")
        )
    if problems:
        raise JobError(problems)
    assert subject is not None
    return Columns(subject, tuple(attributes), time)


def read_sample(
    data: str, columns: Columns, *, rows: int, in_rows: bool, from_format: str | None
) -> Sample:
    """Read the first rows of a file; with ``in_rows`` the clock is the position of a row.

    What is missing exposes nothing; a row without a subject or a time is bad.
    """
    reader = _Reader(columns, in_rows)
    source = open_source(data, columns.all, format=from_format)
    is_whole = True
    try:
        for chunk in source:
            left = rows - reader.n_rows
            if chunk.batch.num_rows > left:
                is_whole = False
            reader.add(chunk.batch.slice(0, left), len(chunk.bad))
            if reader.n_rows >= rows:
                is_whole = False
                break
    finally:
        source.close()
    if not reader.n_good:
        raise ResourceError(f"{data}: has no row to look at with a subject and a time")
    return reader.sample(is_whole)


class _Reader:
    """Keeps of each row who, what and when: as text, until all rows are there."""

    def __init__(self, columns: Columns, in_rows: bool) -> None:
        self._columns, self._in_rows = columns, in_rows
        self._texts: dict[str, list[Any]] = {
            name: [] for name in (columns.subject, *columns.attributes)
        }
        self._times: list[Floats] = []
        self.n_rows = self.n_good = 0

    def add(self, batch: pa.RecordBatch, n_bad: int) -> None:
        good: Bools = ~is_missing(batch.column(self._columns.subject))

        def complain(rows: Bools, reason: str) -> None:
            good[rows] = False

        if self._columns.time is not None and not self._in_rows:
            times = as_times(batch.column(self._columns.time), self._columns.time, complain)
            self._times.append(times[good])
        for name, texts in self._texts.items():
            column = batch.column(name)
            text = words(column) if is_bytes_kind(column.type) else one_text(plain(column))
            text = pc.if_else(pa.array(is_missing(column)), pa.scalar(None, pa.string()), text)
            texts.append(text.filter(pa.array(good)))
        self.n_rows += batch.num_rows + n_bad
        self.n_good += int(good.sum())

    def sample(self, is_whole: bool) -> Sample:
        clock = np.arange(self.n_good, dtype=np.float64)
        order = np.arange(self.n_good)
        is_sorted = True
        if self._times:
            clock = np.concatenate(self._times)
            is_sorted = bool((np.diff(clock) >= 0).all())
            order = np.argsort(clock, kind="stable")
        subjects, _ = self._codes(self._columns.subject)
        lines, offset = [], 0
        for name in self._columns.attributes:
            codes, n_values = self._codes(name)
            lines.append(np.where(codes < 0, -1, codes + offset))
            offset += n_values
        cells = np.stack(lines, axis=1)[order].ravel()
        given = cells >= 0
        events = Events(
            np.repeat(clock[order], len(lines))[given],
            np.repeat(subjects[order], len(lines))[given],
            cells[given],
            self._in_rows,
            *(() if self._times else (0.0, float(self.n_good))),
        )
        return Sample(events, self.n_rows, self.n_rows - self.n_good, is_sorted, is_whole)

    def _codes(self, name: str) -> tuple[Ints, int]:
        """The values of a column as numbers from 0, -1 where they are missing; and how many."""
        column = pa.chunked_array(self._texts[name], pa.string()).combine_chunks()
        coded = column.dictionary_encode()
        codes = pc.fill_null(coded.indices.cast(pa.int64()), -1)
        return np.asarray(codes), len(coded.dictionary)
