"""Columns that have types: what Parquet, Arrow and Arrow messages share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.errors import JobError, Problem, ResourceError
from shoal.io.base import BadRow, Chunk, choose_columns, chunks
from shoal.io.readable import broken_text, is_lost_time, is_readable, readable_batch
from shoal.io.streams import Input, read_errors

__all__ = [
    "CODED",
    "TypedSink",
    "TypedSource",
    "choose_plain_columns",
    "coded_batch",
    "plain_array",
    "plain_batch",
    "typed_chunks",
    "used_only",
]

#: Text as dictionaries.
CODED = pa.dictionary(pa.int32(), pa.string())


def plain_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array without its dictionary, cast to a type.

    A dictionary may hold values of rows that aren't published; decoding keeps only what the rows
    use.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if array.type == kind else array.cast(kind)


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the columns and types of a schema, without dictionaries.

    >>> batch = pa.record_batch({"b": pa.array(["x", "y", "x"]).dictionary_encode()})
    >>> plain_batch(batch, pa.schema([("b", pa.string())])).column("b").to_pylist()
    ['x', 'y', 'x']
    """
    if batch.schema == schema:
        return batch
    arrays = [plain_array(batch.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def coded_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the columns and types of a schema, in which text may be `CODED`.

    A dictionary with more values than the batch has rows is cut to those that the rows use.
    """
    arrays = [_coded_array(batch.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _coded_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind != CODED:
        return plain_array(array, kind)
    if array.type != CODED or array.dictionary.null_count:
        array = plain_array(array, pa.string()).dictionary_encode()
    return used_only(array) if len(array.dictionary) > len(array) else array


def used_only(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a dictionary array without the values that no row has; the first used comes first.

    >>> array = pa.DictionaryArray.from_arrays([2, 0, 2], ["a", "hidden", "c"])
    >>> used_only(array).dictionary.to_pylist()
    ['c', 'a']
    """
    nulls = np.asarray(array.is_null()) if array.indices.null_count else None
    places = np.asarray(array.indices.fill_null(0) if nulls is not None else array.indices)
    order = _order_of_use(places if nulls is None else places[~nulls], len(array.dictionary))
    values = array.dictionary.take(pa.array(order))
    if len(values.unique()) < len(order):
        # One value twice: only its text tells that.
        return array.dictionary_decode().dictionary_encode()
    # A null has place 0, also if there is no value.
    moved = np.zeros(len(array.dictionary) + 1, np.int32)
    moved[order] = np.arange(len(order))
    indices = pa.array(moved[places], mask=nulls)
    return pa.DictionaryArray.from_arrays(indices, values)


def _order_of_use(places: NDArray[np.int32], n_values: int) -> NDArray[np.int64]:
    """Return the values that are used, in the order of their first use."""
    n_used = np.count_nonzero(np.bincount(places, minlength=n_values))
    n_seen = 1024
    while True:
        seen = places[:n_seen]
        first = np.full(n_values, len(places))
        # Of several assignments to one entry the last one counts, so they go backwards.
        first[seen[::-1]] = np.arange(len(seen))[::-1]
        if np.count_nonzero(first < len(places)) == n_used:
            return np.argsort(first, kind="stable")[:n_used]
        # Most values are used early.
        n_seen *= 8


def choose_plain_columns(
    schema: pa.Schema, asked: Sequence[str] | None, where: str
) -> tuple[str, ...]:
    """Check that the requested columns exist and hold plain values; else raise `JobError`.

    If none are requested, return all columns that hold plain values.
    """
    columns = choose_columns(schema.names, asked, where)
    unreadable = [name for name in columns if not is_readable(schema.field(name).type)]
    if unreadable and asked is not None:
        raise JobError([_unreadable(schema.field(name)) for name in unreadable], where=where)
    return tuple(name for name in columns if name not in unreadable)


def _unreadable(field: pa.Field) -> Problem:
    name, kind = f"column {field.name}", str(field.type)
    if pa.types.is_interval(field.type):
        return Problem(name, "holds intervals", kind, "Write them as numbers first")
    if is_lost_time(field.type):
        return Problem(name, "holds times of an unknown time zone", kind, "Write them in UTC first")
    shown = kind if len(kind) <= 60 else f"{kind[:57]}..."
    return Problem(
        name, "holds nested values", shown, "Flatten it to columns of plain values first"
    )


def typed_chunks(
    batch: pa.RecordBatch, first_row: int, batch_rows: int, where: str
) -> Iterator[Chunk]:
    """Yield a batch from outside as chunks; rows with text that isn't UTF-8 are bad rows."""
    with read_errors(where, "its data is damaged"):
        batch = readable_batch(batch)
        broken = broken_text(batch)
    if broken:
        batch = batch.filter(pa.array([r not in broken for r in range(batch.num_rows)]))
    bad = [BadRow(first_row + row, broken[row]) for row in sorted(broken)]
    yield from chunks(batch, first_row, bad, batch_rows)


class TypedSource(ABC):
    """Base of the sources of typed formats: rows in the types that the file has.

    Parameters
    ----------
    source
        Where the bytes come from.
    schema
        The columns of the file.
    columns
        The columns to read; None for all.
    batch_rows
        The maximum number of rows in a chunk.
    """

    #: The name of the format, and what broken data means, for messages.
    label: str
    broken: str

    def __init__(
        self, source: Input, schema: pa.Schema, columns: Sequence[str] | None, batch_rows: int
    ) -> None:
        self._source = source
        self._batch_rows = batch_rows
        self._n_skipped = 0
        with read_errors(source.name, self.broken):
            # The name of a damaged column, or of its time zone, may be no text.
            self.schema_names = tuple(schema.names)
            #: The columns that are read.
            self.columns = choose_plain_columns(schema, columns, source.name)

    def describe(self) -> str:
        """Return the name and the format, for messages."""
        return f"{self._source.name} ({self.label}, {len(self.schema_names)} columns)"

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    @property
    def n_rows(self) -> int | None:
        """The number of rows in the file, or None where only reading tells."""
        return None

    def skip(self, n_rows: int) -> None:
        """Leave out the first rows. Call it before iterating."""
        self._n_skipped = n_rows

    def __iter__(self) -> Iterator[Chunk]:
        with read_errors(self._source.name, self.broken):
            n_rows, batches = self._batches(self._n_skipped)
        while True:
            with read_errors(self._source.name, self.broken):
                batch = next(batches, None)
            if batch is None:
                return
            batch = batch.select(list(self.columns))
            n_more = min(batch.num_rows, max(0, self._n_skipped - n_rows))
            batch, n_rows = batch.slice(n_more), n_rows + n_more
            yield from typed_chunks(batch, n_rows, self._batch_rows, self._source.name)
            n_rows += batch.num_rows

    @abstractmethod
    def _batches(self, n_skipped: int) -> tuple[int, Iterator[pa.RecordBatch]]:
        """Return the batches, and how many of the rows to skip are already left out of them."""


class TypedSink(ABC):
    """Base of the sinks of typed formats. ``_writer`` is what `close` finishes, if there is one."""

    def __init__(self, output: Any, schema: pa.Schema) -> None:
        self._output = output
        self._schema = schema
        self._writer: Any = None
        self._is_closed = False

    def close(self) -> None:
        """Finish the format and close the file."""
        if self._is_closed:
            return
        self._is_closed = True
        was_broken = self._output.broken
        try:
            if not was_broken:
                self._write_rest()
            if self._writer is not None:
                self._writer.close()
        except ResourceError:
            # The first error has been reported already.
            if not was_broken:
                raise
        finally:
            self._output.close()

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""

    def _write_rest(self) -> None:
        """Write the rows that are still gathered, if the format gathers any."""
        return
