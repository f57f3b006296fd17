"""Twins of the R-tree family over short streams, and samples that stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.spec.hierarchy import Range
from tests.naive.castle import Decision
from tests.naive.rtree import Leaf
from tests.naive.space import Box, Row
from tests.naive.tree import Deviations, NaiveTreeBasic, NaiveTreeDensity, NaiveTreeFull

TWINS: dict[str, type[NaiveTreeBasic]] = {
    "tree-basic": NaiveTreeBasic,
    "tree-density": NaiveTreeDensity,
    "tree-full": NaiveTreeFull,
}


def line(name: str, k: int, **options: Any) -> Any:
    """A twin over one number from 0 to 100."""
    return TWINS[name]([Range(0, 100)], [1.0], k=k, **options)


def both(flag: str) -> tuple[Deviations, Deviations]:
    """The paper in one point, and Shoal."""
    return Deviations(**{flag: False}), Deviations()


class Fixed:
    """Samples at given places; no row ever becomes one."""

    def __init__(self, boxes: Sequence[Box], positions: Sequence[int] = ()) -> None:
        self.boxes, self.positions = boxes, positions or [-1] * len(boxes)

    def arrives(self, random: Any, position: int, box: Box) -> list[int]:
        return []

    def box(self, c: int) -> Box:
        return self.boxes[c]

    def position(self, c: int) -> int:
        return self.positions[c]


def seen_at(twin: NaiveTreeDensity, *places: float, positions: Sequence[int] = ()) -> None:
    """Let samples be at these numbers."""
    twin.chains = Fixed([((at, at),) for at in places], positions)  # type: ignore[assignment]
    assert len(places) == twin.samples


def waiting(twin: NaiveTreeBasic, rows: Sequence[tuple[Any, ...]]) -> list[Row]:
    """Push (value, subject, sensitive values…) while no coin is flipped; give the rows."""
    drawn, twin.drawn = twin.drawn, lambda: None  # type: ignore[method-assign]
    before = twin.n_rows
    for value, subject, *sensitive in rows:
        assert twin.push([value], subject, sensitive) == []
    twin.drawn = drawn  # type: ignore[method-assign]
    return [twin.held[number] for number in range(before, twin.n_rows)]


def chances(twin: NaiveTreeBasic) -> dict[int, float]:
    """How likely each mature leaf is to be published at this instant, by number."""
    weighted = twin.weights()
    expected = sum(len(leaf.rows) * weight for leaf, weight in weighted)
    return {leaf.number: weight / expected for leaf, weight in weighted}


def members(leaf: Leaf) -> set[int]:
    """The rows of a leaf."""
    return {row.number for row in leaf.rows}


def boxes(decisions: Sequence[Decision]) -> set[tuple[Any, Any]]:
    """The boxes in which rows were published."""
    return {(d.lo, d.hi) for d in decisions if d.group is not None}
