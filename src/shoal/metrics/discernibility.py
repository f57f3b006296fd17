"""How many rows a published row can't be told from, and how large the groups are on average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from shoal.metrics.base import REUSE, Batch, Metric, in_summary

__all__ = ["Discernibility"]


@in_summary
class Discernibility(Metric):
    """The discernibility metric of Bayardo and Agrawal, and the average group (thesis, §2.3).

    A published row costs as many rows as its group has; a suppressed one costs all rows. Groups
    count as they were released: with rows that joined one later the metric isn't known, and is
    None. `shoal.metrics.groups_of` has it for published tables, reuse or not.

    >>> metric = Discernibility()
    >>> metric.add(n_groups=2, n_rows=7, squares=25, n_suppressed=1)
    >>> metric.as_dict()
    {'total': 33, 'per_row': 4.125, 'rows_per_group': 3.5}
    """

    __slots__ = ("n_groups", "n_reused", "n_rows", "n_suppressed", "squares")
    name: ClassVar[str] = "discernibility"
    place: ClassVar[int] = 31
    counters: ClassVar[dict[str, str]] = {
        "groups": "n_groups",
        "rows": "n_rows",
        "squares": "squares",
        "suppressed": "n_suppressed",
        "reused": "n_reused",
    }

    def __init__(self) -> None:
        self.n_groups = self.n_rows = self.squares = self.n_suppressed = self.n_reused = 0

    def add_batch(self, batch: Batch) -> None:
        """Count a batch of decisions."""
        rows = batch.group_rows.astype(np.int64)
        self.add(
            n_groups=len(rows),
            n_rows=int(rows.sum()),
            squares=int((rows * rows).sum()),
            n_suppressed=batch.n_suppressed,
            n_reused=int(np.count_nonzero(batch.outcome == REUSE)),
        )

    def add(
        self, *, n_groups: int, n_rows: int, squares: int, n_suppressed: int, n_reused: int = 0
    ) -> None:
        """Count groups: their rows, and the sum of the squares of their rows; and other rows."""
        self.n_groups += n_groups
        self.n_rows += n_rows
        self.squares += squares
        self.n_suppressed += n_suppressed
        self.n_reused += n_reused

    @property
    def total(self) -> int | None:
        """The sum over all rows; None if there is no group, or if rows joined one later."""
        if self.n_reused or not self.n_rows:
            return None
        return self.squares + self.n_suppressed * (self.n_rows + self.n_suppressed)

    def as_dict(self) -> Mapping[str, object]:
        """Return the sum, the mean over all rows, and the average group."""
        total = self.total
        return {
            "total": total,
            "per_row": None if total is None else total / (self.n_rows + self.n_suppressed),
            "rows_per_group": self.n_rows / self.n_groups if self.n_groups else None,
        }

    def lines(self) -> list[str]:
        """Return nothing: it is a figure to compare runs by, and the groups have a line."""
        return []
