"""Threads that share the work of an engine: one for each core, started when there is work.

What they work on is the same for any number of them, and results come in the order of the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from shoal.engine.jit import IS_PLAIN
from shoal.engine.pool import Pool, n_processors

__all__ = ["MOST", "Threads", "cores"]

#: As many cores are used at most, unless more threads are asked for: one push rarely has more
#: batches, and another program may need the others.
MOST = 8

T = TypeVar("T")


def cores() -> int:
    """Return how many threads can work at a time in this process, at most `MOST`."""
    # Plain Python runs one thread at a time.
    return 1 if IS_PLAIN else min(MOST, n_processors())


class Threads:
    """Up to ``n`` threads, which start with the first task; with one, the caller does all work.

    Tasks may share their own work by `each`, but may not `begin` others.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._pool = Pool(n, "tide")

    def begin(self, task: Callable[[], T]) -> Callable[[], T]:
        """Begin a task; return a callable that waits for its result."""
        future = self._pool.submit(task) if self.n > 1 else None
        return task if future is None else future.result

    def each(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Run all tasks, in threads that have nothing else to do; return their results in order."""
        if self.n == 1 or len(tasks) == 1:
            return [task() for task in tasks]
        others = [self._pool.submit(task) for task in tasks[1:]]
        results = [tasks[0]()]
        # The last ones are the last to be begun by another thread.
        later = [
            task() if other is None or other.cancel() else other.result()
            for task, other in zip(tasks[:0:-1], reversed(others), strict=True)
        ]
        return results + later[::-1]
