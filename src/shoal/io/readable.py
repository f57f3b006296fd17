"""Columns of all types that Arrow has, as columns of the plain types that are read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.io.utf8 import is_utf8

__all__ = [
    "broken_text",
    "is_lost_time",
    "is_readable",
    "python_values",
    "readable_batch",
    "readable_table",
]


def is_readable(kind: Any) -> bool:
    """Return whether the values of a type are plain ones.

    >>> is_readable(pa.string_view()), is_readable(pa.list_(pa.int64()))
    (True, False)
    """
    if isinstance(kind, pa.BaseExtensionType):
        return is_readable(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return is_readable(kind.value_type)
    return not (pa.types.is_nested(kind) or pa.types.is_interval(kind) or is_lost_time(kind))


def is_lost_time(kind: Any) -> bool:
    """Return whether a type is a timestamp in a time zone that nobody knows."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return False
    try:
        pa.array([0]).view(kind).cast(pa.string())
    except pa.ArrowException:
        return True
    return False


def readable_array(array: Any) -> Any:
    """Return an array of a readable type as one of the types that later code knows.

    What a type is stored as is what it is: an extension becomes its storage, a run its values, a
    view its text or bytes.

    Raises
    ------
    pyarrow.ArrowException
        If the array is broken.
    """
    kind = array.type
    if not _is_rare(kind):
        return array
    if isinstance(array, pa.ExtensionArray):
        return readable_array(array.storage)
    if pa.types.is_run_end_encoded(kind):
        array.validate(full=True)
        return readable_array(pc.run_end_decode(array))
    if pa.types.is_dictionary(kind):
        array.indices.validate(full=True)
        return pa.DictionaryArray.from_arrays(array.indices, readable_array(array.dictionary))
    if pa.types.is_string_view(kind):
        # Text that isn't UTF-8 is found later, row by row.
        return readable_array(array.view(pa.binary_view())).view(pa.string())
    if pa.types.is_binary_view(kind):
        array.validate(full=True)
        return array.cast(pa.binary())
    assert pa.types.is_float16(kind)
    return array.cast(pa.float32())


def readable_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch from outside in the types that later code knows.

    >>> batch = pa.record_batch({"name": pa.array(["Ann"], pa.string_view())})
    >>> readable_batch(batch).schema.field("name").type
    DataType(string)
    """
    if not any(_is_rare(field.type) for field in batch.schema):
        return batch
    arrays = [readable_array(array) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def readable_table(table: pa.Table) -> pa.Table:
    """Return a table from outside in the types that later code knows."""
    if not any(_is_rare(field.type) for field in table.schema):
        return table
    columns = [
        pa.chunked_array([readable_array(chunk) for chunk in column.chunks])
        if column.num_chunks and _is_rare(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.schema.names)


def _is_rare(kind: Any) -> bool:
    """Return whether a type isn't one of those that later code knows."""
    if pa.types.is_dictionary(kind):
        return _is_rare(kind.value_type)
    return bool(
        isinstance(kind, pa.BaseExtensionType)
        or pa.types.is_run_end_encoded(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_float16(kind)
    )


def broken_text(batch: pa.RecordBatch) -> dict[int, str]:
    """Return the rows whose text isn't UTF-8, each with the reason.

    A file may declare its bytes to be what they aren't, and later code trusts the declaration, so
    every array is validated here.

    Raises
    ------
    pyarrow.ArrowInvalid
        If an array is broken in any other way.
    """
    broken: dict[int, str] = {}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        for row in _broken_values(array):
            broken.setdefault(row, f"broken UTF-8 in column {name}")
    return broken


def _broken_values(array: pa.Array) -> Iterable[int]:
    """Return the indices of the values that aren't UTF-8, in a plain or dictionary array."""
    try:
        array.validate(full=True)
        if pa.types.is_dictionary(array.type):
            array.dictionary.validate(full=True)
    except pa.ArrowInvalid:
        array.validate()
        values = array.dictionary if pa.types.is_dictionary(array.type) else array
        if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            raise
        plain = pa.binary() if pa.types.is_string(values.type) else pa.large_binary()
        as_bytes = values.view(plain)
        as_bytes.validate(full=True)
        broken = {
            place
            for place, value in enumerate(as_bytes)
            if value.is_valid and not is_utf8(value.as_py())
        }
        if not pa.types.is_dictionary(array.type):
            return sorted(broken)
        array.indices.validate(full=True)
        # Text that isn't UTF-8 hides this from the check above; later code would read anywhere.
        ends = pc.min_max(array.indices).as_py()
        if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] < len(values):
            raise pa.ArrowInvalid("an index lies outside of its dictionary") from None
        return [place for place, code in enumerate(array.indices.to_pylist()) if code in broken]
    return ()


def python_values(column: Any) -> list[Any]:
    """Return a column as Python's values; times beyond its calendar as the numbers they are.

    >>> python_values(pa.array([1 << 40]).view(pa.timestamp("s")))
    [1099511627776]
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        values = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64()).to_pylist()
    return values
