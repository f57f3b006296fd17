"""Read bytes of many messages at once: one position in each, moved by array operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["BROKEN", "Bytes", "Cursor", "Ints", "decimals", "padded", "texts"]

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

#: Why most messages can't be read.
BROKEN = "its bytes don't fit its schema: it is truncated or damaged"
#: How many bytes may be read behind the end of a message before that is noticed.
_MARGIN = 32
#: The maximum number of bytes of an integer.
_VARINT_BYTES = 10


def padded(data: bytes) -> memoryview:
    """Return the bytes of messages with a margin behind them, as a `Cursor` reads them."""
    return memoryview(data + bytes(_MARGIN))


class Cursor:
    """A position in each of many messages.

    All methods take ``who``, the numbers of the messages that they move. Reading behind the end of
    a message marks it as broken, and returns anything for it.

    Parameters
    ----------
    data
        The bytes of all messages, from `padded`. Cursors may share them.
    at, end
        Where each message begins, and the position after it.

    >>> data = padded(b"\\x96\\x01\\x07" + b"\\x80")
    >>> cursor = Cursor(data, np.array([0, 3]), np.array([3, 4]))
    >>> everyone = np.arange(2)
    >>> cursor.varint(everyone).tolist()[0], cursor.broken.tolist()
    (150, [False, True])
    """

    def __init__(self, data: memoryview, at: Ints, end: Ints) -> None:
        #: The same bytes, for one message and for many.
        self.raw = data
        self.data: Bytes = np.frombuffer(data, np.uint8)
        self.at = at.astype(np.int64)
        self.end = end.astype(np.int64)
        self.broken = np.zeros(len(at), np.bool_)

    def fail(self, who: Ints) -> None:
        """Mark messages as broken."""
        self.broken[who] = True
        self.at[who] = self.end[who]

    def advance(self, who: Ints, to: Ints) -> None:
        """Move to positions; those behind the end of their message mark it as broken."""
        self.at[who] = to
        beyond = to > self.end[who]
        if beyond.any():
            self.fail(who[beyond])

    def varint(self, who: Ints) -> Ints:
        """Read integers of variable length, as unsigned 64-bit patterns."""
        at = self.at[who]
        byte = self.data[at]
        value = (byte & 127).astype(np.int64)
        at += 1
        more = np.flatnonzero(byte & 128)
        for place in range(1, _VARINT_BYTES):
            if not len(more):
                break
            byte = self.data[at[more]]
            value[more] |= (byte & 127).astype(np.int64) << (7 * place)
            at[more] += 1
            more = more[byte >= 128]
        if len(more):
            at[more] = self.end[who[more]] + 1
        self.advance(who, at)
        return value

    def zigzag(self, who: Ints) -> Ints:
        """Read signed integers in the encoding of Avro."""
        value = self.varint(who).view(np.uint64)
        return (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64)

    def fixed(self, who: Ints, n_bytes: int) -> Bytes:
        """Read a fixed number of bytes: one row of the result for each message."""
        start = self.at[who]
        self.advance(who, start + n_bytes)
        start[self.broken[who]] = 0
        # The margin is enough for the longest number; a longer value is within its message.
        places = start[:, None] + np.arange(n_bytes)
        found: Bytes = self.data[np.minimum(places, len(self.data) - 1)]
        return found

    def slices(self, who: Ints, lengths: Ints) -> tuple[Ints, Ints]:
        """Pass over this many bytes of each message; return where they begin, and how many."""
        start = self.at[who]
        wrong = (lengths < 0) | (lengths > self.end[who] - start)
        if wrong.any():
            self.fail(who[wrong])
            start, lengths = np.where(wrong, 0, start), np.where(wrong, 0, lengths)
        self.at[who] = np.where(wrong, self.at[who], start + lengths)
        return start, lengths


def texts(data: Bytes, start: Ints, lengths: Ints, nulls: NDArray[np.bool_], kind: Any) -> pa.Array:
    """Return slices of bytes as an array of text or binary values.

    >>> data = np.frombuffer(b"xAnnBob", np.uint8)
    >>> start, lengths = np.array([4, 1, 0]), np.array([3, 3, 0])
    >>> texts(data, start, lengths, np.array([False, False, True]), pa.string()).to_pylist()
    ['Bob', 'Ann', None]
    """
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    places = np.repeat(start - offsets[:-1], lengths)
    places += np.arange(offsets[-1])
    buffers = [
        _validity(nulls), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data[places]),
    ]  # fmt: skip
    return pa.Array.from_buffers(kind, len(start), buffers)


def _validity(nulls: NDArray[np.bool_]) -> Any:
    return pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None


def decimals(
    data: Bytes, start: Ints, lengths: Ints, nulls: NDArray[np.bool_], scale: int
) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Return signed integers in big-endian order as decimals, and which of them are too long.

    >>> data = np.frombuffer(b"\\xff\\x85\\x7b", np.uint8)
    >>> start, lengths = np.array([0, 2]), np.array([2, 1])
    >>> decimals(data, start, lengths, np.array([False, False]), 2)[0].to_pylist()
    [Decimal('-1.23'), Decimal('1.23')]
    """
    wrong = ~nulls & ((lengths < 1) | (lengths > 16))
    lengths, start = np.where(wrong, 0, lengths), np.where(wrong, 0, start)
    is_negative = (lengths > 0) & (data[start] >= 128)
    number = np.repeat(np.where(is_negative, 255, 0).astype(np.uint8)[:, None], 16, axis=1)
    for place in range(int(lengths.max(initial=0))):
        there = lengths > place
        number[there, place] = data[(start + lengths - 1 - place)[there]]
    # Of the numbers of 128 bits not all fit into 38 digits.
    low = number[:, :8].copy().view(np.uint64)[:, 0]
    high = number[:, 8:].copy().view(np.int64)[:, 0]
    wrong |= (high > _TOO_MUCH[0]) | ((high == _TOO_MUCH[0]) & (low >= _TOO_MUCH[1]))
    wrong |= (high < _TOO_LITTLE[0]) | ((high == _TOO_LITTLE[0]) & (low <= _TOO_LITTLE[1]))
    number[wrong] = 0
    buffers = [_validity(nulls | wrong), pa.py_buffer(np.ascontiguousarray(number))]
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(start), buffers), wrong


#: The first numbers with more than 38 digits: their upper and their lower 64 bits.
_TOO_MUCH, _TOO_LITTLE = (
    (limit >> 64, np.uint64(limit & 0xFFFFFFFFFFFFFFFF)) for limit in (10**38, -(10**38))
)
