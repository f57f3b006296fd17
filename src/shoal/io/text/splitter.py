"""Split a stream of bytes into whole rows, as soon as they have arrived.

A row ends at a newline, in CSV at one outside quotes. As in Arrow's own reader, a quote opens a
quoted field only at the beginning of a field; elsewhere it is an ordinary character. Counting all
quotes would go wrong at the first ``5" pipe``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.io.streams import Input

__all__ = [
    "BOM",
    "CHUNK_BYTES",
    "MAX_ROW_BYTES",
    "RowSplitter",
    "TextBlock",
    "lines_of_rows",
    "read_blocks",
    "row_ends",
    "structural_quotes",
]

#: The maximum number of bytes read at once.
CHUNK_BYTES = 4 << 20
#: The maximum number of lines in a block.
MAX_BLOCK_LINES = 1 << 18
#: The maximum length of a row; a longer one counts as broken.
MAX_ROW_BYTES = 1 << 20

# The same reason at the end of an input and before a row that is too long: a replay may end here
# and must find the same bad row.
OPEN_QUOTE = "a quote is opened and never closed"
#: The byte order mark that some programs put before UTF-8 text.
BOM = b"\xef\xbb\xbf"
_QUOTE = b'"'
_NEWLINE, _RETURN = b"\n\r"


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Bytes of whole rows; or, with a reason, of one row that can't be read.

    Of a row that is too long, ``data`` is the beginning; ``n_bytes`` counts all of it, so that the
    blocks of an input are contiguous.
    """

    data: bytes
    reason: str | None = None
    n_skipped: int = 0

    @property
    def n_lines(self) -> int:
        """The number of lines that end in the block."""
        return self.data.count(b"\n") if not self.n_skipped else 1

    @property
    def n_bytes(self) -> int:
        """The number of bytes that the block takes up in the input."""
        return len(self.data) + self.n_skipped

    def __repr__(self) -> str:
        return f"TextBlock(n_bytes={self.n_bytes}, reason={self.reason!r})"


def structural_quotes(
    data: bytes, delimiter: bytes, quote: bytes | None = _QUOTE
) -> NDArray[np.int64]:
    """Return the positions of the quotes that open and close fields, alternating.

    Quotes within unquoted fields are left out. The data must begin at the beginning of a row.
    ``quote`` is the quote character; None if there is no quoting.

    >>> structural_quotes(b'5" pipe,"a ""b"" c"', b",").tolist()
    [8, 11, 12, 14, 15, 18]
    """
    if quote is None:
        return np.empty(0, np.int64)
    as_array = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(as_array == ord(quote))
    opening = quotes[::2]
    before = as_array[np.maximum(opening, 1) - 1]
    # A quote right after a closing one is the second of a pair inside a field: it reopens it.
    starts = (before == ord(delimiter)) | (before == _NEWLINE) | (before == _RETURN)
    if bool(np.all((opening == 0) | starts | (before == ord(quote)))):
        return quotes
    kept: list[int] = []
    inside, closed = False, -2
    field_starts = delimiter + b"\n\r"
    for place in quotes.tolist():
        if inside:
            inside, closed = False, place
        elif place in (0, closed + 1) or data[place - 1] in field_starts:
            inside = True
        else:
            continue
        kept.append(place)
    return np.array(kept, dtype=np.int64)


def row_ends(
    data: bytes, delimiter: bytes | None = None, quote: bytes | None = _QUOTE
) -> NDArray[np.int64]:
    r"""Return the position after each line end that isn't within quotes.

    A carriage return ends a line too, as it does for Arrow. Without a delimiter there are no
    quotes. Empty lines count, and so does a last line without a newline.

    >>> row_ends(b'a,"b\nc"\r\n\nd', b",").tolist()
    [9, 10, 11]
    """
    as_array = np.frombuffer(data, np.uint8)
    is_end = as_array == _NEWLINE
    if delimiter is not None:
        lone = as_array == _RETURN
        lone[:-1] &= as_array[1:] != _NEWLINE
        is_end |= lone
    ends = np.flatnonzero(is_end)
    if delimiter is not None and quote is not None and quote in data:
        ends = ends[np.searchsorted(structural_quotes(data, delimiter, quote), ends) % 2 == 0]
    ends = ends + 1
    return ends if len(ends) and ends[-1] == len(data) else np.append(ends, len(data))


def lines_of_rows(
    data: bytes, delimiter: bytes, quote: bytes | None = _QUOTE
) -> Iterator[tuple[bytes, int]]:
    r"""Yield the rows that aren't empty, without their line end, and the position after each.

    >>> list(lines_of_rows(b'a,b\r\n\n"1\n",2', b","))
    [(b'a,b', 5), (b'"1\n",2', 12)]
    """
    start = 0
    for end in row_ends(data, delimiter, quote).tolist():
        if line := data[start:end].rstrip(b"\r\n"):
            yield line, end
        start = end


def read_blocks(
    source: Input,
    delimiter: bytes | None = None,
    quote: bytes | None = _QUOTE,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    max_row_bytes: int = MAX_ROW_BYTES,
) -> Iterator[TextBlock]:
    """Yield the bytes of an input in blocks of whole rows, as they arrive.

    The rows don't depend on how the bytes happened to arrive; only the ends of blocks do.

    Parameters
    ----------
    source
        Where the bytes come from.
    delimiter, quote, max_row_bytes
        As for `RowSplitter`.
    chunk_bytes
        The maximum number of bytes to read at once.
    """
    splitter = RowSplitter(delimiter, quote, max_row_bytes=max_row_bytes)
    new = _first_bytes(source, chunk_bytes)
    while new:
        yield from splitter.feed(new)
        new = source.read(chunk_bytes)
    yield from splitter.finish()


def _first_bytes(source: Input, chunk_bytes: int) -> bytes:
    """Read the first bytes, without a byte order mark."""
    data = b""
    while len(data) < len(BOM) and BOM.startswith(data):
        new = source.read(chunk_bytes)
        if not new:
            break
        data += new
    return data.removeprefix(BOM) or source.read(chunk_bytes)


class RowSplitter:
    r"""Split bytes, fed as they arrive, into blocks of whole rows.

    Where a row is longer than ``max_row_bytes`` (most likely a quote that is never closed), its
    first line becomes a bad row and splitting continues at the next line. A single line that is
    too long is returned when it ends, without being buffered until then.

    Another splitter can begin wherever a block ends, and finds the same rows.

    Parameters
    ----------
    delimiter
        The delimiter between fields; None if there are no fields, and no quoting.
    quote
        The quote character; None if there is no quoting.
    max_row_bytes
        The maximum length of a row.

    >>> splitter = RowSplitter(b",")
    >>> splitter.feed(b'1,"a\nb"\n2,')
    [TextBlock(n_bytes=8, reason=None)]
    >>> splitter.finish()
    [TextBlock(n_bytes=2, reason=None)]
    """

    def __init__(
        self,
        delimiter: bytes | None = None,
        quote: bytes | None = _QUOTE,
        *,
        max_row_bytes: int = MAX_ROW_BYTES,
    ) -> None:
        self._delimiter = delimiter
        self._quote = quote if delimiter is not None else None
        self._max = max_row_bytes
        self._rest = b""
        # The beginning of a line that is too long, and how many more bytes of it there were.
        self._long: bytes | None = None
        self._n_skipped = 0

    def feed(self, new: bytes) -> list[TextBlock]:
        """Take the next bytes; return the rows that are now whole."""
        return [piece for block in self._feed(new) for piece in self._pieces(block)]

    def finish(self) -> list[TextBlock]:
        """Return the rows at the end of the input, where the last needs no newline."""
        return [piece for block in self._finish() for piece in self._pieces(block)]

    def _pieces(self, block: TextBlock) -> list[TextBlock]:
        """Cut a block of very short rows: each may be a bad one, which takes far more memory."""
        if block.reason is not None or block.data.count(b"\n") <= MAX_BLOCK_LINES:
            return [block]
        data = block.data
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
        if self._quote is not None and self._quote in data:
            ends = ends[np.searchsorted(self._quotes(data), ends) % 2 == 0]
        cuts = [0, *(ends[MAX_BLOCK_LINES - 1 :: MAX_BLOCK_LINES] + 1).tolist(), len(data)]
        return [TextBlock(data[a:b]) for a, b in itertools.pairwise(cuts) if a < b]

    def _feed(self, new: bytes) -> list[TextBlock]:
        blocks: list[TextBlock] = []
        if self._long is not None:
            end = new.find(b"\n") + 1
            self._n_skipped += end or len(new)
            if not end:
                return blocks
            blocks += self._skipped()
            new = new[end:]
        self._rest += new
        # Without a new newline there is no new row: don't scan a long one again and again.
        if b"\n" in new or len(self._rest) > self._max:
            self._cut(blocks)
        return blocks

    def _finish(self) -> list[TextBlock]:
        blocks = self._skipped()
        data, self._rest = self._rest, b""
        while data:
            if len(self._quotes(data)) % 2 == 0:
                blocks.append(TextBlock(data))
                break
            cut, _ = self._scan(data)
            if cut:
                blocks.append(TextBlock(data[:cut]))
            end = data.find(b"\n", cut) + 1 or len(data)
            blocks.append(TextBlock(data[cut:end], OPEN_QUOTE))
            data = data[end:]
        return blocks

    def _skipped(self) -> list[TextBlock]:
        """Return the line that was too long, if one was being skipped."""
        if self._long is None:
            return []
        reason = f"more than {self._max} bytes: is it the right file?"
        block = TextBlock(self._long, reason, self._n_skipped)
        self._long, self._n_skipped = None, 0
        return [block]

    def _cut(self, blocks: list[TextBlock]) -> None:
        """Append all whole rows to the blocks and keep the rest."""
        data = self._rest
        while True:
            cut, long = self._scan(data)
            if long is None:
                if cut:
                    blocks.append(TextBlock(data[:cut]))
                self._rest = data[cut:]
                return
            if long:
                blocks.append(TextBlock(data[:long]))
            end = data.find(b"\n", long) + 1
            if 0 < end <= long + self._max:
                blocks.append(TextBlock(data[long:end], OPEN_QUOTE))
            else:
                self._long = data[long : long + self._max]
                self._n_skipped = (end or len(data)) - long - self._max
                if not end:
                    self._rest = b""
                    return
                blocks += self._skipped()
            data = data[end:]

    def _scan(self, data: bytes) -> tuple[int, int | None]:
        """Return where the last whole row ends, and where the first row that is too long begins."""
        if self._quote is None or self._quote not in data:
            cut = data.rfind(b"\n") + 1
            if len(data) - cut <= self._max and not self._may_have_long_line(data):
                return cut, None
            ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE) + 1
        else:
            newlines = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
            quotes = self._quotes(data)
            ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0] + 1
            cut = int(ends[-1]) if len(ends) else 0
        borders = np.concatenate(([0], ends, [len(data)]))
        long = np.flatnonzero(np.diff(borders) > self._max)
        return cut, int(borders[long[0]]) if len(long) else None

    def _quotes(self, data: bytes) -> NDArray[np.int64]:
        if self._delimiter is None:
            return np.empty(0, np.int64)
        return structural_quotes(data, self._delimiter, self._quote)

    def _may_have_long_line(self, data: bytes) -> bool:
        # A line that is too long covers one of these stretches; mostly each has a newline near its
        # beginning, so this looks at a few bytes only.
        stretch = max(1, self._max // 2)
        return any(
            data.find(b"\n", start, start + stretch) < 0
            for start in range(0, len(data) - stretch + 1, stretch)
        )
