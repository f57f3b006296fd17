"""Threads of an engine, which may not be there: then the caller does the work itself.

A forked process has none of the threads of its parent. And at the end of a program, when its main
thread has ended or handlers of `atexit` run, Python starts no task any more, though other threads
still push rows, and the last ones are yet to be flushed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["Pool", "n_processors"]

T = TypeVar("T")


def n_processors() -> int:
    """Return the number of processors that this process may use."""
    # On some systems a process can't be bound to a part of them.
    bound = getattr(os, "sched_getaffinity", None)
    return len(bound(0)) if bound is not None else os.cpu_count() or 1


class Pool:
    """Up to ``n`` threads, which start with the first tasks; ``name`` is what theirs begin with."""

    def __init__(self, n: int, name: str) -> None:
        self._n, self._name = n, name
        self._process = 0
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, task: Callable[[], T]) -> Future[T] | None:
        """Have a thread do a task; None: there is no thread for it, and it won't be done."""
        if self._executor is None or self._process != os.getpid():
            self._executor, self._process = ThreadPoolExecutor(self._n, self._name), os.getpid()
        future: Future[T] = Future()
        try:
            self._executor.submit(_run, future, task)
        except RuntimeError:
            # Where one more thread couldn't be started, the task waits for another one all the
            # same: it must not be done twice.
            return None if future.cancel() else future
        return future


def _run(future: Future[T], task: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = task()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
