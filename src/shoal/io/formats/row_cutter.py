"""Cut a stream of bytes into whole rows, as soon as they are there.

A row ends at a newline, in CSV at one outside quotes. As in Arrow's own reader, a quote opens a
quoted field only at the beginning of a field; elsewhere it is a character like any other. Counting
quotes alone would lose step at the first ``5" pipe``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.io.streams import Input

__all__ = [
    "BOM",
    "CHUNK_BYTES",
    "MAX_ROW_BYTES",
    "Block",
    "RowCutter",
    "Splitter",
    "row_ends",
    "structural_quotes",
]

#: How many bytes are read at once, at most.
CHUNK_BYTES = 4 << 20
#: How long a row may be before it is taken for a broken one.
MAX_ROW_BYTES = 1 << 20

# Said alike at the end of an input and before a row that is too long: rows that are read again up
# to here must be told alike.
OPEN_QUOTE = "a quote is opened and never closed"
#: What some programs put before a text in UTF-8.
BOM = b"\xef\xbb\xbf"
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes of whole rows; or, with a reason, of one row that can't be read.

    Of a row that is too long ``data`` is the beginning; ``n_bytes`` counts all of it, so that the
    blocks of an input lie one after the other.
    """

    data: bytes
    reason: str | None = None
    n_skipped: int = 0

    @property
    def n_bytes(self) -> int:
        """How many bytes of the input the block stands for."""
        return len(self.data) + self.n_skipped

    def __repr__(self) -> str:
        return f"Block(n_bytes={self.n_bytes}, reason={self.reason!r})"


def structural_quotes(data: bytes, delimiter: bytes) -> NDArray[np.int64]:
    """Find the quotes that open and close fields, in turn; stray ones are left out.

    The data begins at the beginning of a row.

    >>> structural_quotes(b'5" pipe,"a ""b"" c"', b",").tolist()
    [8, 11, 12, 14, 15, 18]
    """
    byte_ranges = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(byte_ranges == _QUOTE)
    opening = quotes[::2]
    before = byte_ranges[np.maximum(opening, 1) - 1]
    # A quote right after a closing one is the second of a pair inside a field: it opens again.
    starts = (before == ord(delimiter)) | (before == _NEWLINE) | (before == _RETURN)
    if bool(np.all((opening == 0) | starts | (before == _QUOTE))):
        return quotes
    kept: list[int] = []
    inside, closed = False, -2
    field_starts = delimiter + b"\n\r"
    for quote in quotes.tolist():
        if inside:
            inside, closed = False, quote
        elif quote in (0, closed + 1) or data[quote - 1] in field_starts:
            inside = True
        else:
            continue
        kept.append(quote)
    return np.array(kept, dtype=np.int64)


def row_ends(data: bytes, delimiter: bytes | None = None) -> NDArray[np.int64]:
    r"""Find where each line ends that isn't within quotes, by the place after its newline.

    A carriage return ends a line too, as it does for Arrow. Without a delimiter there are no
    quotes. Empty lines are among the lines, and so is a last one without a newline.

    >>> row_ends(b'a,"b\nc"\r\n\nd', b",").tolist()
    [9, 10, 11]
    """
    byte_ranges = np.frombuffer(data, np.uint8)
    is_end = byte_ranges == _NEWLINE
    if delimiter is not None:
        lone = byte_ranges == _RETURN
        lone[:-1] &= byte_ranges[1:] != _NEWLINE
        is_end |= lone
    ends = np.flatnonzero(is_end)
    if delimiter is not None and b'"' in data:
        ends = ends[np.searchsorted(structural_quotes(data, delimiter), ends) % 2 == 0]
    ends = ends + 1
    return ends if len(ends) and ends[-1] == len(data) else np.append(ends, len(data))


class RowCutter:
    """Gives the bytes of an input in blocks of whole rows, as they come.

    What is given doesn't depend on how the bytes happened to arrive; only where blocks end does.

    Parameters
    ----------
    source
        Where the bytes come from.
    delimiter, max_row_bytes
        As for `Splitter`.
    chunk_bytes
        How many bytes to read at once, at most.
    """

    def __init__(
        self,
        source: Input,
        delimiter: bytes | None = None,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        max_row_bytes: int = MAX_ROW_BYTES,
    ) -> None:
        self._source = source
        self._splitter = Splitter(delimiter, max_row_bytes=max_row_bytes)
        self._chunk_bytes = chunk_bytes

    def __iter__(self) -> Iterator[Block]:
        new = self._first_bytes()
        while new:
            yield from self._splitter.feed(new)
            new = self._source.read(self._chunk_bytes)
        yield from self._splitter.finish()

    def _first_bytes(self) -> bytes:
        data = b""
        while len(data) < len(BOM) and BOM.startswith(data):
            new = self._source.read(self._chunk_bytes)
            if not new:
                break
            data += new
        return data.removeprefix(BOM) or self._source.read(self._chunk_bytes)


class Splitter:
    r"""Takes bytes as they come and gives blocks of whole rows, one after the other.

    Where a row is longer than ``max_row_bytes`` (most likely a quote that is never closed), its
    first line is given as a bad row and reading goes on at the next line. A line that is too long
    by itself is given when it ends, without being held until then.

    Wherever a block ends another splitter can begin, and finds the same rows.

    Parameters
    ----------
    delimiter
        What is between fields, where fields can be quoted; None if there is no quoting.
    max_row_bytes
        How long a row may be.

    >>> splitter = Splitter(b",")
    >>> splitter.feed(b'1,"a\nb"\n2,')
    [Block(n_bytes=8, reason=None)]
    >>> splitter.finish()
    [Block(n_bytes=2, reason=None)]
    """

    def __init__(
        self, delimiter: bytes | None = None, *, max_row_bytes: int = MAX_ROW_BYTES
    ) -> None:
        self._delimiter = delimiter
        self._max = max_row_bytes
        self._rest = b""
        # The beginning of a line that is too long, and how many more bytes of it there were.
        self._long: bytes | None = None
        self._n_skipped = 0

    def feed(self, new: bytes) -> list[Block]:
        """Take the next bytes; give the rows that are now whole."""
        blocks: list[Block] = []
        if self._long is not None:
            end = new.find(b"\n") + 1
            self._n_skipped += end or len(new)
            if not end:
                return blocks
            blocks += self._skipped()
            new = new[end:]
        self._rest += new
        # Without a new newline there is no new row: don't look at a long one again and again.
        if b"\n" in new or len(self._rest) > self._max:
            self._cut(blocks)
        return blocks

    def finish(self) -> list[Block]:
        """Give the rows at the end of the input, where the last needs no newline."""
        blocks = self._skipped()
        data, self._rest = self._rest, b""
        while data:
            if self._delimiter is None or len(structural_quotes(data, self._delimiter)) % 2 == 0:
                blocks.append(Block(data))
                break
            cut, _ = self._scan(data)
            if cut:
                blocks.append(Block(data[:cut]))
            end = data.find(b"\n", cut) + 1 or len(data)
            blocks.append(Block(data[cut:end], OPEN_QUOTE))
            data = data[end:]
        return blocks

    def _skipped(self) -> list[Block]:
        """Give the line that was too long, if one was being skipped."""
        if self._long is None:
            return []
        reason = f"more than {self._max} bytes: is it the right file?"
        block = Block(self._long, reason, self._n_skipped)
        self._long, self._n_skipped = None, 0
        return [block]

    def _cut(self, blocks: list[Block]) -> None:
        """Give all whole rows and keep the rest."""
        data = self._rest
        while True:
            cut, long = self._scan(data)
            if long is None:
                if cut:
                    blocks.append(Block(data[:cut]))
                self._rest = data[cut:]
                return
            if long:
                blocks.append(Block(data[:long]))
            end = data.find(b"\n", long) + 1
            if 0 < end <= long + self._max:
                blocks.append(Block(data[long:end], OPEN_QUOTE))
            else:
                self._long = data[long : long + self._max]
                self._n_skipped = (end or len(data)) - long - self._max
                if not end:
                    self._rest = b""
                    return
                blocks += self._skipped()
            data = data[end:]

    def _scan(self, data: bytes) -> tuple[int, int | None]:
        """Find where the last whole row ends, and where the first row begins that is too long."""
        if self._delimiter is None or b'"' not in data:
            cut = data.rfind(b"\n") + 1
            if len(data) - cut <= self._max and not self._may_have_long_line(data):
                return cut, None
            ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE) + 1
        else:
            newlines = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
            quotes = structural_quotes(data, self._delimiter)
            ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0] + 1
            cut = int(ends[-1]) if len(ends) else 0
        borders = np.concatenate(([0], ends, [len(data)]))
        long = np.flatnonzero(np.diff(borders) > self._max)
        return cut, int(borders[long[0]]) if len(long) else None

    def _may_have_long_line(self, data: bytes) -> bool:
        # A line that is too long covers one of these windows; mostly each has a newline near its
        # beginning, so this looks at a few bytes only.
        window = max(1, self._max // 2)
        return any(
            data.find(b"\n", start, start + window) < 0
            for start in range(0, len(data) - window + 1, window)
        )
