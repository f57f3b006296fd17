"""Axes of charts: from values to places, with round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Axis", "Scale", "written"]


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis shows.

    Parameters
    ----------
    label
        What is measured.
    unit
        In which unit; ``%`` shows shares from 0 to 1 in percent.
    lo, hi
        The ends; None: as far as the values go.
    log
        Whether equal distances are equal ratios; values must be above 0.

    >>> Axis("delay", "rows").title
    'delay (rows)'
    """

    label: str
    unit: str = ""
    lo: float | None = None
    hi: float | None = None
    log: bool = False

    @property
    def title(self) -> str:
        """The label with the unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    def written(self, value: float) -> str:
        """Return a value as a short text, without the unit; a percentage has its sign."""
        return f"{written(100 * value)} %" if self.unit == "%" else written(value)


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis with its ends and ticks, laid over a stretch of the picture."""

    axis: Axis
    ticks: Sequence[float]
    lo: float
    hi: float
    start: float
    end: float

    @classmethod
    def of(cls, axis: Axis, values: Iterable[float], start: float, end: float) -> Scale:
        """Return the scale that shows all values between two places.

        >>> Scale.of(Axis("loss"), [0.1, 0.93], 0, 100).ticks
        (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
        """
        known = [value for value in values if math.isfinite(value) and (value > 0 or not axis.log)]
        lo = min(known, default=1.0) if axis.lo is None else axis.lo
        hi = max(known, default=1.0) if axis.hi is None else axis.hi
        if axis.log:
            ticks = _log_ticks(lo, hi)
        else:
            # Lengths are compared from 0 on, unless all values lie far from it.
            lo = 0.0 if axis.lo is None and (0 <= lo <= 0.8 * hi or 0 < lo == hi) else lo
            ticks = _ticks(lo, hi)
        lo = min(lo, ticks[0]) if axis.lo is None else lo
        hi = max(hi, ticks[-1]) if axis.hi is None else hi
        return cls(axis, tuple(tick for tick in ticks if lo <= tick <= hi), lo, hi, start, end)

    def place(self, value: float) -> float:
        """Return where a value lies in the picture."""
        lo, hi, at = self.lo, self.hi, value
        if self.axis.log:
            lo, hi, at = math.log(lo), math.log(hi), math.log(max(value, self.lo))
        share = (at - lo) / (hi - lo) if hi > lo else 0.5
        return round(self.start + share * (self.end - self.start), 1)


def _ticks(lo: float, hi: float, most: int = 6) -> tuple[float, ...]:
    """Return round numbers from at most ``lo`` to at least ``hi``."""
    span = hi - lo if hi > lo else abs(hi) or 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(
        (factor * power for factor in (1, 2, 2.5, 5, 10) if span / (factor * power) <= most - 1),
        10 * power,
    )
    first, last = math.floor(lo / step + 1e-9), math.ceil(hi / step - 1e-9)
    return tuple(round(i * step, 12) for i in range(first, max(last, first + 1) + 1))


def _log_ticks(lo: float, hi: float) -> tuple[float, ...]:
    """Return 1, 2 and 5 times the powers of ten around two values, or the powers alone."""
    first, last = math.floor(math.log10(lo)), math.ceil(math.log10(max(hi, lo)))
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    every = [factor * 10.0**n for n in range(first, last + 1) for factor in factors]
    below = max((tick for tick in every if tick <= lo), default=every[0])
    above = min((tick for tick in every if tick >= hi), default=every[-1])
    return tuple(tick for tick in every if below <= tick <= above)


def written(value: float) -> str:
    """Return a number as a short text.

    >>> written(1234567), written(0.30000000000000004), written(12.0), written(0.00012)
    ('1,234,567', '0.3', '12', '0.00012')
    """
    if not math.isfinite(value):
        return "none"
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
