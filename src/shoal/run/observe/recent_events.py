"""Keep the latest events of a run, as the live page may show them."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from typing import Any

from shoal.events import facts_of, raised_of
from shoal.run.observe.intervals import OncePerInterval

__all__ = ["RecentEvents"]

#: The most events that are kept.
MOST = 50


class RecentEvents(logging.Handler):
    """Take the events of the logger ``shoal``; the newest are shown once their interval is over.

    An event is shown by its name, with the type of its exception and the beginning of its interval
    as its time. Its exact time and its counts would tell when single rows came, and its sentence
    may name files and brokers: only the log has these. In one interval, an event is shown once.

    Parameters
    ----------
    interval
        The seconds of an interval.
    clock
        Returns seconds; monotonic.
    epoch
        What the clock showed as 0, in seconds since 1970.
    """

    def __init__(self, interval: float, clock: Callable[[], float], epoch: float) -> None:
        super().__init__(logging.INFO)
        self._clock, self._epoch = clock, epoch
        self._kept: list[dict[str, Any]] = []
        # As a whole: an old event that goes at once would tell when the new one came.
        self._shown: OncePerInterval[list[dict[str, Any]]] = OncePerInterval(interval, clock)
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an event."""
        try:
            name, raised = facts_of(record)["event"], raised_of(record)
        except Exception:
            # An event that can't be shown must not end the run.
            return
        more = {} if raised is None else {"error": raised.error}
        self._keep({"level": record.levelname.lower(), "event": name} | more)

    def note(self, name: str, text: str | None = None, level: str = "info") -> None:
        """Keep something that isn't logged.

        The text is shown: it must not depend on the data, nor name files, topics or brokers.
        """
        more = {} if text is None else {"text": text}
        self._keep({"level": level, "event": name} | more)

    def _keep(self, event: dict[str, Any]) -> None:
        with self._guard:
            event = {"time": self._interval_began(), **event}
            self._kept = [each for each in self._kept if each != event]
            # Of equal events in a row, the newest is enough.
            if self._kept and self._kept[-1] | {"time": event["time"]} == event:
                self._kept.pop()
            self._kept = [*self._kept, event][-MOST:]
            self._shown.offer(self._kept)

    def _interval_began(self) -> int:
        """Return when the current interval began, in seconds since 1970."""
        interval = self._shown.interval
        return math.floor(math.floor(self._clock() / interval) * interval + self._epoch)

    def shown(self) -> list[dict[str, Any]]:
        """Return the events of the intervals that are over, the newest first."""
        return [*reversed(self._shown.get() or [])]

    def __enter__(self) -> None:
        logging.getLogger("shoal").addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("shoal").removeHandler(self)
