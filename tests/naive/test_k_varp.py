"""K-VARP's naive twin, reconstructed: whole partitions are merged, the R-likest first."""

from __future__ import annotations

import math
from typing import Any

from shoal.spec.hierarchy import Range
from tests.algorithms.world import feed, groups
from tests.naive.k_varp import NaiveKVarp

GAP = math.nan


def cube(k: int, **options: Any) -> NaiveKVarp:
    """A twin over three numbers, each of which may be missing."""
    return NaiveKVarp([Range(0, 100)] * 3, [1, 1, 1], k=k, missing="maybe", **options)


def test_the_own_partition_is_enough() -> None:
    rows = [((10, 10, 10), "a"), ((10, 10, GAP), "b"), ((90, 90, 90), "c")]
    assert groups(feed(cube(2, delay_rows=2), rows, end=False)) == {0: {0, 2}}


def test_whole_partitions_are_merged() -> None:
    # One more would have been enough; all of the partition come along (as IDEA says of it).
    rows = [((10, 10, 10), "a"), *[((at, at, GAP), f"s{at}") for at in (10, 50, 90)]]
    decisions = feed(cube(2, delay_rows=3), rows, end=False)
    assert groups(decisions) == {0: {0, 1, 2, 3}}
    assert {(d.lo, d.hi) for d in decisions} == {((10, 10, 10), (90, 90, 10))}


def test_merging_continues_until_there_are_enough_people() -> None:
    # The nearer partition brings nobody new.
    rows = [((10, 10, 10), "a"), ((10, 10, GAP), "a"), ((10, GAP, GAP), "b"), ((GAP,) * 3, "c")]
    assert groups(feed(cube(2, delay_rows=3), rows, end=False)) == {0: {0, 1, 2}}
    assert feed(cube(4, delay_rows=3), rows, end=False)[0].outcome == "suppressed"


def test_the_nearest_partition_comes_first() -> None:
    rows = [((10, 10, 10), "a"), *[((10, GAP, GAP), f"s{n}") for n in range(5)],
            ((90, 90, GAP), "b")]  # fmt: skip
    assert groups(feed(cube(2, delay_rows=6), rows, end=False)) == {0: {0, 6}}


def test_then_the_likest_then_the_largest_then_the_oldest() -> None:
    first = ((10, 10, 10), "a")
    like, larger = ((25, 25, GAP), "b"), [((GAP, 60, 60), f"s{n}") for n in range(2)]
    assert groups(feed(cube(2, delay_rows=3), [first, *larger, like], end=False)) == {0: {0, 3}}
    # Below R only: at 0.15 it isn't like it any more.
    assert groups(
        feed(cube(2, delay_rows=3, radius=0.15), [first, *larger, like], end=False)
    ) == {0: {0, 1, 2}}  # fmt: skip
    rows = [first, ((GAP, 60, 60), "c"), ((60, 60, GAP), "b")]
    assert groups(feed(cube(2, delay_rows=2), rows, end=False)) == {0: {0, 1}}
