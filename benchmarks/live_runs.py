"""One run from topic to topic, in this process, and what it took."""

from __future__ import annotations

import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.machine_use import Use
from benchmarks.passthrough import POLICY, PassThrough
from benchmarks.workloads import Workload
from shoal.algorithms.castle import Castle
from shoal.engine.base import Anonymizer
from shoal.io import BadRow
from shoal.io.base import CommitMark, Sink
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.sink import KafkaSink, refuse_started
from shoal.io.kafka.source import KafkaSource
from shoal.metrics import Summary
from shoal.run.pipeline import Pipeline, Run
from shoal.run.recovery import Recovery
from shoal.run.state.seal import Seal
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.testing.broker import create_topics

__all__ = ["RARELY", "Input", "Taken", "castle", "fill", "pass_through", "run"]

SEED = b"benchmark"
#: How many rows are handed to the client at once while a topic is filled.
FILL_ROWS = 65_536
#: The longest time between two checkpoints that a job may ask for: none comes in a benchmark.
RARELY = 1e6


@dataclass(frozen=True)
class Input:
    """A topic that is filled: where, with what, and how its messages look."""

    address: str
    topic: str
    workload: Workload
    form: str
    message_rows: int
    n_rows: int


@dataclass(frozen=True)
class Taken:
    """What a run took: wall time, processor time of this process, and the share of others."""

    n_rows: int
    seconds: float
    own_seconds: float
    others: float
    #: Of each checkpoint between the first and the last: bytes, and the seconds of writing it.
    saved: list[tuple[int, float]] = field(default_factory=list)
    #: For how many seconds each checkpoint kept the deciding thread from deciding.
    stopped: list[float] = field(default_factory=list)
    #: Of these, what beginning a new segment of the journal took: it is synced.
    rolled: list[float] = field(default_factory=list)

    @property
    def rows_per_second(self) -> float:
        return self.n_rows / self.seconds


def fill(
    address: str, workload: Workload, form: str, message_rows: int, n_rows: int, times: int = 1
) -> Input:
    """Write the first rows of a workload to a new topic, maybe several times over."""
    topic = _new_topic(address, "in")
    file = pq.ParquetFile(workload.path)
    settings = KafkaSettings(address, topic, format=form, rows=message_rows)
    sink = KafkaSink(settings, file.schema_arrow, None, job=topic)
    for _ in range(times):
        left = n_rows
        for batch in file.iter_batches(FILL_ROWS):
            sink.write(batch.slice(0, left))
            sink.flush()
            left -= min(left, batch.num_rows)
            if not left:
                break
    sink.close()
    return Input(address, topic, workload, form, message_rows, n_rows * times)


def castle(
    source: Input, *, k: int, delay: int, every: float = 10.0, seal: Seal | None = None
) -> Taken:
    """CASTLE with its default knobs."""
    policy = Policy(KAnonymity(k), delay=Delay(rows=delay))
    return run(source, Castle(), policy, every=every, seal=seal)


def pass_through(source: Input, *, every: float = 10.0) -> Taken:
    """The same way of the data, with nothing to decide."""
    return run(source, PassThrough(), POLICY, every=every)


def run(
    source: Input,
    anonymizer: Anonymizer,
    policy: Policy,
    *,
    every: float = 10.0,
    seal: Seal | None = None,
) -> Taken:
    """Read a topic, publish all of it to a new one in messages of the same form, and end.

    The time is that of everything between the first checkpoint and the last: opening the output,
    reading, deciding, writing, committing, and publishing what is held at the end.
    """
    address, schema = source.address, source.workload.schema
    topic = _new_topic(address, "out")
    reading = KafkaSource(KafkaSettings(address, source.topic, format=source.form), schema.columns)
    writing = KafkaSettings(address, topic, format=source.form, rows=source.message_rows)

    def watch(summary: Summary) -> None:
        if summary.n_in >= source.n_rows:
            running.stop()

    with tempfile.TemporaryDirectory(prefix="shoal-state-") as folder:
        running = Pipeline(schema, policy, anonymizer, seed=SEED).run(
            reading,
            _Topic(writing, topic),
            on_bad=_Refuse(),
            watch=watch,
            recovery=Recovery(Path(folder), {}, every=every, seal=seal),
            drain=True,
        )
        watched = _Stopwatch(running)
        use = Use.now()
        begin = time.perf_counter()
        summary = running.execute()
        seconds = time.perf_counter() - begin
        spent = use.since()
        reading.close()
    assert (summary.n_in, summary.n_held) == (source.n_rows, 0)
    _delete(address, topic)
    return Taken(
        summary.n_in, seconds, spent.own, spent.others,
        # The first is of a job that has nothing, the last of one that has nothing any more.
        watched.saved[1:-1], watched.stopped[:-1], watched.rolled[:-1],
    )  # fmt: skip


class _Stopwatch:
    """Takes the times of checkpoints, from the first to the last.

    They aren't visible from outside, so the methods that take them are wrapped.
    """

    def __init__(self, running: Run) -> None:
        assert running._checkpointer is not None
        self._checkpointer, self._core = running._checkpointer, running._core
        self._cut, self._save = self._checkpointer.cut, self._checkpointer.save
        self._snapshot = self._core.snapshot
        self.saved: list[tuple[int, float]] = []
        self.stopped: list[float] = []
        self.rolled: list[float] = []
        self._checkpointer.cut = self.cut  # type: ignore[method-assign]
        self._checkpointer.save = self.save  # type: ignore[method-assign]
        self._core.snapshot = self.snapshot  # type: ignore[method-assign]

    def cut(self) -> int:
        begin = time.perf_counter()
        number = self._cut()
        self.rolled.append(time.perf_counter() - begin)
        return number

    def snapshot(self) -> Any:
        begin = time.perf_counter()
        state = self._snapshot()
        # The first one, of an empty job, has no segment before it to end.
        if self.rolled:
            self.stopped.append(self.rolled[-1] + time.perf_counter() - begin)
        return state

    def save(self, *parts: Any) -> None:
        self._save(*parts)
        assert self._checkpointer.saved is not None
        self.saved.append((self._checkpointer.saved.n_bytes, self._checkpointer.saved.seconds))


@dataclass(frozen=True)
class _Topic:
    """A sink factory for a topic."""

    settings: KafkaSettings
    job: str

    def check(self) -> None:
        refuse_started(self.settings, self.job)

    def open(self, schema: pa.Schema, mark: CommitMark | None) -> Sink:
        return KafkaSink(self.settings, schema, mark, job=self.job)


class _Refuse:
    """A quarantine for a workload that has nothing to put there."""

    n_ahead = 0

    def __call__(self, bad: list[BadRow]) -> None:
        raise SystemExit(f"{len(bad)} rows of the workload can't be used: {bad[0].reason}")

    def check(self) -> None:
        """There is nothing."""

    def resume(self, mark: CommitMark) -> None:
        """There is nothing."""

    def commit(self) -> CommitMark:
        return {}


def _new_topic(address: str, word: str) -> str:
    name = f"bench-{word}-{uuid.uuid4().hex[:12]}"
    create_topics({"bootstrap.servers": address}, [name])
    return name


def _delete(address: str, topic: str) -> None:
    """Let the broker forget an output: ten of them would be gigabytes."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for future in admin.delete_topics([topic]).values():
        future.result()
