"""dynamicGroup, slowly: groups of neighbours, then rows by the nearest centroid, and cuts.

C. C. Aggarwal, P. S. Yu, "A condensation approach to privacy preserving data mining" (EDBT 2004):
CreateCondensedGroups, DynamicGroupMaintenance and SplitGroupStatistics; as the thesis uses it for
boxes (§5.7.3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.naive.centres import Centres
from tests.naive.hilbert import hilbert
from tests.naive.measured import Promises
from tests.naive.parts import Part, merge
from tests.naive.space import Row, Space, by_arrival, n_subjects, total

__all__ = ["Deviations", "NaiveDynamicGroup", "principal"]

#: How often the covariance is squared.
SQUARINGS = 12


@dataclass(frozen=True)
class Deviations:
    """Where Shoal leaves the paper, each a flag: all on is Shoal, one off is the paper there."""

    groups_count_people: bool = True
    cuts_know_the_rows: bool = True
    failing_groups_merge: bool = True


class NaiveDynamicGroup:
    """The partition of dynamicGroup: groups in the order of their centroids along a curve."""

    def __init__(
        self,
        space: Space,
        promises: Promises,
        *,
        draw: Callable[[int], int],
        history: int = 8000,
        deviations: Deviations | None = None,
    ) -> None:
        self.space, self.promises = space, promises
        self.draw, self.history = draw, history
        self.centres = Centres(space)
        self.deviations = deviations or Deviations()

    def __call__(self, pool: Sequence[Row], window: Sequence[Row]) -> list[Part]:
        groups = [by_arrival(group) for group in self.groups(pool)]
        if self.deviations.failing_groups_merge:
            groups = merge(self.space, groups, lambda rows: self.promises.hold(rows, window))
        return [Part(rows, self.space.box(rows)) for rows in groups]

    def groups(self, pool: Sequence[Row]) -> list[list[Row]]:
        """The groups before any is merged, along the curve."""
        groups, rest = self.from_history(pool[: self.history])
        for row in [*rest, *pool[self.history :]]:
            self.join(groups, row)
        return sorted(groups, key=self.place)

    def n_people(self, rows: Sequence[Row]) -> int:
        """What k counts."""
        return n_subjects(rows) if self.deviations.groups_count_people else len(rows)

    # -- CreateCondensedGroups ---------------------------------------------------------------------

    def from_history(self, rows: Sequence[Row]) -> tuple[list[list[Row]], list[Row]]:
        """Groups of a random row and its nearest ones, and the rows left over."""
        groups, left = [], list(rows)
        while self.n_people(left) >= self.promises.needed:
            group = [left[self.draw(len(left))]]
            near = sorted(left, key=lambda row: (self.centres.distance(row, group[0]), row.number))
            for row in near:
                is_new = row.subject not in {other.subject for other in group}
                if not self.deviations.groups_count_people:
                    is_new = row is not group[0]
                if is_new and len(group) < self.promises.needed:
                    group.append(row)
            groups.append([group[0], *by_arrival(group[1:])])
            left = [row for row in left if row not in group]
        return groups, left

    # -- DynamicGroupMaintenance -------------------------------------------------------------------

    def join(self, groups: list[list[Row]], row: Row) -> None:
        """Put a row in the group with the nearest centroid, and cut that if it is large."""
        if not groups:
            groups.append([])
            g = 0
        else:
            g = min(range(len(groups)), key=lambda g: self.apart(self.centroid(groups[g]), row))
        groups[g].append(row)
        first_new = len(groups)
        self.cut_down(groups, g)
        while first_new < len(groups):
            self.cut_down(groups, first_new)
            first_new += 1

    def cut_down(self, groups: list[list[Row]], g: int) -> None:
        """Cut a group as long as there are people enough for two."""
        while self.n_people(groups[g]) >= 2 * self.promises.needed:
            lower, upper = self.halves(groups[g])
            if not lower or not upper:
                return
            groups[g] = lower
            groups.append(upper)

    # -- SplitGroupStatistics ----------------------------------------------------------------------

    def halves(self, rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
        """A group in two, along the direction in which its rows are spread most."""
        centroid, points = self.centroid(rows), [self.point(row) for row in rows]
        apart = [[x - y for x, y in zip(p, centroid, strict=True)] for p in points]
        axes = range(len(centroid))
        direction = principal([[total(p[a] * p[b] for p in apart) for b in axes] for a in axes])

        def along(point: Sequence[float]) -> float:
            return total(x * v for x, v in zip(point, direction, strict=True))

        if not self.deviations.cuts_know_the_rows:
            # All that is known is the covariance: rows are taken to be spread evenly around the
            # centroid, and the halves meet there.
            middle = along(centroid)
            lower = [row for row in rows if along(self.point(row)) < middle]
            return lower, [row for row in rows if row not in lower]
        ordered = sorted(rows, key=lambda row: along(self.point(row)))
        needed = self.promises.needed
        allowed = [
            cut
            for cut in range(len(ordered) + 1)
            if self.n_people(ordered[:cut]) >= needed and self.n_people(ordered[cut:]) >= needed
        ]
        cut = min(allowed, key=lambda cut: abs(cut - len(ordered) // 2))
        return ordered[:cut], ordered[cut:]

    # -- points ------------------------------------------------------------------------------------

    def point(self, row: Row) -> list[float]:
        return [self.centres.place(d, row) for d in range(len(row.box))]

    def centroid(self, rows: Sequence[Row]) -> list[float]:
        points = [self.point(row) for row in rows]
        return [total(column) / len(points) for column in zip(*points, strict=True)]

    def apart(self, centroid: Sequence[float], row: Row) -> float:
        """The square of the distance of a row from a centroid."""
        gaps = [x - y for x, y in zip(centroid, self.point(row), strict=True)]
        return total(gap * gap for gap in gaps)

    def place(self, rows: Sequence[Row]) -> int:
        """Where the centroid of a group lies on the curve."""
        cells, heaviest = 1 << self.centres.bits, max(self.space.weights)
        axes = [min(cells - 1, int(x / heaviest * cells)) for x in self.centroid(rows)]
        return hilbert(axes, self.centres.bits)


def principal(matrix: list[list[float]]) -> list[float]:
    """The first eigenvector of a covariance: any column of a high power of it has its direction."""
    d = len(matrix)
    if not any(matrix[a][a] for a in range(d)):
        return [0.0] * d
    power = shrunk(matrix)
    for _ in range(SQUARINGS):
        power = shrunk(
            [
                [total(power[a][c] * power[c][b] for c in range(d)) for b in range(d)]
                for a in range(d)
            ]
        )
    longest = max(range(d), key=lambda a: power[a][a])
    return [power[a][longest] for a in range(d)]


def shrunk(matrix: list[list[float]]) -> list[list[float]]:
    """A matrix divided by its trace."""
    trace = total(matrix[a][a] for a in range(len(matrix)))
    return [[x / trace for x in line] for line in matrix]
