"""The rows of one text file, by their byte positions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from shoal.errors import PUBLISHES_AGAIN, CheckpointError
from shoal.io.files.random_access import RandomAccess
from shoal.io.files.row_blocks import RowBlock, join_blocks, too_short
from shoal.io.text.source import RowParser, TextFormat
from shoal.io.text.splitter import BOM, CHUNK_BYTES, MAX_ROW_BYTES, RowSplitter, TextBlock

__all__ = ["TextRows"]


class TextRows:
    """The rows of one file of a text format; positions are bytes.

    A block holds whole rows; a row that is too long, or in which a quote stays open, is a block of
    its own. So reading can begin wherever a block ends, and the bytes of a block alone determine
    its rows.

    Parameters
    ----------
    file
        The bytes; closed with the rows.
    form
        The format.
    columns
        The columns to read; None for all.
    known
        The columns of the files before this one, if there were any. A format without a header then
        keeps them: a key that a row doesn't have is null.
    kinds
        What the files before have taught about types, where a format learns them.
    """

    def __init__(
        self,
        file: RandomAccess,
        form: TextFormat,
        columns: Sequence[str] | None,
        *,
        known: tuple[str, ...] | None = None,
        kinds: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._file, self._form = file, form
        self._asked, self._known, self._learned = columns, known, kinds
        self.names: tuple[str, ...] = ()
        self.columns: tuple[str, ...] = ()
        self._parser: RowParser | None = None
        self._start = 0
        self._restart(0)

    # -- the beginning ---------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether the columns are known."""
        return self._parser is not None

    def begin(self, *, final: bool) -> bool:
        """Find the columns; return False if they haven't been written yet.

        Raises
        ------
        JobError
            If a column isn't there.
        ResourceError
            If the file is complete and has no columns.
        """
        first = self._file.read_at(0, len(BOM))
        if not final and len(first) < len(BOM) and BOM.startswith(first):
            return False
        self._start = len(BOM) if first == BOM else 0
        if self._known is not None and not self._form.has_header:
            self.names = self.columns = self._known
        else:
            header = self._form.find_columns(self._blocks(final=final), self._file.name)
            if header is None and not final:
                return False
            if header is None:
                raise self._form.no_columns(self._file.name, is_empty=False)
            self.names = header.names
            wanted = self._known if self._asked is None else self._asked
            self.columns = self._form.choose_columns(header, wanted, self._file.name)
            self._start += header.n_bytes
        # Types are learned from rows that were returned, not from rows that were only looked at:
        # a replay looks at a file that has grown since.
        self._parser = self._form.parser(self.names, self.columns, self._file.name)
        self.kinds = self._learned
        self._restart(self._start)
        return True

    def _blocks(self, *, final: bool) -> Iterator[TextBlock]:
        """Yield the blocks from the beginning of the file."""
        read_to, splitter = self._start, self._splitter()
        while data := self._file.read_at(read_to, CHUNK_BYTES):
            read_to += len(data)
            yield from splitter.feed(data)
        if final:
            yield from splitter.finish()

    # -- the rows --------------------------------------------------------------------------------

    @property
    def kinds(self) -> Mapping[str, Sequence[str]] | None:
        """What has been learned about types; None for a format that learns nothing."""
        kinds: Mapping[str, Sequence[str]] | None = getattr(self._parser, "kinds", None)
        return kinds

    @kinds.setter
    def kinds(self, kinds: Mapping[str, Sequence[str]] | None) -> None:
        if self._parser is not None and self._parser.kinds is not None:
            self._parser.kinds = kinds or {}

    def go_to(self, at: int) -> None:
        """Continue from a position where a block has ended.

        Raises
        ------
        CheckpointError
            If the row that was the last one has since been extended.
        """
        # A compressed file is complete, and seeking backward in it is expensive.
        if at > self._start and self._file.n_bytes() is not None:
            around = self._file.read_at(at - 1, 2)
            if not around:
                raise too_short(self._file.name)
            if around[:1] != b"\n" and around[1:] not in (b"", b"\n", b"\r"):
                raise CheckpointError(
                    f"{self._file.name}: its last line had no newline when it was read, and has "
                    "been extended since. End every line with a newline, and start over with an "
                    f"empty checkpoint folder and an empty output. {PUBLISHES_AGAIN}."
                )
        self._restart(max(at, self._start))

    def _restart(self, at: int) -> None:
        self.at = self._read_to = at
        self._whole: deque[TextBlock] = deque()
        self._rest = self._splitter()
        self._finished = False

    def read(self, first_row: int, *, final: bool) -> RowBlock | None:
        """Return the next rows, or None if there is no whole row (yet)."""
        while True:
            while not self._whole:
                if self._finished:
                    return None
                # Up to the next multiple: blocks end in the same places wherever reading began.
                n_bytes = CHUNK_BYTES - self._read_to % CHUNK_BYTES
                data = self._file.read_at(self._read_to, n_bytes)
                self._read_to += len(data)
                if data:
                    self._whole.extend(self._rest.feed(data))
                elif final:
                    # What is written after this end isn't read: it may extend the last row.
                    self._whole.extend(self._rest.finish())
                    self._finished = True
                else:
                    return None
            block = self._parse(self._whole.popleft(), first_row)
            if block.n_rows:
                return block

    def read_span(self, begin: int, end: int, first_row: int) -> RowBlock:
        """Read the rows of a block again."""
        self.go_to(begin)
        data = self._file.read_at(begin, end - begin)
        if len(data) < end - begin:
            raise too_short(self._file.name)
        splitter = self._splitter()
        blocks: list[RowBlock] = []
        for block in splitter.feed(data) + splitter.finish():
            blocks.append(self._parse(block, first_row))
            first_row += blocks[-1].n_rows
        self._restart(end)
        return RowBlock(join_blocks(blocks), [b for block in blocks for b in block.bad], begin, end)

    def n_left(self) -> int | None:
        """Return the number of bytes after ``at``, or None if it is unknown."""
        n_bytes = self._file.n_bytes()
        return None if n_bytes is None else max(0, n_bytes - self.at)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _parse(self, block: TextBlock, first_row: int) -> RowBlock:
        """Parse the block that begins at ``at``, and move ``at`` to its end."""
        assert self._parser is not None, "the columns are known"
        begin, self.at = self.at, self.at + block.n_bytes
        return RowBlock(*self._parser.parse_block(block, first_row), begin, self.at)

    def _splitter(self) -> RowSplitter:
        return RowSplitter(self._form.delimiter, self._form.quote, max_row_bytes=MAX_ROW_BYTES)
