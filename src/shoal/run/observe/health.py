"""Judge the health of a run from its reports and the time since the last one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.errors import PromiseError

__all__ = ["Health", "HealthMonitor", "Verdict"]

#: The most seconds between two rounds of the loop, and between two writes of a writer that has
#: something to write; after that there is no progress.
PATIENCE = 30.0
#: A checkpoint is overdue when it is older than this many intervals.
OVERDUE = 3


@dataclass(frozen=True, slots=True)
class Health:
    """The report of a run in each round of its loop.

    Parameters
    ----------
    checkpoint_age, checkpoint_every
        The age of the last checkpoint (before the first, of the run) and the interval, in seconds;
        None without checkpoints.
    connected
        Whether the source and the sink are connected.
    n_waiting
        How much waits to be written, in batches or rows.
    n_written
        How much was written so far; any number that grows with each write.
    """

    checkpoint_age: float | None = None
    checkpoint_every: float | None = None
    connected: bool = True
    n_waiting: int = 0
    n_written: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The health of a run.

    Parameters
    ----------
    status
        ``ok``, ``starting`` (before the first round of the loop) or ``failing``.
    reasons
        Sentences that say why it isn't ``ok``.
    loop_age, checkpoint_age
        Seconds since the last round of the loop, and since the last checkpoint; None if none.
    breaks_promise
        Whether the run has failed because a group broke a promise; it was not published.
    """

    status: str
    reasons: tuple[str, ...]
    loop_age: float | None
    checkpoint_age: float | None
    breaks_promise: bool = False

    @property
    def ok(self) -> bool:
        """Whether the status is ``ok``."""
        return self.status == "ok"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON. Ages in whole seconds don't show when rows come."""
        return {
            "status": self.status,
            "reasons": list(self.reasons),
            "loop_age_seconds": None if self.loop_age is None else int(self.loop_age),
            "checkpoint_age_seconds": (
                None if self.checkpoint_age is None else int(self.checkpoint_age)
            ),
        }


class HealthMonitor:
    """Take the reports of a run, and judge its health at any time, from any thread.

    A run that hangs can't report it. So the time since the last report counts, too.

    >>> now = [100.0]
    >>> monitor = HealthMonitor(clock=lambda: now[0])
    >>> monitor.report(Health())
    >>> monitor.verdict().status
    'ok'
    >>> now[0] += 31
    >>> monitor.verdict().reasons
    ('the main loop of the run has not advanced for 31 s',)
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last: Health | None = None
        self._turned = 0.0
        self._wrote = 0.0
        self._failure: str | None = None
        self._breaks_promise = False

    def report(self, health: Health) -> None:
        """Take the report of a round of the loop."""
        now = self._clock()
        with self._lock:
            last = self._last
            if last is None or last.n_waiting == 0 or health.n_written != last.n_written:
                self._wrote = now
            self._turned = now
            self._last = health

    def fail(self, error: BaseException) -> None:
        """Record that the run failed; only the type of the exception is used."""
        with self._lock:
            self._failure = type(error).__name__
            self._breaks_promise = isinstance(error, PromiseError)

    @property
    def is_connected(self) -> bool:
        """Whether source and sink are connected, by the last report."""
        with self._lock:
            return self._last is None or self._last.connected

    def verdict(self) -> Verdict:
        """Judge the run now."""
        now = self._clock()
        with self._lock:
            health, turned, wrote, failure = self._last, self._turned, self._wrote, self._failure
            broken = self._breaks_promise
        reasons = [] if failure is None else [f"the run has failed with {failure}"]
        if health is None:
            status = "starting" if failure is None else "failing"
            reasons.append("the run has not begun to read")
            return Verdict(status, tuple(reasons), None, None, broken)
        loop_age = now - turned
        if loop_age > PATIENCE:
            reasons.append(f"the main loop of the run has not advanced for {loop_age:.0f} s")
        if not health.connected:
            reasons.append("the source or the sink is unreachable")
        if health.n_waiting and now - wrote > PATIENCE:
            reasons.append(
                f"nothing was written for {now - wrote:.0f} s, although rows are waiting"
            )
        age, every = health.checkpoint_age, health.checkpoint_every
        if age is not None:
            age += loop_age
        if age is not None and every is not None and age > OVERDUE * every:
            reasons.append(f"the last checkpoint is {age:.0f} s old; one is due every {every:g} s")
        return Verdict("failing" if reasons else "ok", tuple(reasons), loop_age, age, broken)
