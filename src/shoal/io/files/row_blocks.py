"""Rows of one file, read from any row on: what text and typed formats have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from shoal.errors import CheckpointError
from shoal.io.base import BadRow, Chunk
from shoal.io.formats.plain import plain_array

__all__ = ["FileRows", "RowBlock", "chunk_of", "join", "too_short"]


class RowBlock(NamedTuple):
    """Some consecutive rows of one file, and where they lie in it."""

    batch: pa.RecordBatch
    bad: list[BadRow]
    begin: int
    end: int

    @property
    def n_rows(self) -> int:
        """How many rows there are, bad ones included."""
        return int(self.batch.num_rows) + len(self.bad)


class FileRows(Protocol):
    """The rows of one file.

    ``names`` are the columns it has, ``columns`` those that are read, ``at`` is where the next
    piece begins, ``kinds`` is what was learned of the types on the way, where a format learns.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    at: int
    kinds: Mapping[str, Sequence[str]] | None

    def go_to(self, at: int) -> None:
        """Go on from a place where a piece has ended."""
        ...

    def read(self, first_row: int, *, final: bool) -> RowBlock | None:
        """Give the next rows, numbered from there on; None if there is no whole row.

        If ``final`` the file is complete, and its last row needs no end.
        """
        ...

    def read_span(self, begin: int, end: int, first_row: int) -> RowBlock:
        """Give once more the rows of a piece; `CheckpointError` if the file is too short."""
        ...

    def left(self) -> int | None:
        """How much comes after ``at``, if that can be told."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


def join(pieces: Sequence[RowBlock]) -> pa.RecordBatch:
    """Put the rows of pieces one after the other, in the types of the last."""
    if len(pieces) == 1:
        return pieces[0].batch
    fields = []
    for field in pieces[-1].batch.schema:
        kinds = {piece.batch.schema.field(field.name).type for piece in pieces}
        if len(kinds) > 1 and pa.types.is_dictionary(field.type):
            field = field.with_type(field.type.value_type)
        fields.append(field)
    schema = pa.schema(fields)
    columns = [
        pa.concat_arrays([_as(piece.batch.column(field.name), field.type) for piece in pieces])
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def chunk_of(batch: pa.RecordBatch, bad: list[BadRow], first_row: int) -> Chunk:
    """Number the rows of a batch."""
    rows = np.arange(first_row, first_row + batch.num_rows + len(bad), dtype=np.int64)
    if bad:
        rows = np.delete(rows, [row.row - first_row for row in bad])
    return Chunk(batch, rows, bad)


def too_short(name: str) -> CheckpointError:
    """Say that what was read once isn't there any more."""
    return CheckpointError(
        f"{name}: is shorter than what was read of it before the stop. Bring back the file as it "
        "was, or start anew with an empty checkpoint folder and an empty output."
    )


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else plain_array(array, kind)
