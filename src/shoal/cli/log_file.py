"""``--log-file``: the log of a run in a file that is finished and removed by size and age.

The newest lines are always in the file of that name. A finished file gets a number at the end of
its name (``job.log-0000000001``), and is removed when all of them are too large or it is too old.
A file that another program has renamed or removed, as logrotate does, is begun again: no signal is
needed.
"""

from __future__ import annotations

import logging
import math
import os
import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from shoal.cli.terminal import print_message
from shoal.errors import JobError, ParameterError, Problem, ResourceError
from shoal.io.streams import os_reason
from shoal.run.state.retention import Retention

__all__ = ["LogFile", "LogFileOptions"]

#: A line of a log begins with its time, as text or as JSON.
_BEGINNING = re.compile(rb'(?:\{"time": ")?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z')
_FINISHED = re.compile(r"-([0-9]{10,})")
#: The sizes where none is given: a log must not fill the disk of a job that runs for months.
FILE_MEGABYTES, KEEP_MEGABYTES = 10.0, 100.0


@dataclass(frozen=True, slots=True)
class LogFileOptions:
    """Where the log is, and when its files are finished and removed."""

    path: Path
    retention: Retention

    @classmethod
    def given(
        cls,
        path: Path | None,
        file_megabytes: float | None = None,
        file_hours: float | None = None,
        keep_megabytes: float | None = None,
        keep_days: float | None = None,
    ) -> LogFileOptions | None:
        """Return the options of a command line, or None without ``--log-file``.

        Raises
        ------
        JobError
            If an option has nothing to belong to.
        ParameterError
            If a number isn't above 0.
        """
        for name, value in {
            "--log-file-megabytes": file_megabytes, "--log-file-hours": file_hours,
            "--log-keep-megabytes": keep_megabytes, "--log-keep-days": keep_days,
        }.items():  # fmt: skip
            if value is None:
                continue
            if path is None:
                fix = "Add --log-file, for example --log-file job.log"
                raise JobError(Problem(name, "needs --log-file", None, fix))
            if not 0 < value < math.inf:
                raise ParameterError(name, "must be a number above 0", got=value)
        if path is None:
            return None
        return cls(
            path,
            Retention(
                file_bytes=(file_megabytes or FILE_MEGABYTES) * 1e6,
                file_seconds=None if file_hours is None else file_hours * 3600,
                keep_bytes=(keep_megabytes or KEEP_MEGABYTES) * 1e6,
                keep_seconds=None if keep_days is None else keep_days * 86400,
            ),
        )


class LogFile(logging.Handler):
    """Write records to a file; see the module.

    A record that can't be written is printed to stderr: it must not end the run.

    Parameters
    ----------
    options
        Where the file is, and when it is finished and removed.
    clock
        Returns the time in seconds since 1970.

    Raises
    ------
    ResourceError
        If the file can't be written to, or has something else in it than a log.
    """

    def __init__(self, options: LogFileOptions, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._path, self._retention, self._clock = options.path, options.retention, clock
        self._file = -1
        self._begun = 0.0
        # Not opened yet: whether it is one of the job's own files is found out later.
        self._check()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or print it if that fails."""
        line = self.format(record)
        try:
            self._write(line.encode(errors="backslashreplace") + b"\n")
        except OSError:
            print_message(line)

    def close(self) -> None:
        """Close the file."""
        self.acquire()
        try:
            self._close()
        finally:
            self.release()
        super().close()

    def _check(self) -> None:
        """Raise if the file can't be the log."""
        try:
            if self._path.exists():
                with self._path.open("rb") as file:
                    is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                    head = file.read(64) if is_file else b"?"
                if head and not _BEGINNING.match(head):
                    raise ResourceError(
                        f"{self._path}: isn't a log of Shoal, and would be written to. Name "
                        "another file with --log-file."
                    )
                os.close(os.open(self._path, os.O_WRONLY | os.O_APPEND))
            elif not os.access(self._path.absolute().parent, os.W_OK | os.X_OK):
                # Its own error says which part of the path is missing or forbidden.
                self._open()
        except OSError as error:
            raise ResourceError(
                f"{self._path}: the log can't be written: {os_reason(error)}."
            ) from None

    def _write(self, line: bytes) -> None:
        if not self._is_current():
            self._open()
        if self._is_full(len(line)):
            self._finish()
        left = memoryview(line)
        while left.nbytes:
            left = left[os.write(self._file, left) :]

    def _is_current(self) -> bool:
        """Return whether the open file still has its name."""
        if self._file < 0:
            return False
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(self._file))

    def _open(self) -> None:
        self._close()
        self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        # An older run may have begun it: its first line says when.
        head = _BEGINNING.match(os.pread(self._file, 64, 0))
        self._begun = self._clock()
        if head is not None:
            self._begun = datetime.fromisoformat(f"{head[1].decode()}+00:00").timestamp()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _is_full(self, more: int) -> bool:
        n_bytes, kept = os.fstat(self._file).st_size, self._retention
        if n_bytes == 0:
            return False
        if kept.file_bytes is not None and n_bytes + more > kept.file_bytes:
            return True
        return kept.file_seconds is not None and self._clock() - self._begun >= kept.file_seconds

    def _finish(self) -> None:
        """Give the file a number, begin another one, and remove what is too much or too old."""
        finished = self._finished()
        last = max(finished, default=0)
        self._path.rename(self._path.with_name(f"{self._path.name}-{last + 1:010d}"))
        self._open()
        now, kept, total = self._clock(), self._retention, 0
        for _, path in sorted(self._finished().items(), reverse=True):
            found = path.stat()
            total += found.st_size
            is_old = kept.keep_seconds is not None and now - found.st_mtime >= kept.keep_seconds
            if is_old or (kept.keep_bytes is not None and total > kept.keep_bytes):
                path.unlink()

    def _finished(self) -> dict[int, Path]:
        """Return the finished files by their numbers."""
        name = self._path.name
        found = {}
        for path in self._path.absolute().parent.iterdir():
            rest = path.name.removeprefix(name)
            number = _FINISHED.fullmatch(rest) if rest != path.name else None
            if number is not None:
                found[int(number[1])] = path
        return found
