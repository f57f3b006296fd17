"""The bytes of a file from any place, and small checksums by which a file is known again."""

from __future__ import annotations

import os
import stat
import zlib
from pathlib import Path
from typing import Protocol

from shoal.errors import JobError, Problem
from shoal.io.streams import Input, open_input, reading

__all__ = [
    "ByteRanges",
    "Growing",
    "Inflated",
    "Plain",
    "Truncated",
    "before",
    "begins_as",
    "not_again",
    "print_of_beginning",
    "print_of_whole",
]

#: So many bytes at the beginning, and before a position, tell whether a file is the same.
KNOWN_BYTES = 4096
_SKIP_BYTES = 1 << 20
_BROKEN = "the file is damaged or cut off"


class Truncated(Exception):  # noqa: N818 - it is news, not a failure
    """A file that grows has become shorter, or is another one under the same inode."""


class ByteRanges(Protocol):
    """Bytes that can be read from a place on."""

    name: str

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Give so many bytes from there on; fewer only at the end."""
        ...

    def n_bytes(self) -> int | None:
        """How many bytes there are now, if that can be told."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class Plain:
    """The bytes of a file as they lie on the disk. Pipes and terminals are refused."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        with reading(self.name, _BROKEN):
            # Asked before it is opened: opening a pipe waits for its writer.
            if not stat.S_ISREG(Path(path).stat().st_mode):
                raise not_again(self.name)
            self._number = os.open(path, os.O_RDONLY)
            self.inode = os.fstat(self._number).st_ino

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Give so many bytes from there on; fewer only at the end."""
        return self.look_at(offset, n_bytes)

    def look_at(self, offset: int, n_bytes: int) -> bytes:
        """Do the same, beside the reading of the rows."""
        with reading(self.name, _BROKEN):
            data = os.pread(self._number, n_bytes, offset)
            while data and len(data) < n_bytes:
                more = os.pread(self._number, n_bytes - len(data), offset + len(data))
                if not more:
                    break
                data += more
            return data

    def n_bytes(self) -> int:
        """How many bytes there are now."""
        with reading(self.name, _BROKEN):
            return os.fstat(self._number).st_size

    def close(self) -> None:
        """Let go of the file. Closing twice does no harm."""
        if self._number >= 0:
            os.close(self._number)
        self._number = -1


class Growing(Plain):
    """The bytes of a file that is appended to; `Truncated` if it is anything else.

    Before new bytes are believed, those before them are compared with what they were: a file that
    was emptied and has grown past the old place in the meantime isn't mistaken for the old one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._known, self._known_to = b"", 0

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Give so many bytes from there on; fewer only at the end."""
        data = self.look_at(offset, n_bytes)
        known = self._known if self._known_to == offset else b""
        is_shorter = not data and self.n_bytes() < offset
        if is_shorter or self.look_at(offset - len(known), len(known)) != known:
            raise Truncated
        self._known, self._known_to = (known + data)[-KNOWN_BYTES:], offset + len(data)
        return data

    def forget(self) -> None:
        """Begin again with what the file is now."""
        self._known, self._known_to = b"", 0


class Inflated:
    """The bytes inside a compressed file. Going back means reading from the beginning."""

    def __init__(self, path: str | os.PathLike[str], compression: str) -> None:
        self.name = os.fspath(path)
        self._path, self._compression = path, compression
        self._input: Input = open_input(path, compression)
        self._at = 0

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Give so many bytes from there on; fewer only at the end."""
        if offset < self._at:
            self._input.close()
            self._input, self._at = open_input(self._path, self._compression), 0
        while self._at < offset and self._take(min(_SKIP_BYTES, offset - self._at)):
            pass
        if self._at < offset:
            return b""
        parts: list[bytes] = []
        while n_bytes and (data := self._take(n_bytes)):
            parts.append(data)
            n_bytes -= len(data)
        return b"".join(parts)

    def _take(self, n_bytes: int) -> bytes:
        data = self._input.read(n_bytes)
        self._at += len(data)
        return data

    def n_bytes(self) -> None:
        """Nobody knows before the end."""

    def close(self) -> None:
        """Let go of the file."""
        self._input.close()


def not_again(name: str) -> JobError:
    """Say that something can be read once only."""
    return JobError(
        Problem(
            "input",
            "can be read only once, so it can't be gone on with after a stop",
            name,
            "Give a file or a folder, or run without checkpoints",
        )
    )


def print_of_beginning(byte_ranges: Plain, n_bytes: int) -> str:
    """Give what tells a growing file from others: a checksum of at most 4 KiB of its beginning."""
    data = byte_ranges.look_at(0, min(n_bytes, KNOWN_BYTES))
    return f"{len(data)}-{zlib.crc32(data):08x}"


def begins_as(byte_ranges: Plain, known: str) -> bool:
    """Whether a file begins with the bytes of which `print_of_beginning` was made."""
    n_bytes = int(known.partition("-")[0])
    return print_of_beginning(byte_ranges, n_bytes) == known


def print_of_whole(byte_ranges: Plain) -> str:
    """Give what tells a complete file from others: its length, and checksums of both ends."""
    n_bytes = byte_ranges.n_bytes()
    crc = zlib.crc32(byte_ranges.look_at(0, KNOWN_BYTES))
    crc = zlib.crc32(byte_ranges.look_at(max(0, n_bytes - KNOWN_BYTES), KNOWN_BYTES), crc)
    return f"{n_bytes}-{crc:08x}"


def before(byte_ranges: Plain, offset: int) -> list[int]:
    """Give how many bytes before a place are known, at most 4 KiB, and their checksum."""
    n_bytes = min(offset, KNOWN_BYTES)
    return [n_bytes, zlib.crc32(byte_ranges.look_at(offset - n_bytes, n_bytes))]
