"""FAST by two workers against one: the kernel alone, on encoded rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.measure import Sample, interleaved
from benchmarks.workloads import Workload
from shoal.algorithms.fast import Fast, FastEngine
from shoal.arrow.codec import Codec
from shoal.engine.base import Decisions, Out
from shoal.engine.deadlines import DONE, InputBatch
from shoal.engine.fast import crew
from shoal.engine.fast.rounds import until_round
from shoal.engine.space import Codes, Space
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.spec.schema import Schema

__all__ = ["LEAST_TIMES", "OneByOne", "encoded", "two_workers"]

#: Two workers should be at least this many times as fast as one.
LEAST_TIMES = 1.5
SEED = b"workers"


class OneByOne(FastEngine):
    """A run whose workers come one after another: what is left of several without threads."""

    def _call(self, task: Callable[[], None]) -> list[Future[None]]:
        return []


class Stepwise(FastEngine):
    """The same in single steps from Python, which tells how long the workers take.

    Each step costs some time of its own, so it isn't what others are compared with.
    """

    #: Processor seconds of the workers: what threads can do at once.
    at_work = 0.0

    def _rounds(self, batch: InputBatch, out: Out) -> None:
        made = crew.new_crew(self.state)
        known = self._rules, self.state, self._block, batch, made
        while True:
            crew.open_round(*known, out)
            begin = time.process_time()
            for number in range(len(self.state.draws)):
                crew.work_off(*known, number, out)
            self.at_work += time.process_time() - begin
            crew.close_round(self._rules, self.state, made, batch.at_end, out)
            if until_round(*known[:4], out) == DONE:
                break
        crew.hand_over_all(self.state, made, out)


def encoded(workload: Workload) -> list[Codes]:
    """The rows of a file as codes, in the batches in which a run would read them."""
    codec = Codec(workload.schema, key=bytes(8))
    with pq.ParquetFile(Path(workload.path)) as file:
        return [codec.encode(batch).codes for batch in file.iter_batches()]


def two_workers(
    schema: Schema, batches: Sequence[Codes], *, k: int, delay: int, kept: int, repeats: int
) -> dict[str, Any]:
    """One worker, two at once, and two one after the other, in turn."""
    policy = Policy(KAnonymity(k), delay=Delay(rows=delay))
    found: dict[str, list[Decisions]] = {}
    shares: list[float] = []

    def run(name: str, kind: type[FastEngine], workers: int) -> None:
        # Alone, so that workers reuse groups, too: rows join together when all of them are done.
        anonymizer = Fast(workers=workers, kept=kept, joins="alone")
        engine = kind(anonymizer, Space(schema, policy, anonymizer.loss), SEED)
        begin = time.process_time()
        found[name] = [*_pushed(engine, batches)]
        if isinstance(engine, Stepwise):
            shares.append(engine.at_work / (time.process_time() - begin))

    one, two, in_turn, _ = interleaved(
        repeats,
        partial(run, "one", FastEngine, 1),
        partial(run, "two", FastEngine, 2),
        partial(run, "in turn", OneByOne, 2),
        partial(run, "in steps", Stepwise, 2),
    )
    gain, by_threads = one.per(two), in_turn.per(two)
    n_rows = sum(len(codes.subjects) for codes in batches)
    return {
        "n_rows": n_rows,
        "k": k,
        "delay": delay,
        "kept": kept,
        "seconds": {
            "one": one.as_dict(), "two": two.as_dict(), "in_turn": in_turn.as_dict()
        },
        "gain": gain.as_dict(),
        "by_threads": by_threads.as_dict(),
        "at_work": Sample(tuple(shares)).as_dict(),
        "loss": {name: _loss(found[name]) for name in ("one", "two")},
        "alike": all(
            np.array_equal(ours, theirs, equal_nan=True)
            for both in zip(found["two"], found["in turn"], strict=True)
            for ours, theirs in zip(*both, strict=True)
        ),
        "target": LEAST_TIMES,
        "met": gain.median >= LEAST_TIMES,
    }  # fmt: skip


def _pushed(engine: FastEngine, batches: Sequence[Codes]) -> Iterator[Decisions]:
    for codes in batches:
        yield engine.push(codes)
    yield engine.flush()


def _loss(decisions: Sequence[Decisions]) -> float:
    return float(np.concatenate([each.losses for each in decisions]).mean())
