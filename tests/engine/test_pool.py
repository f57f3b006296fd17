"""Threads that may not be there: in a forked process, and at the end of a program."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import thread as executors
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema
from shoal.algorithms import Fast, Tide, fast
from shoal.engine import Codes, Engine
from shoal.engine.base import Anonymizer
from shoal.engine.pool import Pool
from shoal.engine.tide import by_batch
from shoal.engine.tide.threads import Threads
from tests.engine.test_cache import python

N_ROWS = 120
ENGINES = [Tide(release="batch", workers=2, effort=0), Fast(workers=2)]


@pytest.fixture(autouse=True)
def _with_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_batch, "WORTH_A_THREAD", 10)
    monkeypatch.setattr(fast, "WORTH_A_THREAD", 10)
    monkeypatch.setattr(fast, "IS_PLAIN", False)
    monkeypatch.setattr(fast, "n_processors", lambda: 2)


def engine_of(anonymizer: Anonymizer) -> Engine:
    schema = Schema("p", [Quasi("x", Range(0, 1000))])
    return anonymizer.start(schema, Policy(KAnonymity(5), delay=Delay(rows=40)), seed=b"pool")


def push(engine: Engine, begin: int = 0) -> list[bytes]:
    numbers = np.arange(begin, begin + N_ROWS)
    values, nothing = (numbers * 37 % 1000).astype(float), np.empty((N_ROWS, 0), np.int64)
    codes = Codes(values.reshape(-1, 1), numbers, nothing, np.full(N_ROWS, np.nan))
    return [array.tobytes() for array in engine.push(codes)]


def in_fork(check: Callable[[], bool]) -> bool:
    """Whether a check succeeds in a forked process, within a minute."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def test_a_task_is_done_in_another_thread() -> None:
    future = Pool(1, "some").submit(threading.current_thread)
    assert future is not None
    assert future.result().name.startswith("some")


def test_what_a_task_raises_is_kept() -> None:
    future = Pool(1, "some").submit(partial(int, "no number"))
    assert future is not None
    with pytest.raises(ValueError):
        future.result()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own() -> None:
    threads = Threads(2)
    tasks = [partial(int, n) for n in "123456"]
    assert [threads.begin(task)() for task in tasks] == [1, 2, 3, 4, 5, 6]
    assert in_fork(lambda: [threads.begin(task)() for task in tasks] == [1, 2, 3, 4, 5, 6])
    assert in_fork(lambda: threads.each(tasks) == [1, 2, 3, 4, 5, 6])


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("anonymizer", ENGINES, ids=lambda one: one.name)
def test_an_engine_goes_on_in_a_forked_process(anonymizer: Anonymizer) -> None:
    here, there = engine_of(anonymizer), engine_of(anonymizer)
    assert push(here) == push(there)
    decided = push(here, N_ROWS)
    assert in_fork(lambda: push(there, N_ROWS) == decided)


@pytest.mark.parametrize("anonymizer", ENGINES, ids=lambda one: one.name)
def test_an_engine_decides_alike_when_the_program_ends(
    anonymizer: Anonymizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = engine_of(anonymizer), engine_of(anonymizer)
    assert push(one) == push(other)
    decided = push(one, N_ROWS), [array.tobytes() for array in one.flush()]
    # As it is when the main thread has ended.
    monkeypatch.setattr(executors, "_shutdown", True)
    assert (push(other, N_ROWS), [array.tobytes() for array in other.flush()]) == decided


def test_a_task_that_waits_for_a_thread_isnt_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The executor keeps a task for which it couldn't start one more thread."""
    pool, go, done = Pool(2, "some"), threading.Event(), []
    first = pool.submit(lambda: go.wait(30))

    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadPoolExecutor, "_adjust_thread_count", refuse)
    assert pool.submit(lambda: done.append(1)) is None
    monkeypatch.undo()
    last = pool.submit(lambda: done.append(2))
    go.set()
    assert first is not None
    assert last is not None
    last.result(30)
    assert done == [2]


ENDING = """
import atexit, threading, time
from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, Stream
from shoal.algorithms import Tide
from shoal.engine.tide import by_batch
by_batch.WORTH_A_THREAD = 10
schema = Schema("p", [Quasi("x", Range(0, 1000))])
policy = Policy(KAnonymity(2), delay=Delay(rows=30))
stream = Stream(schema, policy, Tide(release="batch", workers=2, effort=0))
main = threading.current_thread()
def consume():
    main.join()
    stream.push([{"p": i, "x": i % 1000} for i in range(80)])
atexit.register(lambda: print(stream.flush() and stream.summary.n_published))
threading.Thread(target=consume).start()
"""


def test_a_program_may_end_with_rows_that_are_held(tmp_path: Path) -> None:
    """A thread pushes after the main thread has ended, and the rest is flushed at exit."""
    assert python(ENDING, NUMBA_DISABLE_JIT="1") == "80"
