"""The rows of one text file, by their places in its bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shoal.errors import CheckpointError, ResourceError
from shoal.io.base import BadRow, choose_columns
from shoal.io.files.byte_ranges import ByteRanges
from shoal.io.files.row_blocks import RowBlock, join, too_short
from shoal.io.formats.csv_rows import CsvParser, parse_header
from shoal.io.formats.jsonl_rows import JsonParser, lines_of, load
from shoal.io.formats.row_cutter import BOM, CHUNK_BYTES, MAX_ROW_BYTES, Block, Splitter, row_ends

__all__ = ["TextRows"]

_LOOK_ROWS = 1000
_DELIMITERS = {"csv": ",", "tsv": "\t"}


class TextRows:
    """The rows of one file of CSV, TSV or JSON lines; positions are bytes.

    A piece is a block of whole rows; a row that is too long, or that a quote has left open, is a
    piece of its own. So wherever a piece ends, reading can begin, and the bytes of a piece alone
    give its rows.

    Parameters
    ----------
    byte_ranges
        The bytes, which are closed with the rows.
    form
        ``csv``, ``tsv`` or ``jsonl``.
    columns
        The columns to read; None for all.
    known
        The columns that the files before this one had, if there were any. JSON lines are then
        taken as they are: a key that none of them has is null.
    kinds
        What those before have taught of the types of JSON.
    """

    def __init__(
        self,
        byte_ranges: ByteRanges,
        form: str,
        columns: Sequence[str] | None,
        *,
        known: tuple[str, ...] | None = None,
        kinds: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._bytes = byte_ranges
        self._delimiter = _DELIMITERS.get(form)
        self._asked, self._known, self._learned = columns, known, kinds
        self.names: tuple[str, ...] = ()
        self.columns: tuple[str, ...] = ()
        self._parser: CsvParser | JsonParser | None = None
        self._start = 0
        self._go(0)

    # -- the beginning ---------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether the columns are known."""
        return self._parser is not None

    def begin(self, *, final: bool) -> bool:
        """Find out the columns; False if the file hasn't come so far yet.

        Raises
        ------
        JobError
            If a column isn't there.
        ResourceError
            If the file is complete and has no header, or no object of JSON.
        """
        first = self._bytes.read_at(0, len(BOM))
        if not final and len(first) < len(BOM) and BOM.startswith(first):
            return False
        if self._delimiter is None:
            return self._begin_json(final=final)
        for block, begin in self._blocks(final=final):
            if block.reason is not None:
                break
            start = 0
            for end in row_ends(block.data, self._delimiter.encode()).tolist():
                if line := block.data[start:end].rstrip(b"\r\n"):
                    self.names = tuple(parse_header(line, self._delimiter, self._bytes.name))
                    wanted = self._known if self._asked is None else self._asked
                    self.columns = choose_columns(self.names, wanted, self._bytes.name)
                    self._parser = CsvParser(
                        self.names, self.columns, self._delimiter, self._bytes.name
                    )
                    self._start = begin + end
                    self._go(self._start)
                    return True
                start = end
        else:
            if not final:
                return False
        raise ResourceError(
            f"{self._bytes.name}: can't be read: it has no header. The first line of a CSV file "
            "names its columns."
        )

    def _begin_json(self, *, final: bool) -> bool:
        if self._known is None:
            rows = self._look(final=final)
            if not rows and not final:
                return False
            if not rows:
                raise ResourceError(
                    f"{self._bytes.name}: can't be read: it has no line with a JSON object. "
                    "JSON lines have one object a line."
                )
            self.names = tuple(dict.fromkeys(key for row in rows for key in row))
            self.columns = choose_columns(self.names, self._asked, self._bytes.name)
        else:
            self.names = self.columns = self._known
        # Types are learned from what has been given, not from what has been looked at: who reads
        # again looks at a file that has grown.
        self._parser = JsonParser(self.columns)
        self._parser.kinds = self._learned or {}
        self._start = len(BOM) if self._bytes.read_at(0, len(BOM)) == BOM else 0
        self._go(self._start)
        return True

    def _look(self, *, final: bool) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for block, _ in self._blocks(final=final):
            for line in () if block.reason is not None else lines_of(block.data):
                row = load(line)
                if isinstance(row, dict):
                    rows.append(row)
                    if len(rows) == _LOOK_ROWS:
                        return rows
        return rows

    def _blocks(self, *, final: bool) -> Iterator[tuple[Block, int]]:
        """The blocks from the beginning of the file, and where each begins."""
        at = len(BOM) if self._bytes.read_at(0, len(BOM)) == BOM else 0
        read_to, splitter = at, self._splitter()
        while data := self._bytes.read_at(read_to, CHUNK_BYTES):
            read_to += len(data)
            for block in splitter.feed(data):
                yield block, at
                at += block.n_bytes
        for block in splitter.finish() if final else ():
            yield block, at
            at += block.n_bytes

    # -- the rows --------------------------------------------------------------------------------

    @property
    def kinds(self) -> dict[str, list[str]] | None:
        """What has been learned of the types of JSON; None for a format that learns nothing."""
        return self._parser.kinds if isinstance(self._parser, JsonParser) else None

    @kinds.setter
    def kinds(self, kinds: Mapping[str, Sequence[str]] | None) -> None:
        if isinstance(self._parser, JsonParser):
            self._parser.kinds = kinds or {}

    def go_to(self, at: int) -> None:
        """Go on from a place where a piece has ended.

        Raises
        ------
        CheckpointError
            If a row that was taken for the last one has since been written on.
        """
        # A compressed file is complete, and going back in it is dear.
        if at > self._start and self._bytes.n_bytes() is not None:
            around = self._bytes.read_at(at - 1, 2)
            if not around:
                raise too_short(self._bytes.name)
            if around[:1] != b"\n" and around[1:] not in (b"", b"\n", b"\r"):
                raise CheckpointError(
                    f"{self._bytes.name}: its last line had no newline when it was read, and has "
                    "been written on since. End every line with a newline, and start anew with an "
                    "empty checkpoint folder and an empty output."
                )
        self._go(max(at, self._start))

    def _go(self, at: int) -> None:
        self.at = self._read_to = at
        self._whole: deque[Block] = deque()
        self._cutter = self._splitter()
        self._finished = False

    def read(self, first_row: int, *, final: bool) -> RowBlock | None:
        """Give the next rows; None if there is no whole row (as yet)."""
        while True:
            while not self._whole:
                if self._finished:
                    return None
                # Up to the next multiple: pieces end in the same places wherever reading began.
                n_bytes = CHUNK_BYTES - self._read_to % CHUNK_BYTES
                data = self._bytes.read_at(self._read_to, n_bytes)
                self._read_to += len(data)
                if data:
                    self._whole.extend(self._cutter.feed(data))
                elif final:
                    # What is written after this end isn't read: it may go on with the last row.
                    self._whole.extend(self._cutter.finish())
                    self._finished = True
                else:
                    return None
            piece = self._parse(self._whole.popleft(), self.at, first_row)
            self.at = piece.end
            if piece.n_rows:
                return piece

    def read_span(self, begin: int, end: int, first_row: int) -> RowBlock:
        """Give once more the rows of a piece."""
        self.go_to(begin)
        data = self._bytes.read_at(begin, end - begin)
        if len(data) < end - begin:
            raise too_short(self._bytes.name)
        splitter = self._splitter()
        pieces = []
        for block in splitter.feed(data) + splitter.finish():
            pieces.append(self._parse(block, self.at, first_row))
            self.at = pieces[-1].end
            first_row += pieces[-1].n_rows
        self._go(end)
        return RowBlock(join(pieces), [bad for piece in pieces for bad in piece.bad], begin, end)

    def left(self) -> int | None:
        """How many bytes come after ``at``, if that can be told."""
        n_bytes = self._bytes.n_bytes()
        return None if n_bytes is None else max(0, n_bytes - self.at)

    def close(self) -> None:
        """Let go of the file."""
        self._bytes.close()

    def _parse(self, block: Block, begin: int, first_row: int) -> RowBlock:
        assert self._parser is not None, "the columns are known"
        end = begin + block.n_bytes
        if block.reason is not None:
            bad = [BadRow(first_row, block.reason, block.data.rstrip(b"\r\n"))]
            return RowBlock(self._parser.nothing, bad, begin, end)
        return RowBlock(*self._parser.parse(block.data, first_row), begin, end)

    def _splitter(self) -> Splitter:
        delimiter = None if self._delimiter is None else self._delimiter.encode()
        return Splitter(delimiter, max_row_bytes=MAX_ROW_BYTES)
