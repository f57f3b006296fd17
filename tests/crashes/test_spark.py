"""A job on Spark whose driver, executors and Python workers are killed at random instants."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shoal.spark.commits import CommitLog
from shoal.spark.partition_map import PartitionMap
from tests.crashes.world import crowd, environment
from tests.spark.streams import OnSpark, spread
from tests.spark.world import COLUMNS, SEED, ShardRun, job_of, shard_job_of

#: A start takes half a minute, so of many kills only some are for Spark.
N_KILLS = max(1, int(os.environ.get("SHOAL_KILLS", "0")) // 10)
N_SHARDS, ROWS_A_FILE = 3, 120
PATIENCE = 300 + 60 * N_KILLS
MORE = f"[output]\npath = 'out'\n[spark]\nshards = {N_SHARDS}\n"
DRIVER, EXECUTOR = "org.apache.spark.deploy.SparkSubmit", "CoarseGrainedExecutorBackend"
WORKER = "pyspark.daemon"


# -- processes -------------------------------------------------------------------------------------


def family(session: int) -> dict[int, tuple[int, str]]:
    """The processes that one has started, with their parents and commands, ended ones left out."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            if fields[0] != "Z" and int(fields[3]) == session:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found[int(folder.name)] = int(fields[1]), command
    return found


def named(session: int, what: str) -> list[int]:
    """Those of a family that run something, without their forks, which look like them at first."""
    found = {pid: parent for pid, (parent, command) in family(session).items() if what in command}
    return [pid for pid, parent in found.items() if parent not in found]


def workers(session: int) -> list[int]:
    """Python workers: children of daemons, which are children of executors."""
    daemons = set(named(session, WORKER))
    return [pid for pid, (parent, _) in family(session).items() if parent in daemons]


def kill(pid: int) -> bool:
    """Kill a process, if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def wait_until(is_so: Callable[[], Any], process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait for something to become true, for as long as a process runs."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it didn't happen in time"
        assert process is None or process.poll() is None, "it ended before"
        time.sleep(0.02)


class Killed(OnSpark):
    """A job on Spark in processes of its own."""

    @contextlib.contextmanager
    def started(self) -> Iterator[subprocess.Popen[bytes]]:
        """A run; none of its processes outlives the block."""
        with (self.folder / "said").open("ab") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.crashes.spark_job", str(self.folder)],
                env=environment(), cwd=Path(__file__).parents[2], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            )  # fmt: skip
        try:
            yield process
            process.wait(PATIENCE)
            # Whatever was killed, all others go by themselves.
            wait_until(lambda: not family(process.pid))
        finally:
            for pid in family(process.pid):
                kill(pid)
            process.wait()

    def finish(self, process: subprocess.Popen[bytes]) -> None:
        """Let a run continue to its end."""
        assert process.wait(PATIENCE) == 0, (self.folder / "said").read_text()[-5000:]

    @property
    def n_begun(self) -> int:
        """How many batches were begun."""
        begun = [int(path.name[6:]) for path in (self.folder / "state").glob("epoch-??????????")]
        return max(begun, default=-2) // 2 + 1

    def undisturbed(self) -> list[dict[str, Any]]:
        """What shards publish without Spark, undisturbed."""
        assert self.job.checkpoints is not None
        job = job_of(self.folder / "alone", policy=POLICY, more=MORE)
        shard_job = shard_job_of(job, self.table.schema, n_shards=N_SHARDS)
        plan = CommitLog(self.job.checkpoints.folder, job=self.digests, seal=None).plan(0)
        assert plan.partition_map is not None
        assert plan.seed == SEED.hex()
        encoded = shard_job.codec().encode(self.table.to_batches()[0])
        shards = PartitionMap.restored(plan.partition_map).shards(encoded.codes.values)
        lives = [ShardRun(shard_job, N_SHARDS, number) for number in range(N_SHARDS)]
        rows: list[dict[str, Any]] = []
        for begin in range(0, len(self.table), ROWS_A_FILE):
            of_file = np.arange(begin, begin + ROWS_A_FILE)
            for life in lives:
                rows += life.take(self.table.take(of_file[shards[of_file] == life.number]))
        for life in lives:
            rows += life.take(is_end=True)
        return rows

    @property
    def digests(self) -> dict[str, str]:
        """What the state depends on: the job, and how it was published."""
        from shoal.spark.query import _digests

        return _digests(self.job, self.table.schema, 2, traced=True)

    def check(self) -> None:
        """All rows are out, once, as if nothing had happened."""
        assert self.public == self.undisturbed()
        lines = self.lines
        assert sorted(line["row"] for line in lines) == list(range(len(self.table)))
        places = sorted(line["seq"] for line in lines if line["seq"] is not None)
        assert places == list(range(len(self.public)))
        report = self.judge()
        assert report.verdict == "kept", str(report)
        # What no repetition needs is gone: a shard has the states of two epochs.
        assert len(list((self.folder / "state").rglob("state-*"))) == 2 * N_SHARDS


POLICY = "k = 3\nl = 2\ndelay = { rows = 40 }"


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Killed]:
    """A job with a file for each kill, and some more."""
    table = crowd(ROWS_A_FILE * (N_KILLS + 3)).select(COLUMNS).combine_chunks()
    spread(table, tmp_path / "in", N_KILLS + 3)
    job = job_of(tmp_path, policy=POLICY, more=MORE)
    # No session here: each run has its own.
    yield Killed(None, job, tmp_path, table)  # type: ignore[arg-type]
    for logs in (tmp_path / "logs").read_text().splitlines():
        shutil.rmtree(logs, ignore_errors=True)


def test_kills_lose_and_double_nothing(killed):
    draw = random.Random(11)
    for i in range(N_KILLS):
        with killed.started() as process:
            wait_until(lambda n=i: killed.n_begun > n, process)
            for find in (workers, lambda pid: named(pid, EXECUTOR)):
                time.sleep(draw.uniform(0.0, 0.7))
                wait_until(lambda find=find: find(process.pid), process)
                kill(draw.choice(sorted(find(process.pid))))
            time.sleep(draw.uniform(0.0, 1.5))
            # The driver: both halves of it, the one in Java first or last.
            halves = [process.pid, *named(process.pid, DRIVER)]
            assert len(halves) == 2
            draw.shuffle(halves)
            kill(halves[0])
            kill(halves[1])
    with killed.started() as process:
        killed.finish(process)
    killed.check()
