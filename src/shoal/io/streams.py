"""Bytes in and out, with every failure of the environment said in one sentence."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from shoal.errors import ResourceError
from shoal.io.formats.names import STDIO

__all__ = ["Exact", "Input", "Output", "compressed", "open_input", "open_output", "reading", "why"]

_WRITE_BYTES = 1 << 20
_REASONS = {
    errno.ENOENT: "it doesn't exist. Check the path",
    errno.EACCES: "permission is denied. Check the rights of the file and its folder",
    errno.EPERM: "permission is denied. Check the rights of the file and its folder",
    errno.EISDIR: "it is a folder. Name a file in it",
    errno.ENOTDIR: "a part of the path isn't a folder. Check the path",
    errno.EROFS: "the file system is read-only. Choose another place",
    errno.ENOSPC: "the disk is full. Make room, or choose another place",
    errno.EDQUOT: "the quota is used up. Make room, or choose another place",
    errno.EMFILE: "too many files are open. Raise the limit of open files",
}


def why(error: OSError) -> str:
    """Say in words why the operating system refused."""
    code = error.errno
    if code is None:
        # Arrow raises OSError with a text of its own, which might quote the data.
        return "the file is damaged or cut off"
    return _REASONS.get(code, os.strerror(code))


@contextmanager
def reading(name: str, otherwise: str) -> Iterator[None]:
    """Say failures of reading as `ResourceError`; ``otherwise`` is what broken data means.

    Arrow's own messages quote values, so they are neither shown nor chained.
    """
    try:
        yield
    except OSError as error:
        reason = otherwise if error.errno is None else why(error)
        raise ResourceError(f"{name}: can't be read: {reason}.") from None
    except (pa.ArrowException, UnicodeError):
        raise ResourceError(f"{name}: can't be read: {otherwise}.") from None


class Input:
    """The bytes of a file, pipe or standard input, as they come."""

    def __init__(self, raw: IO[bytes], name: str, *, owned: bool = True) -> None:
        self.name = name
        self._raw: Any = raw
        self._owned = owned
        self._live = not is_regular(raw)
        self.closed = False

    @property
    def seekable_file(self) -> IO[bytes] | None:
        """The file itself, where it can be read in any order."""
        return None if self._live else self._raw

    @property
    def live(self) -> bool:
        """Whether bytes come from somebody who may still be writing."""
        return self._live

    def read(self, n_bytes: int) -> bytes:
        """Give at most so many bytes: of a pipe what is there; nothing only at the end."""
        with reading(self.name, "the file is damaged or cut off"):
            data = self._read(n_bytes)
            if not self._live or not data:
                return data
            parts, missing = [data], n_bytes - len(data)
            while missing and self._ready() and (data := self._read(missing)):
                parts.append(data)
                missing -= len(data)
            return b"".join(parts)

    def _read(self, n_bytes: int) -> bytes:
        while True:
            data: bytes | None = self._raw.read(n_bytes)
            if data is not None:
                return data
            select.select([self._raw], [], [])

    def _ready(self) -> bool:
        try:
            return bool(select.select([self._raw], [], [], 0)[0])
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        """Let go of the file; standard input stays open."""
        if not self.closed and self._owned:
            self._raw.close()
        self.closed = True


class _Inflated(Input):
    """The bytes inside a compressed file. They come in blocks of the compression."""

    def __init__(self, inner: Input, compression: str) -> None:
        self.name = inner.name
        self._inner = inner
        self._live = False
        self._raw = pa.CompressedInputStream(pa.PythonFile(inner, "r"), compression)
        self.closed = False

    @property
    def seekable_file(self) -> None:
        return None

    @property
    def live(self) -> bool:
        return self._inner.live

    def read(self, n_bytes: int) -> bytes:
        with reading(self.name, "the compressed data is damaged or cut off"):
            data: bytes = self._raw.read(n_bytes)
            return data

    def close(self) -> None:
        self._inner.close()
        self.closed = True


class Exact:
    """An input from which a reader gets exactly as many bytes as it asks for, but for the end."""

    def __init__(self, source: Input) -> None:
        self._source = source
        self._ahead = b""
        self.closed = False

    def peek(self, n_bytes: int) -> bytes:
        """Look at the next bytes without taking them."""
        self._ahead = self.read(n_bytes)
        return self._ahead

    def read(self, n_bytes: int) -> bytes:
        """Take the next bytes; fewer than asked for only at the end."""
        parts = [self._ahead[:n_bytes]]
        self._ahead = self._ahead[n_bytes:]
        missing = n_bytes - len(parts[0])
        while missing and (data := self._source.read(missing)):
            parts.append(data)
            missing -= len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Nothing is to be let go of here: the input is closed by whoever opened it."""
        self.closed = True


class Output:
    """Bytes to a file, pipe or standard output, gathered into large writes until `flush`.

    After a failure it is broken: what was gathered is dropped, writing fails again, and closing is
    silent, so that the first error is the one that is told.
    """

    def __init__(self, raw: IO[bytes], name: str, *, owned: bool = True) -> None:
        self.name = name
        self._raw: Any = raw
        self._owned = owned
        self._pending: list[Any] = []
        self._n_pending = 0
        self._error: ResourceError | None = None
        self.closed = False

    @property
    def broken(self) -> bool:
        """Whether a write has failed."""
        return self._error is not None

    def write(self, data: Any) -> int:
        """Take bytes, or anything that has the buffer interface."""
        view = memoryview(data)
        if self._error is not None:
            raise self._error
        self._pending.append(view)
        self._n_pending += view.nbytes
        if self._n_pending >= _WRITE_BYTES:
            self.flush()
        return view.nbytes

    def flush(self) -> None:
        """Hand everything to the operating system."""
        pending, self._pending, self._n_pending = self._pending, [], 0
        if not pending or self.broken:
            return
        view = pending[0] if len(pending) == 1 else memoryview(b"".join(pending))
        try:
            while view.nbytes:
                written = self._raw.write(view)
                if written is None:
                    select.select([], [self._raw], [])
                else:
                    view = view[written:]
            self._raw.flush()
        except OSError as error:
            gone = error.errno in (errno.EPIPE, errno.ECONNRESET)
            what = f"can't be written: {why(error)}."
            what = "the reader of the output went away." if gone else what
            self._error = ResourceError(f"{self.name}: {what}")
            raise self._error from None

    def sync(self) -> None:
        """Have the disk keep everything so far: it survives a loss of power."""
        self.flush()
        if self._error is not None:
            raise self._error
        try:
            os.fsync(self._raw.fileno())
        except OSError as error:
            self._error = ResourceError(f"{self.name}: can't be written: {why(error)}.")
            raise self._error from None

    def drop(self) -> None:
        """Write nothing more, and let go of the file."""
        self._error = self._error or ResourceError(f"{self.name}: was given up.")
        self.close()

    def close(self) -> None:
        """Hand over what is left and let go of the file; standard output stays open."""
        if self.closed:
            return
        self.closed = True
        try:
            self.flush()
        finally:
            if self._owned:
                self._raw.close()


def open_input(path: str | os.PathLike[str], compression: str | None = None) -> Input:
    """Open a file, or standard input for ``-``."""
    if os.fspath(path) == STDIO:
        source = Input(_stdio(sys.stdin, "rb"), "standard input", owned=False)
    else:
        with reading(os.fspath(path), "the file is damaged"):
            source = Input(io.FileIO(path, "rb"), os.fspath(path))
    return source if compression is None else _Inflated(source, compression)


def open_output(path: str | os.PathLike[str], *, private: bool = False) -> Output:
    """Create or empty a file, or take standard output for ``-``.

    A private file can be read and written by its owner only, also if it was there before.
    """
    name = os.fspath(path)
    if name == STDIO:
        sys.stdout.flush()
        return Output(_stdio(sys.stdout, "wb"), "standard output", owned=False)
    try:
        if not private:
            return Output(io.FileIO(path, "wb"), name)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        raw = io.FileIO(number, "wb")
        os.fchmod(number, 0o600)
        return Output(raw, name)
    except OSError as error:
        reason = why(error)
        if error.errno == errno.ENOENT:
            reason = f"the folder {Path(path).parent} doesn't exist. Create it first"
        raise ResourceError(f"{name}: can't be written: {reason}.") from None


class _Deflated:
    """A compression before an output, with the face of an `Output`."""

    def __init__(self, output: Output, compression: str) -> None:
        self._output = output
        self._stream = pa.CompressedOutputStream(pa.PythonFile(output, "w"), compression)

    @property
    def broken(self) -> bool:
        return self._output.broken

    @property
    def closed(self) -> bool:
        return self._output.closed

    def write(self, data: Any) -> int:
        n_bytes: int = self._stream.write(data)
        return n_bytes

    def flush(self) -> None:
        self._stream.flush()
        self._output.flush()

    def close(self) -> None:
        was_broken = self.broken
        try:
            self._stream.close()
        except ResourceError:
            if not was_broken:
                raise
        finally:
            self._output.close()


def compressed(output: Output, compression: str | None) -> Output | _Deflated:
    """Put a compression before an output, if there is one."""
    return output if compression is None else _Deflated(output, compression)


def is_regular(raw: IO[bytes]) -> bool:
    """Whether a file is one on a disk, or bytes in memory, rather than a pipe or a terminal."""
    try:
        return stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    except (OSError, AttributeError):
        return True


def _stdio(stream: Any, mode: str) -> IO[bytes]:
    # Beneath Python's own buffering: what it holds back after a failure would be tried again,
    # and complained about, when the interpreter ends.
    try:
        return io.FileIO(stream.fileno(), mode, closefd=False)
    except (OSError, AttributeError):
        buffer: IO[bytes] = stream.buffer
        return buffer
