"""K-VARP, slowly, reconstructed: there are a few sentences on it in IDEA's section 2.2 only.

A row at its deadline forms a group in its own partition, as in IDEA; if that is too small, whole
partitions are merged with it, the nearest first, those with more rows near the row before others.
"""

from __future__ import annotations

from typing import Any

from tests.naive.partitions import NaivePartitions, Valid, attribute_distance
from tests.naive.space import Row, n_subjects

__all__ = ["NaiveKVarp"]


class NaiveKVarp(NaivePartitions):
    """One run of K-VARP. ``radius``: below it a row counts for the R-likeness coefficient."""

    def __init__(self, *args: Any, radius: float = 0.2, **options: Any) -> None:
        super().__init__(*args, **options)
        self.radius = radius

    def form(self, t: Row) -> list[Row] | None:
        others = self.partitions()
        merged = others.pop(self.partition_of(t))
        group = self.group_among(t, merged, self.distance)
        if group is not None:
            return group
        while others:
            merged = merged + others.pop(self.next_partition(t, others))
            if self.is_enough(merged):
                return merged
        return None

    def is_enough(self, rows: list[Row]) -> bool:
        """Whether merged partitions can be published together."""
        people = n_subjects(rows) if self.deviations.groups_count_people else len(rows)
        diverse = not self.deviations.groups_are_diverse or self.diverse(rows)
        return people >= self.promise.k and diverse

    def next_partition(self, t: Row, others: dict[Valid, list[Row]]) -> Valid:
        """The one to merge with: nearest, R-likest, largest, oldest."""
        mine = self.partition_of(t)
        # min takes the first of equals, and partitions are in order of their oldest rows
        return min(
            others,
            key=lambda valid: (
                attribute_distance(mine, valid),
                -self.likeness(t, others[valid]),
                -len(others[valid]),
            ),
        )

    def likeness(self, t: Row, rows: list[Row]) -> int:
        """The R-likeness coefficient: how many of the rows are nearer to t than ``radius``."""
        return sum(self.distance(t, row) < self.radius for row in rows)
