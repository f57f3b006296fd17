"""Check that the input and the outputs of a job fit together, and that it can resume."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path

from shoal.errors import JobError, Problem, ResourceError
from shoal.io.connector import InputEndpoint, OutputEndpoint
from shoal.io.streams import STDIO, os_reason
from shoal.job.endpoints import refuse_remote
from shoal.job.file import Job
from shoal.job.private_outputs import private_places
from shoal.job.same_files import refuse_overwriting
from shoal.run.recovery import Recovery
from shoal.run.state.seal import Seal

__all__ = [
    "check_ends",
    "recovery_of",
    "refuse_endless_tables",
    "refuse_repeated_rows",
    "refuse_unrecoverable",
]


def check_ends(
    job: Job,
    job_path: Path | None,
    source: InputEndpoint,
    sink: OutputEndpoint,
    trace: str | None,
    *,
    report: Path | None = None,
    log: Path | None = None,
    drain: bool = False,
    undo_pseudonyms: bool = False,
) -> None:
    """Raise if a job can't be run from this input to this output.

    Parameters
    ----------
    job, job_path
        The job, and its file if it has one.
    source, sink, trace
        Where rows come from, where they go to, and the file of the trace.
    report
        The file of the report that is written at the end.
    log
        The file of the log.
    drain
        Whether a stopped run publishes the held rows.
    undo_pseudonyms
        Whether a trace may be written although it links pseudonyms to subjects.

    Raises
    ------
    JobError
        If they don't fit together.
    ResourceError
        If the input doesn't exist.
    """
    refuse_overwriting(job, job_path, source, sink, trace, report=report, log=log)
    source.check_run("input")
    sink.check_run("output")
    schema = job.schema
    quasi = [each.name for each in schema.quasi]
    sensitive = [each.name for each in schema.sensitive]
    sink.check_columns([*quasi, *sensitive, *schema.keep])
    if job.checkpoints is None:
        _refuse_missing(source)
    refuse_unrecoverable(job, source, sink)
    refuse_repeated_rows(job, source)
    refuse_endless_tables(job, source, drain=drain)
    if trace is not None:
        refuse_remote("--trace", trace)
        job.publish.check_trace(undo_pseudonyms=undo_pseudonyms)


def _refuse_missing(source: InputEndpoint) -> None:
    """Raise if a file isn't there: else what is said first is about outputs that are."""
    if source.path is None or source.path == STDIO or source.is_endless:
        return
    try:
        Path(source.path).stat()
    except OSError as error:
        # Whatever else is wrong with it, opening it tells.
        if error.errno == errno.ENOENT:
            text = f"{source.path}: can't be read: {os_reason(error)}."
            raise ResourceError(text) from None
    except ValueError:
        return


def recovery_of(
    job: Job,
    source: InputEndpoint,
    sink: OutputEndpoint,
    trace: str | None,
    *,
    fall_back: bool = False,
) -> Recovery | None:
    """Return where a run of the job keeps its state; None if it keeps none."""
    if job.checkpoints is None:
        if fall_back:
            what = "resumes from a checkpoint, and the job has none"
            raise JobError(Problem("--fall-back", what, None, "Set run.checkpoint in the job"))
        return None
    folder, seal = job.checkpoints.folder, job.checkpoints.seal
    return Recovery(
        folder,
        {
            **job.digests,
            "input": _digest(*source.identity(folder)),
            "output": _digest(*sink.identity(folder)),
            "trace": _digest(trace is not None),
            # Held rows carry their subject for it.
            **({"audit": _digest("sample")} if job.audit_sample else {}),
            **({"run.name": _digest(job.name)} if sink.stores_job_name else {}),
        },
        private=private_places(job, trace, folder),
        unnamed=() if job.bad_rows.is_named else ("bad_rows.file",),
        sections=job.sections,
        every=job.checkpoints.every,
        seal=None if seal is None else Seal.from_spec(seal),
        fall_back=fall_back,
    )


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def refuse_unrecoverable(job: Job, source: InputEndpoint, sink: OutputEndpoint) -> None:
    """Raise if a restart would publish rows twice."""
    if job.checkpoints is not None:
        if not source.is_replayable:
            what = f"is {source.noun}, which can't be read again after a crash"
            fix = "Read a file or a topic, or leave run.checkpoint out"
            raise JobError(Problem("input", what, None, fix))
        return
    for name, end in (("input", source), ("output", sink)):
        if end.needs_checkpoints:
            what = f"is {end.noun}, and without checkpoints a restart would publish rows twice"
            fix = 'Set run.checkpoint, for example { folder = "state", every = 10 }'
            raise JobError(Problem(name, what, None, fix))


def refuse_repeated_rows(job: Job, source: InputEndpoint) -> None:
    """Raise if versions of one row would count as people of their own."""
    if source.repeats_rows and job.schema.each_row:
        what = (
            "counts each row as another person, and input.changes reads a person's row again after "
            "each update: a group of k rows could be one person"
        )
        fix = 'Name the column that identifies people, or write input.changes = "inserts"'
        raise JobError(Problem("schema.subject", what, None, fix))


def refuse_endless_tables(job: Job, source: InputEndpoint, *, drain: bool) -> None:
    """Raise for a table algorithm on a stream: it needs all rows before it publishes."""
    if job.anonymizer.publishes != "table":
        return
    endless = source.is_endless
    if not endless and not drain:
        return
    why = "this input has no end" if endless else "a part of it can't be published"
    raise JobError(
        Problem(
            "input" if endless else "--drain",
            f"'{job.anonymizer.name}' publishes a whole table at once, and {why}",
            None,
            "Read a file that is complete, or choose an algorithm for streams",
        )
    )
