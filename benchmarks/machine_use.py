"""How busy the machine is with us, and with others: a measurement among others isn't worth much."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

__all__ = ["DISTURBED", "Spent", "Use", "set_apart"]

#: Where the share of others is above this, a measurement is disturbed.
DISTURBED = 0.1
TICKS = os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """Processor seconds of this process, and the share of the machine that others had."""

    own: float
    others: float


#: Processes that work for the measurement, like a broker: they aren't others.
_with_us: set[int] = set()


def set_apart(pid: int | None) -> None:
    """Count a process as ours from now on."""
    if pid is not None:
        _with_us.add(pid)


@dataclass(frozen=True)
class Use:
    """The state of all counters at one moment."""

    at: float
    busy: float
    own: float
    helpers: float

    @classmethod
    def now(cls) -> Use:
        return cls(
            time.perf_counter(), _busy(), time.process_time(), sum(map(_seconds_of, _with_us))
        )

    def since(self) -> Spent:
        """What was used since then; the share of others is 0 where that isn't known."""
        now = Use.now()
        own = now.own - self.own
        others = (now.busy - self.busy) - own - (now.helpers - self.helpers)
        whole = (os.cpu_count() or 1) * (now.at - self.at)
        return Spent(own, min(1.0, max(0.0, others / whole)))


def _busy() -> float:
    """Seconds that all processors together have been at work, and not for another machine."""
    try:
        words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return 0.0
    user, nice, system, _idle, _wait, irq, soft, steal = map(int, words[1:9])
    return (user + nice + system + irq + soft + steal) / TICKS


def _seconds_of(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    fields = text[text.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
