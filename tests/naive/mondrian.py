"""Strict multidimensional Mondrian, slowly, with any promise as the condition for a cut.

K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity" (2006); with
t-closeness, likeness or disclosure as the condition it is what the thesis compares with (§3.5,
§4.4.2).
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.spec.hierarchy import Hierarchy, Range
from tests.naive.centres import Centres
from tests.naive.measured import Promises
from tests.naive.parts import Part
from tests.naive.space import Box, Row, Space

__all__ = ["NaiveMondrian"]


class NaiveMondrian:
    """The partition of Mondrian: groups in the order of their leaves, left to right.

    ``side`` is ``"loss"`` or ``"widest"``, ``cut`` is ``"code"`` or ``"hierarchy"``; with ``retry``
    all sides are tried, else the first one only.
    """

    def __init__(
        self,
        space: Space,
        promises: Promises,
        *,
        side: str = "loss",
        cut: str = "code",
        retry: bool = True,
    ) -> None:
        self.space, self.promises = space, promises
        self.side, self.cut, self.retry = side, cut, retry
        self.centres = Centres(space)

    def __call__(self, pool: Sequence[Row], window: Sequence[Row]) -> list[Part]:
        box = self.space.box(pool)
        length = self.loss if self.side == "loss" else lambda _, d: self.width(pool, d)
        sides = sorted(range(len(box)), key=lambda d: (-length(box, d), d))
        for d in sides if self.retry else sides[:1]:
            pieces = self.pieces(pool, d)
            if len(pieces) > 1 and all(self.promises.hold(piece, window) for piece in pieces):
                return [part for piece in pieces for part in self(piece, window)]
        # Only a pool that fails as a whole comes to this.
        return [Part(list(pool), box)] if self.promises.hold(pool, window) else []

    def loss(self, box: Box, d: int) -> float:
        """What one side of a box loses."""
        return self.space.spread(tuple(side if i == d else None for i, side in enumerate(box)))

    def width(self, rows: Sequence[Row], d: int) -> float:
        """The weighted share of its domain that the values of an attribute span."""
        sides = [row.box[d] for row in rows if row.box[d] is not None]
        domain, weight = self.space.domains[d], self.space.weights[d]
        longest = domain.hi - domain.lo if isinstance(domain, Range) else len(domain) - 1.0
        if not sides or longest == 0.0:
            return 0.0
        return (max(hi for _, hi in sides) - min(lo for lo, _ in sides)) * (weight / longest)

    def pieces(self, rows: Sequence[Row], d: int) -> list[list[Row]]:
        """What a cut of one attribute leaves: some rows each, from left to right."""
        domain = self.space.domains[d]
        if self.cut == "hierarchy" and isinstance(domain, Hierarchy):
            return self.children(rows, d, domain)
        return [half for half in self.halves(rows, d) if half]

    def children(self, rows: Sequence[Row], d: int, tree: Hierarchy) -> list[list[Row]]:
        """The rows under each child of the lowest node above them; all rows if one is under none.

        A missing value that stands for any value is under no child.
        """
        sides = [row.box[d] for row in rows]
        lo, hi = min(low for low, _ in sides), max(high for _, high in sides)
        above = tree.cover(int(lo), int(hi))
        under: dict[int, list[Row]] = {}
        for row, (low, high) in zip(rows, sides, strict=True):
            for child, parent in enumerate(tree.parents):
                inside = tree.lows[child] <= low and high <= tree.highs[child]
                if child != above and parent == above and inside:
                    under.setdefault(child, []).append(row)
                    break
            else:
                return [list(rows)]
        return [under[child] for child in sorted(under)]

    def halves(self, rows: Sequence[Row], d: int) -> tuple[list[Row], list[Row]]:
        """The rows up to the median, and the others; below it, where there are no others."""
        centres = [self.centres.centre(d, row) for row in rows]
        median = sorted(centres)[(len(centres) - 1) // 2]
        right_begins_after = max(centres) > median
        left = [
            row
            for row, centre in zip(rows, centres, strict=True)
            if centre < median or (centre == median and right_begins_after)
        ]
        return left, [row for row in rows if row not in left]
