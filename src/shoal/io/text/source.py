"""Read rows of text: what every text format defines, and the source built on it."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from shoal.errors import ResourceError
from shoal.io.base import BATCH_ROWS, BadRow, Chunk, choose_columns, chunks
from shoal.io.streams import Input
from shoal.io.text.splitter import CHUNK_BYTES, MAX_ROW_BYTES, TextBlock, read_blocks

__all__ = ["LOOK_ROWS", "Header", "RowParser", "TextFormat", "TextSource"]

#: The number of rows from which columns are learned, where a format has no header.
LOOK_ROWS = 1000


class Header(NamedTuple):
    """The columns at the beginning of a text.

    ``n_bytes`` is how many bytes come before the first row; ``rows`` are the rows that were looked
    at, where a format learns from rows.
    """

    names: tuple[str, ...]
    n_bytes: int = 0
    rows: Sequence[dict[str, Any]] = ()


class RowParser(ABC):
    """Parses bytes of whole rows into a batch, and sets bad rows apart.

    ``kinds`` is what has been learned about the types so far, in plain values that JSON can carry;
    a reader that resumes in the middle of an input must set it. None if the format learns nothing.
    """

    kinds: Any = None

    @property
    @abstractmethod
    def nothing(self) -> pa.RecordBatch:
        """A batch of no rows."""

    @abstractmethod
    def parse(self, data: bytes, first_row: int) -> tuple[pa.RecordBatch, list[BadRow]]:
        """Return the good rows, and the bad ones in order, numbered from ``first_row``."""

    def parse_block(
        self, block: TextBlock, first_row: int, first_line: int | None = None
    ) -> tuple[pa.RecordBatch, list[BadRow]]:
        """Parse a block, which may be one row that can't be read.

        ``first_line`` is the number of its first line, from 1, if it is known.
        """
        if block.reason is None:
            batch, bad = self.parse(block.data, first_row)
            return batch, self._with_lines(block.data, bad, first_row, first_line)
        raw = block.data.rstrip(b"\r\n")
        return self.nothing, [BadRow(first_row, block.reason, raw, first_line)]

    def _with_lines(
        self, data: bytes, bad: list[BadRow], first_row: int, first_line: int | None
    ) -> list[BadRow]:
        """Say of bad rows of several lines in which one they begin, where a format has such."""
        return bad


class TextFormat(ABC):
    """How a text format is read, wherever its bytes come from.

    A file of such a format can be read from the end of any row on, so it can be followed while it
    grows, and appended to.
    """

    #: The name of the format, for messages.
    label: str
    #: The delimiter between fields, where a quoted field may hold newlines; None: no quoting.
    delimiter: bytes | None = None
    #: The quote character; None: no quoting.
    quote: bytes | None = b'"'
    #: Whether each file begins with the names of its columns.
    has_header: bool

    @abstractmethod
    def find_columns(
        self, blocks: Iterable[TextBlock], where: str, n_rows: int = LOOK_ROWS
    ) -> Header | None:
        """Find the columns at the beginning of a text, or None if they haven't arrived.

        ``n_rows`` is how many rows to look at, where a format learns columns from rows.

        Raises
        ------
        ResourceError
            If the text isn't of this format.
        """

    def choose_columns(
        self, header: Header, asked: Sequence[str] | None, where: str
    ) -> tuple[str, ...]:
        """Check that the requested columns exist, as `shoal.io.base.choose_columns`."""
        return choose_columns(header.names, asked, where)

    @abstractmethod
    def no_columns(self, where: str, *, is_empty: bool) -> ResourceError:
        """Return the error for a complete text in which no columns were found."""

    @abstractmethod
    def parser(self, names: Sequence[str], columns: Sequence[str], where: str) -> RowParser:
        """Return a parser of rows that have the columns ``names``, of which it reads some."""

    def learn(self, parser: RowParser, rows: Sequence[Mapping[str, Any]]) -> None:
        """Learn types from rows that were looked at, where a format learns."""
        return


class TextSource:
    """Rows of a text, read once from its beginning. Rows of a pipe come with their newline.

    Parameters
    ----------
    source
        Where the bytes come from.
    columns
        The columns to read; None for all.
    form
        The format.
    batch_rows
        The maximum number of rows in a chunk.
    chunk_bytes, max_row_bytes
        As for `read_blocks`.
    """

    def __init__(
        self,
        source: Input,
        columns: Sequence[str] | None,
        form: TextFormat,
        *,
        batch_rows: int = BATCH_ROWS,
        chunk_bytes: int = CHUNK_BYTES,
        max_row_bytes: int = MAX_ROW_BYTES,
    ) -> None:
        self._source, self._form = source, form
        self._batch_rows = batch_rows
        self._blocks = read_blocks(
            source, form.delimiter, form.quote, chunk_bytes=chunk_bytes, max_row_bytes=max_row_bytes
        )
        self._seen: list[TextBlock] = []
        # Who writes to a pipe may wait for an answer to its first row.
        header = form.find_columns(self._looked(), source.name, 1 if source.live else LOOK_ROWS)
        if header is None:
            raise form.no_columns(source.name, is_empty=not self._seen)
        self._drop(header.n_bytes)
        self.schema_names = header.names
        chosen = form.choose_columns(header, columns, source.name)
        self._parser = form.parser(header.names, chosen, source.name)
        form.learn(self._parser, header.rows)

    def describe(self) -> str:
        """Return the name and the format, for messages."""
        return f"{self._source.name} ({self._form.label}, {len(self.schema_names)} columns)"

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def __iter__(self) -> Iterator[Chunk]:
        n_rows, line = 0, self._first_line
        # Popped, so that the blocks looked at aren't kept in memory while the rest is read.
        waiting = (self._seen.pop(0) for _ in range(len(self._seen)))
        for block in itertools.chain(waiting, self._blocks):
            batch, bad = self._parser.parse_block(block, n_rows, line)
            yield from chunks(batch, n_rows, bad, self._batch_rows)
            n_rows += batch.num_rows + len(bad)
            line += block.n_lines

    def _looked(self) -> Iterator[TextBlock]:
        for block in self._blocks:
            self._seen.append(block)
            yield block

    def _drop(self, n_bytes: int) -> None:
        """Drop the header from the blocks looked at: it ends in the last one."""
        #: The line with which the rows begin.
        self._first_line = 1
        if n_bytes:
            self._first_line += sum(block.n_lines for block in self._seen[:-1])
            last = self._seen[-1]
            n_before = sum(block.n_bytes for block in self._seen[:-1])
            rest = last.data[n_bytes - n_before :]
            self._first_line += last.data.count(b"\n", 0, n_bytes - n_before)
            self._seen = [TextBlock(rest)] if rest else []
