"""Runs from files to an Iceberg table, killed at random instants and started again."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.audit import audit
from shoal.job import Job
from tests.crashes.test_kills_mqtt import wait
from tests.crashes.world import crowd, read_all, started, wait_until
from tests.docs.test_iceberg_walk import in_order, open_table
from tests.world import write, write_job

N_KILLS = int(os.environ.get("SHOAL_KILLS", "10"))
N_ROWS = 100
pytest.importorskip("pyiceberg")


def iceberg_job(folder: Path) -> list[str]:
    """Write a job; give the command that runs it."""
    folder.mkdir()
    job = write_job(
        folder,
        policy="k = 3\nl = 2\ndelay = { rows = 60 }",
        run="seed = 7\nname = 'kills'\ncheckpoint = { folder = 'state', every = 0.1 }",
    )
    with job.open("a") as file:
        file.write("[input]\npath = 'incoming'\n")
        # Some checkpoints come with rows that wait, some with a commit.
        file.write("[output]\niceberg = 'public.people'\npath = 'lake'\nrows = 25\n")
    (folder / "incoming").mkdir()
    return ["run", str(job), "--trace", f"{folder}/trace/", "-q"]


def give(folder: Path, table: pa.Table, number: int) -> None:
    """Let a file with the next rows appear."""
    path = write(table.slice(number * N_ROWS, N_ROWS), folder / f"part-{number:03d}.csv")
    path.rename(folder / "incoming" / path.name)


def n_commits(folder: Path) -> int:
    """How many snapshots were written; the last one may not be in the catalog yet."""
    return len(list(folder.glob("lake/**/snap-*.avro")))


def rows_of(folder: Path) -> pa.Table:
    """All rows of the table in the order of the commits."""
    return in_order(open_table(str(folder / "lake"), "public.people"))


def finish(command: list[str]) -> None:
    """Run to the end of the files."""
    with started(command) as process:
        assert process.stderr is not None
        assert process.wait(600) == 0, process.stderr.read().decode()


def test_killed_again_and_again_the_table_is_that_of_a_run_without_kills(tmp_path):
    draw, table = random.Random(11), crowd(N_KILLS * N_ROWS)
    # Published as it is, so that each row can be told apart.
    table = table.set_column(4, "ward", [[f"ward {i}" for i in range(len(table))]])
    folder = tmp_path / "killed"
    command = iceberg_job(folder)
    for i in range(N_KILLS):
        give(folder, table, i)
        n_before = n_commits(folder)
        with started([*command, "--follow"]) as process:
            if i % 2:
                # At any instant.
                wait(process, draw.uniform(0.0, 6.0))
            else:
                # During a commit, or between it and the next checkpoint.
                wait_until(lambda n=n_before: n_commits(folder) > n, seconds=300)
                wait(process, draw.uniform(0.0, 0.3))
            process.kill()
    finish(command)
    other = tmp_path / "undisturbed"
    undisturbed = iceberg_job(other)
    for i in range(N_KILLS):
        give(other, table, i)
    finish(undisturbed)
    published = rows_of(folder)
    assert published.equals(rows_of(other))
    job = Job.load(folder / "job.toml")
    original = table.select([name for name in table.schema.names if name in job.schema.columns])
    trace = read_all(folder / "trace")
    report = audit(job.schema, job.policy, published, trace=trace, original=original)
    assert all(verdict.verdict == "kept" for verdict in report.verdicts), str(report)
