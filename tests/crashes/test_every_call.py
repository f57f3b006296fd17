"""A run killed at each of its calls to the disk, one after the other, and gone on with."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

import pytest

from shoal.cli.run.command import RunOptions, run
from shoal.testing.faults import count_calls, killed_at
from tests.crashes.world import FilesJob, crowd


def action(job: FilesJob) -> None:
    """The run, in this process."""
    options = RunOptions(
        source=str(job.folder / job.input), sink=f"{job.folder}/{job.output}",
        trace=f"{job.folder}/trace/", to_format=job.form, quiet=True,
    )  # fmt: skip
    with contextlib.redirect_stderr(io.StringIO()):
        assert run(job.job, options) == 0


def a_job(folder: Path, output: str) -> FilesJob:
    table = crowd(60)
    # A bad row in every file, so that the quarantine is written to all along.
    ages = [None if i % 15 == 7 else age for i, age in enumerate(table["age"].to_pylist())]
    table = table.set_column(1, "age", [ages])
    return FilesJob(folder, table, output=output, every=1e-6, n_files=4)


@pytest.mark.parametrize("output", ["out.csv", "out/"])
@pytest.mark.parametrize("is_torn", [False, True])
def test_killed_at_each_call_it_resumes_to_the_same_bytes(tmp_path, output, is_torn):
    whole = a_job(tmp_path / "whole", output)
    n_calls = count_calls(lambda: action(whole))
    assert n_calls > 50
    assert whole.judge().verdict == "kept"
    expected = whole.published, (whole.folder / "job.quarantine.jsonl").read_bytes()
    n_killed = 0
    # With threads the number of calls differs a little from run to run.
    step = int(os.environ.get("SHOAL_CRASH_STEP", "5"))
    for call in range(1 + is_torn, n_calls + 10, step):
        job = a_job(tmp_path / f"{call}", output)
        n_killed += killed_at(call, lambda job=job: action(job), is_torn=is_torn)
        # Killed once more, early in the recovery, and then let through.
        killed_at(1 + call % 7, lambda job=job: action(job), is_torn=is_torn)
        action(job)
        assert (job.published, (job.folder / "job.quarantine.jsonl").read_bytes()) == expected, call
        lines = sorted(job.trace.to_pylist(), key=lambda line: line["row"])
        assert lines == sorted(whole.trace.to_pylist(), key=lambda line: line["row"])
    assert n_killed > 60 // step
