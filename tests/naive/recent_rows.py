"""The latest rows of a stream, and what is measured against them, for the naive twins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tests.naive.space import Row

__all__ = ["Measure", "RecentRows"]


class Measure(Protocol):
    """One criterion that compares the rows of a group with those of a window."""

    def holds(self, rows: Sequence[Row], window: Sequence[Row]) -> bool:
        """Whether it holds for some rows."""


class RecentRows:
    """The latest ``span`` rows, decided or not; not used without measured criteria."""

    def __init__(self, measures: Sequence[Measure], span: int) -> None:
        self.measures, self.span = list(measures), span
        self.rows: list[Row] = []
        self.n_rows = 0

    def took_in(self, row: Row) -> None:
        """A row has come."""
        self.n_rows += 1
        if self.measures:
            self.rows = [*self.rows, row][-self.span :]

    def holds(self, rows: Sequence[Row]) -> bool:
        """Whether all measures hold for some rows, now."""
        return all(measure.holds(rows, self.rows) for measure in self.measures)

    @property
    def number(self) -> int | None:
        """The window of now, by how many rows have come; None if nothing is measured."""
        return self.n_rows if self.measures else None
