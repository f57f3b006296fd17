"""Times with their spread, and ratios of times that were taken in turn."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

__all__ = ["Sample", "interleaved", "machine", "say"]


@dataclass(frozen=True)
class Sample:
    """The same thing measured several times.

    >>> Sample((2.0, 1.0, 4.0)).per(Sample((1.0, 1.0, 2.0)))
    Sample(values=(2.0, 1.0, 2.0))
    """

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def most(self) -> float:
        return max(self.values)

    def per(self, other: Sample) -> Sample:
        """The ratio, repeat by repeat: what slows both at a time cancels out."""
        return Sample(tuple(a / b for a, b in zip(self.values, other.values, strict=True)))

    def rate(self, n: int) -> Sample:
        """How many of n things were done in a second, if these are seconds."""
        return Sample(tuple(n / value for value in self.values))

    def as_dict(self) -> dict[str, object]:
        """All values, for JSON."""
        return {
            "median": self.median,
            "least": self.least,
            "most": self.most,
            "values": list(self.values),
        }


def interleaved(
    repeats: int,
    *actions: Callable[[], object],
    warm: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Sample]:
    """Time some actions in turn, after one round that isn't counted, unless they are ``warm``.

    Every other round goes backwards, so that no action always follows the same one.
    """
    for action in () if warm else actions:
        action()
    seconds: list[list[float]] = [[] for _ in actions]
    for repeat in range(repeats):
        turn: Sequence[int] = range(len(actions))
        for i in turn if repeat % 2 == 0 else reversed(turn):
            gc.collect()
            begin = clock()
            actions[i]()
            seconds[i].append(clock() - begin)
    return [Sample(tuple(values)) for values in seconds]


def say(line: str) -> None:
    """Tell how it goes, on standard error."""
    print(f"… {line}", file=sys.stderr, flush=True)


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "pyarrow")},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
