"""The naive twin of the IoT anonymization, reconstructed: the largest partition, or any."""

from __future__ import annotations

import math
from typing import Any

from shoal.spec.hierarchy import Range
from tests.algorithms.world import check_section, feed, groups
from tests.naive.iot import NaiveIot

GAP = math.nan
FIRST = ((10, 10, 10), "a")


def cube(k: int, **options: Any) -> NaiveIot:
    """A twin over three numbers, each of which may be missing."""
    return NaiveIot([Range(0, 100)] * 3, [1, 1, 1], k=k, missing="maybe", **options)


def test_the_largest_of_the_nearest_partitions_comes_first() -> None:
    rows = [FIRST, ((10, 10, GAP), "b"), *[((GAP, 60, 60), f"s{n}") for n in range(2)],
            *[((GAP, GAP, 60), f"t{n}") for n in range(3)]]  # fmt: skip
    assert groups(feed(cube(2, delay_rows=6), rows, end=False)) == {0: {0, 2, 3}}


def test_among_equals_chance_decides() -> None:
    rows = [FIRST, ((10, 10, GAP), "b"), ((GAP, 60, 60), "c"), ((60, GAP, 60), "d")]
    found = [
        frozenset(groups(feed(cube(2, delay_rows=3, seed=bytes([n])), rows, end=False))[0])
        for n in range(30)
    ]
    assert set(found) == {frozenset({0, n}) for n in (1, 2, 3)}


def test_chance_is_asked_only_where_there_is_a_choice() -> None:
    twin = cube(2, delay_rows=1)
    untouched = twin.random.copy()
    feed(twin, [FIRST, ((GAP, 60, 60), "c")], end=False)
    assert twin.n_groups == 1
    assert (twin.random == untouched).all()


def test_under_best_partitions_are_drawn_though_a_group_is_reused() -> None:
    rows = [FIRST, ((12, 12, 12), "b"), FIRST, ((10, 10, GAP), "c"), ((GAP, 60, 60), "d")]
    states = []
    for reuse in ("best", "random"):
        twin = cube(2, delay_rows=2, reuse=reuse, joins="alone")
        assert groups(feed(twin, rows, end=False)) == {0: {0, 1, 2}}
        states.append(twin.random.copy())
    # One draw each: among two partitions, and among one kept group.
    assert (states[0] == states[1]).all()


def test_what_was_assumed_is_written_down() -> None:
    check_section("K-VARP and IoT", "merging", [])
