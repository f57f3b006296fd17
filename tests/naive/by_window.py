"""SABRE_W's windows, slowly (thesis, §6.3), for any way to part the rows of a window.

A window advances over the stream; its first rows expire, and must leave. DIRECT parts the rows that
it holds and have not left, and lets go the groups with an expiring row; the others are remembered.
INDIRECT lets go all that are remembered, where the rows left are too different from the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal.spec.criteria import TCloseness
from tests.naive.emd import emd
from tests.naive.on_deadline import Decision, When
from tests.naive.parts import Part
from tests.naive.space import Row
from tests.naive.whole_table import NaiveWholeTable

__all__ = ["Deviations", "NaiveByWindow"]


@dataclass(frozen=True)
class Deviations:
    """Where Shoal leaves chapter 6, each a flag: all on is Shoal, one off is the thesis there."""

    cases_by_the_promise: bool = True
    groups_are_checked: bool = True
    the_rest_is_suppressed: bool = True


class NaiveByWindow(NaiveWholeTable):
    """One run over windows of ``rows`` rows that move by ``advance``.

    ``cases`` tells how each advance went: 1, 2 (DIRECT) or 3 (INDIRECT).
    """

    def __init__(
        self,
        *args: Any,
        rows: int,
        advance: int,
        deviations: Deviations | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.width, self.step = rows, advance
        self.sliding = deviations or Deviations()
        self.base = 0
        self.remembered: list[tuple[Part, int]] = []
        self.cases: list[int] = []

    # -- when a window advances ------------------------------------------------------------------

    def after_arrival(self, when: When) -> list[Decision]:
        if self.n_rows < self.base + self.width + self.step:
            return []
        return self._instant(self.base + self.width, self.base + self.step, when)

    def due(self, t: Row, when: When) -> list[Decision]:
        """Advance early: a row is due in seconds, or one that has left stands before it."""
        end = min(self.n_rows, self.base + self.width)
        return self._instant(end, min(self.n_rows, self.base + self.step), when)

    def end(self) -> Iterator[list[Decision]]:
        when = self.n_rows, self.clock
        while self.n_rows - self.base > self.width:
            expired = min(self.base + self.step, self.n_rows - self.width)
            yield self.slide(self.base + self.width, expired, when)
        yield self.slide(self.n_rows, self.n_rows, when)

    def _instant(self, end: int, expired: int, when: When) -> list[Decision]:
        decisions = self.slide(end, expired, when)
        self.instant += 1
        return decisions

    # -- what becomes of its rows ----------------------------------------------------------------

    def slide(self, end: int, expired: int, when: When) -> list[Decision]:
        """Advance the window that ends before row ``end``; rows before ``expired`` must leave."""
        pool = [row for row in self.held.values() if self.base <= row.number < end]
        window = self.rows[max(0, end - self.width) : end]
        expiring = [row for row in pool if row.number < expired]
        self.base = expired
        if not expiring:
            self.cases.append(1)
            return []
        if self.too_different(pool, window):
            self.cases.append(3)
            decisions = self.indirect(when)
        else:
            self.cases.append(2)
            decisions = self.direct(pool, window, expiring, end, when)
        left = [row for row in expiring if row.number in self.held]
        if not self.sliding.the_rest_is_suppressed:
            return decisions
        return decisions + self.suppress_all(left, when)

    def too_different(self, pool: list[Row], window: list[Row]) -> bool:
        """Whether the rows of the pool, all together, are no group of this window."""
        if self.sliding.cases_by_the_promise:
            return not self.promises.hold(pool, window)
        return any(self._is_far(measure, pool, window) for measure in self.promises.measures)

    def _is_far(self, measure: Any, pool: list[Row], window: list[Row]) -> bool:
        """D ≥ t (step 14), and for likeness that it doesn't hold (§6.6)."""
        if not isinstance(measure.criterion, TCloseness):
            return not measure.holds(pool, window)
        distance = emd(measure.domain, measure.values(pool), measure.values(window))
        assert distance is not None
        return distance >= Fraction(measure.criterion.t)

    def direct(
        self, pool: list[Row], window: list[Row], expiring: list[Row], end: int, when: When
    ) -> list[Decision]:
        parts = self.partition(pool, window)
        if self.sliding.groups_are_checked:
            parts = [part for part in parts if self.promises.hold(part.rows, window)]
        numbers = {row.number for row in expiring}
        leaving = [part for part in parts if any(row.number in numbers for row in part.rows)]
        self.remembered = [(part, end) for part in parts if part not in leaving]
        return self.leave(leaving, end, when)

    def indirect(self, when: When) -> list[Decision]:
        remembered, self.remembered = self.remembered, []
        return [decision for part, end in remembered for decision in self.leave([part], end, when)]
