"""Private rows in a folder of files that are rotated, removed when they are old, and maybe sealed.

A trace or a quarantine of a job that runs for months grows without an end. Here it is a folder of
files of JSON lines, ``rows-0000000001.jsonl`` and so on. A file is finished at a commit, when it is
large or old enough; finished files are removed when all of them together are too large, or when
they are too old. A resumed run cuts off what was written after the mark.

A sealed file has a heading, as a checkpoint has, and then records: a length, and lines that are
sealed together. Each record is bound to the heading and to its place.
"""

from __future__ import annotations

import io
import os
import re
import struct
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.errors import CheckpointError, JobError, Problem, ResourceError
from shoal.io.base import CommitMark
from shoal.io.files.append import CHECKED_BYTES, has_rows_already, wrong_output
from shoal.io.files.atomic import sync_folder
from shoal.io.formats import file_type
from shoal.io.streams import Output, os_reason
from shoal.run.state.folder import writing
from shoal.run.state.heading import (
    MOST_BYTES,
    DamagedError,
    Heading,
    check_seal,
    make_heading,
    read_heading,
    with_key,
)
from shoal.run.state.retention import Retention
from shoal.run.state.seal import Seal

__all__ = [
    "EXAMPLE",
    "MAGIC",
    "PrivateFiles",
    "is_sealed",
    "name_of",
    "numbered",
    "other_key",
    "read_private",
    "resealed",
]

MAGIC, FORMAT = b"\x89SHOALP\n", 1
SEALED = ".sealed"
_NAME = re.compile(r"rows-([0-9]{10,})\.jsonl(\.sealed)?")
#: What messages name as an example of a file.
EXAMPLE = "rows-0000000001.jsonl"
_LENGTH = struct.Struct(">I")
#: How many commits back a mark may be from which a run resumes: two checkpoints are kept, and one
#: more may have failed.
_MARKS = 3


class PrivateFiles:
    """A `DurableSink` of private rows; see the module.

    Guarantee: after `commit` rows survive a loss of power. After a crash a resumed run drops what
    came after the mark and writes it again.

    Parameters
    ----------
    folder
        Where the files are; created with mode 0700.
    schema
        The columns.
    mark
        What `commit` returned; empty: the very beginning, where rows may exist already; None: a new
        output, which must have no rows.
    seal
        Seals each file; None: they are in clear.
    retention
        When files are finished and removed.
    clock
        Returns the time in seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        schema: pa.Schema,
        mark: CommitMark | None,
        *,
        seal: Seal | None = None,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._seal, self._clock = folder, seal, clock
        self._retention = retention or Retention()
        self._file = -1
        self._heading: Heading | None = None
        self._n_bytes = self._n_records = 0
        self._failure: ResourceError | None = None
        if mark and ("file" not in mark or ("n_records" in mark) != (seal is not None)):
            raise wrong_output(
                str(folder), "isn't the kind of output that the checkpoint belongs to"
            )
        self._number = int(mark["file"]) if mark else 1
        n_bytes = int(mark["n_bytes"]) if mark else 0
        if n_bytes:
            # What is gone isn't created.
            self._open_existing()
        with writing(folder):
            folder.mkdir(0o700, exist_ok=True)
            folder.chmod(0o700)
            sync_folder(folder.absolute().parent)
        if mark is None and numbered(folder):
            raise has_rows_already(str(folder))
        self._begun = float(mark["begun"]) if mark else clock()
        self._resume(n_bytes, mark or {})
        # A commit begins one file at most: so the marks before this one are in these files.
        oldest = max(1, self._number - _MARKS + 1)
        self._marks = deque(range(oldest, self._number + 1), maxlen=_MARKS)
        self._buffer = _Buffer(str(folder))
        self._sink = file_type("rows.jsonl", "jsonl").format.sink(self._buffer, schema)

    def __repr__(self) -> str:
        return f"PrivateFiles({str(self._folder)!r}, file={self._number})"

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        self._sink.write(batch)

    def flush(self) -> None:
        """Pass all rows so far to the operating system."""
        self._sink.flush()
        if data := self._buffer.take():
            self._append(data)

    def commit(self) -> CommitMark:
        """Sync all rows so far to the disk; maybe begin a new file; return the mark."""
        self.flush()
        self._check()
        if self._file >= 0:
            with self._failing():
                os.fsync(self._file)
                sync_folder(self._folder)
        if self._is_full():
            self._close_file()
            self._number, self._n_bytes, self._n_records = self._number + 1, 0, 0
            self._begun = self._clock()
        self._remove_old()
        self._marks.append(self._number)
        before = {"n_records": self._n_records} if self._seal else {"before": self._checksum()}
        return {
            "file": self._number, "n_bytes": self._n_bytes, "begun": self._begun, **before,
        }  # fmt: skip

    @property
    def n_ahead(self) -> int:
        """Nothing: what was written after the mark is cut off when a run resumes."""
        return 0

    def abandon(self) -> None:
        """Close the file as it is."""
        self._close_file()

    def close(self) -> None:
        """Write what is left, and close the file."""
        try:
            if self._failure is None:
                self.commit()
        finally:
            self._close_file()

    # -- inside ----------------------------------------------------------------------------------

    def _path(self, number: int) -> Path:
        return self._folder / (name_of(number) + (SEALED if self._seal else ""))

    def _resume(self, n_bytes: int, mark: CommitMark) -> None:
        """Cut off what came after the mark."""
        with writing(self._folder):
            for number, path in numbered(self._folder).items():
                if number > self._number or (number == self._number and not n_bytes):
                    path.unlink()
        if not n_bytes:
            return
        path = self._path(self._number)
        self._n_bytes = n_bytes
        if os.fstat(self._file).st_size < n_bytes:
            raise wrong_output(str(path), "is shorter than the checkpoint says")
        if self._seal is not None:
            self._check_sealed(path, int(mark["n_records"]))
        elif self._checksum() != mark["before"]:
            raise wrong_output(str(path), "isn't the file that the checkpoint belongs to")
        with self._failing():
            os.ftruncate(self._file, n_bytes)
            os.fsync(self._file)

    def _open_existing(self) -> None:
        """Open the file of the mark."""
        path = self._path(self._number)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            what = f"{path.name} can't be read: {os_reason(error)}"
            raise wrong_output(str(self._folder), what) from None

    def _check_sealed(self, path: Path, n_records: int) -> None:
        """Raise if the bytes up to the mark aren't that many records of this key."""
        data = os.pread(self._file, self._n_bytes, 0)
        assert self._seal is not None
        try:
            self._heading = _heading_of(path, data, self._number, self._seal)
            found = sum(1 for _ in _lines(path, data, self._heading, self._seal))
        except DamagedError:
            found = -1
        if found != n_records:
            raise wrong_output(str(path), "isn't the file that the checkpoint belongs to")
        self._n_records = n_records

    def _append(self, data: bytes) -> None:
        self._check()
        with self._failing():
            if self._file < 0:
                flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL
                self._file = os.open(self._path(self._number), flags, 0o600)
                os.fchmod(self._file, 0o600)
                if self._seal is not None:
                    more = {"form": "jsonl"}
                    self._heading = make_heading(
                        MAGIC, FORMAT, self._number, self._clock(), self._seal, more
                    )
                    self._put(self._heading.raw)
            if self._seal is not None:
                assert self._heading is not None
                context = _context(self._heading, self._n_records)
                closed = self._seal.close(data, context)
                data = _LENGTH.pack(len(closed)) + closed
                self._n_records += 1
            self._put(data)

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view.nbytes:
            view = view[os.write(self._file, view) :]
        self._n_bytes += len(data)

    def _is_full(self) -> bool:
        limits = self._retention
        if not self._n_bytes:
            return False
        is_large = limits.file_bytes is not None and self._n_bytes >= limits.file_bytes
        age = self._clock() - self._begun
        return is_large or (limits.file_seconds is not None and age >= limits.file_seconds)

    def _remove_old(self) -> None:
        """Remove finished files that no mark of a kept checkpoint needs."""
        limits, files = self._retention, numbered(self._folder)
        if limits.keep_bytes is None and limits.keep_seconds is None:
            return
        with writing(self._folder):
            sizes = {number: path.stat() for number, path in files.items()}
            total = sum(each.st_size for each in sizes.values())
            for number, path in files.items():
                if number >= min(self._marks):
                    break
                size, written = sizes[number].st_size, sizes[number].st_mtime
                is_old = (
                    limits.keep_seconds is not None
                    and self._clock() - written >= limits.keep_seconds
                )
                if not is_old and (limits.keep_bytes is None or total <= limits.keep_bytes):
                    break
                path.unlink()
                total -= size

    def _checksum(self) -> int:
        begin = max(0, self._n_bytes - CHECKED_BYTES)
        return (
            zlib.crc32(os.pread(self._file, self._n_bytes - begin, begin)) if self._n_bytes else 0
        )

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _failing(self) -> Any:
        return _Failing(self)

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class _Failing:
    """Raise failures of writing as `ResourceError`, once and for all."""

    def __init__(self, files: PrivateFiles) -> None:
        self._files = files

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, OSError):
            files = self._files
            text = f"{files._folder}: can't be written: {os_reason(error)}."
            files._failure = ResourceError(text)
            raise files._failure from None


class _Buffer(Output):
    """Gathers what a format writes."""

    def __init__(self, name: str) -> None:
        super().__init__(io.BytesIO(), name)
        self._parts: list[bytes] = []

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        return len(part)

    def flush(self) -> None:
        """Keep it: `take` returns it."""

    def take(self) -> bytes:
        """Remove and return all bytes so far."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


# -- reading ---------------------------------------------------------------------------------------


def name_of(number: int) -> str:
    """Return the name of a file, as it is in clear.

    >>> name_of(7)
    'rows-0000000007.jsonl'
    """
    return f"rows-{number:010}.jsonl"


def numbered(folder: Path) -> dict[int, Path]:
    """Return the files of a folder by number, the oldest first.

    Raises
    ------
    CheckpointError
        If two files have the same number: a job writes no second one.
    """
    try:
        paths = list(folder.iterdir())
    except OSError as error:
        raise ResourceError(f"{folder}: can't be read: {os_reason(error)}.") from None
    found: dict[int, Path] = {}
    for path in sorted(paths):
        if (match := _NAME.fullmatch(path.name)) is None:
            continue
        if int(match[1]) in found:
            raise CheckpointError(
                f"{path}: has the number of {found[int(match[1])].name}; a job writes only one of "
                "them. Remove the one that it hasn't written."
            )
        found[int(match[1])] = path
    return dict(sorted(found.items()))


def is_sealed(path: Path) -> bool:
    """Return whether a file, or one of the files of a folder, is sealed."""
    files = list(numbered(path).values()) if path.is_dir() else [path]
    return any(file.name.endswith(SEALED) or _is_sealed_file(file) for file in files)


def other_key(folder: Path, seal: Seal) -> str | None:
    """Return the fingerprint of another key that a file of a folder is sealed with, if one is."""
    for number, path in numbered(folder).items():
        try:
            with path.open("rb") as file:
                heading = read_heading(path, file.read(MOST_BYTES), MAGIC, FORMAT, number)
        except OSError as error:
            raise ResourceError(f"{path}: can't be read: {os_reason(error)}.") from None
        except DamagedError:
            continue  # a crash may leave a part of a heading
        if heading.key not in (None, seal.fingerprint):
            return heading.key
    return None


def _is_sealed_file(path: Path) -> bool:
    if not path.is_file():
        return False  # a pipe can be read only once
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise ResourceError(f"{path}: can't be read: {os_reason(error)}.") from None


def read_private(path: Path, seal: Seal | None) -> Iterator[bytes]:
    """Yield the lines of a file, or of all files of a folder, as bytes that were written together.

    Raises
    ------
    JobError
        If the folder has no private files, or the file isn't one.
    CheckpointError
        If a file is damaged, or isn't sealed with this key. The torn end of a crash is left out.
    """
    files = list(numbered(path).values()) if path.is_dir() else [path]
    if not files:
        raise _no_private(path, f"has no files of private rows, such as {EXAMPLE}{SEALED}")
    for file in files:
        try:
            data = file.read_bytes()
        except OSError as error:
            raise ResourceError(f"{file}: can't be read: {os_reason(error)}.") from None
        if not data.startswith(MAGIC):
            if not _NAME.fullmatch(file.name):
                raise _no_private(file, f"isn't a file of private rows, such as {EXAMPLE}{SEALED}")
            _check_clear(file, data, seal)
            yield b"" if file.name.endswith(SEALED) else data
            continue
        match = _NAME.fullmatch(file.name)
        heading = _heading_of(file, data, int(match[1]) if match else None, seal)
        assert seal is not None
        yield from _lines(file, data, heading, seal)


def _check_clear(path: Path, data: bytes, seal: Seal | None) -> None:
    """Raise if a file in clear is where only sealed ones should be: anybody may have written it."""
    if path.name.endswith(SEALED):
        # A crash may leave a part of a heading.
        if not MAGIC.startswith(data):
            raise DamagedError(path, "it isn't sealed, though its name says that it is")
    elif seal is not None:
        raise CheckpointError(
            f"{path}: isn't sealed, though a key was given: anybody may have written it. If the "
            "job writes its rows in clear, leave out --seal; otherwise remove the file."
        )


def _no_private(path: Path, what: str) -> JobError:
    fix = "Name the folder that --trace or bad_rows.file named in the run"
    return JobError(Problem(str(path), what, None, fix))


def _heading_of(path: Path, data: bytes, number: int | None, seal: Seal | None) -> Heading:
    if number is None:
        raise CheckpointError(f"{path}: was renamed: its number is in its name. Rename it back.")
    heading = read_heading(path, data, MAGIC, FORMAT, number)
    check_seal(path, heading, seal)
    return heading


def _records(data: bytes, heading: Heading) -> Iterator[bytes]:
    """Yield the sealed records of a file; the torn end of a crash is left out."""
    at = len(heading.raw)
    while at + _LENGTH.size <= len(data):
        (n,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size + n
        if at > len(data):
            return
        yield data[at - n : at]


def _lines(path: Path, data: bytes, heading: Heading, seal: Seal) -> Iterator[bytes]:
    for index, record in enumerate(_records(data, heading)):
        try:
            yield seal.open(record, _context(heading, index))
        except CheckpointError:
            raise DamagedError(path, f"the seal of record {index} is broken") from None


def _context(heading: Heading, index: int) -> bytes:
    """Return what a record is bound to: its file, and its place in it."""
    return b"private\0" + heading.raw + struct.pack(">Q", index)


def resealed(path: Path, data: bytes, number: int, old: Seal | None, new: Seal) -> bytes:
    """Return the bytes of a file under another key; it is refused if ``old`` is None."""
    heading = _heading_of(path, data, number, old)
    if old is None:
        raise DamagedError(path, "its heading names no key")
    fresh = with_key(heading, new)
    parts = [fresh.raw]
    for index, plain in enumerate(_lines(path, data, heading, old)):
        closed = new.close(plain, _context(fresh, index))
        parts += [_LENGTH.pack(len(closed)), closed]
    return b"".join(parts)
