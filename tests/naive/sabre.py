"""SABRE, slowly (thesis, chapter 3): buckets of like values, and groups with a share of each.

For a pool of rows measured against a window that holds more of them, what the pool is away from
the window is spent already (SABRE_W, step 15: t - D). Distances are the window's in both steps,
else they couldn't be added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from shoal.spec.criteria import TCloseness
from shoal.spec.hierarchy import Hierarchy
from tests.naive.bucketed import NaiveBucketed
from tests.naive.buckets import Bucket, Ground, bucket_cat, bucket_num, cost
from tests.naive.emd import emd
from tests.naive.measured import Measure
from tests.naive.sizes import Sizes, dichotomize, within, work
from tests.naive.space import Row

__all__ = ["Deviations", "NaiveSabre"]


@dataclass(frozen=True)
class Deviations:
    """Where Shoal leaves chapter 3, each a flag: all on is Shoal, one off is the thesis there."""

    buckets_leave_room: bool = True
    groups_have_k_rows: bool = True
    failing_groups_merge: bool = True


class NaiveSabre(NaiveBucketed):
    """The partition of SABRE-AK, and of SABRE-KNN, which looks at all rows.

    With several sensitive attributes the first that must be close is put in buckets, by the
    strictest t asked of it; whatever else is promised is reached by merging (§3.6).
    """

    all_deviations = Deviations

    @property
    def _close(self) -> list[tuple[Measure, float]]:
        return [
            (measure, measure.criterion.t)
            for measure in self.promises.measures
            if isinstance(measure.criterion, TCloseness)
        ]

    @property
    def j(self) -> int | None:
        """The attribute that is put in buckets."""
        return self.target[0].j if self._close else None

    @property
    def target(self) -> tuple[Measure, float]:
        """The attribute that is put in buckets, and the t it must keep."""
        close = self._close
        first = min(measure.j for measure, _ in close)
        return min((found for found in close if found[0].j == first), key=lambda found: found[1])

    def plan(self, pool: Sequence[Row], window: Sequence[Row]) -> tuple[list[Bucket], list[Sizes]]:
        """The buckets, and how many rows of each make up a group."""
        measure, t = self.target
        values, against = measure.values(pool), measure.values(window)
        spent = emd(measure.domain, values, against)
        assert spent is not None
        ground, counts = Ground(measure.domain, against), Counter(values)
        make = bucket_cat if isinstance(measure.domain, Hierarchy) else bucket_num
        shares = (1.0, 0.9, 0.8, 0.65, 0.5) if self.deviations.buckets_leave_room else (1.0,)
        plans = [
            self._sizes(ground, counts, make(ground, counts, share * t, spent), spent, t)
            for share in shares
        ]
        enough = max(len(sizes) for _, sizes in plans) / 2
        return next(plan for plan in plans if len(plan[1]) >= enough)

    def _sizes(
        self, ground: Ground, counts: Counter[int], buckets: list[Bucket], spent: Fraction, t: float
    ) -> tuple[list[Bucket], list[Sizes]]:
        bound = sum((cost(ground, counts, bucket) for bucket in buckets), Fraction(0))
        all_of = [sum(counts[v] for v in bucket) for bucket in buckets]
        return buckets, dichotomize(
            all_of,
            lambda sizes: within(work(ground, buckets, all_of, sizes), bound, spent, t),
            self.promises.needed if self.deviations.groups_have_k_rows else 1,
        )
