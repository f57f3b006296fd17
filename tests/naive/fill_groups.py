"""takeOut and Retrieve (thesis, §3.4.3 and §4.3.3): which rows of the buckets make up a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.naive.centres import Centres
from tests.naive.space import Row, Space

__all__ = ["GroupFiller"]


class GroupFiller:
    """Fills groups with the rows that are nearest to a random row.

    Parameters
    ----------
    look
        How many rows, near on the Hilbert curve, are looked at for each one that is taken; of these
        the nearest ones are (SABRE-AK, BUREL). None: all rows are looked at (SABRE-KNN).
    draw
        A random number from 0 to n - 1.
    """

    def __init__(self, space: Space, look: int | None, draw: Callable[[int], int]) -> None:
        self.centres = Centres(space)
        self.look, self.draw = look, draw

    def groups(
        self, buckets: Sequence[Sequence[Row]], sizes: Sequence[Sequence[int]]
    ) -> list[list[Row]]:
        """One group for each array of sizes, in their order."""
        ordered = [sorted(bucket, key=self._on_curve) for bucket in buckets]
        left = [list(bucket) for bucket in ordered]
        groups = []
        for wanted in sizes:
            x = self._around(ordered, left)
            group = []
            for rows, n in zip(left, wanted, strict=True):
                taken = self._nearest(x, rows, n)
                for row in taken:
                    rows.remove(row)
                group += taken
            groups.append(group)
        return groups

    def _around(self, ordered: Sequence[list[Row]], left: Sequence[list[Row]]) -> Row:
        """Any row of any bucket that has some left.

        Along the curve any place of the bucket is drawn, and the next row there is taken, round the
        end: not quite each equally likely, but without counting.
        """
        filled = [b for b, rows in enumerate(left) if rows]
        b = filled[self.draw(len(filled))]
        if self.look is None:
            return left[b][self.draw(len(left[b]))]
        place = self.draw(len(ordered[b]))
        there = {row.number for row in left[b]}
        return next(row for row in ordered[b][place:] + ordered[b][:place] if row.number in there)

    def _nearest(self, x: Row, rows: list[Row], n: int) -> list[Row]:
        """The n nearest of some rows, which are in the order of the curve."""
        seen = rows if self.look is None else self._seen(x, rows)[: self.look * n]
        if self.look == 1:
            return seen
        return sorted(seen, key=lambda row: self.centres.distance(x, row))[:n]

    def _seen(self, x: Row, rows: list[Row]) -> list[Row]:
        """Rows by how far they are along the curve; at the same distance those before go first."""
        at = self.centres.hilbert(x)
        before = [row for row in rows if self.centres.hilbert(row) < at]
        behind = [row for row in rows if self.centres.hilbert(row) >= at]
        far = [(at - self.centres.hilbert(row), 0, row) for row in before[::-1]]
        far += [(self.centres.hilbert(row) - at, 1, row) for row in behind]
        return [row for _, _, row in sorted(far, key=lambda item: item[:2])]

    def _on_curve(self, row: Row) -> tuple[int, int]:
        return self.centres.hilbert(row), row.number
