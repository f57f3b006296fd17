"""A clock that is set by hand, for code that takes a callable as its clock."""

from __future__ import annotations

import math

from shoal.errors import ParameterError

__all__ = ["ManualClock"]


class ManualClock:
    """A callable that returns the time it was set to, in seconds.

    It can be set back, as real clocks are.

    >>> clock = ManualClock(10.0)
    >>> clock.advance(2.5)
    >>> clock()
    12.5
    >>> clock.set(3.0)
    >>> clock()
    3.0
    """

    __slots__ = ("_now",)

    def __init__(self, now: float = 0.0) -> None:
        self.set(now)

    def __call__(self) -> float:
        """Return the time."""
        return self._now

    def __repr__(self) -> str:
        return f"ManualClock({self._now:g})"

    def set(self, now: float) -> None:
        """Set the time."""
        if not math.isfinite(now):
            raise ParameterError("ManualClock.now", "must be a finite number of seconds", got=now)
        self._now = float(now)

    def advance(self, seconds: float) -> None:
        """Add seconds to the time."""
        self.set(self._now + seconds)
