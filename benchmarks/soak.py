"""A job that runs for long, from topic to topic at full speed, seen from outside.

The job is that of the command line, in a process of its own. Another process keeps its input
filled, and a reader of the output checks that every row comes once. What has been read by those who
need it is deleted at the broker, and nothing else is.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.soak_check import Checker, Ledger
from benchmarks.soak_feed import Progress
from benchmarks.soak_job import SoakJob, write_job
from benchmarks.soak_judge import Moment
from benchmarks.workloads import ROOT
from shoal.testing.broker import create_topics

__all__ = ["BROKER", "Soak", "Soaked", "soak"]

#: Settings of a broker whose disk stays small: deleted rows are gone within seconds.
BROKER = {
    "log.retention.check.interval.ms": 10_000,
    "log.initial.task.delay.ms": 10_000,
    "log.segment.delete.delay.ms": 1_000,
    "log.segment.bytes": 32 << 20,
    "log.cleaner.dedupe.buffer.size": 8 << 20,
}
#: Messages stay until the rows after them have been out for so long: some checkpoints.
KEPT_SECONDS = 60.0
#: How long the job may take for what is left when no more comes.
REST_SECONDS = 120.0
#: How long it may take for the first rows to be out: the kernels may have to be compiled.
START_SECONDS = 300.0
#: For how long nothing must come out until it is taken for all that will.
SETTLED_SECONDS = 3.0
COMMAND = ("-c", "from shoal.cli import main; main()")


@dataclass(frozen=True)
class Soak:
    """For how long, how often it is looked at, and the job."""

    seconds: float = 1800.0
    every: float = 2.0
    #: How many rows the input is kept ahead of the output.
    ahead: int = 400_000
    job: SoakJob = field(default_factory=SoakJob)

    @classmethod
    def quick(cls) -> Soak:
        """Enough to see that everything works, and for nothing else."""
        job = SoakJob(k=5, delay=50, message_rows=10, n_templates=20, every=0.5)
        return cls(seconds=4.0, every=0.2, ahead=400, job=job)


@dataclass(frozen=True)
class _Names:
    """What the topics and the job are called: never twice the same, at a broker that stays."""

    source: str
    sink: str
    job: str

    @classmethod
    def new(cls) -> _Names:
        mark = uuid.uuid4().hex[:8]
        return cls(f"soak-in-{mark}", f"soak-out-{mark}", f"soak-{mark}")


@dataclass(frozen=True)
class Soaked:
    """What came of it."""

    moments: list[Moment]
    ledger: Ledger
    n_fed: int
    exit_code: int
    said: str


def soak(address: str, plan: Soak, say: Callable[[str], None]) -> Soaked:
    """Run, look, and stop in good order."""
    names = _Names.new()
    create_topics({"bootstrap.servers": address}, [names.source, names.sink])
    rows = plan.job.message_rows
    with tempfile.TemporaryDirectory(prefix="shoal-soak-") as name:
        folder = Path(name)
        path = write_job(
            folder, plan.job, address=address, source=names.source, sink=names.sink, name=names.job
        )
        with (
            (folder / "said").open("wb") as said,
            _process([*COMMAND, "run", str(path), "--drain", "-q"], stderr=said) as job,
            _process(["-m", *_feeding(address, plan, names)], stdout=subprocess.PIPE) as feeder,
        ):
            checker = Checker(address, names.sink, rows)
            try:
                broom = _Broom(address, names, checker, rows)
                moments = _look(plan, job, feeder, checker, broom, folder / "state", say)
                feeder.send_signal(signal.SIGTERM)
                n_fed = int(feeder.communicate(timeout=REST_SECONDS)[0] or 0) * rows
                say(f"{n_fed:,} rows were fed")
                # All is read when this many are out that the rest may be held, and no more come.
                _wait(_Settled(checker.ledger, n_fed - plan.job.delay), job, checker)
                job.send_signal(signal.SIGTERM)
                exit_code = job.wait(REST_SECONDS)
                _wait(lambda: checker.ledger.n_rows >= n_fed, None, checker)
            finally:
                checker.close()
        checker.ledger.close(n_fed)
        text = (folder / "said").read_text(errors="replace")
    return Soaked(moments, checker.ledger, n_fed, exit_code, text)


class _Settled:
    """Whether at least this many rows are out, and for some seconds none has followed."""

    def __init__(self, ledger: Ledger, least: int) -> None:
        self._ledger, self._least = ledger, least
        self._last, self._since = -1, 0.0

    def __call__(self) -> bool:
        n_rows, now = self._ledger.n_rows, time.monotonic()
        if n_rows != self._last:
            self._last, self._since = n_rows, now
        return n_rows >= self._least and now >= self._since + SETTLED_SECONDS


def _look(
    plan: Soak,
    job: subprocess.Popen[bytes],
    feeder: subprocess.Popen[bytes],
    checker: Checker,
    broom: _Broom,
    state: Path,
    say: Callable[[str], None],
) -> list[Moment]:
    """Look at everything until the time is over, or something has ended before."""
    moments: list[Moment] = []
    _wait(lambda: checker.ledger.n_rows > 0, job, checker, START_SECONDS)
    begin = time.monotonic()
    n_before, reported = checker.ledger.n_rows, begin
    while (now := time.monotonic()) < begin + plan.seconds:
        if job.poll() is not None or feeder.poll() is not None or checker.failure is not None:
            say("something has ended before its time")
            break
        n_in, n_out = broom.n_in(), checker.ledger.n_rows
        moments.append(
            Moment(
                now - begin, resident(job.pid), len(list(Path(f"/proc/{job.pid}/fd").iterdir())),
                max(0, n_in - n_out), n_out - n_before,
                _bytes(state, "checkpoint-*"), _bytes(state, "journal-*"),
            )
        )  # fmt: skip
        broom.sweep(now)
        if now >= reported + 30:
            reported = now
            say(f"{now - begin:.0f} s: {moments[-1]}")
        time.sleep(max(0.0, now + plan.every - time.monotonic()))
    return moments


class _Broom:
    """Has the broker delete what nobody needs any more."""

    def __init__(self, address: str, names: _Names, checker: Checker, message_rows: int) -> None:
        from confluent_kafka import Consumer, TopicPartition
        from confluent_kafka.admin import AdminClient

        self._place = TopicPartition
        self._admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        self._consumer = Consumer({"bootstrap.servers": address, "group.id": "soak-look"})
        self._names, self._checker, self._message_rows = names, checker, message_rows
        self._progress = Progress(address, names.sink, names.job)
        self._before: deque[tuple[float, int]] = deque()
        self._swept = 0.0

    def n_in(self) -> int:
        """How many rows have been put in."""
        _, high = self._consumer.get_watermark_offsets(
            self._place(self._names.source, 0), timeout=10
        )
        return int(high) * self._message_rows

    def sweep(self, now: float) -> None:
        """Delete what was published a while ago, and what was checked; every ten seconds."""
        if now < self._swept + 10:
            return
        self._swept = now
        # What is published was read before: as many rows, at least, from the beginning on.
        self._before.append((now, self._progress() // self._message_rows))
        done = 0
        while self._before and self._before[0][0] < now - KEPT_SECONDS:
            done = self._before.popleft()[1]
        names = self._names
        places = [
            self._place(names.source, 0, done),
            self._place(names.sink, 0, self._checker.offset),
        ]
        wanted = [place for place in places if place.offset > 0]
        for future in self._admin.delete_records(wanted).values() if wanted else ():
            future.result()


def resident(pid: int) -> int:
    """The memory that a process has now, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def _bytes(folder: Path, pattern: str) -> int:
    total = 0
    for path in folder.glob(pattern):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            # Dropped between two looks.
            continue
    return total


def _feeding(address: str, plan: Soak, names: _Names) -> list[str]:
    job = plan.job
    return [
        "benchmarks.soak_feed", address, names.source, names.sink, names.job, "--ahead",
        str(plan.ahead),
        "--seconds", str(plan.seconds + START_SECONDS), "--message-rows", str(job.message_rows),
        "--templates", str(job.n_templates),
    ]  # fmt: skip


@contextmanager
def _process(words: list[str], **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process that doesn't outlive the block."""
    process = subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, stdin=subprocess.DEVNULL, **streams
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _wait(
    until: Callable[[], bool],
    job: subprocess.Popen[bytes] | None,
    checker: Checker,
    seconds: float = REST_SECONDS,
) -> None:
    """Wait until something is so, or there is no hope of it any more."""
    end = time.monotonic() + seconds
    while not until() and time.monotonic() < end and checker.failure is None:
        if job is not None and job.poll() is not None:
            return
        time.sleep(0.1)
