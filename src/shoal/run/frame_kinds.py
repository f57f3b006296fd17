"""Convert frames of pandas and polars, and rows as dictionaries, to Arrow and back.

pandas and polars are never imported here: a caller who passes their frame has done so.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.errors import DataError, JobError, ParameterError, Problem
from shoal.io.base import BATCH_ROWS, BadRow, Chunk, choose_columns
from shoal.io.readable import python_values, readable_table
from shoal.io.typed import choose_plain_columns

__all__ = ["DICTS", "FRAMES", "Kind", "chunks_of", "is_frame", "kind_of", "plain_table"]

#: What can be passed, in words.
FRAMES = "a DataFrame of pandas or polars, or a Table or RecordBatch of Arrow"
#: What is wrong with a value of a dictionary that can't be in a column.
NO_VALUE = "isn't a text, number, time or boolean"
#: What has values in it.
NESTED = (Mapping, list, tuple, set, frozenset, np.ndarray)


class Kind(NamedTuple):
    """A kind of frame: its name, and a conversion of an Arrow table to it."""

    name: str
    from_arrow: Callable[[Any], Any]


def _to_dicts(table: Any) -> Any:
    names = table.schema.names
    columns = [python_values(column) for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


#: Rows as dictionaries.
DICTS = Kind("dicts", _to_dicts)


def is_frame(given: object) -> bool:
    """Return whether something is a frame of a known kind."""
    return isinstance(given, (pa.RecordBatch, pa.Table, *_data_frames()))


def kind_of(
    frame: Any, columns: Sequence[str] | None, kept: Sequence[str] = (), *, key: str = "frame"
) -> tuple[Kind, Any]:
    """Return the kind of a frame, and its rows as an Arrow table.

    Parameters
    ----------
    frame
        The frame. It isn't changed.
    columns
        The columns of the table; None: all that there are.
    kept
        The columns that keep their type when an Arrow table becomes a frame of this kind.
    key
        The name of the parameter, for messages.

    Raises
    ------
    ParameterError
        If it is of no known kind.
    JobError
        If a column isn't there.
    """
    if isinstance(frame, pa.RecordBatch):
        table = pa.Table.from_batches([_chosen(frame, columns, key)])
        kind = Kind("pyarrow.RecordBatch", _as_batch)
    elif isinstance(frame, pa.Table):
        table, kind = _chosen(frame, columns, key), Kind("pyarrow.Table", _unchanged)
    elif not is_frame(frame):
        raise ParameterError(
            key,
            f"must be {FRAMES}",
            got=f"{type(frame).__module__}.{type(frame).__qualname__}",
            fix="Call collect() first" if hasattr(frame, "collect") else None,
        )
    elif isinstance(frame, getattr(sys.modules.get("pandas"), "DataFrame", ())):
        table, kind = _from_pandas(frame, columns, key), Kind("pandas.DataFrame", _unchanged)
    else:
        table = frame.select(choose_columns(frame.columns, columns, key)).to_arrow()
        kind = Kind("polars.DataFrame", sys.modules["polars"].from_arrow)
    plain = choose_plain_columns(table.schema, columns, key)
    table = readable_table(table.select(plain).replace_schema_metadata(None))
    if kind.name == "pandas.DataFrame":
        kind = Kind(kind.name, _to_pandas(frame, kept, table.schema))
    return kind, table


def chunks_of(
    given: Any, columns: Sequence[str], kept: Sequence[str] = (), *, first: int = 0, key: str
) -> tuple[Kind, list[Chunk]]:
    """Return the kind of rows, and the rows in chunks; at least one, so that types are known.

    Parameters
    ----------
    given
        A dictionary, a list of them, or a frame.
    columns, kept, key
        As for `kind_of`.
    first
        The number of the first row.

    Raises
    ------
    ParameterError
        If it is none of these.
    """
    if isinstance(given, Mapping):
        given = [given]
    if isinstance(given, list | tuple):
        odd = next((row for row in given if not isinstance(row, Mapping)), None)
        if odd is not None:
            raise ParameterError(
                key, "must be dictionaries, one for each row", got=f"a {type(odd).__name__} in it"
            )
        return DICTS, _chunks_of_dicts(given, columns, first)
    if not is_frame(given):
        raise ParameterError(
            key,
            f"must be a dict, a list of dicts, {FRAMES}",
            got=f"{type(given).__module__}.{type(given).__qualname__}",
            fix="Call collect() first" if hasattr(given, "collect") else None,
        )
    kind, table = kind_of(given, columns, kept, key=key)
    chunks = []
    empty = pa.RecordBatch.from_pylist([], schema=table.schema)
    for batch in table.to_batches(max_chunksize=BATCH_ROWS) or [empty]:
        chunks.append(Chunk(batch, np.arange(first, first + batch.num_rows), bad=[]))
        first += batch.num_rows
    return kind, chunks


def plain_table(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> Any:
    """Return batches as one table of plain columns: a dictionary may name what isn't public."""
    tables = [pa.Table.from_batches([batch]).cast(schema) for batch in batches]
    return pa.concat_tables([schema.empty_table(), *tables])


# -- dictionaries ----------------------------------------------------------------------------------


def _chunks_of_dicts(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], first: int
) -> list[Chunk]:
    """Return rows in chunks in which each column has one type."""
    chunks: list[Chunk] = []
    bad: list[BadRow] = []
    for begin, part in _of_one_type(rows, columns, first):
        if isinstance(part, BadRow):
            bad.append(part)
        else:
            chunks.append(Chunk(part, np.arange(begin, begin + part.num_rows), bad))
            bad = []
    if not chunks:
        nothing = pa.schema([(name, pa.null()) for name in columns])
        return [Chunk(pa.RecordBatch.from_pylist([], schema=nothing), np.arange(0), bad)]
    chunks[-1].bad += bad
    return chunks


def _of_one_type(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], first: int
) -> Iterator[tuple[int, pa.RecordBatch | BadRow]]:
    """Yield batches of rows, each with the number of its first row, and the rows that fit in none.

    A list in which a column has several types is cut in two until each part fits: how a stream is
    cut doesn't matter to what is decided.
    """
    if not rows:
        return
    try:
        arrays = [_array([row.get(name) for row in rows]) for name in columns]
        yield first, pa.RecordBatch.from_arrays(arrays, names=[*columns])
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        if len(rows) > 1:
            half = len(rows) // 2
            yield from _of_one_type(rows[:half], columns, first)
            yield from _of_one_type(rows[half:], columns, first + half)
            return
        row = rows[0]
        wrong = next(name for name in columns if not _fits(row.get(name)))
        yield first, BadRow(first, f"{wrong} {NO_VALUE}", _raw(row))


def _raw(row: Mapping[str, Any]) -> bytes:
    """Return a row as JSON for the quarantine; of values inside of values maybe the type only."""
    try:
        return json.dumps({str(key): value for key, value in row.items()}, default=str).encode()
    except (ValueError, TypeError, RecursionError):
        # A value that has itself in it, or is nested too deeply.
        plain = {
            str(key): f"<{type(value).__name__}>" if isinstance(value, NESTED) else value
            for key, value in row.items()
        }
        return json.dumps(plain, default=lambda value: f"<{type(value).__name__}>").encode()


def _array(values: list[Any]) -> Any:
    # Refused before Arrow sees them: one that has itself in it would crash the process.
    if any(isinstance(value, NESTED) for value in values):
        raise TypeError("not a column of plain values")
    # As in frames of pandas, NaN is a missing value.
    array = pa.array([str(v) if isinstance(v, uuid.UUID) else v for v in values], from_pandas=True)
    if isinstance(array, pa.ChunkedArray) or pa.types.is_nested(array.type):
        raise TypeError("not a column of plain values")
    return array


def _is_endless(value: Any) -> bool:
    """Return whether a value has itself in it, or is nested too deeply: Arrow would crash."""
    if not isinstance(value, NESTED):
        return False
    try:
        json.dumps(value, default=str, skipkeys=True)
    except (ValueError, RecursionError):
        return True
    return False


def _fits(value: Any) -> bool:
    try:
        _array([value])
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return False
    return True


# -- frames ----------------------------------------------------------------------------------------


def _data_frames() -> Any:
    """Return the classes of the data frames that can have been made in this process."""
    libraries = (sys.modules.get(name) for name in ("pandas", "polars"))
    found = (getattr(library, "DataFrame", None) for library in libraries)
    return tuple(kind for kind in found if kind is not None)


def _chosen(frame: Any, columns: Sequence[str] | None, key: str) -> Any:
    return frame.select([*choose_columns(frame.schema.names, columns, key)])


def _unchanged(table: Any) -> Any:
    return table


def _as_batch(table: Any) -> Any:
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _from_pandas(frame: Any, columns: Sequence[str] | None, key: str) -> Any:
    names = [str(name) for name in frame.columns]
    lost = [name for name in columns or () if name not in names and name in frame.index.names]
    if lost:
        fix = "Make it a column, with frame.reset_index()"
        problems = [Problem(f"column {name}", "is the index", None, fix) for name in lost]
        raise JobError(problems, where=key)
    places = {name: names.index(name) for name in choose_columns(names, columns, key)}
    return pa.table({name: _column(frame.iloc[:, at], name, key) for name, at in places.items()})


def _column(series: Any, name: str, key: str) -> Any:
    try:
        if series.dtype == object and any(_is_endless(value) for value in series):
            raise OverflowError("a value that contains itself")
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        # Arrow's messages quote values.
        raise DataError(
            f"{key}: column {name} has values of several types, or of one that Arrow doesn't know. "
            f'Make them one type, for example with frame["{name}"].astype(str).'
        ) from None


def _to_pandas(frame: Any, kept: Sequence[str], read: pa.Schema) -> Callable[[Any], Any]:
    """Return a conversion to pandas in which columns published as they are keep their types.

    ``read`` has the types that they were read as. In a stream the first rows set the types of these
    columns, and may have been of another kind: such a column isn't converted.
    """
    # These pandas types can be made from Arrow. A categorical one can't, and must not: its
    # categories may be values of rows that aren't published.
    dtypes = {str(name): dtype for name, dtype in zip(frame.columns, frame.dtypes, strict=True)}
    types = {n: dtypes[n] for n in kept if hasattr(dtypes[n], "__from_arrow__")}

    def convert(table: Any) -> Any:
        result = table.to_pandas()
        for name, dtype in types.items():
            column = table.column(name)
            if _are_alike(column.type, read.field(name).type):
                result[name] = dtype.__from_arrow__(column)
        return result

    return convert


def _are_alike(one: pa.DataType, other: pa.DataType) -> bool:
    return bool(one == other or (_is_text(one) and _is_text(other)))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
