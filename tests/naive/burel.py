"""BUREL, slowly (thesis, chapter 4): buckets of equally frequent values, and groups of them.

For a pool of rows measured against a window that holds more of them (§6.6), what a value may have
of a group depends on its share of the window, and what its bucket has depends on the pool: relative
gains don't add up, so nothing is said by way of the pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal.spec.criteria import BetaLikeness
from tests.naive.bucketed import NaiveBucketed
from tests.naive.buckets import Bucket, dp_partition
from tests.naive.measured import gain
from tests.naive.sizes import Sizes, dichotomize, eligible
from tests.naive.space import Row

__all__ = ["Deviations", "NaiveBurel"]


@dataclass(frozen=True)
class Deviations:
    """Where Shoal leaves chapter 4, each a flag: all on is Shoal, one off is the thesis there."""

    caps_are_of_the_window: bool = True
    groups_have_k_rows: bool = True
    failing_groups_merge: bool = True


class NaiveBurel(NaiveBucketed):
    """The partition of BUREL.

    With several sensitive attributes the first that must be alike is put in buckets, by all that is
    asked of its single values; whatever else is promised is reached by merging (§4.3.4).
    """

    all_deviations = Deviations

    @property
    def j(self) -> int | None:
        """The attribute that is put in buckets."""
        alike = [m.j for m in self.promises.measures if isinstance(m.criterion, BetaLikeness)]
        return min(alike, default=None)

    def plan(self, pool: Sequence[Row], window: Sequence[Row]) -> tuple[list[Bucket], list[Sizes]]:
        """The buckets, and how many rows of each make up a group."""
        counts = self._count(pool)
        against = window if self.deviations.caps_are_of_the_window else pool
        frequency = self._count(against)

        def cap(value: int) -> Fraction:
            return self.cap(Fraction(frequency[value], len(against)))

        # A counter tells values in the order in which they came.
        buckets = sorted(
            dp_partition(counts, frequency, cap), key=lambda b: min(map(list(counts).index, b))
        )
        all_of = [sum(counts[v] for v in bucket) for bucket in buckets]
        caps = [min(cap(v) for v in bucket) for bucket in buckets]
        return buckets, dichotomize(
            all_of,
            lambda sizes: eligible(sizes, caps),
            self.promises.needed if self.deviations.groups_have_k_rows else 1,
        )

    def _count(self, rows: Sequence[Row]) -> Counter[Any]:
        return Counter(row.sensitive[self.j] for row in rows)

    def cap(self, p: Fraction) -> Fraction:
        """f(p): the share of a group that a value of such a share of the window may have."""
        return min(
            (1 + Fraction(gain(measure.criterion, p))) * p
            for measure in self.promises.measures
            if measure.j == self.j and isinstance(measure.criterion, BetaLikeness)
        )
