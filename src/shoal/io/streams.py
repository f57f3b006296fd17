"""Bytes in and out, compressed or not; every failure of the environment is one clear sentence."""

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

from shoal.errors import ReaderGoneError, ResourceError

__all__ = [
    "COMPRESSIONS",
    "STDIO",
    "ExactReader",
    "Input",
    "Output",
    "compressed",
    "is_directory",
    "open_input",
    "open_output",
    "os_reason",
    "read_errors",
    "refuse_address",
]

#: The name that stands for standard input or output.
STDIO = "-"
#: The compressions, by the ending that means each.
COMPRESSIONS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4"}

_WRITE_BYTES, _READ_BYTES = 1 << 20, 1 << 26
_REASONS = {
    errno.ENOENT: "it doesn't exist. Check the path",
    errno.EACCES: "permission is denied. Check the permissions of the file and its folder",
    errno.EPERM: "permission is denied. Check the permissions of the file and its folder",
    errno.EISDIR: "it is a folder. Name a file in it",
    errno.ENOTDIR: "a part of the path isn't a folder. Check the path",
    errno.EROFS: "the file system is read-only. Choose another path",
    errno.ENOSPC: "the disk is full. Free some space, or choose another path",
    errno.EDQUOT: "the quota is used up. Free some space, or choose another path",
    errno.ELOOP: "its symbolic links lead in a circle. Check the links",
    errno.ENAMETOOLONG: "its name is too long. Choose a shorter one",
    errno.EMFILE: "too many files are open. Raise the limit of open files",
}


def os_reason(error: OSError) -> str:
    """Return in words why the operating system refused."""
    code = error.errno
    if code is None:
        # Arrow raises OSError with a text of its own, which might quote the data.
        return "the file is damaged or cut off"
    return _REASONS.get(code, os.strerror(code))


@contextmanager
def read_errors(name: str, otherwise: str) -> Iterator[None]:
    """Turn failures of reading into `ResourceError`; ``otherwise`` is the reason for broken data.

    Arrow's own messages quote values, so they are neither shown nor chained.
    """
    try:
        yield
    except OSError as error:
        reason = otherwise if error.errno is None else os_reason(error)
        raise ResourceError(f"{name}: can't be read: {reason}.") from None
    except (pa.ArrowException, UnicodeError):
        raise ResourceError(f"{name}: can't be read: {otherwise}.") from None
    except (ValueError, IndexError, KeyError, OverflowError):
        # Of Python where it wraps Arrow, for damaged data; or of a path with a zero byte.
        raise ResourceError(f"{name}: can't be read: {otherwise}.") from None


class Input:
    """The bytes of a file, pipe or standard input, as they arrive."""

    def __init__(self, raw: IO[bytes], name: str, *, owned: bool = True) -> None:
        self.name = name
        self._raw: Any = raw
        self._owned = owned
        self._live = not is_regular(raw)
        self.closed = False

    @property
    def seekable_file(self) -> IO[bytes] | None:
        """The file itself if it can be read in any order, else None."""
        return None if self._live else self._raw

    @property
    def live(self) -> bool:
        """Whether the bytes come from a process that may still be writing."""
        return self._live

    def read(self, n_bytes: int) -> bytes:
        """Read at most ``n_bytes``: of a pipe what has arrived; nothing only at the end."""
        with read_errors(self.name, "the file is damaged or cut off"):
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
        """Close the file; standard input stays open."""
        if not self.closed and self._owned:
            self._raw.close()
        self.closed = True


class _DecompressedInput(Input):
    """The content of a compressed file. It arrives in the blocks of the compression."""

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
        with read_errors(self.name, "the compressed data is damaged or cut off"):
            data: bytes = self._raw.read(n_bytes)
            return data

    def close(self) -> None:
        self._inner.close()
        self.closed = True


class ExactReader:
    """Reads exactly as many bytes from an input as are asked for, except at the end."""

    def __init__(self, source: Input) -> None:
        self._source = source
        self._ahead = b""
        self.closed = False

    def peek(self, n_bytes: int) -> bytes:
        """Return the next bytes without consuming them."""
        self._ahead = self.read(n_bytes)
        return self._ahead

    def read(self, n_bytes: int) -> bytes:
        """Read the next bytes; fewer than asked for only at the end."""
        parts = [self._ahead[:n_bytes]]
        self._ahead = self._ahead[n_bytes:]
        missing = n_bytes - len(parts[0])
        # The length in a damaged file may be more than there is memory.
        while missing and (data := self._source.read(min(missing, _READ_BYTES))):
            parts.append(data)
            missing -= len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Do nothing but note it: the input is closed by its opener."""
        self.closed = True


class Output:
    """Bytes to a file, pipe or standard output, gathered into large writes until `flush`.

    After a failure it is broken: gathered bytes are dropped, writing fails again, and closing is
    silent, so that the first error is the one reported.
    """

    def __init__(self, raw: IO[bytes] | _NamedPipe, name: str, *, owned: bool = True) -> None:
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
        """Write bytes, or anything that has the buffer interface."""
        view = memoryview(data)
        if self._error is not None:
            raise self._error
        self._pending.append(view)
        self._n_pending += view.nbytes
        if self._n_pending >= _WRITE_BYTES:
            self.flush()
        return view.nbytes

    def flush(self) -> None:
        """Pass everything to the operating system."""
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
            if error.errno in (errno.EPIPE, errno.ECONNRESET):
                # Only of standard output is it usual that the reader has enough at some time.
                what = f"{self.name}: the reader of the output closed the pipe."
                self._error = ReaderGoneError(what, is_usual=not self._owned)
            else:
                self._error = ResourceError(f"{self.name}: can't be written: {os_reason(error)}.")
            raise self._error from None

    def sync(self) -> None:
        """Sync everything so far to the disk, so that it survives a loss of power."""
        self.flush()
        if self._error is not None:
            raise self._error
        try:
            os.fsync(self._raw.fileno())
        except OSError as error:
            self._error = ResourceError(f"{self.name}: can't be written: {os_reason(error)}.")
            raise self._error from None

    def drop(self) -> None:
        """Write nothing more, and close the file."""
        self._error = self._error or ResourceError(f"{self.name}: was given up.")
        self.close()

    def close(self) -> None:
        """Write what is left and close the file; standard output stays open."""
        if self.closed:
            return
        self.closed = True
        try:
            self.flush()
        finally:
            if self._owned:
                self._raw.close()


class _NamedPipe:
    """A named pipe for an `Output`, which is opened when something is written, or at the end.

    Opening it waits for a reader. So whoever writes waits, and not whoever opens the output.
    """

    def __init__(self, path: str | os.PathLike[str], *, private: bool) -> None:
        self._path, self._private = path, private
        self._raw: io.FileIO | None = None

    def _opened(self) -> io.FileIO:
        if self._raw is None:
            self._raw = io.FileIO(self._path, "wb")
            if self._private:
                os.fchmod(self._raw.fileno(), 0o600)
        return self._raw

    def write(self, data: Any) -> int | None:
        return self._opened().write(data)

    def flush(self) -> None:
        """Do nothing: nothing is gathered."""

    def fileno(self) -> int:
        return self._opened().fileno()

    def close(self) -> None:
        # Without rows, too: a reader that waits comes to its end.
        self._opened().close()


def refuse_address(path: str | os.PathLike[str]) -> None:
    """Raise `ResourceError` for an address where a local path is asked for.

    >>> refuse_address("s3://ann:hunter2@bucket/people.csv")
    Traceback (most recent call last):
    ...
    shoal.errors.ResourceError: a path that begins with s3:// isn't on the file system of this \
machine, and object storage isn't supported here. Give a local copy.
    """
    scheme, address, _ = os.fspath(path).partition("://")
    if address:
        # The rest isn't shown: it may have a password in it.
        raise ResourceError(
            f"a path that begins with {scheme}:// isn't on the file system of this machine, and "
            "object storage isn't supported here. Give a local copy."
        )


def open_input(path: str | os.PathLike[str], compression: str | None = None) -> Input:
    """Open a file, or standard input for ``-``."""
    if os.fspath(path) == STDIO:
        source = Input(_stdio(sys.stdin, "rb"), "standard input", owned=False)
    else:
        with read_errors(os.fspath(path), "it isn't a file"):
            _refuse_devices(path)
            source = Input(io.FileIO(path, "rb"), os.fspath(path))
    return source if compression is None else _DecompressedInput(source, compression)


def _refuse_devices(path: str | os.PathLike[str]) -> None:
    """Raise `ResourceError` for a device: unlike a terminal it may have no end, and no rows."""
    found = Path(path).stat()
    is_device = stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)
    # What is read as nothing, and terminals, which have major numbers 4, 5 and 136 to 143.
    is_harmless = stat.S_ISCHR(found.st_mode) and (
        found.st_rdev == os.makedev(1, 3) or os.major(found.st_rdev) in (4, 5, *range(136, 144))
    )
    if is_device and not is_harmless:
        raise ResourceError(
            f"{os.fspath(path)}: can't be read: it is a device, not a file. Check the path."
        )


def is_directory(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a folder; one that can't be looked at isn't."""
    try:
        return Path(path).is_dir()
    except OSError:
        return False


def open_output(path: str | os.PathLike[str], *, private: bool = False) -> Output:
    """Create or empty a file, or use standard output for ``-``.

    A private file can be read and written by its owner only, even if it existed before.
    """
    name = os.fspath(path)
    if name == STDIO:
        sys.stdout.flush()
        return Output(_stdio(sys.stdout, "wb"), "standard output", owned=False)
    try:
        if _is_named_pipe(path):
            return Output(_NamedPipe(path, private=private), name)
        if not private:
            return Output(io.FileIO(path, "wb"), name)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        raw = io.FileIO(number, "wb")
        os.fchmod(number, 0o600)
        return Output(raw, name)
    except OSError as error:
        reason = os_reason(error)
        folder = Path(path).parent
        if error.errno == errno.ENOENT and not folder.is_dir():
            reason = f"the folder {folder} doesn't exist. Create it first"
        elif error.errno in (errno.ENOENT, errno.EACCES, errno.EPERM) and _is_new(path):
            reason = f"the folder {folder} can't be written to. Check its permissions"
        raise ResourceError(f"{name}: can't be written: {reason}.") from None
    except ValueError:
        raise ResourceError(f"{name!r}: can't be written: it isn't a path.") from None


def _is_named_pipe(path: str | os.PathLike[str]) -> bool:
    try:
        return Path(path).is_fifo()
    except (OSError, ValueError):
        return False


def _is_new(path: str | os.PathLike[str]) -> bool:
    try:
        return not os.path.lexists(path)
    except OSError:
        return False


class _CompressedOutput:
    """Compresses what is written to an output; has the methods of `Output` that sinks use."""

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


def compressed(output: Output, compression: str | None) -> Output | _CompressedOutput:
    """Return an output that compresses, or the output itself if there is no compression."""
    return output if compression is None else _CompressedOutput(output, compression)


def is_regular(raw: IO[bytes]) -> bool:
    """Return whether a file is on a disk or in memory, rather than a pipe or a terminal."""
    try:
        return stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    except (OSError, AttributeError):
        return True


def _stdio(stream: Any, mode: str) -> IO[bytes]:
    # Below Python's own buffering: what it buffers after a failure would be written again, and
    # fail again, when the interpreter exits.
    try:
        return io.FileIO(stream.fileno(), mode, closefd=False)
    except (OSError, AttributeError):
        buffer: IO[bytes] = stream.buffer
        return buffer
