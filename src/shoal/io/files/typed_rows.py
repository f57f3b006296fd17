"""The rows of one Parquet or Arrow file, by their numbers in it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from shoal.io.base import BadRow, Chunk
from shoal.io.files.row_blocks import RowBlock, join, too_short
from shoal.io.formats.arrow import ArrowSource
from shoal.io.formats.names import Format
from shoal.io.formats.parquet import ParquetSource
from shoal.io.streams import open_input

__all__ = ["TypedRows"]


class TypedRows:
    """The rows of one complete file of Parquet or Arrow; positions are rows.

    Parameters
    ----------
    path
        The file.
    kind
        Its format and compression.
    columns
        The columns to read; None for all.
    """

    #: The types are in the file: nothing is learned.
    kinds: Mapping[str, Sequence[str]] | None = None

    def __init__(
        self, path: str | os.PathLike[str], kind: Format, columns: Sequence[str] | None
    ) -> None:
        self._path, self._kind, self._asked = path, kind, columns
        self.at = 0
        self._open()
        self.names = self._source.schema_names
        self.columns = self._source.columns

    def _open(self) -> None:
        byte_ranges = open_input(self._path, self._kind.compression)
        opening = ParquetSource if self._kind.name == "parquet" else ArrowSource
        try:
            self._source: ParquetSource | ArrowSource = opening(byte_ranges, self._asked)
        except BaseException:
            byte_ranges.close()
            raise
        self._chunks: Iterator[Chunk] | None = None
        # What is left of a chunk of which a part has been given.
        self._rest: RowBlock | None = None

    def go_to(self, at: int) -> None:
        """Go on from a row."""
        if self._chunks is not None:
            self._source.close()
            self._open()
        self._source.skip(at)
        self.at = at

    def read(self, first_row: int, *, final: bool) -> RowBlock | None:
        """Give the next rows; None at the end. A typed file is always complete."""
        assert final, "a typed file is complete"
        piece, self._rest = self._rest, None
        if piece is None:
            if self._chunks is None:
                self._chunks = iter(self._source)
            chunk = next(self._chunks, None)
            if chunk is None:
                return None
            piece = RowBlock(chunk.batch, chunk.bad, self.at, self.at)
        self.at += piece.n_rows
        bad = [BadRow(first_row + row.row - piece.begin, row.reason) for row in piece.bad]
        return RowBlock(piece.batch, bad, piece.begin, self.at)

    def read_span(self, begin: int, end: int, first_row: int) -> RowBlock:
        """Give once more the rows of a piece, however the file would be cut now."""
        if begin != self.at:
            self.go_to(begin)
        pieces: list[RowBlock] = []
        while self.at < end:
            # Numbered as in the file, so that what is cut off can be kept.
            piece = self.read(self.at, final=True)
            if piece is None:
                raise too_short(os.fspath(self._path))
            if piece.end > end:
                piece, self._rest = _split(piece, end)
                self.at = end
            pieces.append(piece)
        bad = [
            BadRow(first_row + row.row - begin, row.reason) for piece in pieces for row in piece.bad
        ]
        return RowBlock(join(pieces), bad, begin, end)

    def left(self) -> int | None:
        """How many rows come after ``at``; None where only reading tells."""
        if not isinstance(self._source, ParquetSource):
            return None
        return max(0, self._source.n_rows - self.at)

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()


def _split(piece: RowBlock, place: int) -> tuple[RowBlock, RowBlock]:
    """Cut a piece, numbered as in its file, before a row."""
    head = [row for row in piece.bad if row.row < place]
    tail = piece.bad[len(head) :]
    n_good = place - piece.begin - len(head)
    return (
        RowBlock(piece.batch.slice(0, n_good), head, piece.begin, place),
        RowBlock(piece.batch.slice(n_good), tail, place, piece.end),
    )
