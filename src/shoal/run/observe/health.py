"""Whether a run is well: what it reports about itself, and what is made of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Health", "Verdict", "Watch"]

#: A run whose loop hasn't turned over for so many seconds makes no progress; nor does a writer
#: that has something to write and hasn't written for so long.
PATIENCE = 30.0
#: A checkpoint is overdue when it is older than so many times the interval between two.
OVERDUE = 3


@dataclass(frozen=True, slots=True)
class Health:
    """What a run says about itself each time its loop turns over.

    Parameters
    ----------
    checkpoint_age, checkpoint_every
        How old the last checkpoint is (or the run, before its first one), and how often one is
        taken, in seconds; None where none are.
    connected
        Whether the source and the sink are reached.
    n_waiting
        How much was handed to the writer and isn't written yet, in batches or rows.
    n_written
        How much was written so far; it only has to grow when something is written.
    """

    checkpoint_age: float | None = None
    checkpoint_every: float | None = None
    connected: bool = True
    n_waiting: int = 0
    n_written: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a run is well.

    Parameters
    ----------
    status
        ``ok``, ``starting`` (the loop hasn't turned over yet) or ``failing``.
    reasons
        Why it isn't ``ok``, in sentences.
    loop_age, checkpoint_age
        Seconds since the loop turned over, and since the last checkpoint; None if there was none.
    """

    status: str
    reasons: tuple[str, ...]
    loop_age: float | None
    checkpoint_age: float | None

    @property
    def ok(self) -> bool:
        """Whether all is well."""
        return self.status == "ok"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON. Ages are whole seconds: a finer one would tell when rows come."""
        return {
            "status": self.status,
            "reasons": list(self.reasons),
            "loop_age_seconds": None if self.loop_age is None else int(self.loop_age),
            "checkpoint_age_seconds": (
                None if self.checkpoint_age is None else int(self.checkpoint_age)
            ),
        }


class Watch:
    """Take the reports of a run, and judge it at any time, from any thread.

    A run that hangs can't say so. Therefore nothing is judged by the last report alone, but by
    the time that has gone by since.

    >>> now = [100.0]
    >>> watch = Watch(clock=lambda: now[0])
    >>> watch.report(Health())
    >>> watch.verdict().status
    'ok'
    >>> now[0] += 31
    >>> watch.verdict().reasons
    ('the loop of the run has not turned over for 31 s',)
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last: Health | None = None
        self._turned = 0.0
        self._wrote = 0.0
        self._failure: str | None = None

    def report(self, health: Health) -> None:
        """The loop of the run has turned over, and this is how it stands."""
        now = self._clock()
        with self._lock:
            last = self._last
            if last is None or last.n_waiting == 0 or health.n_written != last.n_written:
                self._wrote = now
            self._turned = now
            self._last = health

    def fail(self, error: BaseException) -> None:
        """The run has ended with this exception; its message isn't looked at."""
        with self._lock:
            self._failure = type(error).__name__

    def verdict(self) -> Verdict:
        """Judge the run as it stands now."""
        now = self._clock()
        with self._lock:
            health, turned, wrote, failure = self._last, self._turned, self._wrote, self._failure
        reasons = [] if failure is None else [f"the run has failed with {failure}"]
        if health is None:
            status = "starting" if failure is None else "failing"
            return Verdict(status, (*reasons, "the run has not begun to read"), None, None)
        loop_age = now - turned
        if loop_age > PATIENCE:
            reasons.append(f"the loop of the run has not turned over for {loop_age:.0f} s")
        if not health.connected:
            reasons.append("the source or the sink is not reached")
        if health.n_waiting and now - wrote > PATIENCE:
            reasons.append(f"nothing was written for {now - wrote:.0f} s, though something waits")
        age, every = health.checkpoint_age, health.checkpoint_every
        if age is not None:
            age += loop_age
        if age is not None and every is not None and age > OVERDUE * every:
            reasons.append(f"the last checkpoint is {age:.0f} s old; one is due every {every:g} s")
        return Verdict("failing" if reasons else "ok", tuple(reasons), loop_age, age)
