"""Rows, boxes and losses for the naive twins: plain tuples, nothing remembered, nothing clever."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from shoal.hierarchy import Domain, Range

#: One interval for each quasi attribute.
Box = tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class Row:
    """One row of the stream: its number by arrival, its own box, whom it is about."""

    number: int
    box: Box
    subject: Hashable
    sensitive: tuple[Hashable, ...]
    time: float | None = None


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
        ``"glm"`` as in the thesis, section 2.3, or ``"lm"``, which is 0 for one leaf by itself.
    """

    def __init__(self, domains: Sequence[Domain], weights: Sequence[float], loss: str) -> None:
        self.domains = list(domains)
        self.weights = [weight / total(weights) for weight in weights]
        self.kind = loss

    def row_box(self, values: Sequence[float]) -> Box:
        """The box of a single row: numbers snapped outward to the step, categories as they are."""
        return tuple(
            domain.snap(value, value) if isinstance(domain, Range) else (value, value)
            for domain, value in zip(self.domains, values, strict=True)
        )

    def join(self, boxes: Iterable[Box]) -> Box:
        """The smallest box that can be published over all of these (Definitions 5.4 and 5.5)."""
        sides = []
        for domain, intervals in zip(self.domains, zip(*boxes, strict=True), strict=True):
            lo, hi = min(low for low, _ in intervals), max(high for _, high in intervals)
            if not isinstance(domain, Range):
                node = domain.cover(int(lo), int(hi))
                lo, hi = domain.lows[node], domain.highs[node]
            sides.append((lo, hi))
        return tuple(sides)

    def box(self, rows: Iterable[Row]) -> Box:
        """The smallest box that can be published over the rows."""
        return self.join([row.box for row in rows])

    def loss(self, box: Box) -> float:
        """The information loss of a box, from 0 to 1 (section 5.4.1)."""
        return total(self._side(d, lo, hi) for d, (lo, hi) in enumerate(box))

    def _side(self, d: int, lo: float, hi: float) -> float:
        domain, weight = self.domains[d], self.weights[d]
        if isinstance(domain, Range):
            unit = weight / (domain.hi - domain.lo)
            return (hi - lo) * unit
        n_leaves, n_all = hi - lo + 1, len(domain)
        if self.kind == "lm":
            return weight * ((n_leaves - 1) / (n_all - 1)) if n_all > 1 else 0.0
        return weight * (n_leaves / n_all) if n_leaves > 1 else 0.0

    def enlargement(self, box: Box, other: Box) -> float:
        """How much more a box loses when it grows to cover another (Definition 5.7)."""
        return self.loss(self.join([box, other])) - self.loss(box)


def covers(box: Box, other: Box) -> bool:
    """Whether a box contains another in every attribute."""
    return all(lo <= low and high <= hi for (lo, hi), (low, high) in zip(box, other, strict=True))
