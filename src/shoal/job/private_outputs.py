"""The private outputs of a run: trace and bad rows."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from shoal.errors import CheckpointError, DataError, JobError, Problem
from shoal.io import BadRow, QuarantineWriter, Sink, Source
from shoal.io.base import CommitMark, SinkFactory
from shoal.io.connector import Opener, place_of
from shoal.io.files.append import has_rows_already
from shoal.io.files.connector import FileOutput, durable_factory
from shoal.io.files.durable import check_new, check_resumable, has_bytes, is_folder
from shoal.io.files.open import make_sink
from shoal.io.files.private import open_private
from shoal.io.formats import file_type
from shoal.job.file import Job
from shoal.run.recovery import Recovery
from shoal.run.state.private_files import PrivateFiles, numbered, other_key
from shoal.run.state.seal import Seal

__all__ = ["QuarantineSink", "private_places", "trace_factory"]


def private_places(job: Job, trace: str | None, state: Path) -> dict[str, tuple[str, str]]:
    """Return how the private outputs of a job are kept, and where as seen from its state."""
    kind = "plain"
    if job.private is not None:
        kind = "rotated and sealed" if job.private.is_sealed else "rotated"
    # A job that stops at a bad row writes no quarantine.
    stops = job.bad_rows.action == "stop"
    paths = {} if stops else {"bad_rows.file": str(job.bad_rows.file)}
    if trace is not None:
        paths["--trace"] = trace
    return {key: (kind, place_of(path, state)) for key, path in paths.items()}


def trace_factory(
    job: Job, path: str, recovery: Recovery | None
) -> SinkFactory | Callable[[pa.Schema], Sink]:
    """Return what opens the trace; raise `JobError` if it can't be a trace of this job.

    Private files have the seal of ``recovery``, whose key the run has read: the place of the key
    may have another one by now.
    """
    if job.private is not None:
        if not is_folder(path):
            what = "names a file, and the job keeps private rows in folders ([private])"
            fix = "Give a name that ends with /, or leave the section out"
            raise JobError(Problem("--trace", what, repr(path), fix))
        return _private_factory(job, Path(path), "--trace", recovery)
    if job.checkpoints is not None or is_folder(path):
        form = "parquet" if is_folder(path) else None
        check_resumable(path, form, key="--trace")
        return durable_factory(FileOutput(path, form), private=True, key="--trace")
    kind = file_type(path)
    return lambda schema: make_sink(open_private(path), schema, kind)


def _private_factory(job: Job, folder: Path, key: str, recovery: Recovery | None) -> Opener:
    """Return what opens a folder of private files."""
    private = job.private
    assert private is not None

    def open_files(schema: pa.Schema, mark: CommitMark | None) -> PrivateFiles:
        assert recovery is not None
        seal = recovery.seal if private.is_sealed else None
        assert private.is_sealed == (seal is not None)
        if seal is not None and mark is not None and folder.is_dir():
            _refuse_other_key(job, folder, recovery, seal)
        return PrivateFiles(folder, schema, mark, retention=private.retention, seal=seal)

    def check() -> None:
        if folder.is_dir() and numbered(folder):
            raise has_rows_already(str(folder), key)

    return Opener(open_files, check)


def _refuse_other_key(job: Job, folder: Path, recovery: Recovery, seal: Seal) -> None:
    """Raise if files have another key than the checkpoints, before more are written."""
    key = other_key(folder, seal)
    if key is None:
        return
    assert job.checkpoints is not None
    folders = " ".join(shlex.quote(str(place)) for place in _all_folders(job, folder, recovery))
    raise CheckpointError(
        f"{folder}: is sealed with another key than the checkpoints: {key}; the key of the job is "
        f"{seal.fingerprint}. Change it, with the key that the folder has in OLD_KEY: shoal "
        f"checkpoint rekey {folders} --seal env:OLD_KEY --new-seal "
        f"{shlex.quote(str(job.checkpoints.seal))}. Files that have the key of the job stay as "
        "they are. If the other key is lost, start again with other folders: docs/checkpoints.md "
        "says from where."
    )


def _all_folders(job: Job, folder: Path, recovery: Recovery) -> list[Path]:
    """Return the state of a job and all folders of its private files, the latter if they exist."""
    state = recovery.folder
    found = {state.resolve(): state, folder.resolve(): folder}
    places = [job.bad_rows.file, *(state / place for _, place in recovery.private.values())]
    for place in places:
        if place.is_dir():
            real = place.resolve()
            # The place is as seen from the state, which may be a link.
            short = Path(os.path.normpath(place))
            found.setdefault(real, short if short.resolve() == real else place)
    return list(found.values())


class QuarantineSink:
    """Writes bad rows; the file is created with the first one.

    Private files have the seal of ``recovery``, as those of `trace_factory`.
    """

    def __init__(self, job: Job, source: Source, recovery: Recovery | None) -> None:
        self._job, self._source, self._recovery = job, source, recovery
        self._writer: QuarantineWriter | None = None
        self._mark: CommitMark | None = None

    def __call__(self, bad: list[BadRow]) -> None:
        """Write bad rows to the quarantine file, or stop the run."""
        if self._job.bad_rows.action == "stop":
            first = bad[0]
            raise DataError(
                f"{self._source.describe()}: row {first.row}: {first.text}. The job says to "
                'stop at a bad row; bad_rows.action = "quarantine" writes them to a file '
                "and continues."
            )
        if self._writer is None:
            self._writer = self._open()
        self._writer.write(bad)

    def check(self) -> None:
        """Raise `JobError` if there are rows already."""
        path = self._job.bad_rows.file
        if self._job.private is not None:
            _private_factory(self._job, path, "bad_rows.file", self._recovery).check()
        else:
            check_new(path, key="bad_rows.file")

    def resume(self, mark: CommitMark) -> None:
        """Resume from a mark."""
        self._mark = mark
        if self._job.bad_rows.action == "stop":
            # Nothing is written; the mark is kept for a later run that quarantines again.
            return
        # A file that is gone is an error now, not when the next bad row comes.
        if mark or has_bytes(self._job.bad_rows.file):
            self._writer = self._open()

    def commit(self) -> CommitMark:
        """Make all rows so far durable."""
        if self._writer is None:
            return self._mark or {}
        return self._writer.commit()

    @property
    def name(self) -> str:
        """The file, as messages call it."""
        return str(self._job.bad_rows.file)

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
        if self._job.private is not None:
            factory = _private_factory(self._job, path, "bad_rows.file", self._recovery)
            return QuarantineWriter(path, self._mark or {}, opener=factory.opener)
        return QuarantineWriter(path) if self._mark is None else QuarantineWriter(path, self._mark)

    def close(self) -> None:
        """Finish the file, if there is one."""
        if self._writer is not None:
            self._writer.close()
