"""Jobs with min-delay, the R-tree family and windows by count, killed and resumed."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from shoal.cli.run.command import RunOptions, run
from shoal.testing.faults import count_calls, killed_at
from tests.crashes.world import FilesJob, crowd

ROWS = "k = 3\nl = 2\ndelay = { rows = 25 }"
SECONDS = "k = 3\ndelay = { rows = 60, seconds = 50 }"
BY_COUNT = "k = 3\nl = 2"
SAMPLES = "samples = 10\nsampled = 30"


def action(job: FilesJob) -> None:
    """The run, in this process."""
    options = RunOptions(
        source=str(job.folder / job.input), sink=f"{job.folder}/{job.output}",
        trace=f"{job.folder}/trace/", quiet=True,
    )  # fmt: skip
    with contextlib.redirect_stderr(io.StringIO()):
        assert run(job.job, options) == 0


def a_job(folder: Path, policy: str, algorithm: str) -> FilesJob:
    job = FilesJob(folder, crowd(90), policy=policy, every=1e-6, n_files=5)
    text = job.job.read_text()
    assert "name = 'castle'" in text
    job.job.write_text(text.replace("name = 'castle'", algorithm))
    return job


@pytest.mark.parametrize(
    ("policy", "algorithm"),
    [
        (ROWS, "name = 'min-delay'"),
        (ROWS, "name = 'tree-basic'\ncapacity = 20"),
        (SECONDS, "name = 'tree-basic'\ninstant = 2.0"),
        (ROWS, f"name = 'tree-density'\n{SAMPLES}"),
        (ROWS, f"name = 'tree-full'\nalpha = 0.01\n{SAMPLES}"),
        (SECONDS, f"name = 'tree-full'\ninstant = 2.0\n{SAMPLES}"),
        (BY_COUNT, "name = 'fads'\ncapacity = 20"),
        (BY_COUNT, "name = 'fast'\ncapacity = 20\nkept = 5\nage_unit = 'rounds'"),
    ],
    ids=[
        "min-delay", "basic", "basic by seconds", "density", "full", "full by seconds",
        "fads by count", "fast by count",
    ],
)  # fmt: skip
def test_killed_it_resumes_to_the_same_bytes(tmp_path: Path, policy: str, algorithm: str) -> None:
    whole = a_job(tmp_path / "whole", policy, algorithm)
    n_calls = count_calls(lambda: action(whole))
    assert whole.judge().verdict == "kept"
    lines = sorted(whole.trace.to_pylist(), key=lambda line: line["row"])
    assert len(lines) == 90
    n_killed = 0
    for call in range(n_calls // 8, n_calls, n_calls // 5):
        job = a_job(tmp_path / f"{call}", policy, algorithm)
        n_killed += killed_at(call, lambda job=job: action(job))
        action(job)
        assert job.published == whole.published, call
        assert sorted(job.trace.to_pylist(), key=lambda line: line["row"]) == lines
    assert n_killed >= 3
