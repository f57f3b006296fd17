"""Jobs that are killed and started again, and what their outputs must be in the end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from shoal.audit import Report, audit
from shoal.io import open_source
from shoal.job import Job
from tests.world import COMMAND, SCHEMA, people, write, write_job

ALL_IN_PARTS = "rows-*"


def read_all(path: Path) -> pa.Table:
    """All rows of a file or of a folder of parts."""
    source = open_source(path)
    try:
        # Whether a column comes as a dictionary depends on the file.
        rows = [row for chunk in source for row in chunk.batch.to_pylist()]
    finally:
        source.close()
    return pa.Table.from_pylist(rows)


def content(path: Path) -> bytes:
    """All bytes of an output: of a folder, those of its files one after the other."""
    if not path.is_dir():
        return path.read_bytes()
    return b"".join(part.read_bytes() for part in sorted(path.glob(ALL_IN_PARTS)))


@dataclass
class FilesJob:
    """A job from a folder of small files (or one file) to an output that survives."""

    folder: Path
    table: pa.Table
    output: str = "out.jsonl"
    input: str = "incoming"
    policy: str = "k = 3\nl = 2\ndelay = { rows = 20 }"
    every: float = 0.02
    n_files: int = 20
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        checkpoint = f"checkpoint = {{ folder = 'state', every = {self.every} }}"
        by_time = "seconds" in self.policy and "clock" not in self.policy
        options = {"schema": 'time = "at"\n' + SCHEMA} if by_time else {}
        self.job = write_job(
            self.folder, policy=self.policy, run=f"seed = 7\n{checkpoint}", **options
        )
        source = self.folder / self.input
        if source.suffix:
            write(self.table, source)
            return
        source.mkdir(exist_ok=True)
        if not self.n_files:
            return
        n = -(-len(self.table) // self.n_files)
        for i in range(0, len(self.table), n):
            write(self.table.slice(i, n), source / f"part-{i:06d}.csv")

    @property
    def form(self) -> str | None:
        """The format of the output: of many files one without headers."""
        return "jsonl" if self.output.endswith("/") else None

    @property
    def command(self) -> list[str]:
        """What is run."""
        return [
            "run", str(self.job), "-i", str(self.folder / self.input),
            "-o", f"{self.folder}/{self.output}", "--trace", f"{self.folder}/trace/", "-q",
            *(["--to", self.form] if self.form else []), *self.words,
        ]  # fmt: skip

    def run(self) -> None:
        """Run it to its end, in a process of its own."""
        done = subprocess.run(
            [*COMMAND, *self.command], env=environment(), capture_output=True, timeout=1200
        )
        assert done.returncode == 0, done.stderr.decode()

    @property
    def published(self) -> bytes:
        """What it has published."""
        return content(self.folder / self.output.rstrip("/"))

    @property
    def trace(self) -> pa.Table:
        """What became of each row."""
        return read_all(self.folder / "trace")

    def judge(self) -> Report:
        """The audit of all of it."""
        job = Job.load(self.job)
        columns = [name for name in self.table.schema.names if name in job.schema.columns]
        return audit(
            job.schema,
            job.policy,
            read_all(self.folder / self.output.rstrip("/")),
            numeric=job.publish.numeric,
            suppressed=job.publish.suppressed,
            trace=self.trace,
            original=self.table.select(columns),
        )


def environment() -> dict[str, str]:
    """The children run as plain Python: they start at once, and take their time."""
    return {**os.environ, "NUMBA_DISABLE_JIT": "1"}


@contextlib.contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A run in a process of its own, which doesn't outlive the block."""
    process = subprocess.Popen(
        [*COMMAND, *command],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # Tests read it at the end: a run that logs more than it has room for would wait.
        pipesize=1 << 20,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def killed_after(command: list[str], seconds: float) -> bool:
    """Start a run and kill it after a while; whether it hadn't ended before."""
    with started(command) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
        assert process.stderr is not None
        assert process.returncode == 0, process.stderr.read().decode()
        return False


def crowd(n_rows: int, seed: int = 1) -> pa.Table:
    """Rows of people who come back now and then."""
    return people(n_rows, seed, n_people=max(3, n_rows // 3))


def wait_until(is_so: object, seconds: float = 60) -> None:
    """Wait for something to become true."""
    assert callable(is_so)
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it didn't happen in time"
        time.sleep(0.05)


def wait_until_it_listens(process: subprocess.Popen[bytes]) -> None:
    """Wait until a run with ``--log text`` is at work: from then on it takes signals."""
    assert process.stderr is not None
    for line in process.stderr:
        if b"resumed from a checkpoint" in line or b"checkpoint saved" in line:
            return
    raise AssertionError("it ended before it was at work")


def n_taken_in(folder: Path, *words: str) -> int:
    """How many rows the newest checkpoint knows of; ``words`` say where the key of a seal is."""
    done = subprocess.run(
        [*COMMAND, "checkpoint", "show", str(folder / "state"), "--json", *words],
        env=environment(), capture_output=True, timeout=600,
    )  # fmt: skip
    if done.returncode:
        return 0
    found = json.loads(done.stdout)["checkpoints"]
    return int(found[-1]["facts"]["rows"]["in"]) if found else 0
