"""The contract of sources and sinks.

A connector implements five roles. A `Source` is read once, from its beginning. A
`ReplayableSource` is one that a job with checkpoints can read: each chunk says where its rows lie
(spans) and where to resume (a position), and the source can read both again: byte offsets of a
file, offsets of a Kafka partition, a log sequence number of a change stream, a snapshot of a table
format. A `JournaledSource` can't be read again (a queue): its chunks carry what was received, which
is kept in the journal until a checkpoint covers it. A source that can do neither (a pipe) is
refused where there are checkpoints. A `Sink` takes public rows. A `DurableSink` is one that a job
with checkpoints can write: after a commit rows survive any crash, the commit returns a mark, and a
sink opened at a mark takes no row twice. Positions and marks are plain JSON values of the
connector's own choosing, without a value of a person; recovery stores them and returns them
unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shoal.errors import JobError, Problem, ResourceError, nearest_word

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BATCH_ROWS",
    "BadRow",
    "Chunk",
    "CommitMark",
    "DurableSink",
    "JournaledSource",
    "Position",
    "ReplayableSource",
    "Sink",
    "SinkFactory",
    "Source",
    "Span",
    "choose_columns",
    "chunks",
]

#: The default maximum number of rows in a chunk.
BATCH_ROWS = 65536


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that can't be read, and the reason.

    Parameters
    ----------
    row
        Its number in the input, from 0.
    reason
        What is wrong with it, without any value of it.
    raw
        The row as it was, for the quarantine file; None where the format has no raw rows.
        It is personal data, so the repr doesn't show it.
    line
        The line in which it begins, from 1, where that helps and is known: of a quote that is
        never closed.

    >>> BadRow(7, "3 fields where 15 are expected", b"39,State-gov,77516")
    BadRow(row=7, reason='3 fields where 15 are expected')
    """

    row: int
    reason: str
    raw: bytes | None = field(default=None, repr=False)
    line: int | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The reason and the line, for a message."""
        return self.reason if self.line is None else f"{self.reason}; it begins in line {self.line}"


#: Where a source resumes: plain values that JSON can carry, defined by the source. It holds no
#: value of a person.
Position: TypeAlias = dict[str, Any]
#: How much a sink has committed: plain values that JSON can carry, defined by the sink.
CommitMark: TypeAlias = dict[str, Any]


class Span(NamedTuple):
    """A range of positions in one stream of an input, such as a file or a partition.

    Parameters
    ----------
    stream
        The name of the stream inside its source.
    begin, end
        The first position, and the one after the last; the source defines what they count.
    """

    stream: str
    begin: int
    end: int


@dataclass(slots=True)
class Chunk:
    """Consecutive rows of an input: those that could be read, and those that couldn't.

    Parameters
    ----------
    batch
        The rows that could be read, with the requested columns, in that order.
    rows
        The number of each row of the batch in the input, from 0; bad rows are counted.
    bad
        The rows that couldn't be read, in order.
    spans
        Where the rows lie, if the source is replayable.
    position
        Where the source resumes after these rows, if it is replayable.
    data
        What was received, if the source can't be read again. It is personal data.
    skipped
        How much was received between these rows that is no row, without being wrong, by what it is:
        the deletes of a change stream. It has no numbers.
    """

    batch: pa.RecordBatch
    rows: NDArray[np.int64]
    bad: list[BadRow]
    spans: tuple[Span, ...] = ()
    position: Position | None = None
    data: bytes = b""
    skipped: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        # An Arrow batch prints its values, which belong to people.
        return f"Chunk(n_rows={len(self.rows)}, n_bad={len(self.bad)})"


class Source(Protocol):
    """An input that can be read once, from its beginning.

    Iteration yields chunks in the order of the input. Where the input breaks off, everything
    before the break is yielded before `ResourceError` is raised.
    """

    @property
    def schema_names(self) -> tuple[str, ...]:
        """The columns that the input has, requested or not."""
        ...

    def __iter__(self) -> Iterator[Chunk]: ...

    def describe(self) -> str:
        """Return the name and the format, for messages."""
        ...

    def close(self) -> None:
        """Close the input. Standard input stays open."""
        ...


@runtime_checkable
class ReplayableSource(Source, Protocol):
    """A source that can be read again and resumed, as recovery needs.

    Every chunk has spans and a position. The order of calls is: `seek` or not, then `replay` any
    number of times, then iteration. `replay` returns, row by row and bad row by bad row, what
    iteration yielded with the same spans.
    """

    def begins_at(self) -> Position | None:
        """Return the position before the first chunk; None if it is the very beginning."""
        ...

    def seek(self, position: Position) -> None:
        """Continue from a position that a chunk of this source had, or from `begins_at`."""
        ...

    def replay(self, spans: Sequence[Span]) -> Chunk:
        """Read the rows of these spans again, which come next.

        Raises
        ------
        CheckpointError
            If the rows are gone or have changed.
        """
        ...

    def stop(self) -> None:
        """End the iteration soon, even while it waits for rows. Any thread may call this."""
        ...

    def lag(self) -> int | None:
        """Return how much is unread, in the unit of the spans; None if unknown."""
        ...


@runtime_checkable
class JournaledSource(ReplayableSource, Protocol):
    """A source that gives each row once, such as a queue: its rows are kept in the journal.

    Every chunk has ``data``, and `replay_data` is called in place of `replay`.
    """

    def replay_data(self, data: bytes) -> Chunk:
        """Return the chunk that had this data; those before it were returned before."""
        ...

    def acknowledge(self, position: Position) -> None:
        """Let go of all rows up to a position of a chunk: they are on the disk.

        Any thread may call this.
        """
        ...


class Sink(Protocol):
    """An output that takes batches of public rows, in order.

    Columns of labels may be dictionaries that differ from batch to batch. They are written as plain
    values, so that no value of a dictionary that the rows don't use is published.
    """

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows; when a reader sees them depends on the sink."""
        ...

    def flush(self) -> None:
        """Make visible to readers what the format allows to be read already."""
        ...

    def close(self) -> None:
        """Finish the output, with every row written. Closing twice does no harm."""
        ...


@runtime_checkable
class DurableSink(Sink, Protocol):
    """A sink that a run can resume: it knows which rows it has, and takes no row twice.

    It is opened at a mark, and all rows from that mark on are written to it, though it may have
    some of them already, from a run that was killed. Those it drops.
    """

    def commit(self) -> CommitMark:
        """Make all rows so far durable; return the mark to resume from.

        Once it has returned, the rows survive any crash, and readers see them sooner or later.
        """
        ...

    def abandon(self) -> None:
        """Release resources as a crash would: nothing more becomes durable, nothing is finished."""
        ...

    @property
    def n_ahead(self) -> int:
        """How much it has that hasn't been written again, in rows or bytes."""
        ...


@runtime_checkable
class SinkFactory(Protocol):
    """Opens a sink when a run knows the columns of its output."""

    def check(self) -> None:
        """Raise an error if there are rows already, to which a new job would add."""
        ...

    def open(self, schema: pa.Schema, mark: CommitMark | None) -> Sink:
        """Open the sink at the mark from which a job resumes; None for a new job."""
        ...


def choose_columns(have: Sequence[str], asked: Sequence[str] | None, where: str) -> tuple[str, ...]:
    """Check that the requested columns exist; if none are requested, return all.

    Raises
    ------
    JobError
        With one problem for each column that isn't there.
    ResourceError
        If two columns of the input have the same name.

    >>> choose_columns(["age", "sex"], ["agee"], "people.csv")
    Traceback (most recent call last):
    ...
    shoal.errors.JobError: people.csv: column agee: isn't in the input. Did you mean 'age'?
    """
    twice = [name for name, count in Counter(have).items() if count > 1]
    if twice:
        # Without a header these are values of a person, so the columns are named by number.
        places = [str(place) for place, name in enumerate(have, 1) if name == twice[0]][:2]
        raise ResourceError(
            f"{where}: columns {' and '.join(places)} have the same name. "
            "Give each column its own name, in a header line."
        )
    if asked is None:
        return tuple(have)
    missing = [name for name in asked if name not in have]
    if missing:
        # Where no column fits, the "header" may be a person's row: then it isn't shown.
        is_header = len(missing) < len(asked)
        near = {name: nearest_word(name, have) for name in missing}
        lost = f"None of the requested columns is among its {len(have)}: does it have a header?"
        if not is_header and len(missing) > 1 and not any(near.values()):
            what = f"none of the {len(missing)} columns of the job is in the input, "
            what += f"which has {len(have)} column{'s' * (len(have) != 1)}"
            how = "Check the file and input.delimiter: does it have a header?"
            raise JobError(Problem("columns", what, None, how), where=where)
        problems = []
        for name in missing:
            # Only a name like it is shown: in a damaged header the others may be values.
            other = f"None of its {len(have)} columns has a name like it" if is_header else lost
            fix = other if near[name] is None else f"Did you mean '{near[name]}'?"
            problems.append(Problem(f"column {name}", "isn't in the input", None, fix))
        raise JobError(problems, where=where)
    return tuple(dict.fromkeys(asked))


def chunks(
    batch: pa.RecordBatch, first_row: int, bad: list[BadRow], batch_rows: int
) -> Iterator[Chunk]:
    """Yield a batch as chunks of at most ``batch_rows`` rows, each with row numbers and bad rows.

    ``first_row`` is the number of the first row, good or bad; together they are consecutive.
    """
    n_rows = batch.num_rows + len(bad)
    rows = np.arange(first_row, first_row + n_rows, dtype=np.int64)
    if bad:
        rows = np.delete(rows, [row.row - first_row for row in bad])
    if batch.num_rows <= batch_rows:
        if n_rows:
            yield Chunk(batch, rows, bad)
        return
    at = 0
    for start in range(0, batch.num_rows, batch_rows):
        stop = start + batch_rows
        upto = at
        while upto < len(bad) and (stop >= len(rows) or bad[upto].row < rows[stop]):
            upto += 1
        yield Chunk(batch.slice(start, batch_rows), rows[start:stop], bad[at:upto])
        at = upto
