"""Rows, boxes and losses for the naive twins: plain tuples, nothing remembered, nothing clever."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from shoal.spec.hierarchy import Domain, Range

#: An interval; None is the empty one, where every value is missing and may be anything.
Side = tuple[float, float] | None
#: One side for each quasi attribute.
Box = tuple[Side, ...]


@dataclass(frozen=True, eq=False)
class Row:
    """One row of the stream: its number by arrival, its own box, whom it is about.

    ``gaps`` are the attributes in which its value is missing, whatever its box makes of that.
    """

    number: int
    box: Box
    subject: Hashable
    sensitive: tuple[Hashable, ...]
    time: float | None = None
    gaps: frozenset[int] = frozenset()


def total(numbers: Iterable[float]) -> float:
    """Add from left to right, one rounding for each addition.

    The built-in ``sum`` compensates its rounding errors from Python 3.12 on, so that a threshold
    would depend on the version of Python, and would differ from that of a compiled loop.
    """
    result = 0.0
    for number in numbers:
        result += number
    return result


def n_subjects(rows: Iterable[Row]) -> int:
    """The number of different subjects (the papers: size)."""
    return len({row.subject for row in rows})


def by_arrival(rows: Iterable[Row]) -> list[Row]:
    """The rows in order of arrival."""
    return sorted(rows, key=lambda row: row.number)


class Space:
    """The quasi attributes: what a box over rows is, and what it loses.

    Parameters
    ----------
    domains
        A range or a hierarchy for each quasi attribute.
    weights
        How much each attribute matters; only their ratios count.
    loss
        ``"glm"`` as in the thesis, section 2.3; ``"lm"``, which is 0 for one leaf by itself; or
        ``"uncertainty"`` (Zhou et al., Definition 2): leaves are numbers in the order of the tree.
    missing
        What a missing value (NaN) is: ``"maybe"``, an empty side; ``"extended"``, the whole domain;
        ``"quarantine"``, an error, since such a row never comes here.
    """

    def __init__(
        self,
        domains: Sequence[Domain],
        weights: Sequence[float],
        loss: str,
        missing: str = "quarantine",
    ) -> None:
        self.domains = list(domains)
        self.weights = [weight / total(weights) for weight in weights]
        self.kind = loss
        self.missing = missing

    def row_box(self, values: Sequence[float]) -> Box:
        """The box of a single row: numbers snapped outward to the step, categories as they are."""
        return tuple(
            self._own_side(domain, value)
            for domain, value in zip(self.domains, values, strict=True)
        )

    def _own_side(self, domain: Domain, value: float) -> Side:
        if math.isnan(value):
            if self.missing == "maybe":
                return None
            if self.missing == "extended":
                whole = isinstance(domain, Range)
                return (domain.lo, domain.hi) if whole else (0.0, len(domain) - 1.0)
            raise ValueError("a row with a missing value is not for an engine")
        return domain.snap(value, value) if isinstance(domain, Range) else (value, value)

    def join(self, boxes: Iterable[Box]) -> Box:
        """The smallest box that can be published over all of these (Definitions 5.4 and 5.5).

        Where leaves are numbers, it is that of an interval of them.
        A side that is missing in all of them is missing (IDEA, Definition 6).
        """
        sides: list[Side] = []
        for domain, column in zip(self.domains, zip(*boxes, strict=True), strict=True):
            intervals = [side for side in column if side is not None]
            if not intervals:
                sides.append(None)
                continue
            lo, hi = min(low for low, _ in intervals), max(high for _, high in intervals)
            sides.append((lo, hi) if self.kind == "uncertainty" else _node(domain, lo, hi))
        return tuple(sides)

    def public(self, box: Box) -> Box:
        """What is published of a box: of categories the lowest node above all of them."""
        return tuple(
            side if side is None or side[0] > side[1] else _node(domain, *side)
            for domain, side in zip(self.domains, box, strict=True)
        )

    def box(self, rows: Iterable[Row]) -> Box:
        """The smallest box that can be published over the rows."""
        return self.join([row.box for row in rows])

    def loss(self, box: Box) -> float:
        """The information loss of a box, from 0 to 1 (section 5.4.1), over its valid sides."""
        valid = valid_sides(box)
        if len(valid) == len(box):
            return self.spread(box)
        return self.spread(box) / self.weight(valid) if valid else 0.0

    def loss_of_row(self, box: Box, gaps: frozenset[int]) -> float:
        """What a row loses in a box: over the attributes it has (IDEA, Definition 10)."""
        return self.loss(tuple(None if d in gaps else side for d, side in enumerate(box)))

    def spread(self, box: Box) -> float:
        """What the sides of a box lose, added up; an empty side adds nothing."""
        return total(self._side(d, *side) for d, side in enumerate(box) if side is not None)

    def weight(self, attributes: Iterable[int]) -> float:
        """The weights of some attributes together."""
        return total(self.weights[d] for d in sorted(attributes))

    def _side(self, d: int, lo: float, hi: float) -> float:
        domain, weight = self.domains[d], self.weights[d]
        if isinstance(domain, Range):
            unit = weight / (domain.hi - domain.lo)
            return (hi - lo) * unit
        n_leaves, n_all = hi - lo + 1, len(domain)
        if self.kind == "uncertainty":
            return (hi - lo) * (weight / (n_all - 1)) if n_all > 1 else 0.0
        if self.kind == "lm":
            return weight * ((n_leaves - 1) / (n_all - 1)) if n_all > 1 else 0.0
        return weight * (n_leaves / n_all) if n_leaves > 1 else 0.0

    def enlargement(self, box: Box, other: Box) -> float:
        """How much more a box loses when it grows to cover another (Definition 5.7)."""
        return self.loss(self.join([box, other])) - self.loss(box)


def _node(domain: Domain, lo: float, hi: float) -> tuple[float, float]:
    """A side as an outsider sees it."""
    if isinstance(domain, Range):
        return lo, hi
    node = domain.cover(int(lo), int(hi))
    return domain.lows[node], domain.highs[node]


def gaps_of(values: Sequence[float]) -> frozenset[int]:
    """The attributes in which a row has no value."""
    return frozenset(d for d, value in enumerate(values) if math.isnan(value))


def valid_sides(box: Box) -> frozenset[int]:
    """The attributes in which a box isn't empty (IDEA: the set of valid QIDs)."""
    return frozenset(d for d, side in enumerate(box) if side is not None)


def covers(box: Box, other: Box) -> bool:
    """Whether a box contains another in every attribute; any side contains an empty one."""
    return all(
        inner is None or (outer is not None and outer[0] <= inner[0] and inner[1] <= outer[1])
        for outer, inner in zip(box, other, strict=True)
    )
