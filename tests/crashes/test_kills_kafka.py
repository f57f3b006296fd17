"""Runs from Kafka to Kafka, killed at random instants and started again."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.audit import audit
from shoal.job import Job
from tests.crashes.world import (
    crowd,
    killed_after,
    n_taken_in,
    read_all,
    started,
    wait_until,
    wait_until_it_listens,
)
from tests.io.kafka.world import fill, values
from tests.world import write_job

N_KILLS = int(os.environ.get("SHOAL_KILLS", "5"))
ROWS = "k = 3\nl = 2\ndelay = { rows = 60 }"
WALL = "k = 3\nl = 2\ndelay = { rows = 200, seconds = 0.5, clock = 'wall' }"


@dataclass
class KafkaJob:
    """A job from a topic to a topic."""

    folder: Path
    address: str
    source: str
    sink: str
    policy: str = ROWS
    partitions: int = 1

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.job = write_job(
            self.folder,
            policy=self.policy,
            run=f"seed = 7\nname = '{self.sink}'\ncheckpoint = {{ folder = 'state', every = 0.1 }}",
        )
        ends = f"kafka = '{self.address}'\ntopic = "
        with self.job.open("a") as job:
            job.write(f"[input]\n{ends}'{self.source}'\n[output]\n{ends}'{self.sink}'\nrows = 7\n")

    @property
    def command(self) -> list[str]:
        """What is run."""
        return ["run", str(self.job), "--trace", f"{self.folder}/trace/", "-q"]

    def feed(self, table: pa.Table, draw: random.Random) -> None:
        """Send rows, one to a message, to partitions by chance."""
        where = [draw.randrange(self.partitions) for _ in range(len(table))]
        rows = [json.dumps(row).encode() for row in table.to_pylist()]
        fill(self.address, self.source, rows, where)

    def finish(self, n_rows: int) -> None:
        """Let a run take in all rows, and stop it in good order."""
        with started([*self.command, "--drain", "--log", "text"]) as process:
            wait_until_it_listens(process)
            wait_until(lambda: n_taken_in(self.folder) == n_rows, seconds=60 + 2 * N_KILLS)
            process.send_signal(signal.SIGTERM)
            assert process.stderr is not None
            assert process.wait(600) == 0, process.stderr.read().decode()

    def published(self, isolation: str = "read_committed") -> list[bytes]:
        """The rows that a reader has."""
        found = values(self.address, self.sink, isolation)
        return [line for value in found for line in value.splitlines()]

    @property
    def trace(self) -> pa.Table:
        """What became of each row."""
        return read_all(self.folder / "trace")


@pytest.mark.parametrize(
    ("policy", "partitions"), [(ROWS, 1), (WALL, 3)], ids=["rows, one partition", "wall, three"]
)
def test_killed_again_and_again_a_reader_has_every_row_once(
    tmp_path, kafka, topic, policy, partitions
):
    draw = random.Random(policy)
    table = crowd(N_KILLS * 60)
    # Published as it is, so that each row can be told apart.
    table = table.set_column(4, "ward", [[f"ward {i}" for i in range(len(table))]])
    source = topic(partitions)
    job = KafkaJob(tmp_path / "killed", kafka, source, topic(), policy, partitions)
    for i in range(N_KILLS):
        job.feed(table.slice(i * 60, 60), draw)
        assert killed_after(job.command, draw.uniform(0.4, 2.5))
    job.finish(len(table))
    lines = job.trace
    assert sorted(lines["row"].to_pylist()) == list(range(len(table)))
    published = job.published()
    seqs = [seq for seq in lines["seq"].to_pylist() if seq is not None]
    assert sorted(seqs) == list(range(len(published)))
    if partitions == 1:
        # Byte by byte what a run that was never disturbed publishes.
        whole = KafkaJob(tmp_path / "whole", kafka, source, topic(), policy)
        whole.finish(len(table))
        assert published == whole.published()
        judge(job, table)
    else:
        judge(job, as_taken_in(job, table))
    # Who reads what wasn't committed sees rows again, but never another box for one of them.
    seen = job.published("read_uncommitted")
    assert len(seen) >= len(published) == len(set(published))
    assert set(seen) == set(published)


def as_taken_in(job: KafkaJob, table: pa.Table) -> pa.Table:
    """The rows in the order in which the run took them in: partitions come as they come."""
    rest = {row["ward"]: row for row in table.to_pylist()}
    published = [rest.pop(json.loads(line)["ward"]) for line in job.published()]
    rows = []
    for line in sorted(job.trace.to_pylist(), key=lambda line: line["row"]):
        if line["seq"] is not None:
            rows.append(published[line["seq"]])
        else:
            # One of that person's rows that weren't published.
            mine = next(ward for ward, row in rest.items() if row["person"] == line["subject"])
            rows.append(rest.pop(mine))
    assert not rest
    return pa.Table.from_pylist(rows)


def judge(job: KafkaJob, table: pa.Table) -> None:
    """The audit agrees, but maybe for the delay, which an outage breaks."""
    described = Job.load(job.job)
    published = pa.Table.from_pylist([json.loads(line) for line in job.published()])
    columns = [name for name in table.schema.names if name in described.schema.columns]
    report = audit(
        described.schema, described.policy, published,
        trace=job.trace, original=table.select(columns),
    )  # fmt: skip
    broken = {verdict.name for verdict in report.verdicts if verdict.verdict != "kept"}
    assert broken <= ({"delay"} if "wall" in job.policy else set()), str(report)


def test_two_processes_of_one_job_are_one_too_many(tmp_path, kafka, topic):
    source, sink = topic(), topic()
    first = KafkaJob(tmp_path / "first", kafka, source, sink)
    first.feed(crowd(300), random.Random(1))
    with started(first.command) as process:
        wait_until(lambda: n_taken_in(first.folder) == 300)
        # On another machine the folder isn't there, and the topic tells.
        second = KafkaJob(tmp_path / "second", kafka, source, sink)
        with started(second.command) as other:
            _, err = other.communicate(timeout=600)
            assert other.returncode == 5
            assert b"there is no checkpoint to resume from" in err
        assert process.poll() is None
        # With a copy of what it keeps it takes over, and the first one is fenced off.
        shutil.rmtree(second.folder / "state")
        for name in ("state", "trace"):
            shutil.copytree(first.folder / name, second.folder / name)
        with started([*second.command, "--log", "text"]) as other:
            wait_until_it_listens(other)
            first.feed(crowd(300, seed=2), random.Random(2))
            _, err = process.communicate(timeout=600)
            assert process.returncode == 4
            assert b"another process has taken over job" in err
            wait_until(lambda: n_taken_in(second.folder) == 600)
            other.send_signal(signal.SIGTERM)
            assert other.wait(600) == 0
