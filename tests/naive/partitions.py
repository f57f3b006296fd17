"""Partitions by the set of valid attributes, for the twins of IDEA, K-VARP and IoT."""

from __future__ import annotations

from typing import Any

from tests.naive.on_deadline import Group, NaiveOnDeadline
from tests.naive.space import Row, valid_sides

__all__ = ["NaivePartitions", "Valid", "attribute_distance"]

#: The attributes that a row has (Q_i in the paper); rows with the same ones are a partition.
Valid = frozenset[int]


def attribute_distance(one: Valid, other: Valid) -> float:
    """IDEA, Equation 1: 1 minus the Jaccard coefficient; 0 for two empty sets."""
    return 1 - len(one & other) / len(one | other) if one | other else 0.0


class NaivePartitions(NaiveOnDeadline):
    """A run that partitions held rows by which values they lack.

    ``threshold``: only groups that lose less are kept (tau); ``kept`` is beta.
    """

    def __init__(self, *args: Any, threshold: float = 0.5, kept: int = 200, **options: Any) -> None:
        super().__init__(*args, kept=kept, **options)
        self.threshold = threshold

    def is_good(self, group: Group) -> bool:
        """IDEA, Algorithm 4, line 1."""
        return group.loss < self.threshold

    def partition_of(self, row: Row) -> Valid:
        """IDEA, Definition 2."""
        return valid_sides(row.box)

    def partitions(self) -> dict[Valid, list[Row]]:
        """The held rows by what they have, in order of each partition's oldest row."""
        found: dict[Valid, list[Row]] = {}
        for row in self.held.values():
            found.setdefault(self.partition_of(row), []).append(row)
        return found

    def distance(self, t: Row, row: Row) -> float:
        """IDEA, Equations 2 and 3: the mean over the attributes that both have; 1 without any."""
        shared = valid_sides(t.box) & valid_sides(row.box)
        if not shared:
            return 1.0
        joined = self.space.join([t.box, row.box])
        common = tuple(side if d in shared else None for d, side in enumerate(joined))
        return self.space.spread(common) / self.space.weight(shared)
