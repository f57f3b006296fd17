"""What time it is, for runs whose rows have no time of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Clock", "steady"]

#: On Linux this one goes on while the machine sleeps, as deadlines do.
_COUNTER = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_BEGIN = time.time() - time.clock_gettime(_COUNTER)


def steady() -> float:
    """Seconds since 1970, by the wall clock of when the process began, and steady since.

    A wall clock that is set back or forth meanwhile neither holds rows longer nor lets them go.
    """
    return _BEGIN + time.clock_gettime(_COUNTER)


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
        """The time, which is no earlier than any it told before."""
        with self._lock:
            self._latest = max(self._latest, self._inner() + self._ahead)
            return self._latest

    def resume(self, latest: float) -> None:
        """Go on from what a run before took for the time; where it was ahead, stay ahead."""
        with self._lock:
            self._ahead = max(0.0, latest - self._inner())
            self._latest = latest
