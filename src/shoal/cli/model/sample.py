"""Read the sample of ``shoal model z``: the first rows of a file, as events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow.columns import as_times, is_bytes_kind, is_missing, one_text, plain, words
from shoal.arrow.ladders import Ladders, level_column
from shoal.cli.init.columns import describe
from shoal.cli.init.roles import assign
from shoal.cli.terminal import print_message
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.errors import JobError, Problem, ResourceError
from shoal.io import open_source
from shoal.job import Job
from shoal.models.z import Events
from shoal.spec.hierarchy import Range
from shoal.spec.ladder import AnyDomain, Open
from shoal.spec.policy import Window
from shoal.spec.schema import Quasi, Schema

__all__ = ["Columns", "Sample", "columns_of", "read_sample"]

#: The rows from which the roles of columns are guessed.
GUESS_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of subject, attributes and time, and the window of the job, if any."""

    subject: str
    quasi: tuple[Quasi, ...]
    time: str | None
    window: Window | None = None

    @property
    def all(self) -> tuple[str, ...]:
        """Every column that is read."""
        time = () if self.time is None else (self.time,)
        exposed = (name for quasi in self.quasi for name in quasi.columns)
        return tuple(dict.fromkeys((self.subject, *time, *exposed)))


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of the data, as events.

    ``n_rows`` were read, of which ``n_bad`` couldn't be used; ``is_sorted``: they were in the order
    of time; ``is_whole``: there are no more.
    """

    events: Events
    n_rows: int
    n_bad: int
    is_sorted: bool
    is_whole: bool


def columns_of(
    job: Path | None,
    subject: str | None,
    attributes: Sequence[str],
    time: str | None,
    data: str,
    from_format: str | None,
) -> Columns:
    """Return the columns that the command line names, or those of the job.

    If neither names any, they are guessed, with a message.
    """
    if job is None and subject is None and not attributes:
        subject, attributes, time = _guessed(data, from_format, time)
    quasi = [Quasi(name, Open()) for name in attributes]
    window = None
    if job is not None:
        read = Job.load(job)
        subject = subject or read.schema.subject
        quasi = quasi or [Quasi(each.name, _exposed(each.domain)) for each in read.schema.quasi]
        time = time or read.schema.time
        if read.policy.z and isinstance(read.policy.window, Window):
            window = read.policy.window
    problems = []
    if subject is None:
        what = "must be named: sets of attributes are compared by subject"
        problems.append(Problem("--subject", what, None, "Name a column, or a --job that does"))
    if not quasi:
        problems.append(
            Problem("--attribute", "must be named", None, "Name a column, or a --job that does")
        )
    if problems:
        raise JobError(problems)
    assert subject is not None
    return Columns(subject, tuple(quasi), time, window)


def _guessed(
    data: str, from_format: str | None, time: str | None
) -> tuple[str | None, Sequence[str], str | None]:
    """Guess subject, attribute and time by name, if only one column can be the attribute."""
    source = open_source(data, format=from_format)
    try:
        chunk = next(iter(source), None)
        if chunk is None:
            raise ResourceError(f"{data}: has no rows")
        batch = chunk.batch.slice(0, GUESS_ROWS)
        columns = [describe(name, batch.column(name)) for name in batch.schema.names]
    finally:
        source.close()
    roles = assign(columns, pa.Table.from_batches([batch]))
    if time is None and roles.time is not None:
        time = roles.time.name
    subject = None if roles.subject is None else roles.subject.name
    others = [column.name for column in columns if column.name not in (subject, time)]
    if subject is not None and len(others) == 1:
        timed = "" if time is None else f", the time is {time}"
        print_message(
            f"guessed by name: the subject is {subject}, the attribute is {others[0]}{timed}"
        )
        return subject, others, time
    return None, (), time


def _exposed(domain: AnyDomain) -> AnyDomain:
    """Return the domain under z-anonymity: numbers without a step are open."""
    return Open() if isinstance(domain, Range) and domain.step is None else domain


def read_sample(
    data: str, columns: Columns, *, rows: int, in_rows: bool, from_format: str | None
) -> Sample:
    """Read the first rows of a file; with ``in_rows`` the time is the position of a row.

    A missing value exposes nothing; a row without a subject or a time is bad.
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
        raise ResourceError(f"{data}: has no row with a subject and a time")
    return reader.sample(is_whole)


class _Reader:
    """Collect subject, attributes and time of each row, as text until all rows are read."""

    def __init__(self, columns: Columns, in_rows: bool) -> None:
        self._columns, self._in_rows = columns, in_rows
        self._names = [columns.subject, *(level_column(each.name, 0) for each in columns.quasi)]
        self._texts: dict[str, list[Any]] = {name: [] for name in self._names}
        # Values are distinguished as in a run; the key of their hashes doesn't matter here.
        self._ladders = Ladders(Schema(columns.subject, columns.quasi), bytes(8))
        self._times: list[Floats] = []
        self.n_rows = self.n_good = 0

    def add(self, batch: pa.RecordBatch, n_bad: int) -> None:
        good: Bools = ~is_missing(batch.column(self._columns.subject))

        def complain(rows: Bools, reason: str) -> None:
            good[rows] = False

        times = None
        if self._columns.time is not None and not self._in_rows:
            times = as_times(batch.column(self._columns.time), self._columns.time, complain)
        subject = batch.column(self._columns.subject)
        values = {self._columns.subject: _text(subject)}
        values |= self._ladders.encode(batch, True, complain)[1]
        for name, texts in self._texts.items():
            texts.append(plain(values[name]).filter(pa.array(good)))
        if times is not None:
            self._times.append(times[good])
        self.n_rows += batch.num_rows + n_bad
        self.n_good += int(good.sum())

    def sample(self, is_whole: bool) -> Sample:
        clock = np.arange(self.n_good, dtype=np.float64)
        order = np.arange(self.n_good)
        is_sorted = True
        if self._times:
            clock = np.concatenate(self._times)
            is_sorted = bool((clock[1:] >= clock[:-1]).all())
            order = np.argsort(clock, kind="stable")
        subjects, _ = self._codes(self._columns.subject)
        lines, offset = [], 0
        for name in self._names[1:]:
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
        """Return values as numbers from 0, -1 where they are missing, and the number of values."""
        column = pa.chunked_array(self._texts[name], pa.string()).combine_chunks()
        coded = column.dictionary_encode()
        codes = pc.fill_null(coded.indices.cast(pa.int64()), -1)
        return np.asarray(codes), len(coded.dictionary)


def _text(column: Any) -> Any:
    return words(column) if is_bytes_kind(column.type) else one_text(plain(column))
