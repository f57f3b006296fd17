"""The cuts of TIDE, slowly: rows are cut in two where that gains most, in shares of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shoal.spec.criteria import RangeLikeness, TCloseness
from shoal.spec.hierarchy import Hierarchy
from tests.naive.measured import Measure
from tests.naive.space import Row

__all__ = ["Cuts"]

#: A number is cut between this many parts of the rows, and a half is trimmed by as many eighths.
PIECES, TRIMS = 8, 8
#: Numbers that are sensitive are in blocks of 2**FINEST levels.
FINEST = 8


class Cuts:
    """Cuts of rows. ``losses`` are those of TIDE, ``meets`` says which rows may be a group."""

    def __init__(
        self, losses: Any, measures: Sequence[Measure], people: int,
        meets: Callable[[Sequence[Row]], bool], rows: Sequence[Row],
    ) -> None:  # fmt: skip
        self.losses, self.people, self.meets = losses, people, meets
        first = min(measure.j for measure in measures)
        self.measure = next(measure for measure in measures if measure.j == first)
        self.levels = dict(zip(rows, self.levels_of(rows), strict=True))

    def levels_of(self, rows: Sequence[Row]) -> Iterator[list[Any]]:
        """What each row has on each level, the coarsest first."""
        criterion, domain = self.measure.criterion, self.measure.domain
        values = self.measure.values(rows)
        is_tree = isinstance(domain, Hierarchy)
        if isinstance(criterion, RangeLikeness) or (
            isinstance(criterion, TCloseness) and not is_tree
        ):
            places = sorted(values)
            for value in values:
                first = places.index(value)
                yield [(n, first * n // len(rows)) for n in (2 << i for i in range(FINEST))]
            return
        if not isinstance(domain, Hierarchy):
            yield from ([value] for value in values)
            return
        paths = [path(domain, domain.leaf_nodes[leaf]) for leaf in range(len(domain))]
        height = max(1, max(map(len, paths)))
        for value in values:
            found = paths[int(value)]
            # A leaf that isn't at the bottom is on all levels below.
            yield [*found, *[found[-1] if found else 0] * (height - len(found))]

    def __call__(self, rows: list[Row]) -> list[list[Row]]:
        """The parts of some rows, from left to right."""
        left, right = self.best(rows)
        return [*self(left), *self(right)] if left else [right]

    def best(self, rows: list[Row]) -> tuple[list[Row], list[Row]]:
        """The halves that lose least; the first is empty if there is no cut."""
        best, chosen = 0, (list[Row](), rows)
        if len(rows) < 2 * self.people:
            return chosen
        found = []
        for d, lo, hi in self.ranges(rows):
            left, right = self.within(rows, d, lo, hi)
            gain = self.gain(rows, left, right)
            if len(left) >= self.people and right and gain > 0:
                found.append((gain, left, right))
        for most, left, right in sorted(found, key=lambda cut: -cut[0]):
            if most <= best:
                break
            for halves in self.trimmed(rows, left, right):
                if all(map(self.meets, halves)):
                    gain = self.gain(rows, *halves)
                    if gain > best:
                        best, chosen = gain, halves
                    break
        return chosen

    def within(self, rows: list[Row], d: int, lo: int, hi: int) -> tuple[list[Row], list[Row]]:
        """The rows within a range, and all others."""
        sides = {row: side for row in rows if (side := row.box[d]) is not None}
        inside = {
            row
            for row, (low, high) in sides.items()
            if lo <= self.losses.end(d, low) and self.losses.end(d, high) <= hi
        }
        return [row for row in rows if row in inside], [row for row in rows if row not in inside]

    def gain(self, rows: list[Row], left: list[Row], right: list[Row]) -> int:
        total = self.losses.total
        return int(total(rows) - total(left) - total(right))

    def ranges(self, rows: list[Row]) -> Iterator[tuple[int, int, int]]:
        """What can be cut off: ranges of numbers, or the leaves under a node."""
        for d, domain in enumerate(self.losses.space.domains):
            sides = [side for row in rows if (side := row.box[d]) is not None]
            if not sides:
                continue
            lo, hi = min(side[0] for side in sides), max(side[1] for side in sides)
            if self.losses.is_number(d):
                ends = sorted(side[1] for side in sides)
                cuts = {ends[len(ends) * piece // PIECES] for piece in range(1, PIECES)}
                places = sorted({self.losses.end(d, cut) for cut in cuts})
                yield from (
                    (d, self.losses.end(d, lo), at) for at in places if at < self.losses.end(d, hi)
                )
                continue
            assert isinstance(domain, Hierarchy)
            cover = domain.cover(int(lo), int(hi))
            for node in range(1, len(domain.labels)):
                if domain.parents[node] == cover:
                    yield d, domain.lows[node], domain.highs[node]

    def trimmed(
        self, rows: list[Row], left: list[Row], right: list[Row]
    ) -> Iterator[tuple[list[Row], list[Row]]]:
        """The halves, and then with fewer rows on the left, which have no more than their share."""
        everywhere = [Counter(self.levels[row][i] for row in rows) for i in range(self.depth)]
        for piece in range(TRIMS, 0, -1):
            n = len(left) * piece // TRIMS
            if min(n, len(rows) - n) < self.people:
                continue
            shares = [{at: count * n for at, count in level.items()} for level in everywhere]
            kept = self.kept(left, n, len(rows), shares)
            yield (
                [row for row in left if row in kept],
                [*(row for row in left if row not in kept), *right],
            )

    def kept(self, left: list[Row], n: int, n_rows: int, shares: list[dict[Any, int]]) -> set[Row]:
        """Rows that have no more than their shares, those of the finest levels given up first."""
        if n == len(left):
            return set(left)
        kept, taken = set[Row](), [Counter[Any]() for _ in shares]
        for depth in range(self.depth, -1, -1):
            for row in left:
                places = list(enumerate(self.levels[row]))
                may = all(taken[i][at] * n_rows < shares[i][at] for i, at in places[:depth])
                if len(kept) < n and row not in kept and may:
                    kept.add(row)
                    for i, at in places:
                        taken[i][at] += 1
        return kept

    @property
    def depth(self) -> int:
        return len(next(iter(self.levels.values())))


def path(tree: Hierarchy, node: int) -> list[int]:
    """A node and what is above it, without the root, from above."""
    return [*path(tree, tree.parents[node]), node] if node else []
