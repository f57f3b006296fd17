"""What groups of TIDE lose, and what rows cost them, in whole numbers computed from scratch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shoal.spec.hierarchy import Hierarchy, Range
from tests.naive.space import Row, Space

__all__ = ["SCALE", "Losses", "Prices"]

SCALE = 2**26


class Losses:
    """What rows lose as one group, in whole numbers."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def is_number(self, d: int) -> bool:
        return self.space.kind == "uncertainty" or isinstance(self.space.domains[d], Range)

    def end(self, d: int, value: float) -> int:
        """A number as its distance from the lowest one, a category as its leaf."""
        domain, weight = self.space.domains[d], self.space.weights[d]
        if isinstance(domain, Range):
            return math.floor((value - domain.lo) * (weight / (domain.hi - domain.lo) * SCALE))
        if self.is_number(d):
            highest = len(domain) - 1
            return math.floor(value * (weight / highest * SCALE)) if highest else 0
        return int(value)

    def side(self, d: int, rows: Sequence[Row]) -> int:
        """What rows lose in one attribute; more if only some of them have a value."""
        sides = [row.box[d] for row in rows if row.box[d] is not None]
        if not sides:
            return 0
        lo, hi = min(s[0] for s in sides), max(s[1] for s in sides)  # type: ignore[index]
        if self.is_number(d):
            loss = self.end(d, hi) - self.end(d, lo)
        else:
            domain = self.space.domains[d]
            assert isinstance(domain, Hierarchy)
            node = domain.cover(int(lo), int(hi))
            both = domain.lows[node], domain.highs[node]
            loss = math.floor(self.space._side(d, *both) * SCALE)
        mixing = math.floor(self.space.weights[d] * (SCALE // 4))
        return loss + (mixing if len(sides) < len(rows) else 0)

    def is_general(self, d: int, rows: Sequence[Row]) -> bool:
        """Whether rows that are categories have more than one leaf between them."""
        sides = [row.box[d] for row in rows if row.box[d] is not None]
        return not self.is_number(d) and len({end for side in sides for end in side or ()}) > 1

    def growth(self, rows: Sequence[Row], row: Row, shares: Sequence[int]) -> int:
        """What one more row costs, where only a share of what categories lose counts."""
        cost = 0
        for d, share in enumerate(shares):
            more = self.side(d, [*rows, row]) - self.side(d, rows)
            have = [r.box[d] is not None for r in rows]
            if not self.is_number(d) and row.box[d] is not None and any(have):
                more = more * share // 256
            cost += more
        return cost

    def loss(self, rows: Sequence[Row]) -> int:
        return sum(self.side(d, rows) for d in range(len(self.space.domains)))

    def added(self, rows: Sequence[Row], row: Row) -> int:
        return self.loss([*rows, row]) - self.loss(rows)

    def total(self, rows: Sequence[Row]) -> int:
        return len(rows) * self.loss(rows)


@dataclass
class Prices:
    """What rows cost a group, by their features."""

    losses: Losses
    base: int = 3 * SCALE // 10
    mean: int = 3 * SCALE // 10
    price: dict[Any, int] = field(default_factory=dict)
    power: dict[Any, int] = field(default_factory=dict)

    def features(self, row: Row) -> list[tuple[Any, Any]]:
        return [self._pair(d, row) for d in range(len(row.box))]

    def _pair(self, d: int, row: Row) -> tuple[Any, Any]:
        side, domain = row.box[d], self.losses.space.domains[d]
        other = (d, "other", 0)
        if side is None:
            return other, other
        if self.losses.is_number(d):
            span = math.floor(self.losses.space.weights[d] * SCALE) + 1
            lo = self.losses.end(d, side[0])
            return (d, "fine", min(63, lo * 64 // span)), (d, "coarse", min(7, lo * 8 // span))
        if side[0] != side[1]:
            return other, other
        assert isinstance(domain, Hierarchy)
        leaf = domain.leaf_nodes[int(side[0])]
        return (d, "node", leaf), (d, "node", domain.parents[leaf])

    def of(self, row: Row) -> int:
        return self.base + sum(
            self.price.get(feature, 0) for pair in self.features(row) for feature in pair
        )

    def learn(self, rows: Sequence[Row], loss: int) -> None:
        """Move the prices of a group's rows towards what the group lost."""
        n = len(rows)
        error = loss - sum(self.of(row) for row in rows) // n
        self.base += error // 1000
        self.mean += (loss - self.mean) // 50
        found = [[f for pair in self.features(row) for f in pair] for row in rows]
        columns = zip(*found, strict=True)
        for column in columns:
            for feature in dict.fromkeys(column):
                self.step(feature, error * column.count(feature) // n)

    def step(self, feature: Any, change: int) -> None:
        power = self.power.get(feature, 429_497)
        small = change >> 10
        self.power[feature] = power = power + small * small - (power >> 12)
        root = max(1, math.isqrt(power))
        self.price[feature] = self.price.get(feature, 0) + (change << 16) // root // 100
