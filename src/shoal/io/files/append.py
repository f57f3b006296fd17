"""Append to one text file, and resume at the exact byte after a stop."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.errors import PUBLISHES_AGAIN, CheckpointError, JobError, Problem, ResourceError
from shoal.io.base import CommitMark
from shoal.io.files.atomic import sync_folder
from shoal.io.format import Format
from shoal.io.streams import Output, os_reason

__all__ = ["AppendOutput", "AppendSink", "has_rows_already", "wrong_output"]

#: The number of bytes before a mark by which the file is recognized.
CHECKED_BYTES = 4096
_COMPARE_BYTES = 1 << 20


def has_rows_already(name: str, key: str | None = None) -> JobError:
    """Return the error for a new job that would write after the rows of another.

    ``key`` is the key of the job, or the option, that names the output.
    """
    what = "has rows already, and the job starts from the beginning"
    return JobError(
        Problem(
            name if key is None else key,
            what if key is None else f"{name} {what}",
            None,
            "Name another file or folder, or remove this one; to resume it, keep the checkpoint "
            "folder that belongs to it",
        )
    )


def wrong_output(name: str, what: str) -> CheckpointError:
    """Return the error for an output that a checkpoint doesn't belong to."""
    return CheckpointError(
        f"{name}: {what}. Restore the output as it was, or start over with an empty checkpoint "
        f"folder and another output. {PUBLISHES_AGAIN}."
    )


class AppendOutput(Output):
    """A file that is appended to, and that may have more than its mark says.

    What it has already is compared with what is written again, and only what comes after is added:
    in the middle of a line, if a line was torn.

    Parameters
    ----------
    path
        The file; created if it doesn't exist.
    private
        Whether only its owner may read it.
    n_expected
        The bytes that it must have; only if that is none, it is created.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, private: bool = False, n_expected: int = 0
    ) -> None:
        name = os.fspath(path)
        try:
            create = 0 if n_expected else os.O_CREAT
            number = os.open(path, os.O_RDWR | create, 0o600 if private else 0o666)
            if private:
                os.fchmod(number, 0o600)
        except OSError as error:
            if n_expected and error.errno == errno.ENOENT:
                what = f"doesn't exist, and the checkpoint expects {n_expected:,} bytes"
                raise wrong_output(name, what) from None
            raise ResourceError(f"{name}: can't be written: {os_reason(error)}.") from None
        super().__init__(io.FileIO(number, "r+b"), name)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.drop()
            raise ResourceError(
                f"{name}: another process writes to it. Give each job an output of its own."
            ) from None
        self._number = number
        # Synced once, even if the file existed: its creator may have been killed before the sync.
        self._folder: Path | None = Path(path).parent
        self._n_there: int = self._raw.seek(0, os.SEEK_END)
        self._at = self._n_synced = 0
        self._differs: CheckpointError | None = None

    @property
    def at(self) -> int:
        """The number of bytes written, including those that it had already."""
        return self._at

    @property
    def n_ahead(self) -> int:
        """The number of bytes it has that haven't been written again."""
        return max(0, self._n_there - self._at)

    def expect(self, n_bytes: int) -> None:
        """Check that ``n_bytes`` are there, and cut off zeros beyond them.

        After a loss of power a file may be longer than its content. What the zeros replaced is
        written again, the same.
        """
        if self._n_there < n_bytes:
            raise wrong_output(
                self.name,
                f"has {self._n_there:,} bytes, and the checkpoint expects {n_bytes:,}: it was "
                "cut off or replaced",
            )
        self._n_synced = n_bytes
        end = self._n_there
        while end > n_bytes:
            begin = max(n_bytes, end - _COMPARE_BYTES)
            n_full = len(os.pread(self._number, end - begin, begin).rstrip(b"\0"))
            end = begin + n_full
            if n_full:
                break
        if end < self._n_there:
            self._raw.truncate(end)
            self._n_there = self._raw.seek(end)

    def go_to(self, at: int) -> None:
        """Treat the bytes up to there as written; what is beyond them will be compared."""
        self._at = at

    def checksum_before(self, at: int) -> int:
        """Return a checksum of the bytes before a position."""
        begin = max(0, at - CHECKED_BYTES)
        return zlib.crc32(os.pread(self._number, at - begin, begin))

    def write(self, data: Any) -> int:
        """Compare bytes with what is there already, and add the rest."""
        if self._differs is not None:
            raise self._differs
        view = memoryview(data).cast("B")
        n_bytes = view.nbytes
        known = min(n_bytes, self.n_ahead)
        for start in range(0, known, _COMPARE_BYTES):
            there = os.pread(self._number, min(_COMPARE_BYTES, known - start), self._at + start)
            given = view[start : start + len(there)]
            if there != given:
                pairs = enumerate(zip(there, given, strict=True))
                known = start + next(i for i, (a, b) in pairs if a != b)
                self._cut_off_at(known)
                break
        if known < n_bytes:
            super().write(view[known:])
        self._at += n_bytes
        return n_bytes

    def _cut_off_at(self, known: int) -> None:
        """Drop what comes after the ``known`` bytes that agree, if a loss of power explains it.

        Pages that weren't synced reach the disk in any order: a page that is missing before one
        that arrived is a hole of zeros. All of it is written again, the same.
        """
        end = self._at + known
        if end < self._n_synced or os.pread(self._number, 1, end) != b"\0":
            self._differs = wrong_output(
                self.name,
                "differs from what was decided; another process wrote to it, or the input or "
                "the job has changed",
            )
            raise self._differs
        self._raw.truncate(end)
        self._n_there = self._raw.seek(end)

    def sync(self) -> None:
        """Sync everything so far to the disk, and the folder entry of the file."""
        super().sync()
        if self._folder is not None:
            sync_folder(self._folder)
            self._folder = None


class AppendSink:
    """Rows of a text format at the end of one file.

    Guarantee: after `flush` rows have been passed to the operating system; after `commit` they
    survive a loss of power. After a crash the file has every row up to the last commit, maybe more,
    and maybe a part of a line; a resumed run adds what is missing, and nothing twice.

    Parameters
    ----------
    path
        The file.
    schema
        The columns.
    form
        The format.
    mark
        What `commit` returned; empty: from the beginning, where rows may exist already; None: a new
        output, which must have no rows.
    private
        Whether only its owner may read it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        form: Format,
        mark: CommitMark | None,
        *,
        private: bool = False,
    ) -> None:
        name = os.fspath(path)
        # A mark of rotated files has a number of bytes, too.
        if mark and mark.keys() != {"n_bytes", "before"}:
            raise wrong_output(name, "isn't the kind of output that the checkpoint belongs to")
        n_bytes = mark["n_bytes"] if mark else 0
        self._output = output = AppendOutput(path, private=private, n_expected=n_bytes)
        try:
            if mark is None and output.n_ahead:
                raise has_rows_already(name)
            output.expect(n_bytes)
            # The header is written, or compared with the one that is there.
            self._sink = form.sink(output, schema)
            if mark:
                output.go_to(n_bytes)
                if output.checksum_before(n_bytes) != mark["before"]:
                    raise wrong_output(name, "isn't the file that the checkpoint belongs to")
        except BaseException:
            output.close()
            raise

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        self._sink.write(batch)

    def flush(self) -> None:
        """Pass all rows so far to the operating system."""
        self._sink.flush()

    def commit(self) -> CommitMark:
        """Sync all rows so far to the disk; return the mark to resume from."""
        self._output.sync()
        at = self._output.at
        return {"n_bytes": at, "before": self._output.checksum_before(at)}

    @property
    def name(self) -> str:
        """The file, as messages call it."""
        return self._output.name

    @property
    def n_ahead(self) -> int:
        """The number of bytes the file has that haven't been written again."""
        return self._output.n_ahead

    def abandon(self) -> None:
        """Close the file as it is."""
        self._output.drop()

    def close(self) -> None:
        """Write the rest and close the file."""
        self._sink.close()
