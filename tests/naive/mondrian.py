"""Strict multidimensional Mondrian, slowly, with any promise as the condition for a cut.

K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity" (2006); with
t-closeness, likeness or disclosure as the condition it is what the thesis compares with (§3.5,
§4.4.2).
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.naive.centres import Centres
from tests.naive.measured import Promises
from tests.naive.parts import Part
from tests.naive.space import Box, Row, Space

__all__ = ["NaiveMondrian"]


class NaiveMondrian:
    """The partition of Mondrian: groups in the order of their leaves, left to right."""

    def __init__(self, space: Space, promises: Promises) -> None:
        self.space, self.promises = space, promises
        self.centres = Centres(space)

    def __call__(self, pool: Sequence[Row], window: Sequence[Row]) -> list[Part]:
        box = self.space.box(pool)
        for d in sorted(range(len(box)), key=lambda d: (-self.width(box, d), d)):
            halves = self.halves(pool, d)
            if all(half and self.promises.hold(half, window) for half in halves):
                return [part for half in halves for part in self(half, window)]
        return [Part(list(pool), box)]

    def width(self, box: Box, d: int) -> float:
        """What one side of a box loses."""
        return self.space.spread(tuple(side if i == d else None for i, side in enumerate(box)))

    def halves(self, rows: Sequence[Row], d: int) -> tuple[list[Row], list[Row]]:
        """The rows up to the median, and the others; below it, where there are no others."""
        centres = [self.centres.centre(d, row) for row in rows]
        median = sorted(centres)[(len(centres) - 1) // 2]
        right_begins_after = max(centres) > median
        left = [
            row
            for row, centre in zip(rows, centres, strict=True)
            if centre < median or (centre == median and right_begins_after)
        ]
        return left, [row for row in rows if row not in left]
