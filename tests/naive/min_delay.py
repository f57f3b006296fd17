"""Minimum delay, slowly: Zhou et al. (EDBT 2009), section 2.2.

Each row goes to the first class that has no row of its subject, and a class is published as soon as
it keeps the promise. Numbered deviations (``docs/deviations.md``) are flags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shoal.engine.waiting import MANY
from tests.naive.castle import Decision
from tests.naive.forcing import NaiveForcing, When
from tests.naive.space import Row

__all__ = ["Deviations", "NaiveMinDelay"]


@dataclass(frozen=True)
class Deviations:
    """Where Shoal leaves the paper: min-delay-1."""

    bounded: bool = True


class NaiveMinDelay(NaiveForcing):
    """One run of the minimum delay method."""

    def __init__(self, *args: Any, deviations: Deviations | None = None, **options: Any) -> None:
        self.deviations = deviations or Deviations()
        super().__init__(*args, bounded=self.deviations.bounded, **options)
        #: The list of equivalence classes (the paper's EL).
        self.classes: list[list[Row]] = []

    def took_in(self, row: Row, when: When) -> list[Decision]:
        for rows in self.classes:
            if all(other.subject != row.subject for other in rows):
                rows.append(row)
                break
        else:
            rows = [row]
            self.classes.append(rows)
        return self._publish([rows], when) if self.meets(rows) else []

    def _publish(self, classes: list[list[Row]], when: When) -> list[Decision]:
        self.classes = [rows for rows in self.classes if not any(rows is c for c in classes)]
        return self.released([row for rows in classes for row in rows], when)

    def force(self, row: Row, when: When) -> list[Decision]:
        own = next(rows for rows in self.classes if row in rows)
        merged = [own]
        others = [rows for rows in self.classes if rows is not own]
        if self.meets(own):
            return self._publish(merged, when)
        tested = 0
        for other in others:
            merged.append(other)
            union = [member for rows in merged for member in rows]
            is_last = len(merged) == len(others) + 1
            if len(merged) - 1 <= MANY or len(union) >= 2 * tested or is_last:
                tested = len(union)
                if self.meets(union):
                    return self._publish(merged, when)
        return self._alone(row, own, when)

    def _alone(self, row: Row, own: list[Row], when: When) -> list[Decision]:
        """Suppress a row; its subject's row in the last class that has one takes its place."""
        having = [
            (rows, other) for rows in self.classes for other in rows if other.subject == row.subject
        ]
        last, moved = having[-1]
        own.remove(row)
        if moved is not row:
            last.remove(moved)
            own.append(moved)
        self.classes = [rows for rows in self.classes if rows]
        return self.suppressed(row, when)
