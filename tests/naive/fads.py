"""FADS, slowly: as "FAST" (its section 2 and Algorithm 3) describes it, without threads.

A row at its deadline and its nearest neighbours are a group; groups can be reused until they
are too old. Distances, losses and the choice between the two are those of FAST's section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shoal.spec.hierarchy import Range
from tests.naive import on_deadline
from tests.naive.on_deadline import NaiveOnDeadline
from tests.naive.space import Row, total

__all__ = ["Deviations", "NaiveFads"]


@dataclass(frozen=True)
class Deviations(on_deadline.Deviations):
    """Where Shoal leaves the paper: fads-1 and fads-2, after those of the family."""

    distance_is_of_the_hull: bool = True
    too_few_are_suppressed: bool = True


class NaiveFads(NaiveOnDeadline):
    """One run of FADS. ``age`` is how many rows a kept group may be old (T_kc)."""

    deviations: Deviations

    def __init__(self, *args: Any, age: int = 1000, **options: Any) -> None:
        super().__init__(*args, age=age, **options)

    @staticmethod
    def all_deviations() -> Deviations:
        return Deviations()

    def form(self, t: Row) -> list[Row] | None:
        return self.group_among(t, self.held.values(), self.distance)

    def distance(self, t: Row, row: Row) -> float:
        """What the two rows lose together (Definition 8)."""
        if self.deviations.distance_is_of_the_hull:
            return total(self._guarded(d, t, row) for d in range(len(t.box)))
        return total(self._overlap(d, t, row) for d in range(len(t.box)))

    def _guarded(self, d: int, t: Row, row: Row) -> float:
        """What one side of the hull loses; one that only one of the two has is lost altogether."""
        if (t.box[d] is None) != (row.box[d] is None):
            return self.space.weights[d]
        side = self.space.join([t.box, row.box])[d]
        return self.space.spread(tuple(side if i == d else None for i in range(len(t.box))))

    def _overlap(self, d: int, t: Row, row: Row) -> float:
        """Equation 10 as it is written: of numbers the common part, of categories the hull."""
        one, other = t.box[d], row.box[d]
        if one is None or other is None:
            return 0.0
        if isinstance(self.space.domains[d], Range):
            common = max(one[0], other[0]), min(one[1], other[1])
            side = common if common[0] < common[1] else None
        else:
            side = self.space.join([t.box, row.box])[d]
        return self.space.spread(tuple(side if i == d else None for i in range(len(t.box))))

    def too_few(self, rows: list[Row]) -> list[Row] | None:
        return None if self.deviations.too_few_are_suppressed else rows
