"""The rows of one file of a typed format, by their numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from shoal.io.base import BadRow, Chunk
from shoal.io.files.row_blocks import RowBlock, join_blocks, too_short
from shoal.io.formats import FileType
from shoal.io.typed import TypedSource

__all__ = ["TypedRows"]


class TypedRows:
    """The rows of one complete file of a typed format; positions are rows.

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
        self, path: str | os.PathLike[str], kind: FileType, columns: Sequence[str] | None
    ) -> None:
        self._path, self._kind, self._asked = path, kind, columns
        self.at = 0
        self._open()
        self.names = self._source.schema_names
        self.columns = self._source.columns

    def _open(self) -> None:
        source = self._kind.open(self._path)
        try:
            opened = self._kind.format.source(source, self._asked)
            assert isinstance(opened, TypedSource), "a format without text is typed"
        except BaseException:
            source.close()
            raise
        self._source = opened
        self._chunks: Iterator[Chunk] | None = None
        # The rest of a chunk of which a part has been returned.
        self._rest: RowBlock | None = None

    def go_to(self, at: int) -> None:
        """Continue from a row."""
        if self._chunks is not None:
            self._source.close()
            self._open()
        self._source.skip(at)
        self.at = at

    def read(self, first_row: int, *, final: bool) -> RowBlock | None:
        """Return the next rows, or None at the end. A typed file is always complete."""
        assert final, "a typed file is complete"
        block, self._rest = self._rest, None
        if block is None:
            if self._chunks is None:
                self._chunks = iter(self._source)
            chunk = next(self._chunks, None)
            if chunk is None:
                return None
            block = RowBlock(chunk.batch, chunk.bad, self.at, self.at)
        self.at += block.n_rows
        bad = [BadRow(first_row + row.row - block.begin, row.reason) for row in block.bad]
        return RowBlock(block.batch, bad, block.begin, self.at)

    def read_span(self, begin: int, end: int, first_row: int) -> RowBlock:
        """Read the rows of a block again, however the file would be cut now."""
        if begin != self.at:
            self.go_to(begin)
        blocks: list[RowBlock] = []
        while self.at < end:
            # Numbered as in the file, so that what is cut off can be kept.
            block = self.read(self.at, final=True)
            if block is None:
                raise too_short(os.fspath(self._path))
            if block.end > end:
                block, self._rest = _split(block, end)
                self.at = end
            blocks.append(block)
        bad = [
            BadRow(first_row + row.row - begin, row.reason) for block in blocks for row in block.bad
        ]
        return RowBlock(join_blocks(blocks), bad, begin, end)

    def n_left(self) -> int | None:
        """Return the number of rows after ``at``, or None where only reading tells."""
        n_rows = self._source.n_rows
        return None if n_rows is None else max(0, n_rows - self.at)

    def close(self) -> None:
        """Close the file."""
        self._source.close()


def _split(block: RowBlock, place: int) -> tuple[RowBlock, RowBlock]:
    """Cut a block, numbered as in its file, before a row."""
    head = [row for row in block.bad if row.row < place]
    tail = block.bad[len(head) :]
    n_good = place - block.begin - len(head)
    return (
        RowBlock(block.batch.slice(0, n_good), head, block.begin, place),
        RowBlock(block.batch.slice(n_good), tail, place, block.end),
    )
