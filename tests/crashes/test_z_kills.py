"""Runs of z-anonymity, killed at random instants and started again."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess

import pytest

from tests.crashes.test_kills import N_KILLS, Feeder, finish
from tests.crashes.world import killed_after, started, wait_until
from tests.crashes.z_world import EventsJob, events


def killed_at_work(job: EventsJob, seconds: float) -> None:
    """Start a run and kill it soon after it has published something new."""
    before = n_bytes(job)
    with started(job.command) as process:
        wait_until(lambda: n_bytes(job) > before)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.send_signal(signal.SIGKILL)


def n_bytes(job: EventsJob) -> int:
    """How much it has published so far, what isn't finished included."""
    path = job.folder / job.output.rstrip("/")
    files = [path] if path.is_file() else [*path.glob("*")]
    # A part may get its final name meanwhile.
    with contextlib.suppress(FileNotFoundError):
        return sum(file.stat().st_size for file in files)
    return 0


@pytest.mark.parametrize(("output", "named"), [("out.jsonl", True), ("out/", False)])
def test_killed_again_and_again_it_publishes_every_row_once(tmp_path, output, named):
    draw = random.Random(output)
    table = events(N_KILLS * 60)
    job = EventsJob(
        tmp_path / "killed", table, output, n_files=0, words=["--follow"], every=0.1, named=named
    )
    feeder = Feeder(job, rows_a_file=10)
    seen = []
    for i in range(N_KILLS):
        feeder.feed(6)
        if i % 2:
            # Early instants: in the middle of a recovery, or before anything was read.
            assert killed_after(job.command, draw.uniform(0.3, 1.6))
        else:
            killed_at_work(job, draw.uniform(0.0, 0.2))
            seen.append(job.published)
    assert feeder.is_done
    finish(job)
    whole = EventsJob(tmp_path / "whole", table, output, n_files=30, named=named)
    whole.run()
    assert job.renamed == whole.renamed
    assert len(set(seen)) > 1
    if named:
        # What was out stays as it was: nobody gets a second pseudonym by a crash.
        assert all(job.published.startswith(before) for before in seen)
        job.check_names()
    else:
        report = job.judge()
        assert {verdict.verdict for verdict in report.verdicts} == {"kept"}, str(report)
