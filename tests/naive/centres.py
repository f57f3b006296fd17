"""Rows as points: the centres of their boxes, normalized and weighted, and places on a curve."""

from __future__ import annotations

from shoal.spec.hierarchy import Range
from tests.naive.hilbert import hilbert
from tests.naive.space import Row, Space, total

__all__ = ["MOST_BITS", "Centres"]

#: A grid isn't finer than this along an axis, and a place on the curve fits in 62 bits.
MOST_BITS, ALL_BITS = 16, 62


class Centres:
    """The points of rows in the space of the quasi attributes.

    A value that is missing and stays so lies in the middle of its domain.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        assert len(space.domains) <= ALL_BITS
        self.bits = min(MOST_BITS, ALL_BITS // len(space.domains))

    def centre(self, d: int, row: Row) -> float:
        """The middle of one side of a row's own box."""
        side, domain = row.box[d], self.space.domains[d]
        if side is not None:
            return (side[0] + side[1]) / 2
        if isinstance(domain, Range):
            return (domain.lo + domain.hi) / 2
        return (len(domain) - 1.0) / 2

    def place(self, d: int, row: Row) -> float:
        """The same as a share of the domain times the weight of the attribute."""
        domain, weight = self.space.domains[d], self.space.weights[d]
        if isinstance(domain, Range):
            return (self.centre(d, row) - domain.lo) * (weight / (domain.hi - domain.lo))
        return self.centre(d, row) * (weight / (len(domain) - 1.0)) if len(domain) > 1 else 0.0

    def distance(self, one: Row, other: Row) -> float:
        """The square of the Euclidean distance of two rows."""
        gaps = [self.place(d, one) - self.place(d, other) for d in range(len(one.box))]
        return total(gap * gap for gap in gaps)

    def hilbert(self, row: Row) -> int:
        """Where a row lies on the Hilbert curve; the heaviest attribute has its whole length."""
        cells, heaviest = 1 << self.bits, max(self.space.weights)
        axes = [
            min(cells - 1, int(self.place(d, row) / heaviest * cells)) for d in range(len(row.box))
        ]
        return hilbert(axes, self.bits)
