"""What Parquet and Arrow share: columns that have types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from shoal.errors import JobError, Problem
from shoal.io.base import BadRow, Chunk, choose_columns, chunks
from shoal.io.formats.utf8 import broken_rows
from shoal.io.streams import reading

__all__ = ["choose_plain_columns", "typed_chunks"]


def choose_plain_columns(
    schema: pa.Schema, asked: Sequence[str] | None, where: str
) -> tuple[str, ...]:
    """Check that the columns asked for exist and hold plain values; else raise `JobError`.

    Without any asked for, give those that do.
    """
    columns = choose_columns(schema.names, asked, where)
    nested = [name for name in columns if pa.types.is_nested(schema.field(name).type)]
    if nested and asked is not None:
        raise JobError(
            [
                Problem(
                    f"column {name}",
                    "holds nested values",
                    str(schema.field(name).type),
                    "Flatten it to columns of plain values first",
                )
                for name in nested
            ],
            where=where,
        )
    return tuple(name for name in columns if name not in nested)


def typed_chunks(
    batch: pa.RecordBatch, first_row: int, batch_rows: int, where: str
) -> Iterator[Chunk]:
    """Give a batch from outside as chunks; rows with text that isn't UTF-8 are bad rows.

    A file may say of its bytes what isn't so, and what reads them later trusts it: everything is
    checked here.
    """
    broken: dict[int, str] = {}
    with reading(where, "its data is damaged"):
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            for row in broken_rows(array):
                broken.setdefault(row, f"broken UTF-8 in column {name}")
    if broken:
        batch = batch.filter(pa.array([r not in broken for r in range(batch.num_rows)]))
    bad = [BadRow(first_row + row, broken[row]) for row in sorted(broken)]
    yield from chunks(batch, first_row, bad, batch_rows)
