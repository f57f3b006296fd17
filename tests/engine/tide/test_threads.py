"""Threads of an engine: results in order, no thread without need, as many as there are cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial

import pytest

from shoal.engine.tide import threads as threads_module
from shoal.engine.tide.threads import MOST, Threads, cores


def named(number: int) -> tuple[int, str]:
    return number, threading.current_thread().name


@pytest.mark.parametrize("n", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(n: int) -> None:
    found = Threads(n).each([partial(named, i) for i in range(40)])
    assert [number for number, _ in found] == list(range(40))


def test_one_thread_is_that_of_the_caller() -> None:
    threads, own = Threads(1), threading.current_thread().name
    assert [name for _, name in threads.each([partial(named, i) for i in range(3)])] == [own] * 3
    assert threads.begin(partial(named, 7))() == (7, own)


def test_tasks_that_occupy_all_threads_share_their_work_all_the_same() -> None:
    threads = Threads(2)
    begun = threading.Barrier(2)

    def share(first: int) -> list[int]:
        begun.wait(30)
        found = threads.each([partial(named, first + i) for i in range(10)])
        return [number for number, _ in found]

    results = [threads.begin(partial(share, first)) for first in (0, 100)]
    assert [result() for result in results] == [list(range(10)), list(range(100, 110))]


def test_what_a_task_raises_reaches_the_caller() -> None:
    def fails() -> int:
        raise ValueError

    lists: list[list[Callable[[], int]]] = [[fails, int], [int, fails], [int, int, fails]]
    for tasks in lists:
        with pytest.raises(ValueError):
            Threads(2).each(tasks)


def test_there_is_a_thread_for_each_core_that_the_process_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads_module, "IS_PLAIN", False)
    for n in (1, 2, MOST, MOST + 1):
        bound = set(range(n))
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, bound=bound: bound, raising=False)
        assert cores() == min(n, MOST)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_plain_python_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_module, "IS_PLAIN", True)
    assert cores() == 1
