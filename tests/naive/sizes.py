"""How many rows a group takes of each bucket: dichotomize (thesis, §3.4.2) and biSplit (§4.3.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from tests.naive.buckets import Bucket, Ground
from tests.naive.emd import least_work
from tests.naive.measured import ABOVE

__all__ = ["dichotomize", "eligible", "halves", "within", "work"]

Sizes = list[int]


def halves(sizes: Sizes) -> tuple[Sizes, Sizes]:
    """Both halves; the odd row goes to the left one (round half up)."""
    left = [(a + 1) // 2 for a in sizes]
    return left, [a - b for a, b in zip(sizes, left, strict=True)]


def dichotomize(sizes: Sizes, allowed: Callable[[Sizes], bool], least: int = 1) -> list[Sizes]:
    """Halve the numbers of rows as long as both halves are allowed; the leaves, left to right.

    Both halves need ``least`` rows. One without any is no group: an array of ones isn't halved.
    """
    both = halves(sizes)
    if all(a < 2 for a in sizes):
        return [sizes]
    if not all(sum(half) >= max(1, least) and allowed(half) for half in both):
        return [sizes]
    return [leaf for half in both for leaf in dichotomize(half, allowed, least)]


# -- SABRE: D + U ≤ t ------------------------------------------------------------------------------


def work(ground: Ground, buckets: Sequence[Bucket], all_of: Sizes, sizes: Sizes) -> Fraction:
    """D: the least work of all ways to bring a group's shares of the buckets to all rows'."""
    distances = [
        [
            Fraction(0 if one is other else ground.farthest(one, other), ground.scale)
            for other in buckets
        ]
        for one in buckets
    ]
    return least_work(
        [Fraction(a, sum(sizes)) for a in sizes],
        [Fraction(b, sum(all_of)) for b in all_of],
        distances,
    )


def within(work: Fraction, bound: Fraction, spent: Fraction, t: float) -> bool:
    """D + U ≤ t, together with what is spent on the way to the window (Theorem 3.4)."""
    return work + bound + spent <= Fraction(t) * ABOVE


# -- BUREL: the eligibility condition --------------------------------------------------------------


def eligible(sizes: Sizes, caps: Sequence[Fraction]) -> bool:
    """Whether no bucket has more of a group than the rarest of its values may (Theorem 4.1)."""
    n = sum(sizes)
    return all(Fraction(a, n) <= cap * ABOVE for a, cap in zip(sizes, caps, strict=True))
