"""Keep the latest events of a run, as they may be shown."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from shoal.events import Plain, facts_of

__all__ = ["RecentEvents"]

#: The most events that are kept.
MOST = 50


class RecentEvents(logging.Handler):
    """Take the events of the logger ``shoal``; the newest are kept.

    What is shown of an event is what a log on stderr shows. An event is shown when the interval in
    which it happened is over, like the figures of rows.

    Parameters
    ----------
    interval
        The seconds of an interval.
    clock
        Returns seconds; monotonic.
    """

    def __init__(self, interval: float, clock: Callable[[], float]) -> None:
        super().__init__(logging.INFO)
        self._interval, self._clock = interval, clock
        self._kept: deque[tuple[int, dict[str, Plain]]] = deque(maxlen=MOST)
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an event."""
        try:
            facts = facts_of(record)
        except Exception:
            # An event that can't be shown must not end the run.
            return
        self._keep(record.created, record.levelname.lower(), facts)

    def note(self, name: str, text: str | None = None, level: str = "info") -> None:
        """Keep something that isn't logged."""
        facts: dict[str, Plain] = {"event": name}
        if text is not None:
            facts["text"] = text
        self._keep(time.time(), level, facts)

    def _keep(self, at: float, level: str, facts: dict[str, Plain]) -> None:
        head: dict[str, Plain] = {"time": int(at), "level": level}
        slot = self._slot()
        with self._guard:
            self._drop_repeated(slot, facts["event"])
            self._kept.append((slot, head | facts))

    def _drop_repeated(self, slot: int, name: Plain) -> None:
        """Keep two of many equal events in a row: the newest one that is shown, and the next."""
        if len(self._kept) < 2 or any(self._kept[i][1]["event"] != name for i in (-1, -2)):
            return
        is_shown = self._kept[-1][0] < slot
        del self._kept[-2 if is_shown else -1]

    def shown(self) -> list[dict[str, Any]]:
        """Return the events of the intervals that are over, the newest first."""
        slot = self._slot()
        with self._guard:
            return [facts for at, facts in reversed(self._kept) if at < slot]

    def _slot(self) -> int:
        return int(self._clock() // self._interval)

    def __enter__(self) -> None:
        logging.getLogger("shoal").addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("shoal").removeHandler(self)
