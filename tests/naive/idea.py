"""IDEA, slowly: L. Yang and others, "IDEA: A Utility-Enhanced Approach to Incomplete Data Stream
Anonymization", sections 3 and 4. Numbers in comments are the paper's lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.naive import on_deadline
from tests.naive.on_deadline import Decision, Placed, When
from tests.naive.partitions import NaivePartitions, Valid, attribute_distance
from tests.naive.space import Row

__all__ = ["Deviations", "NaiveIdea"]


@dataclass(frozen=True)
class Deviations(on_deadline.Deviations):
    """Where Shoal leaves the paper: idea-1 and idea-2, after those of the family."""

    the_end_ends: bool = True
    partitions_are_restored: bool = True


class NaiveIdea(NaivePartitions):
    """One run of IDEA."""

    deviations: Deviations

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        #: Rows that Algorithm 5 moved to another partition and didn't move back.
        self.moved: dict[int, Valid] = {}
        self.gathered: list[Row] = []

    @staticmethod
    def all_deviations() -> Deviations:
        return Deviations()

    def end(self) -> Iterator[list[Decision]]:
        if self.deviations.the_end_ends:
            yield from super().end()
        while not self.deviations.the_end_ends and len(self.held) >= 0:  # Algorithm 1, line 10
            when = (self.n_rows, self.clock)
            yield self.expire(self.oldest, when, at_end=True) if self.held else []

    def partition_of(self, row: Row) -> Valid:
        return self.moved.get(row.number, super().partition_of(row))

    def form(self, t: Row) -> list[Row] | None:
        """Algorithms 3 and 5: in its own partition, else in the nearest ones as well."""
        mine = self.partition_of(t)
        partitions = self.partitions()
        radii = sorted({attribute_distance(mine, other) for other in partitions})
        for radius in radii:  # Algorithm 5, 2
            self.gathered = [
                row
                for other, rows in partitions.items()
                if attribute_distance(mine, other) <= radius  # 3
                for row in rows  # 4
            ]
            group = self.group_among(t, self.gathered, self.distance)  # 6
            if group is not None:
                return group
        return None

    def publish(self, placed: Placed, when: When) -> list[Decision]:
        if placed.outcome == "reuse" and not self.deviations.partitions_are_restored:
            # Algorithm 5, 7 to 9: only the other branch has a line 13.
            mine = self.partition_of(placed.rows[0])
            self.moved.update({row.number: mine for row in self.gathered})
        self.gathered = []
        return super().publish(placed, when)
