"""How long published rows were held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.metrics.histogram import Histogram

__all__ = ["Delay"]


class Delay:
    """The time from arrival to publication, in rows and, where the stream has time, in seconds.

    >>> delay = Delay()
    >>> delay.add(np.array([1, 2, 9]), None)
    >>> delay.as_dict()["rows"]
    {'mean': 4.0, 'p50': 2.0, 'p99': 9.0, 'max': 9.0}
    """

    __slots__ = ("rows", "seconds")

    def __init__(self) -> None:
        self.rows = Histogram()
        self.seconds = Histogram()

    def add(self, rows: NDArray[np.int64], seconds: NDArray[np.float64] | None) -> None:
        """Count the waits of published rows; a wait in seconds that isn't known is NaN."""
        self.rows.add(rows)
        if seconds is not None:
            # Two clock readings may differ by a rounding error the wrong way round.
            self.seconds.add(np.maximum(seconds[~np.isnan(seconds)], 0.0))

    def merge(self, other: Delay) -> None:
        """Count the waits of another run of the recipe too."""
        self.rows.merge(other.rows)
        self.seconds.merge(other.seconds)

    def as_dict(self) -> dict[str, dict[str, float | None] | None]:
        """Mean, median, 99th percentile and maximum; no seconds where there is no time."""
        return {
            "rows": _figures(self.rows),
            "seconds": _figures(self.seconds) if self.seconds.count else None,
        }

    def state(self) -> dict[str, Any]:
        """Everything that is known, exactly, as values that JSON can carry."""
        return {"rows": self.rows.state(), "seconds": self.seconds.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self.rows.restore(state["rows"])
        self.seconds.restore(state["seconds"])


def _figures(waits: Histogram) -> dict[str, float | None]:
    return {
        "mean": waits.mean,
        "p50": waits.quantile(0.5),
        "p99": waits.quantile(0.99),
        "max": waits.largest,
    }
