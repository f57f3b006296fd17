"""What every source gives and every sink takes."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shoal.errors import JobError, Problem, ResourceError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BATCH_ROWS",
    "BadRow",
    "Chunk",
    "Durable",
    "Mark",
    "Position",
    "Replayable",
    "Sink",
    "Source",
    "Span",
    "choose_columns",
    "chunks",
]

#: How many rows a chunk has at most, unless asked otherwise.
BATCH_ROWS = 65536


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that can't be read, and why.

    Parameters
    ----------
    row
        Its position in the input, from 0.
    reason
        What is wrong with it, without any value of it.
    raw
        The row as it was, for the quarantine file; None where the format has no such thing.
        It is personal data, so the repr doesn't show it.

    >>> BadRow(7, "3 fields where 15 are expected", b"39,State-gov,77516")
    BadRow(row=7, reason='3 fields where 15 are expected')
    """

    row: int
    reason: str
    raw: bytes | None = field(default=None, repr=False)


#: Where a source stands, in its own words: plain values that JSON can carry. It holds no value of
#: a person.
Position: TypeAlias = dict[str, Any]
#: How far an output has come, in the sink's own words: plain values that JSON can carry.
Mark: TypeAlias = dict[str, Any]


class Span(NamedTuple):
    """Where rows lie in the input: of one stream (a file, a partition), from here to there.

    Parameters
    ----------
    stream
        The name of the stream inside its source.
    begin, end
        The first position, and the one after the last; what they count is the source's business.
    """

    stream: str
    begin: int
    end: int


@dataclass(slots=True)
class Chunk:
    """Some consecutive rows of an input: those that could be read, and those that couldn't.

    Parameters
    ----------
    batch
        The rows that could be read, with the columns that were asked for, in that order.
    rows
        The position in the input of each row of the batch, from 0; bad rows are counted.
    bad
        The rows that couldn't be read, by position.
    spans
        Where the rows lie, if the source can give them again.
    position
        Where the source stands after these rows, if it can go on from there.
    """

    batch: pa.RecordBatch
    rows: NDArray[np.int64]
    bad: list[BadRow]
    spans: tuple[Span, ...] = ()
    position: Position | None = None

    def __repr__(self) -> str:
        # An Arrow batch prints its values, which belong to people.
        return f"Chunk(n_rows={len(self.rows)}, n_bad={len(self.bad)})"


class Source(Protocol):
    """An input that can be read once, from its beginning.

    Iterating gives chunks in the order of the input. Where the input breaks off, everything
    before the break has been given when `ResourceError` is raised.
    """

    @property
    def schema_names(self) -> tuple[str, ...]:
        """The columns that the input has, asked for or not."""
        ...

    def __iter__(self) -> Iterator[Chunk]: ...

    def describe(self) -> str:
        """What is read, for a message: the name and the format."""
        ...

    def close(self) -> None:
        """Let go of the file. Standard input stays open."""
        ...


@runtime_checkable
class Replayable(Source, Protocol):
    """A source that can be read again, and go on where it was: what recovery needs.

    Every chunk it gives has spans and a position. The order of events is: `seek` or not, then
    `replay` any number of times, then iteration. What `replay` gives is, row by row and bad row by
    bad row, what iteration gave under the same spans.
    """

    def begins_at(self) -> Position | None:
        """The position before the first chunk; None if it is the beginning of all there is."""
        ...

    def seek(self, position: Position) -> None:
        """Go on from a position that one of this source's chunks had, or from `begins_at`."""
        ...

    def replay(self, spans: Sequence[Span]) -> Chunk:
        """Give once more the rows of these spans, which come next.

        Raises
        ------
        CheckpointError
            If they are gone or have changed.
        """
        ...

    def stop(self) -> None:
        """End the iteration soon, also one that waits for rows. May be called by any thread."""
        ...

    def lag(self) -> int | None:
        """How much is known to wait unread, in whatever the spans count; None if unknown."""
        ...


class Sink(Protocol):
    """An output that takes batches of public rows, in order.

    Columns of labels may be dictionaries that differ from batch to batch; what is written is
    plain, so nothing that a dictionary holds beside the rows gets out.
    """

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some rows; when they are visible to a reader depends on the format."""
        ...

    def flush(self) -> None:
        """Hand to the operating system whatever the format lets be read already."""
        ...

    def close(self) -> None:
        """Finish the output. Every row written is then in it. Closing twice does no harm."""
        ...


@runtime_checkable
class Durable(Sink, Protocol):
    """A sink that survives the end of its process: it knows what it has, and takes no row twice.

    It is opened at a mark, and given all rows from that mark on, though it may have some of them
    already: from a run that was killed after it had handed them over. Those it drops.
    """

    def commit(self) -> Mark:
        """Make all rows so far durable, and give the mark to go on from.

        Once it has returned, no crash takes them back, and a reader has or will have them.
        """
        ...

    def abandon(self) -> None:
        """Let go of it as a crash would: nothing more becomes durable, nothing is finished."""
        ...

    @property
    def n_ahead(self) -> int:
        """How much it has of what it hasn't been given yet; 0 once it has all been given again.

        In rows or in bytes, as the sink likes.
        """
        ...


def choose_columns(have: Sequence[str], asked: Sequence[str] | None, where: str) -> tuple[str, ...]:
    """Check that the columns asked for exist; without any asked for, give all.

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
        # A file without a header has a person's values here, so columns are named by place.
        places = [str(place) for place, name in enumerate(have, 1) if name == twice[0]]
        raise ResourceError(
            f"{where}: columns {' and '.join(places)} have the same name. "
            "Give each column a name of its own, in a header line."
        )
    if asked is None:
        return tuple(have)
    missing = [name for name in asked if name not in have]
    if missing:
        # Where nothing fits, the "header" may be a person's row: then it isn't listed.
        is_header = len(missing) < len(asked)
        lost = f"None of the columns asked for is among its {len(have)}: has it a header?"
        problems = []
        for name in missing:
            known = have if is_header else difflib.get_close_matches(name, have, n=1)
            fix = did_you_mean(name, known) if known else lost
            problems.append(Problem(f"column {name}", "isn't in the input", None, fix))
        raise JobError(problems, where=where)
    return tuple(dict.fromkeys(asked))


def chunks(
    batch: pa.RecordBatch, first_row: int, bad: list[BadRow], batch_rows: int
) -> Iterator[Chunk]:
    """Give a batch as chunks of at most so many rows, each with its positions and bad rows.

    ``first_row`` is the position of the first row, good or bad; together they are consecutive.
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
