"""``shoal check``: tell whether a job works on some data, without publishing anything."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from pathlib import Path

import pyarrow as pa

from shoal.cli.check.report import report_of
from shoal.cli.check.trial import Sample, Trial
from shoal.cli.run.command import show_compiling
from shoal.cli.terminal import Progress, print_result
from shoal.engine.compile_watch import CompileWatch
from shoal.errors import DataError, JobError, Problem
from shoal.io.connector import InputEndpoint
from shoal.io.files.connector import FileInput
from shoal.io.registry import resolve_input
from shoal.io.streams import STDIO
from shoal.job import Job
from shoal.job.ends import (
    refuse_endless_tables,
    refuse_repeated_rows,
    refuse_unrecoverable,
)

__all__ = ["check"]


def check(
    job_path: Path,
    data: str | None,
    *,
    rows: int | None,
    from_format: str | None,
    as_json: bool,
) -> int:
    """Try a job on the first rows of some data, or on all of them; return the exit code."""
    job = Job.load(job_path)
    _check_endpoints(job)
    spec = _input(job, data, from_format)
    with contextlib.ExitStack() as stack:
        source = spec.open(job.schema.columns, replay=False)
        stack.callback(source.close)
        progress = stack.enter_context(Progress(quiet=as_json))
        show = show_compiling(progress, quiet=as_json)
        stack.enter_context(CompileWatch(type(job.anonymizer), show).watching())
        trial, sample = Trial(job), Sample(source, rows)
        try:
            for chunk in sample:
                trial.add(chunk)
                progress.note(f"{trial.summary.n_in:,} rows read")
        except pa.ArrowException as error:
            # Arrow's messages quote values.
            kind = type(error).__name__
            raise DataError(f"{source.describe()}: a batch can't be used ({kind}).") from None
        trial.finish()
    if not trial.summary.n_in:
        raise DataError(f"{source.describe()}: has no rows, so nothing can be checked.")
    report = report_of(job, trial, is_whole=sample.is_whole)
    if as_json:
        print_result(json.dumps(report.as_dict()))
    else:
        print_result("\n".join(report.lines()))
    return report.exit_code


def _check_endpoints(job: Job) -> None:
    """Raise for endpoints of the job with which a run would be refused."""
    if job.input.path != STDIO:
        refuse_unrecoverable(job, job.input, job.output)
        refuse_repeated_rows(job, job.input)
    refuse_endless_tables(job, job.input, drain=False)


def _input(job: Job, data: str | None, from_format: str | None) -> InputEndpoint:
    source = resolve_input(job.input, data, from_format, follow=False)
    if not isinstance(source, FileInput):
        what = f"is {source.noun}, and a check reads a file"
        fix = "Give a file of such rows with -i, in any format"
        raise JobError(Problem("input", what, None, fix))
    if source.path == STDIO and (data is None or sys.stdin.isatty()):
        what = "isn't named in the job" if data is None else "is the terminal"
        raise JobError(Problem("input", what, None, "Give the data with -i"))
    source.check_run("input")
    # A check ends: it doesn't wait for more.
    return dataclasses.replace(source, follow=False)
