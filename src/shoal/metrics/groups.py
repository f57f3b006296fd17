"""How large the groups were when they were released."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.metrics.base import Batch, Metric, in_summary
from shoal.metrics.histogram import Histogram

__all__ = ["Groups"]


@in_summary
class Groups(Metric):
    """The number of groups, and their rows and subjects at the moment of release.

    >>> groups = Groups()
    >>> groups.add(np.array([3, 5]), np.array([3, 4]))
    >>> groups.as_dict()["subjects"]
    {'min': 3.0, 'median': 3.0, 'mean': 3.5, 'max': 4.0}
    """

    __slots__ = ("rows", "subjects")
    name: ClassVar[str] = "groups"
    place: ClassVar[int] = 30
    counters: ClassVar[dict[str, str]] = {"rows": "rows", "subjects": "subjects"}

    def __init__(self) -> None:
        self.rows = Histogram()
        self.subjects = Histogram()

    def add_batch(self, batch: Batch) -> None:
        """Count the groups of a batch of decisions."""
        self.add(batch.group_rows, batch.group_subjects)

    def add(self, n_rows: NDArray[np.int64], n_subjects: NDArray[np.int64]) -> None:
        """Count new groups: the rows and the subjects of each."""
        self.rows.add(n_rows)
        self.subjects.add(n_subjects)

    @property
    def count(self) -> int:
        """The number of groups."""
        return self.rows.count

    def as_dict(self) -> dict[str, object]:
        """Return the number of groups, and the spread of their rows and subjects."""
        return {
            "count": self.count,
            "rows": _spread(self.rows),
            "subjects": _spread(self.subjects),
        }

    def lines(self) -> list[str]:
        """Return the figures in words."""
        if not self.count:
            return []
        subjects, rows = self.subjects, self.rows
        return [
            f"groups: {self.count:,}, of {subjects.least:,.0f} to "
            f"{subjects.largest:,.0f} subjects (median {subjects.quantile(0.5):,.0f}) in "
            f"{rows.least:,.0f} to {rows.largest:,.0f} rows (median {rows.quantile(0.5):,.0f})"
        ]


def _spread(numbers: Histogram) -> dict[str, float | None]:
    return {
        "min": numbers.least,
        "median": numbers.quantile(0.5),
        "mean": numbers.mean,
        "max": numbers.largest,
    }
