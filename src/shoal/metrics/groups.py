"""How large the groups were when they were released."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.metrics.histogram import Histogram

__all__ = ["Groups"]


class Groups:
    """The number of groups, and their rows and subjects at the moment of release.

    >>> groups = Groups()
    >>> groups.add(np.array([3, 5]), np.array([3, 4]))
    >>> groups.as_dict()["subjects"]
    {'min': 3.0, 'median': 3.0, 'mean': 3.5, 'max': 4.0}
    """

    __slots__ = ("rows", "subjects")

    def __init__(self) -> None:
        self.rows = Histogram()
        self.subjects = Histogram()

    def add(self, n_rows: NDArray[np.int64], n_subjects: NDArray[np.int64]) -> None:
        """Count new groups: the rows and the subjects of each."""
        self.rows.add(n_rows)
        self.subjects.add(n_subjects)

    def merge(self, other: Groups) -> None:
        """Count the groups of another run of the recipe too, which are others than these."""
        self.rows.merge(other.rows)
        self.subjects.merge(other.subjects)

    @property
    def count(self) -> int:
        """The number of groups."""
        return self.rows.count

    def as_dict(self) -> dict[str, object]:
        """The number of groups, and the spread of their rows and subjects."""
        return {
            "count": self.count,
            "rows": _figures(self.rows),
            "subjects": _figures(self.subjects),
        }

    def state(self) -> dict[str, Any]:
        """Everything that is known, exactly, as values that JSON can carry."""
        return {"rows": self.rows.state(), "subjects": self.subjects.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self.rows.restore(state["rows"])
        self.subjects.restore(state["subjects"])


def _figures(numbers: Histogram) -> dict[str, float | None]:
    return {
        "min": numbers.least,
        "median": numbers.quantile(0.5),
        "mean": numbers.mean,
        "max": numbers.largest,
    }
