"""`Dataset`, the result of a generator or a loader: a schema, and Arrow batches on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from shoal.errors import ParameterError
from shoal.spec.schema import Schema

__all__ = ["BATCH_ROWS", "Dataset", "at_least"]

BATCH_ROWS = 65_536


def at_least(key: str, value: object, least: int) -> int:
    """Return a whole number if it isn't too small; raise otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ParameterError(key, f"must be a whole number of at least {least}", got=repr(value))
    return value


@dataclass(frozen=True, slots=True)
class Dataset:
    """A stream with its schema. Reading it again returns the same rows.

    Parameters
    ----------
    name
        A short name.
    schema
        Roles and domains of the columns. The stream may have further columns, which the schema
        doesn't name.
    description
        One line about the rows.
    n_rows
        The number of rows.
    chunks
        Returns the rows from the start at each call, in chunks of any length.
    batch_rows
        How many rows a batch has, except the last one. It doesn't change the rows.

    >>> from shoal.spec.hierarchy import Range
    >>> from shoal.spec.schema import Quasi
    >>> ages = pa.table({"age": [31, 47, 52]})
    >>> people = Dataset.from_table(
    ...     ages, Schema(None, [Quasi("age", Range(0, 100))]), name="ages", batch_rows=2
    ... )
    >>> [batch.num_rows for batch in people.batches()]
    [2, 1]
    """

    name: str
    schema: Schema
    description: str
    n_rows: int
    chunks: Callable[[], Iterable[pa.RecordBatch]] = field(repr=False, compare=False)
    batch_rows: int = field(default=BATCH_ROWS, repr=False, compare=False)

    def __post_init__(self) -> None:
        at_least("Dataset.batch_rows", self.batch_rows, 1)

    @classmethod
    def from_table(
        cls,
        table: pa.Table,
        schema: Schema,
        *,
        name: str,
        description: str = "",
        batch_rows: int = BATCH_ROWS,
    ) -> Dataset:
        """Make a dataset from an Arrow table."""
        missing = [column for column in schema.columns if column not in table.column_names]
        if missing:
            raise ParameterError(
                "Dataset.from_table",
                f"the table lacks columns of the schema: {', '.join(missing)}",
                fix="Leave them out of the schema or add them to the table",
            )
        return cls(name, schema, description, table.num_rows, table.to_batches, batch_rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the stream from its beginning, `batch_rows` rows at a time."""
        waiting: list[pa.RecordBatch] = []
        n_waiting = 0
        for chunk in self.chunks():
            start = 0
            while start < chunk.num_rows:
                piece = chunk.slice(start, self.batch_rows - n_waiting)
                waiting.append(piece)
                n_waiting += piece.num_rows
                start += piece.num_rows
                if n_waiting == self.batch_rows:
                    yield _join(waiting)
                    waiting, n_waiting = [], 0
        if waiting:
            yield _join(waiting)

    def table(self) -> pa.Table:
        """Return the whole stream as a table."""
        return pa.Table.from_batches(list(self.chunks()))


def _join(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(pieces) == 1:
        return pieces[0]
    return pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]
