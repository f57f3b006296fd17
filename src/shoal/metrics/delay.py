"""How long published rows were held."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.metrics.base import Batch, Metric, in_summary
from shoal.metrics.histogram import Histogram
from shoal.metrics.wording import short

__all__ = ["Delay"]


@in_summary
class Delay(Metric):
    """The time from arrival to publication, in rows and, where the stream has time, in seconds.

    >>> delay = Delay()
    >>> delay.add(np.array([1, 2, 9]), None)
    >>> delay.as_dict()["rows"]
    {'mean': 4.0, 'p50': 2.0, 'p99': 9.0, 'max': 9.0}
    """

    __slots__ = ("rows", "seconds")
    name: ClassVar[str] = "delay"
    place: ClassVar[int] = 20
    counters: ClassVar[dict[str, str]] = {"rows": "rows", "seconds": "seconds"}

    def __init__(self) -> None:
        self.rows = Histogram()
        self.seconds = Histogram()

    def add_batch(self, batch: Batch) -> None:
        """Count a batch of decisions."""
        out, seconds = batch.is_published, batch.waited_s
        self.add(batch.waited_rows[out], None if seconds is None else seconds[out])

    def add(self, rows: NDArray[np.int64], seconds: NDArray[np.float64] | None) -> None:
        """Count the waits of published rows; a wait in seconds that isn't known is NaN."""
        self.rows.add(rows)
        if seconds is not None:
            # Two clock readings may differ by a rounding error the wrong way round.
            self.seconds.add(np.maximum(seconds[~np.isnan(seconds)], 0.0))

    def as_dict(self) -> dict[str, dict[str, float | None] | None]:
        """Return mean, median, 99th percentile and maximum; no seconds where there is no time."""
        return {
            "rows": self.rows.figures(),
            "seconds": self.seconds.figures() if self.seconds.count else None,
        }

    def lines(self) -> list[str]:
        """Return the figures in words, a line for each unit."""
        return [
            f"delay: {short(found['mean'])} {unit} on average, median {short(found['p50'])}, "
            f"99 % within {short(found['p99'])}, at most {short(found['max'])}"
            for unit, found in self.as_dict().items()
            if found is not None and found["mean"] is not None
        ]
