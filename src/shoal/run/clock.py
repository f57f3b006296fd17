"""The clock of runs whose rows have no time of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Clock", "lead", "steady"]

#: How long before a deadline a tick comes, so that due rows leave in time: a share of the delay,
#: and at most this many seconds.
LEAD_SHARE, LEAD_MOST = 0.1, 0.2

#: On Linux this clock keeps running while the machine sleeps, as deadlines do.
_COUNTER = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_BEGIN = time.time() - time.clock_gettime(_COUNTER)


def steady() -> float:
    """Return seconds since 1970: the wall clock at the start of the process, steady since then.

    So a wall clock that is set meanwhile neither delays rows nor releases them early.
    """
    return _BEGIN + time.clock_gettime(_COUNTER)


def lead(seconds: float | None) -> float:
    """Return how many seconds before a deadline a tick comes, given the delay.

    >>> lead(30), lead(1), lead(None)
    (0.2, 0.1, 0.0)
    """
    return min(LEAD_MOST, LEAD_SHARE * (seconds or 0.0))


class Clock:
    """A clock that never goes back, not even from one run of a job to the next.

    >>> times = iter([5.0, 3.0, 6.0])
    >>> clock = Clock(lambda: next(times))
    >>> clock(), clock(), clock()
    (5.0, 5.0, 6.0)
    """

    def __init__(self, inner: Callable[[], float]) -> None:
        self._inner = inner
        self._ahead = 0.0
        self._latest = -float("inf")
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """Return the time, never earlier than before."""
        with self._lock:
            self._latest = max(self._latest, self._inner() + self._ahead)
            return self._latest

    def resume(self, latest: float) -> None:
        """Continue from the latest time of the run before; if that is ahead, stay ahead."""
        with self._lock:
            self._ahead = max(0.0, latest - self._inner())
            self._latest = latest
