"""Check before a run that its outputs can be written, and overwrite nothing unless asked to."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from shoal.errors import PUBLISHES_AGAIN, JobError, Problem, ResourceError
from shoal.io.base import CommitMark, Sink, SinkFactory
from shoal.io.connector import OutputEndpoint
from shoal.io.files.durable import has_bytes, is_folder
from shoal.io.files.part_files import remove_parts
from shoal.io.streams import STDIO
from shoal.job.file import Job
from shoal.job.private_outputs import trace_factory
from shoal.run.recovery import Recovery

__all__ = ["check_outputs", "output_of", "trace_of"]


def check_outputs(
    job: Job, sink: str | None, trace: str | None, *, force: bool, from_python: bool = False
) -> None:
    """Raise if an output can't be written, or exists and isn't to be overwritten.

    A job with checkpoints may continue what is there, so it looks by itself whether it is its own.
    Pipes and devices have no content to lose. Messages have the options of the command line, or
    the parameters of `shoal.run`.

    Raises
    ------
    JobError
        With a problem for each output that has content.
    ResourceError
        If a folder can't be written to.
    """
    to, tracing, forcing = (
        ("output=", "trace=", "force=True") if from_python else ("-o", "--trace", "--force")
    )
    if trace is not None:
        # A name that can't be used is refused before the run makes its state.
        trace_factory(job, trace, None)
    wanted = [("output", to, sink), (tracing.rstrip("="), tracing, trace)]
    if job.bad_rows.action == "quarantine":
        wanted.append(("bad_rows.file", "bad_rows.file", str(job.bad_rows.file)))
    problems = []
    for key, way, path in wanted:
        if path is None or path == STDIO or "://" in path or _is_device(path):
            continue
        if job.checkpoints is None and not force and _has_content(path):
            what = f"{path} exists already, and would be overwritten"
            fix = f"Choose another with {way}, move it away, or overwrite it with {forcing}"
            problems.append(Problem(key, what, None, fix))
        elif key != "bad_rows.file":
            # A quarantine file is written only if there are bad rows.
            _check_writable(path)
    if problems:
        raise JobError(problems)
    if force and job.checkpoints is not None:
        what = "can't be combined with run.checkpoint: such a job resumes, and overwrites nothing"
        fix = f"To start over, remove its outputs and its checkpoint folder. {PUBLISHES_AGAIN}"
        raise JobError(Problem("force" if from_python else "--force", what, None, fix))


def output_of(job: Job, sink: OutputEndpoint, *, force: bool) -> SinkFactory:
    """Return what opens the output of a job."""
    factory = sink.sink_factory(job.name, durable=job.checkpoints is not None)
    if force and sink.path is not None and sink.path != STDIO and is_folder(sink.path):
        return _Overwriting(sink.path, factory)
    return factory


def trace_of(
    job: Job, trace: str | None, recovery: Recovery | None, *, force: bool
) -> SinkFactory | Callable[[pa.Schema], Sink] | None:
    """Return what opens the trace of a job, if it has one, under the seal of its recovery."""
    if trace is None:
        return None
    opener = trace_factory(job, trace, recovery)
    if force and isinstance(opener, SinkFactory):
        return _Overwriting(trace, opener)
    return opener


@dataclass(frozen=True, slots=True)
class _Overwriting:
    """A `SinkFactory` of a folder that first removes the files which an earlier run wrote there."""

    path: str
    inner: SinkFactory

    def check(self) -> None:
        """Accept any state."""

    def open(self, schema: pa.Schema, mark: CommitMark | None) -> Sink:
        """Open the sink at a mark."""
        try:
            remove_parts(Path(self.path))
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            raise ResourceError(f"{self.path}: can't be overwritten: {reason}.") from None
        return self.inner.open(schema, mark)


def _is_device(path: str) -> bool:
    """Return whether a path is a pipe, a device, or a file that the shell opened."""
    if path in ("/dev/stdout", "/dev/stderr") or path.startswith(("/dev/fd/", "/proc/self/fd/")):
        return True
    try:
        kind = Path(path).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def _has_content(path: str) -> bool:
    try:
        return has_bytes(path)
    except OSError:
        # Opening it will tell what is wrong.
        return False


def _check_writable(path: str) -> None:
    """Raise if a new file can't be made in its folder: later, rows would have been read."""
    there = Path(path)
    folder = there if is_folder(path) and there.is_dir() else there.absolute().parent
    is_new = folder is there or not os.path.lexists(path)
    if is_new and not folder.exists():
        raise ResourceError(
            f"{path}: can't be written: the folder {there.parent} doesn't exist. Create it first."
        )
    if is_new and folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        raise ResourceError(
            f"{path}: can't be written: the folder {folder} can't be written to. "
            "Check its permissions."
        )
