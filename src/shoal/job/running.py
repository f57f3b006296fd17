"""Run a job from Python: ``shoal.run``. The rows go the same way as those of ``shoal run``."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

import pyarrow as pa

from shoal.errors import JobError, ParameterError, Problem
from shoal.io.base import Sink, SinkFactory, Source
from shoal.io.connector import OutputEndpoint
from shoal.io.registry import resolve_input, resolve_output
from shoal.io.streams import STDIO
from shoal.job.changing import follow_changes
from shoal.job.ends import check_ends, recovery_of
from shoal.job.file import Job
from shoal.job.live_audit import live_audit_of
from shoal.job.outputs import check_outputs, output_of, trace_of
from shoal.job.private_outputs import QuarantineSink
from shoal.metrics.unpublished import why_nothing
from shoal.run.frame import ChunkSource, Gathered, refuse_wall_clock
from shoal.run.frame_kinds import chunks_of
from shoal.run.recovery import Recovery
from shoal.run.result import Result

__all__ = ["job_of", "run"]

F = TypeVar("F")
AnyJob = Job | str | Path | Mapping[str, Any]


# fmt: off
@overload
def run(
    job: AnyJob, *, input: str | Path | None = None,
    output: str | Path, trace: str | Path | bool | None = None, force: bool = False,
) -> Result[None]: ...
@overload
def run(
    job: AnyJob, *, input: str | Path | None = None,
    output: None = None, trace: str | Path | bool | None = None, force: bool = False,
) -> Result[pa.Table | None]: ...
@overload
def run(
    job: AnyJob, *, input: Sequence[Mapping[str, Any]],
    output: None = None, trace: str | Path | bool | None = None, force: bool = False,
) -> Result[list[dict[str, Any]]]: ...
@overload
def run(
    job: AnyJob, *, input: F, output: None = None,
    trace: str | Path | bool | None = None, force: bool = False,
) -> Result[F]: ...
@overload
def run(
    job: AnyJob, *, input: Any, output: str | Path,
    trace: str | Path | bool | None = None, force: bool = False,
) -> Result[None]: ...
# fmt: on
def run(
    job: AnyJob,
    *,
    input: Any = None,  # noqa: A002
    output: str | Path | None = None,
    trace: str | Path | bool | None = None,
    force: bool = False,
) -> Result[Any]:
    """Run a job to the end of its input; return its figures, and maybe what it published.

    Parameters
    ----------
    job
        A job, the path of a job file, or its sections as a dictionary.
    input
        What is read instead of the job's input: a file or folder, a DataFrame of pandas or polars,
        a Table or RecordBatch of Arrow, or a list of dicts.
    output
        The file or folder that is written instead of the job's output. Where neither the job nor
        this names one, the published rows are ``.frame`` of the result: of the kind of the input,
        or an Arrow table if that is a file.
    trace
        The file of the private trace, which undoes the anonymization; or True, to have it as
        ``.trace`` of the result. None or False: no trace.
    force
        Whether an output, a trace and a quarantine file that exist are overwritten.

    Warns
    -----
    UserWarning
        What `shoal run` warns of; and if nothing of an input with rows is published: with what
        couldn't be kept, and what could.

    Raises
    ------
    JobError
        If the job is wrong, or doesn't fit this input and output.
    DataError
        If a row can't be used, and the job says to stop then; or if too many can't be.

    >>> job = {
    ...     "schema": {"subject": "name", "quasi": {"age": {"range": [0, 120], "step": 1}}},
    ...     "policy": {"k": 2, "delay": {"rows": 100}},
    ...     "algorithm": {"name": "tide"},
    ... }
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [31, 33, 64, 68]})
    >>> run(job, input=people).frame["age"].to_pylist()
    ['[31, 33]', '[31, 33]', '[64, 68]', '[64, 68]']
    """
    job, job_path = job_of(job)
    for text in job.warnings:
        # Two levels up, since `shoal.run` is a package that calls this.
        warnings.warn(text, UserWarning, stacklevel=3)
    # A path that ends with a slash is a folder, which Path would forget.
    target = None if output is None else str(output)
    sink = resolve_output(job.output, target, None)
    lines = None if trace is None or isinstance(trace, bool) else str(trace)
    traced = _traced_in_memory(job) if trace is True else None
    with contextlib.ExitStack() as stack:
        source, recovery, from_arrow = _opened(job, job_path, input, sink, lines, stack)
        check_outputs(job, sink.path, lines, force=force, from_python=True)
        bad_rows = QuarantineSink(job, source, recovery)
        stack.callback(bad_rows.close)
        gathered = Gathered() if target is None and sink.path == STDIO else None
        opener: SinkFactory | Callable[[pa.Schema], Sink] = (
            output_of(job, sink, force=force) if gathered is None else gathered.open
        )
        running = job.pipeline.run(
            source,
            opener,
            on_bad=bad_rows,
            open_trace=trace_of(job, lines, recovery, force=force)
            if traced is None
            else traced.open,
            warn=lambda text: warnings.warn(text, UserWarning, stacklevel=4),
            recovery=recovery,
            inspect=live_audit_of(job),
            bad_limit=1.0 if job.bad_rows.action == "stop" else job.bad_rows.limit,
        )
        summary = running.execute()
        problem = why_nothing(job.policy, summary, running.shortfall)
        if problem is not None and not running.interrupted:
            warnings.warn(problem, UserWarning, stacklevel=3)
    return Result(
        None if gathered is None else from_arrow(gathered.table()),
        summary,
        None if traced is None else traced.table(),
        output=None if gathered is not None else sink.path or sink.noun,
        quarantine=job.bad_rows.file if summary.n_quarantined else None,
        interrupted=running.interrupted,
        publish=job.publish,
    )


def job_of(job: object) -> tuple[Job, Path | None]:
    """Return a job, given it, its file or its sections; and its file, if it has one."""
    if isinstance(job, Job):
        return job, None
    if isinstance(job, str | Path):
        return Job.load(job), Path(job)
    if isinstance(job, Mapping):
        return Job.from_dict(job), None
    raise ParameterError(
        "job",
        "must be a Job, the path of a job file, or a dictionary of its sections",
        got=type(job).__name__,
        fix='For example shoal.run("job.toml")',
    )


def _traced_in_memory(job: Job) -> Gathered:
    """Return what keeps a trace in memory; raise if the job would resume without it."""
    if job.checkpoints is not None:
        what = "can't be in memory if the job has run.checkpoint, because it may have to resume"
        raise JobError(Problem("trace", what, "True", "Give the path of a file"))
    return Gathered()


def _opened(
    job: Job,
    job_path: Path | None,
    given: Any,
    sink: OutputEndpoint,
    trace: str | None,
    stack: contextlib.ExitStack,
) -> tuple[Source, Recovery | None, Callable[[Any], Any]]:
    """Open the input; return it, the recovery, and a conversion to the kind of the input."""
    if given is None or isinstance(given, str | Path):
        path = None if given is None else str(given)
        endpoint = resolve_input(job.input, path, None, follow=False)
        if endpoint.path == STDIO and path is None:
            what = "is missing: the job names none"
            raise JobError(Problem("input", what, None, "Give a file or a frame as input"))
        check_ends(job, job_path, endpoint, sink, trace)
        recovery = recovery_of(job, endpoint, sink, trace)
        recovery = follow_changes(job, recovery, endpoint, sink, trace)
        source = endpoint.open(job.schema.columns, replay=job.checkpoints is not None)
        stack.callback(source.close)
        return source, recovery, lambda table: table
    if job.checkpoints is not None:
        what = "is in memory, and can't be read again after a crash"
        fix = "Read a file, or leave run.checkpoint out"
        raise JobError(Problem("input", what, None, fix))
    refuse_wall_clock(job.schema, job.policy)
    # Any input that isn't a file: the other checks are about the outputs.
    check_ends(job, job_path, resolve_input(job.input, STDIO, None, follow=False), sink, trace)
    columns = job.schema.columns
    kind, chunks = chunks_of(given, columns, job.schema.payload, key="input")
    return ChunkSource(chunks, columns), None, kind.from_arrow
