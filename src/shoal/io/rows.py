"""Cut a stream of bytes into whole rows, as soon as they are there.

A row ends at a newline, in CSV at one outside quotes. As in Arrow's own reader, a quote opens a
quoted field only at the beginning of a field; elsewhere it is a character like any other. Counting
quotes alone would lose step at the first ``5" pipe``.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.io.streams import Input

__all__ = ["CHUNK_BYTES", "MAX_ROW_BYTES", "Block", "RowCutter", "row_ends", "structural_quotes"]

#: How many bytes are read at once, at most.
CHUNK_BYTES = 4 << 20
#: How long a row may be before it is taken for a broken one.
MAX_ROW_BYTES = 1 << 20

_BOM = b"\xef\xbb\xbf"
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes of whole rows; or, with a reason, of one row that can't be read."""

    data: bytes
    reason: str | None = None

    def __repr__(self) -> str:
        return f"Block(n_bytes={len(self.data)}, reason={self.reason!r})"


def structural_quotes(data: bytes, delimiter: bytes) -> NDArray[np.int64]:
    """Find the quotes that open and close fields, in turn; stray ones are left out.

    The data begins at the beginning of a row.

    >>> structural_quotes(b'5" pipe,"a ""b"" c"', b",").tolist()
    [8, 11, 12, 14, 15, 18]
    """
    octets = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(octets == _QUOTE)
    opening = quotes[::2]
    before = octets[np.maximum(opening, 1) - 1]
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
    octets = np.frombuffer(data, np.uint8)
    is_end = octets == _NEWLINE
    if delimiter is not None:
        lone = octets == _RETURN
        lone[:-1] &= octets[1:] != _NEWLINE
        is_end |= lone
    ends = np.flatnonzero(is_end)
    if delimiter is not None and b'"' in data:
        ends = ends[np.searchsorted(structural_quotes(data, delimiter), ends) % 2 == 0]
    ends = ends + 1
    return ends if len(ends) and ends[-1] == len(data) else np.append(ends, len(data))


class RowCutter:
    """Gives the bytes of an input in blocks of whole rows, as they come.

    Where a row is longer than ``max_row_bytes`` (most likely a quote that is never closed), its
    first line is given as a bad row and reading goes on at the next line. What is given doesn't
    depend on how the bytes happened to arrive; only where blocks end does.

    Parameters
    ----------
    source
        Where the bytes come from.
    delimiter
        What is between fields, where fields can be quoted; None if there is no quoting.
    chunk_bytes
        How many bytes to read at once, at most.
    max_row_bytes
        How long a row may be.
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
        self._delimiter = delimiter
        self._chunk_bytes = chunk_bytes
        self._max = max_row_bytes

    def __iter__(self) -> Iterator[Block]:
        rest = new = self._first_bytes()
        skipping = False
        while new:
            if skipping:
                at = rest.find(b"\n")
                skipping = at < 0
                rest = new = b"" if skipping else rest[at + 1 :]
            # Without a new newline there is no new row: don't look at a long one again and again.
            if b"\n" in new or len(rest) > self._max:
                rest, skipping = yield from self._cut(rest)
            new = self._source.read(self._chunk_bytes)
            rest += new
        yield from self._finish(rest)

    def _first_bytes(self) -> bytes:
        data = b""
        while len(data) < len(_BOM) and _BOM.startswith(data):
            new = self._source.read(self._chunk_bytes)
            if not new:
                break
            data += new
        return data.removeprefix(_BOM)

    def _cut(self, data: bytes) -> Generator[Block, None, tuple[bytes, bool]]:
        """Give all whole rows; return the rest, and whether it is to be skipped to a newline."""
        while True:
            cut, long = self._scan(data)
            if long is None:
                if cut:
                    yield Block(data[:cut])
                return data[cut:], False
            if long:
                yield Block(data[:long])
            end = data.find(b"\n", long) + 1
            if 0 < end <= long + self._max:
                yield Block(data[long:end], self._too_long("is a quote left open?"))
            else:
                yield Block(data[long : long + self._max], self._too_long("is it the right file?"))
                if not end:
                    return b"", True
            data = data[end:]

    def _finish(self, data: bytes) -> Iterator[Block]:
        """Give the rows at the end of the input, where the last needs no newline."""
        while data:
            if self._delimiter is None or len(structural_quotes(data, self._delimiter)) % 2 == 0:
                yield Block(data)
                return
            cut, _ = self._scan(data)
            if cut:
                yield Block(data[:cut])
            end = data.find(b"\n", cut) + 1 or len(data)
            yield Block(data[cut:end], "a quote is opened and never closed")
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

    def _too_long(self, hint: str) -> str:
        return f"more than {self._max} bytes: {hint}"
