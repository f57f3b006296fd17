"""Rows of one file, read from any row on: what text and typed formats share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from shoal.errors import PUBLISHES_AGAIN, CheckpointError
from shoal.io.base import BadRow, Chunk
from shoal.io.typed import plain_array

__all__ = ["FileRows", "RowBlock", "chunk_of", "join_blocks", "too_short"]


class RowBlock(NamedTuple):
    """Consecutive rows of one file, and the positions where they begin and end."""

    batch: pa.RecordBatch
    bad: list[BadRow]
    begin: int
    end: int

    @property
    def n_rows(self) -> int:
        """The number of rows, including bad ones."""
        return int(self.batch.num_rows) + len(self.bad)


class FileRows(Protocol):
    """The rows of one file, read block by block.

    ``names`` are the columns it has, ``columns`` those that are read, ``at`` is where the next
    block begins, ``kinds`` is what was learned about types on the way, where a format learns.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    at: int
    kinds: Mapping[str, Sequence[str]] | None

    def go_to(self, at: int) -> None:
        """Continue from a position where a block has ended."""
        ...

    def read(self, first_row: int, *, final: bool) -> RowBlock | None:
        """Return the next rows, numbered from ``first_row`` on; None if there is no whole row.

        If ``final`` the file is complete, and its last row needs no newline.
        """
        ...

    def read_span(self, begin: int, end: int, first_row: int) -> RowBlock:
        """Read the rows of a block again; raise `CheckpointError` if the file is too short."""
        ...

    def n_left(self) -> int | None:
        """Return how much comes after ``at``, in the unit of positions; None if unknown."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


def join_blocks(blocks: Sequence[RowBlock]) -> pa.RecordBatch:
    """Concatenate the rows of blocks, in the types of the last block."""
    if len(blocks) == 1:
        return blocks[0].batch
    fields = []
    for field in blocks[-1].batch.schema:
        kinds = {block.batch.schema.field(field.name).type for block in blocks}
        if len(kinds) > 1 and pa.types.is_dictionary(field.type):
            field = field.with_type(field.type.value_type)
        fields.append(field)
    schema = pa.schema(fields)
    columns = [
        pa.concat_arrays([_as(block.batch.column(field.name), field.type) for block in blocks])
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def chunk_of(batch: pa.RecordBatch, bad: list[BadRow], first_row: int) -> Chunk:
    """Return a chunk of a batch whose rows are numbered from ``first_row``."""
    rows = np.arange(first_row, first_row + batch.num_rows + len(bad), dtype=np.int64)
    if bad:
        rows = np.delete(rows, [row.row - first_row for row in bad])
    return Chunk(batch, rows, bad)


def too_short(name: str) -> CheckpointError:
    """Return the error for a file that has lost rows that were read."""
    return CheckpointError(
        f"{name}: is shorter than what was read of it before the stop. Bring back the file as it "
        "was, or start over with an empty checkpoint folder and an empty output. "
        f"{PUBLISHES_AGAIN}."
    )


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else plain_array(array, kind)
