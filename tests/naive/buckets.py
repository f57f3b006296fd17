"""Buckets of sensitive values: SABRE's (thesis, §3.4.1) and BUREL's (§4.3.1), as lists of values.

``counts`` tells how often each value occurs among the rows that are to be parted; values that don't
occur are in no bucket. What is measured against (the domain of numbers, the shares that cap a
value) is the window's, and for a whole table both are the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from shoal.spec.hierarchy import Domain, Hierarchy
from tests.naive.emd import children, heights
from tests.naive.measured import BELOW

__all__ = ["Ground", "bucket_cat", "bucket_num", "cost", "dp_partition"]

Counts = Mapping[int, int]
Bucket = list[int]


class Ground:
    """The ground distances of sensitive values, as whole numbers of ``scale``.

    Numbers are as far apart as their ranks among all values of the window; categories as high as
    their lowest common ancestor.
    """

    def __init__(self, domain: Domain | None, window: Sequence[int]) -> None:
        self.tree = domain if isinstance(domain, Hierarchy) else None
        self.ranks = {value: rank for rank, value in enumerate(sorted(set(window)))}
        self._heights = heights(domain) if isinstance(domain, Hierarchy) else []
        self.scale = max(1, self._heights[0] if self.tree else len(self.ranks) - 1)

    def between(self, one: int, other: int) -> int:
        """The distance of two values."""
        if self.tree is None:
            return abs(self.ranks[one] - self.ranks[other])
        return self._heights[self.tree.cover(min(one, other), max(one, other))]

    def farthest(self, one: Bucket, other: Bucket) -> int:
        """d^u of two buckets: the largest distance of a value of one from a value of the other."""
        return max(self.between(y, z) for y in one for z in other)

    def height(self, bucket: Bucket) -> int:
        """The height of the lowest common ancestor of the values of a bucket."""
        assert self.tree is not None
        return self._heights[self.tree.cover(min(bucket), max(bucket))]


def cost(ground: Ground, counts: Counts, bucket: Bucket) -> Fraction:
    """CET^U: what moving earth inside a bucket costs at most (Theorem 3.2)."""
    n = sum(counts.values())
    if ground.tree is not None:
        amount = sum(counts[v] for v in bucket) - min(counts[v] for v in bucket)
        return Fraction(ground.height(bucket) * amount, ground.scale * n)
    worst = max(sum(ground.between(at, v) * counts[v] for v in bucket) for at in bucket)
    return Fraction(worst, ground.scale * n)


def bucket_cat(ground: Ground, counts: Counts, t: float, spent: Fraction) -> list[Bucket]:
    """bucketCat: a bucket is split into the children of its values' lowest common ancestor."""

    def split(bucket: Bucket) -> list[Bucket]:
        tree = ground.tree
        assert tree is not None
        parts = [
            [v for v in bucket if tree.lows[child] <= v <= tree.highs[child]]
            for child in children(tree, tree.cover(min(bucket), max(bucket)))
        ]
        return [part for part in parts if part]

    return _split_up(ground, counts, t, spent, split)


def bucket_num(ground: Ground, counts: Counts, t: float, spent: Fraction) -> list[Bucket]:
    """bucketNum: a bucket is split in two where that costs least."""

    def split(bucket: Bucket) -> list[Bucket]:
        cuts = [[bucket[:at], bucket[at:]] for at in range(1, len(bucket))]
        return min(cuts, key=lambda parts: sum(cost(ground, counts, part) for part in parts))

    return _split_up(ground, counts, t, spent, split)


def _split_up(
    ground: Ground,
    counts: Counts,
    t: float,
    spent: Fraction,
    split: Callable[[Bucket], list[Bucket]],
) -> list[Bucket]:
    """Split the bucket that saves most, until all cost less than t together with what is spent.

    The bucket is taken out of the list, and its parts are put at the end of it; of equal savings
    the first in the list counts. A single value isn't split: where t = 0 all are single at last.
    """
    leaves = [sorted(counts)]

    def bound(bucket: Bucket) -> Fraction:
        return cost(ground, counts, bucket)

    def saving(bucket: Bucket) -> Fraction:
        return bound(bucket) - sum(bound(part) for part in split(bucket))

    while sum(bound(leaf) for leaf in leaves) + spent >= Fraction(t) * BELOW:
        several = [leaf for leaf in leaves if len(leaf) > 1]
        if not several:
            break
        best = max(several, key=saving)
        leaves.remove(best)
        leaves += split(best)
    return sorted(leaves)


def dp_partition(counts: Counts, frequency: Counts, cap: Callable[[int], Fraction]) -> list[Bucket]:
    """DPpartition: as few buckets as can be, of values of similar frequency.

    ``frequency`` is how often a value occurs in the window, and ``cap`` is f(p): the share of a
    group that it may have. Values are in ascending order of frequency, then as they came.
    """
    values = sorted(counts, key=lambda v: frequency[v])
    n, m = sum(counts.values()), len(values)

    def combinable(b: int, e: int) -> bool:
        inside = values[b - 1 : e]
        together = Fraction(sum(counts[v] for v in inside), n)
        return together < min(cap(v) for v in inside) * BELOW

    fewest, start = [0] * (m + 1), [0] * (m + 1)
    for e in range(1, m + 1):
        fewest[e], start[e] = fewest[e - 1] + 1, e
        b = e - 1
        while b > 0 and combinable(b, e):
            if fewest[b - 1] + 1 < fewest[e]:
                fewest[e], start[e] = fewest[b - 1] + 1, b
            b -= 1
    buckets: list[Bucket] = []
    e = m
    while e > 0:
        buckets.append(values[start[e] - 1 : e])
        e = start[e] - 1
    return buckets[::-1]
