"""The private outputs of a run: trace and bad rows."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from shoal.errors import DataError
from shoal.io import BadRow, QuarantineWriter, Sink, Source
from shoal.io.base import CommitMark, SinkFactory
from shoal.io.files.connector import FileOutput, durable_factory
from shoal.io.files.durable import check_new, has_bytes, is_folder
from shoal.io.files.open import make_sink
from shoal.io.files.private import open_private
from shoal.io.formats import file_type
from shoal.job.file import Job

__all__ = ["QuarantineSink", "trace_factory"]


def trace_factory(job: Job, path: str) -> SinkFactory | Callable[[pa.Schema], Sink]:
    """Return what opens the trace."""
    if job.checkpoints is not None or is_folder(path):
        form = "parquet" if is_folder(path) else None
        return durable_factory(FileOutput(path, form), private=True, key="--trace")
    return lambda schema: make_sink(open_private(path), schema, file_type(path))


class QuarantineSink:
    """Writes bad rows; the file is created with the first one."""

    def __init__(self, job: Job, source: Source) -> None:
        self._job, self._source = job, source
        self._writer: QuarantineWriter | None = None
        self._mark: CommitMark | None = None

    def __call__(self, bad: list[BadRow]) -> None:
        """Write bad rows to the quarantine file, or stop the run."""
        if self._job.bad_rows.action == "stop":
            first = bad[0]
            raise DataError(
                f"{self._source.describe()}: row {first.row}: {first.text}. The job says to "
                'stop at a bad row; bad_rows.action = "quarantine" sets them apart and continues.'
            )
        if self._writer is None:
            self._writer = self._open()
        self._writer.write(bad)

    def check(self) -> None:
        """Raise `JobError` if there are rows already."""
        check_new(self._job.bad_rows.file, key="bad_rows.file")

    def resume(self, mark: CommitMark) -> None:
        """Resume from a mark."""
        self._mark = mark
        # A file that is gone is an error now, not when the next bad row comes.
        if mark or has_bytes(self._job.bad_rows.file):
            self._writer = self._open()

    def commit(self) -> CommitMark:
        """Make all rows so far durable."""
        if self._writer is None:
            return self._mark or {}
        return self._writer.commit()

    @property
    def n_ahead(self) -> int:
        """How much the file has that hasn't been written again."""
        return 0 if self._writer is None else self._writer.n_ahead

    @property
    def is_open(self) -> bool:
        """Whether there are bad rows."""
        return self._writer is not None

    def _open(self) -> QuarantineWriter:
        path = self._job.bad_rows.file
        return QuarantineWriter(path) if self._mark is None else QuarantineWriter(path, self._mark)

    def close(self) -> None:
        """Finish the file, if there is one."""
        if self._writer is not None:
            self._writer.close()
