"""From what an engine's labels are held in to what is written."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["plain_array", "plain_batch"]


def plain_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Give an array without its dictionary, as a type.

    A dictionary may hold more than its rows use: values of rows that aren't published. Only what
    the rows use is left.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if array.type == kind else array.cast(kind)


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give a batch with the columns and types of a schema, without dictionaries.

    >>> batch = pa.record_batch({"b": pa.array(["x", "y", "x"]).dictionary_encode()})
    >>> plain_batch(batch, pa.schema([("b", pa.string())])).column("b").to_pylist()
    ['x', 'y', 'x']
    """
    if batch.schema == schema:
        return batch
    arrays = [plain_array(batch.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
