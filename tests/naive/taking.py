"""takeOut and Retrieve (thesis, §3.4.3 and §4.3.3): which rows of the buckets make up a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.naive.centres import Centres
from tests.naive.space import Row, Space

__all__ = ["Taking"]


class Taking:
    """Fills groups with the rows that are nearest to a seed.

    Parameters
    ----------
    neighbours
        ``"curve"``: near on the Hilbert curve (SABRE-AK, BUREL), ``"exact"``: by the Euclidean
        distance (SABRE-KNN).
    seeds
        ``"sweep"``: the row that is left with the lowest place on the curve, then the lowest
        number. ``"random"``: a row of a bucket, both at random among those that are left; rows are
        counted in the order of the curve, or by number where neighbours are exact.
    draw
        A random number from 0 to n - 1, for random seeds.
    """

    def __init__(
        self, space: Space, neighbours: str, seeds: str, draw: Callable[[int], int]
    ) -> None:
        self.centres = Centres(space)
        self.neighbours, self.seeds, self.draw = neighbours, seeds, draw

    def groups(
        self, buckets: Sequence[Sequence[Row]], sizes: Sequence[Sequence[int]]
    ) -> list[list[Row]]:
        """One group for each array of sizes, in their order."""
        left = [list(bucket) for bucket in buckets]
        groups = []
        for wanted in sizes:
            x = self._seed(left)
            group = []
            for rows, n in zip(left, wanted, strict=True):
                for row in sorted(rows, key=lambda row: self._nearness(x, row))[:n]:
                    rows.remove(row)
                    group.append(row)
            groups.append(group)
        return groups

    def _seed(self, left: Sequence[Sequence[Row]]) -> Row:
        if self.seeds == "sweep":
            return min((row for rows in left for row in rows), key=self._on_curve)
        filled = [rows for rows in left if rows]
        rows = filled[self.draw(len(filled))]
        in_order = self._on_curve if self.neighbours == "curve" else lambda row: row.number
        return sorted(rows, key=in_order)[self.draw(len(rows))]

    def _on_curve(self, row: Row) -> tuple[int, int]:
        return self.centres.hilbert(row), row.number

    def _nearness(self, x: Row, row: Row) -> tuple[float, ...]:
        if self.neighbours == "exact":
            return self.centres.distance(x, row), row.number
        place = self.centres.hilbert(row)
        return abs(place - self.centres.hilbert(x)), place, row.number
