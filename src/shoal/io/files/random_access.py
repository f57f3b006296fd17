"""Read the bytes of a file at any offset, and recognize a file by small checksums."""

from __future__ import annotations

import os
import stat
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from shoal.errors import JobError, Problem
from shoal.io.streams import Input, read_errors

__all__ = [
    "DecodedFile",
    "FileTruncated",
    "GrowingFile",
    "PlainFile",
    "RandomAccess",
    "checksum_before",
    "file_fingerprint",
    "has_fingerprint",
    "head_fingerprint",
    "not_replayable",
]

#: The number of bytes, at the beginning and before a position, by which a file is recognized.
CHECKED_BYTES = 4096
_SKIP_BYTES = 1 << 20
_BROKEN = "the file is damaged or cut off"


class FileTruncated(Exception):  # noqa: N818 - a signal to the reader, not a failure
    """A growing file has become shorter, or is another one under the same inode."""


class RandomAccess(Protocol):
    """Bytes that can be read at any offset."""

    name: str

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Read ``n_bytes`` from an offset on; fewer only at the end."""
        ...

    def n_bytes(self) -> int | None:
        """Return the number of bytes now, or None if it is unknown."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class PlainFile:
    """The bytes of a file on the disk. Pipes and terminals are refused."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self._closing = threading.Lock()
        with read_errors(self.name, _BROKEN):
            # Checked before it is opened: opening a pipe waits for its writer.
            if not stat.S_ISREG(Path(path).stat().st_mode):
                raise not_replayable(self.name)
            self._number = os.open(path, os.O_RDONLY)
            self.inode = os.fstat(self._number).st_ino

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Read ``n_bytes`` from an offset on; fewer only at the end."""
        return self.look_at(offset, n_bytes)

    def look_at(self, offset: int, n_bytes: int) -> bytes:
        """Do the same without changing what the reader of rows expects next."""
        with read_errors(self.name, _BROKEN):
            data = os.pread(self._number, n_bytes, offset)
            while data and len(data) < n_bytes:
                more = os.pread(self._number, n_bytes - len(data), offset + len(data))
                if not more:
                    break
                data += more
            return data

    def n_bytes(self) -> int:
        """Return the number of bytes now."""
        with read_errors(self.name, _BROKEN):
            return os.fstat(self._number).st_size

    def close(self) -> None:
        """Close the file. Closing twice does no harm, not even at once.

        A run that fails closes its source while the reader may be at the end of a file.
        """
        with self._closing:
            number, self._number = self._number, -1
        if number >= 0:
            os.close(number)


class GrowingFile(PlainFile):
    """The bytes of a file that is appended to; raises `FileTruncated` if it was changed otherwise.

    Before new bytes are used, those before them are compared with what they were: a file that was
    emptied and has grown past the old position meanwhile isn't mistaken for the old one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._known, self._known_to = b"", 0

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Read ``n_bytes`` from an offset on; fewer only at the end."""
        data = self.look_at(offset, n_bytes)
        known = self._known if self._known_to == offset else b""
        is_shorter = not data and self.n_bytes() < offset
        if is_shorter or self.look_at(offset - len(known), len(known)) != known:
            raise FileTruncated
        self._known, self._known_to = (known + data)[-CHECKED_BYTES:], offset + len(data)
        return data

    def forget(self) -> None:
        """Accept the file as it is now."""
        self._known, self._known_to = b"", 0


class DecodedFile:
    """The content of a file that is compressed, or in another encoding than UTF-8.

    Seeking backward reads from the beginning again.

    Parameters
    ----------
    path
        The file.
    open
        Opens its content.
    """

    def __init__(self, path: str | os.PathLike[str], open: Callable[[], Input]) -> None:  # noqa: A002
        self.name = os.fspath(path)
        self._open = open
        self._input = open()
        self._at = 0

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Read ``n_bytes`` from an offset on; fewer only at the end."""
        if offset < self._at:
            self._input.close()
            self._input, self._at = self._open(), 0
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
        """Return None: the number is unknown before the end."""

    def close(self) -> None:
        """Close the file."""
        self._input.close()


def not_replayable(name: str) -> JobError:
    """Return the error for an input that can be read only once."""
    return JobError(
        Problem(
            "input",
            "can be read only once, so the job couldn't resume after a stop",
            name,
            "Give a file or a folder, or run without checkpoints",
        )
    )


def head_fingerprint(file: PlainFile, n_bytes: int) -> str:
    """Return what identifies a growing file: a checksum of at most 4 KiB of its beginning."""
    data = file.look_at(0, min(n_bytes, CHECKED_BYTES))
    return f"{len(data)}-{zlib.crc32(data):08x}"


def has_fingerprint(file: PlainFile, known: str) -> bool:
    """Return whether a file begins with the bytes of a `head_fingerprint`."""
    n_bytes = int(known.partition("-")[0])
    return head_fingerprint(file, n_bytes) == known


def file_fingerprint(file: PlainFile) -> str:
    """Return what identifies a complete file: its length, and a checksum of both ends."""
    n_bytes = file.n_bytes()
    crc = zlib.crc32(file.look_at(0, CHECKED_BYTES))
    crc = zlib.crc32(file.look_at(max(0, n_bytes - CHECKED_BYTES), CHECKED_BYTES), crc)
    return f"{n_bytes}-{crc:08x}"


def checksum_before(file: PlainFile, offset: int) -> list[int]:
    """Return the number of bytes checked before an offset, at most 4 KiB, and their checksum."""
    n_bytes = min(offset, CHECKED_BYTES)
    return [n_bytes, zlib.crc32(file.look_at(offset - n_bytes, n_bytes))]
