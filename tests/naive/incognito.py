"""Full-domain generalization, slowly: one level for each attribute, the same for all rows.

K. LeFevre, D. DeWitt, R. Ramakrishnan, "Incognito" (2005); with t-closeness as the condition it is
what the thesis compares with (§3.5). The lattice is searched as a whole, not subset by subset.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from shoal.spec.hierarchy import Hierarchy, Range
from tests.naive.centres import Centres
from tests.naive.measured import Promises
from tests.naive.parts import Part
from tests.naive.space import Box, Row, Side, Space, total

__all__ = ["NaiveIncognito"]

#: The cell of a value that is missing.
GAP = "missing"


class NaiveIncognito:
    """The partition of Incognito: groups in the order of their first row.

    ``levels`` is how many steps lead from an exact number to its whole range.
    """

    def __init__(self, space: Space, promises: Promises, *, levels: int = 4) -> None:
        self.space, self.promises, self.levels = space, promises, levels
        self.centres = Centres(space)

    def __call__(self, pool: Sequence[Row], window: Sequence[Row]) -> list[Part]:
        tops = [self.top(d) for d in range(len(self.space.domains))]
        nodes = sorted(
            itertools.product(*(range(top + 1) for top in tops)), key=lambda node: (sum(node), node)
        )
        good: set[tuple[int, ...]] = set()
        minimal: list[tuple[int, ...]] = []
        for node in nodes:
            below = [
                lower for lower in good if all(a <= b for a, b in zip(lower, node, strict=True))
            ]
            tagged = bool(below) and self.promises.is_monotone
            if tagged or self._holds(pool, node, window):
                good.add(node)
                if not below:
                    minimal.append(node)
        # Where not even the top is good, nothing can leave.
        best = min(minimal or nodes[-1:], key=lambda node: (self._loss(pool, node), node))
        parts = self.parts(pool, best)
        return [part for part in parts if self.promises.hold(part.rows, window)]

    def top(self, d: int) -> int:
        """The highest level of an attribute."""
        domain = self.space.domains[d]
        return domain.depth - 1 if isinstance(domain, Hierarchy) else self.levels

    def cell(self, d: int, row: Row, level: int) -> Side | int | str:
        """In which part of its domain a value lies at a level: an interval, a node or a gap."""
        domain = self.space.domains[d]
        if level == self.top(d):
            return 0
        if d in row.gaps:
            return GAP
        if isinstance(domain, Range):
            return self._interval(domain, d, row, level) if level else row.box[d]
        node = domain.leaf_nodes[int(self.centres.centre(d, row))]
        for _ in range(level):
            node = domain.parents[node]
        return node

    def _interval(self, domain: Range, d: int, row: Row, level: int) -> int:
        n = 1 << (self.levels - level)
        width = (domain.hi - domain.lo) / n
        at: float = (self.centres.centre(d, row) - domain.lo) / width
        return min(n - 1, int(at))

    def side(self, d: int, cell: Side | int | str, level: int) -> Side:
        """What is published of a cell: numbers are widened to their step."""
        domain = self.space.domains[d]
        if level == self.top(d) or cell == GAP:
            if isinstance(domain, Range):
                return domain.lo, domain.hi
            return 0.0, len(domain) - 1.0
        if not isinstance(cell, int):
            assert not isinstance(cell, str)
            return cell
        if isinstance(domain, Hierarchy):
            return float(domain.lows[cell]), float(domain.highs[cell])
        n = 1 << (self.levels - level)
        width = (domain.hi - domain.lo) / n
        high = domain.hi if cell == n - 1 else domain.lo + (cell + 1) * width
        return domain.snap(domain.lo + cell * width, high)

    def parts(self, pool: Sequence[Row], node: Sequence[int]) -> list[Part]:
        """The rows with equal cells, and these cells as their box."""
        cells: dict[tuple[Side | int | str, ...], list[Row]] = {}
        for row in pool:
            key = tuple(self.cell(d, row, level) for d, level in enumerate(node))
            cells.setdefault(key, []).append(row)
        return [Part(rows, self._box(node, key, rows)) for key, rows in cells.items()]

    def _box(
        self, node: Sequence[int], key: Sequence[Side | int | str], rows: Sequence[Row]
    ) -> Box:
        return tuple(
            None if all(row.box[d] is None for row in rows) else self.side(d, key[d], level)
            for d, level in enumerate(node)
        )

    def _holds(self, pool: Sequence[Row], node: Sequence[int], window: Sequence[Row]) -> bool:
        return all(self.promises.hold(part.rows, window) for part in self.parts(pool, node))

    def _loss(self, pool: Sequence[Row], node: Sequence[int]) -> float:
        box_of = {row.number: part.box for part in self.parts(pool, node) for row in part.rows}
        return total(self.space.loss_of_row(box_of[row.number], row.gaps) for row in pool)
