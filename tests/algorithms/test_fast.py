"""FAST's engine: workers that run at once, whichever is faster, and rows that are never late."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import numba
import numpy as np
import pytest

from shoal import Delay, EntropyLDiversity, KAnonymity, Policy, Quasi, Range, Schema, Sensitive
from shoal.algorithms import fast
from shoal.algorithms.fast import Fast, FastEngine
from shoal.engine import Codes, Decisions
from shoal.engine.base import Engine, Out, Outcome
from shoal.engine.deadlines import DONE, InputBatch
from shoal.engine.fast import crew
from shoal.engine.space import Space
from shoal.errors import ParameterError, UnsupportedError
from shoal.testing.streams import Stream, difference, joined, play, steps
from tests.algorithms.rows import outcomes, stream

SCHEMA = Schema("p", [Quasi("x", Range(0, 1000)), Quasi("y", Range(0, 1000))], [Sensitive("s")])


def crowd(
    n_rows: int, policy: Policy, *, n_subjects: int = 10**6, per_second: float = 0.0, seed: int = 1
) -> Stream:
    draw = np.random.default_rng(seed)
    times = np.cumsum(draw.exponential(1 / per_second, n_rows)) if per_second else np.nan
    codes = Codes(
        draw.uniform(0, 1000, (n_rows, 2)),
        draw.integers(0, n_subjects, n_rows),
        draw.integers(0, 5, (n_rows, 1)),
        np.broadcast_to(times, n_rows).astype(float).copy(),
    )
    return Stream(SCHEMA, policy, codes)


class Stepwise(FastEngine):
    """Rounds by single steps, without a thread that leads."""

    def _rounds(self, batch: InputBatch, out: Out) -> None:
        made = crew.new_crew(self.state)
        known = self._rules, self.state, self._block, batch, made
        while True:
            crew.open_round(*known, out)
            self._work(known, out)
            crew.close_round(self._rules, self.state, made, batch.at_end, out)
            if fast.until_round(*known[:4], out) == DONE:
                break
        crew.hand_over_all(self.state, made, out)

    def _work(self, known: Any, out: Out) -> None:
        for number in range(len(self.state.draws)):
            crew.work_off(*known, number, out)


class Disordered(Stepwise):
    """Workers start in another order each round, and each is held up for a while."""

    draw = random.Random(0)

    def _work(self, known: Any, out: Out) -> None:
        n = len(self.state.draws)

        def late(number: int, pause: float) -> None:
            time.sleep(pause)
            crew.work_off(*known, number, out)

        mixed = self.draw.sample(range(n), n)
        in_threads([partial(late, number, self.draw.uniform(0, 0.002)) for number in mixed])


class Helpers(Stepwise):
    """Three threads that help, and nobody who leads."""

    def __init__(self, *known: Any) -> None:
        super().__init__(*known)
        self.done = 0

    def _work(self, known: Any, out: Out) -> None:
        gate, n = known[-1].gate, len(self.state.draws)
        gate[crew.END] += n

        def work() -> None:
            self.done += crew.help_out(*known, out)

        in_threads([work] * 3)
        assert gate[crew.NEXT] == gate[crew.FINISHED] == gate[crew.END]


class Waiting(FastEngine):
    """The first round of a batch is done by others, who are slow."""

    def _rounds(self, batch: InputBatch, out: Out) -> None:
        made, n = crew.new_crew(self.state), len(self.state.draws)
        known = self._rules, self.state, self._block, batch, made
        crew.open_round(*known, out)
        made.gate[crew.HELPED] = made.gate[crew.IS_OPEN] = 1
        made.gate[crew.NEXT] = made.gate[crew.END] = n
        for number in range(n):
            assert crew.lead(*known, 0, out) == crew.WAITS
            crew.work_off(*known, number, out)
            made.gate[crew.FINISHED] += 1
        assert crew.lead(*known, 0, out) == DONE


def in_threads(tasks: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def by(engine: type[FastEngine]) -> type[Fast]:
    """FAST by another engine; the anonymizer is the same in all else."""

    class FastBy(Fast):
        def _start(self, space: Space, seed: bytes) -> Engine:
            return engine(self, space, seed)

    return FastBy


@pytest.mark.parametrize(
    ("reuse", "joins"), [("random", "together"), ("random", "alone"), ("best", "alone")]
)
@pytest.mark.parametrize("workers", [2, 3])
def test_the_result_is_the_same_for_any_timing_of_the_threads(
    workers: int, reuse: str, joins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(fast, "n_processors", lambda: workers)
    monkeypatch.setattr(fast, "IS_PLAIN", False)
    stream = crowd(600, Policy(KAnonymity(4), delay=Delay(rows=90)), n_subjects=200)
    knobs = {"workers": workers, "block": 12, "reuse": reuse, "kept": 6, "joins": joins}
    decided, *others = (
        play(anonymizer(**knobs), stream)
        for anonymizer in (Fast, *map(by, (Stepwise, Disordered, Helpers, Waiting)))
    )
    assert len(set(decided.groups.tolist())) > 20
    assert (decided.outcomes == Outcome.reuse).any()
    for other in others:
        assert difference(decided, other) is None


def test_another_number_of_workers_gives_another_result() -> None:
    stream = crowd(300, Policy(KAnonymity(4), delay=Delay(rows=60)))
    one, two = (play(Fast(workers=n, block=10), stream) for n in (1, 2))
    assert difference(one, two) is not None


def test_workers_run_in_threads_that_stay_for_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few rows held there are none; then one for each worker but the first, if it can be."""
    called: list[int] = []

    class Counting(FastEngine):
        def _call(self, task: Callable[[], None]) -> list[Future[None]]:
            helpers = super()._call(task)
            called.append(len(helpers))
            return helpers

    monkeypatch.setattr(fast, "IS_PLAIN", False)
    policy = Policy(KAnonymity(2), delay=Delay(rows=30))
    for n_processors, least, expected in ((8, 31, []), (8, 10, [2]), (2, 10, [1]), (1, 10, [0])):
        monkeypatch.setattr(fast, "n_processors", partial(int, n_processors))
        monkeypatch.setattr(fast, "WORTH_A_THREAD", least)
        stream = crowd(60, policy)
        engine = stream.start(by(Counting)(workers=3, block=5))
        called.clear()
        engine.push(stream.codes)
        assert called == expected


def test_a_thread_that_fails_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise MemoryError("no room")

    monkeypatch.setattr(fast, "IS_PLAIN", False)
    monkeypatch.setattr(fast, "n_processors", lambda: 2)
    monkeypatch.setattr(fast, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(fast, "help_out", fail)
    stream = crowd(60, Policy(KAnonymity(2), delay=Delay(rows=30)))
    with pytest.raises(MemoryError, match="no room"):
        play(Fast(workers=2, block=5), stream)


def test_nobody_waits_for_a_thread_that_failed_in_its_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has taken a worker, and never finishes."""

    def fail(gate: Any, *_: object) -> None:
        gate[crew.FAILED] = 1
        raise MemoryError("no room")

    monkeypatch.setattr(fast, "IS_PLAIN", False)
    monkeypatch.setattr(fast, "n_processors", lambda: 2)
    monkeypatch.setattr(fast, "WORTH_A_THREAD", 0)
    events = iter([crew.NEEDS_HELP])
    monkeypatch.setattr(fast, "lead", lambda *_: next(events, crew.WAITS))
    monkeypatch.setattr(fast, "_help", fail)
    stream = crowd(60, Policy(KAnonymity(2), delay=Delay(rows=30)))
    with pytest.raises(MemoryError, match="no room"):
        play(Fast(workers=2, block=5), stream)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="plain Python holds its lock all the time")
def test_kernels_of_workers_let_each_other_run() -> None:
    """While one worker is in its kernel, another thread gets to run Python."""
    assert all(kernel.targetoptions["nogil"] for kernel in (fast.lead, fast.help_out))


def test_a_round_comes_with_the_last_row_of_a_block_of_each() -> None:
    stream = crowd(400, Policy(KAnonymity(3), delay=Delay(rows=50)))
    decided = play(Fast(workers=2, block=8), stream)
    instants = {int(at) for at in decided.published if at < 400}
    assert instants
    assert all((at + 1) % 16 == 0 for at in instants)


def test_a_row_is_never_published_after_its_expiry() -> None:
    """Bursts and pauses, so that the time of a round is estimated badly, in both directions."""
    policy = Policy(KAnonymity(3), delay=Delay(seconds=2.0))
    draw = np.random.default_rng(3)
    gaps = np.where(draw.random(2000) < 0.01, 5.0, draw.exponential(0.02, 2000))
    stream = crowd(2000, policy)
    stream = Stream(SCHEMA, policy, stream.codes._replace(times=np.cumsum(gaps)))
    decided = play(Fast(workers=2, block=20), stream)
    waited = decided.published_s - stream.codes.times[decided.rows]
    assert len(waited) == 2000
    assert waited.max() <= 2.0 + 1e-9
    # Most leave before: who can't wait for the next round doesn't.
    assert (waited < 1.99).mean() > 0.5


def test_the_time_of_a_round_is_estimated_from_the_rows() -> None:
    policy = Policy(KAnonymity(2), delay=Delay(seconds=100.0))
    stream = crowd(64, policy)
    stream = Stream(SCHEMA, policy, stream.codes._replace(times=np.arange(64.0)))
    engine = stream.start(Fast(workers=1, block=8))
    engine.push(stream.codes)
    assert engine.state.clock["estimate"][0] == 8.0


def test_rows_that_a_worker_has_no_group_for_meet_those_of_others() -> None:
    policy = Policy(KAnonymity(4), delay=Delay(rows=7))
    decided = play(Fast(workers=4, block=1, kept=0), crowd(200, policy))
    assert (decided.outcomes != Outcome.suppressed).mean() > 0.95


def test_deadlines_between_rounds_are_kept() -> None:
    """A block that is far larger than the delay never fills in time."""
    policy = Policy(KAnonymity(2), delay=Delay(rows=5))
    stream = crowd(100, policy)
    decided = play(Fast(workers=2, block=1000), stream)
    assert (decided.published - decided.rows).max() <= 5


def test_one_wide_group_doesnt_take_in_everybody_for_ever() -> None:
    """Five people in a quiet night, then a busy day: kept groups get old, reused or not."""
    n = 3000
    values = np.random.default_rng(2).normal(500, 80, (n, 2)).clip(0, 1000).round()
    values[:5] = [[0, 0], [1000, 1000], [500, 500], [200, 800], [800, 200]]
    times = np.r_[np.arange(5.0), 3600 + np.arange(n - 5) * 0.1]
    codes = Codes(values, np.arange(n), np.zeros((n, 1), np.int64), times)
    policy = Policy(KAnonymity(5), delay=Delay(seconds=20))
    decided = play(
        Fast(workers=1, block=50, kept=50, joins="alone", age=400), Stream(SCHEMA, policy, codes)
    )
    by_row = decided.losses[np.argsort(decided.rows)]
    assert by_row[50:300].mean() > 0.9
    assert by_row[1500:].mean() < 0.3


@pytest.mark.parametrize(("reuse", "is_renewed"), [("best", True), ("random", False)])
def test_only_the_best_group_is_renewed_by_reuse(reuse: str, is_renewed: bool) -> None:
    """Two people are a group; a third one alone joins it as long as it isn't too old."""
    policy = Policy(KAnonymity(2), delay=Delay(rows=1))
    values, people = np.full((12, 2), 500.0), np.array([0, 1, *[2] * 10])
    codes = Codes(values, people, np.zeros((12, 1), np.int64), np.full(12, np.nan))
    anonymizer = Fast(
        workers=1, block=1, kept=50, joins="alone", age=3, reuse=reuse,  # type: ignore[arg-type]
    )  # fmt: skip
    decided = play(anonymizer, Stream(SCHEMA, policy, codes))
    reused = set(decided.rows[decided.outcomes == Outcome.reuse].tolist())
    assert 3 in reused
    assert (10 in reused) == is_renewed


@pytest.mark.parametrize(("reuse", "is_renewed"), [("best", True), ("random", False)])
def test_only_the_best_group_is_renewed_by_reuse_in_company(reuse: Any, is_renewed: bool) -> None:
    """Two people at a time join a group each: a new one of both would lose more."""
    rows = [(20, "a"), (20, "b"), (80, "c"), (80, "d"), *[(20, "e"), (80, "f")] * 10]
    played = stream(rows, Policy(KAnonymity(2), delay=Delay(rows=3)))
    anonymizer = Fast(workers=1, block=2, kept=50, age=6, reuse=reuse)
    decided = played.start(anonymizer).push(played.codes)
    assert outcomes(decided)[7] == "reuse"
    assert (set(decided.rows[decided.outcomes == Outcome.group]) == {0, 1, 2, 3}) == is_renewed


def test_a_row_without_company_joins_in_the_round_before_it_is_due() -> None:
    """When it is due would tell when it came; in a round others leave with it."""
    rows = [(20, "a"), (40, "b"), *[(30, "t")] * 28]
    played = stream(rows, Policy(KAnonymity(2), delay=Delay(rows=10)))
    decided = played.start(Fast(workers=1, kept=50, age=100)).push(played.codes)
    reused = decided.outcomes == Outcome.reuse
    assert set(decided.rows[reused].tolist()) >= set(range(4, 20))
    assert set(decided.published[reused].tolist()) == {14, 19, 24, 29}


def test_evenness_is_left_to_others() -> None:
    policy = Policy(KAnonymity(2), EntropyLDiversity(2), delay=Delay(rows=5))
    with pytest.raises(UnsupportedError, match="'fast' can't enforce entropy"):
        Fast().start(SCHEMA, policy)


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"workers": 0}, "Fast.workers: must be a whole number of at least 1"),
        ({"workers": 65}, "Fast.workers: must be at most 64"),
        ({"block": 0}, "Fast.block: must be a whole number of at least 1"),
        ({"age": 0}, "Fast.age: must be a whole number of at least 1"),
        ({"kept": -1}, "Fast.kept: must be a whole number of at least 0"),
        ({"reuse": "worst"}, "Fast.reuse: must be one of random, best"),
    ],
)
def test_bad_knobs_are_refused(knobs: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Fast(**knobs)  # type: ignore[arg-type]


def test_the_block_follows_from_the_delay() -> None:
    def block(delay: Delay, **knobs: int) -> int:
        engine = Fast(**knobs).start(SCHEMA, Policy(KAnonymity(2), delay=delay))
        assert isinstance(engine, FastEngine)
        return engine._block

    assert block(Delay(rows=800)) == 200
    assert block(Delay(rows=800), workers=4) == 100
    assert block(Delay(rows=3)) == 1
    assert block(Delay(seconds=3)) == 250
    assert block(Delay(rows=800), block=7) == 7


def test_a_snapshot_between_rounds_continues_identically() -> None:
    """Rows that wait for a round, the estimate and every worker's random numbers are in it."""
    policy = Policy(KAnonymity(3), delay=Delay(rows=60, seconds=9.0))
    stream = crowd(400, policy, per_second=10)
    whole = play(Fast(workers=3, block=7), stream)
    first = stream.start(Fast(workers=3, block=7))
    before, n = [], 0
    for move, decided in steps(first, stream, stream.row_by_row()):
        before.append(decided)
        n = move.end
        if n == 201:
            break
    second = stream.start(Fast(workers=3, block=7), seed=b"other")
    second.restore(first.snapshot())
    after: list[Decisions] = [second.push(Codes(*(part[n:] for part in stream.codes)))]
    after.append(second.flush())
    assert difference(whole, joined([*before, *after])) is None
