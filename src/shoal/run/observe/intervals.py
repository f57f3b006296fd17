"""Show what is offered once an interval, at instants that don't depend on the stream."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from shoal.errors import ParameterError

__all__ = ["OncePerInterval"]

T = TypeVar("T")


class OncePerInterval(Generic[T]):
    """Keep the last thing that was offered before the current interval began.

    The instants of change are fixed: neither an offer nor a look brings one forward. Live figures
    would pair arrivals with releases.

    Parameters
    ----------
    interval
        The seconds between two changes.
    clock
        Returns seconds; monotonic.
    on_change
        Called with each thing when it begins to be shown, and the instant of the clock at which its
        interval ended.

    >>> now = [3.0]
    >>> shown = OncePerInterval(10.0, lambda: now[0])
    >>> shown.offer("first")
    >>> shown.get()
    >>> now[0] = 10.0
    >>> shown.get()
    'first'
    """

    def __init__(
        self,
        interval: float,
        clock: Callable[[], float],
        on_change: Callable[[T, float], None] | None = None,
    ) -> None:
        if not (math.isfinite(interval) and interval > 0):
            raise ParameterError("interval", "must be a number of seconds above 0", got=interval)
        #: The seconds between two changes.
        self.interval = interval
        self._clock, self._on_change = clock, on_change
        self._lock = threading.RLock()
        self._shown: T | None = None
        self._next: tuple[int, T] | None = None

    def offer(self, thing: T) -> None:
        """Offer the current state; may be called at any rate, from any thread."""
        slot = self._slot()
        with self._lock:
            self._advance(slot)
            self._next = (slot, thing)

    def get(self) -> T | None:
        """Return what is shown now; None before the first instant after an offer."""
        slot = self._slot()
        with self._lock:
            self._advance(slot)
            return self._shown

    def _slot(self) -> int:
        return math.floor(self._clock() / self.interval)

    def _advance(self, slot: int) -> None:
        """Show what was offered in an interval that is over."""
        if self._next is not None and self._next[0] < slot:
            before, self._shown = self._next
            self._next = None
            if self._on_change is not None:
                self._on_change(self._shown, (before + 1) * self.interval)
