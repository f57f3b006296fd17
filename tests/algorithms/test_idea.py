"""IDEA by its engine: partitions by what is missing, near ones first, and a threshold for reuse."""

from __future__ import annotations

from typing import Any

import pytest

from shoal import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.algorithms import Idea
from shoal.engine import Decisions
from shoal.errors import ParameterError
from shoal.spec.policy import Criterion, Missing
from tests.algorithms.rows import GAP, groups, outcomes, sides, stream


def decided(
    rows: list[tuple[Any, ...]],
    *more: Criterion,
    k: int = 2,
    delay: int = 1,
    missing: Missing = "maybe",
    **knobs: Any,
) -> Decisions:
    """What is decided while rows come."""
    played = stream(rows, Policy(KAnonymity(k), *more, delay=Delay(rows=delay), missing=missing))
    return played.start(Idea(**{"kept": 200, "joins": "alone"} | knobs)).push(played.codes)


def test_who_lacks_the_same_comes_first_though_others_are_nearer() -> None:
    rows = [((50, GAP), "a"), ((50, 50), "b"), ((90, GAP), "c")]
    found = decided(rows, delay=2)
    assert groups(found) == [{0, 2}]
    assert sides(found, 0)[0] == (50.0, 90.0)


def test_in_a_partition_the_nearest_come_first() -> None:
    rows = [((50, GAP), "a"), ((90, GAP), "b"), ((60, GAP), "c"), ((49, 49), "d")]
    assert groups(decided(rows, delay=3)) == [{0, 2}]


def test_a_partition_with_too_few_people_looks_at_the_nearest_other_ones() -> None:
    """The set of attributes counts first: of three values, two in common before one."""
    rows = [((50, 50, 50), "a"), ((50, GAP, GAP), "b"), ((90, 90, GAP), "c")]
    assert groups(decided(rows, delay=2)) == [{0, 2}]
    # Rows of one person are no people: the partition has too few, and both are looked at.
    rows = [((50, 50, 50), "a"), ((50, 50, 50), "a"), ((90, 90, GAP), "c")]
    assert groups(decided(rows, delay=2)) == [{0, 2}]


def test_equally_near_partitions_are_one_to_choose_from() -> None:
    rows = [((50, 50, 50), "a"), ((90, 90, GAP), "b"), ((GAP, 55, 55), "c"), ((51, GAP, 51), "d")]
    assert groups(decided(rows, delay=3)) == [{0, 3}]
    assert groups(decided(rows, k=3, delay=3)) == [{0, 2, 3}]


def test_farther_partitions_are_added_until_there_are_enough_people() -> None:
    rows = [((50, 50, 50), "a"), ((50, GAP, GAP), "b"), ((90, 90, GAP), "c"), ((GAP,) * 3, "d")]
    assert groups(decided(rows, k=3, delay=3)) == [{0, 1, 2}]
    assert groups(decided(rows, k=4, delay=3)) == [{0, 1, 2, 3}]
    assert outcomes(decided(rows, k=5, delay=3)) == {0: "suppressed"}


def test_a_partition_without_diversity_is_left_for_others() -> None:
    rows = [((50, GAP), "a", 0), ((50, GAP), "b", 0), ((90, 90), "c", 1)]
    assert groups(decided(rows, delay=2)) == [{0, 1}]
    assert groups(decided(rows, DistinctLDiversity(2), delay=2)) == [{0, 1, 2}]


def test_distance_is_a_mean_over_the_attributes_that_both_have() -> None:
    """b and c are equally near by their attributes. By a sum b would be nearer, who shares one."""
    rows = [((50, 50, GAP, GAP), "a"), ((58, GAP, GAP, GAP), "b"), ((55, 55, 1, 1), "c")]
    assert groups(decided(rows, delay=2)) == [{0, 2}]


def test_rows_with_nothing_in_common_are_farther_than_any_other() -> None:
    rows = [((50, GAP), "a"), ((GAP, GAP), "b"), ((GAP, 50), "c"), ((90, 90), "d")]
    assert groups(decided(rows, k=3, delay=3)) == [{0, 1, 3}]


@pytest.mark.parametrize("missing", ["extended", "maybe"])
def test_extended_all_rows_are_one_partition(missing: Missing) -> None:
    rows = [((50, GAP), "a"), ((50, 50), "b"), ((90, GAP), "c")]
    assert groups(decided(rows, delay=2, missing=missing)) == [
        {0, 1} if missing == "extended" else {0, 2}
    ]


@pytest.mark.parametrize(
    ("threshold", "outcome"), [(0.26, "reuse"), (0.25, "suppressed"), (0.0, "suppressed")]
)
def test_a_group_is_kept_if_it_loses_less_than_the_threshold(
    threshold: float, outcome: str
) -> None:
    rows = [(25, "a"), (50, "b"), (30, "c"), (30, "c")]
    assert outcomes(decided(rows, threshold=threshold))[2] == outcome


def test_what_a_group_loses_is_over_the_sides_that_it_has() -> None:
    """Half of one attribute, where the other is missing: 0.5, and not 0.25."""
    rows = [((25, GAP), "a"), ((75, GAP), "b"), ((30, GAP), "c"), ((30, GAP), "c")]
    assert outcomes(decided(rows, threshold=0.5))[2] == "suppressed"
    assert outcomes(decided(rows, threshold=0.51))[2] == "reuse"


def test_a_kept_group_doesnt_grow_too_old() -> None:
    rows = [(20, "a"), (20, "b"), *[(float(30 + n % 50), "c") for n in range(2_500)],
            (20, "c"), (90, "c")]  # fmt: skip
    for age, fate in [(None, "reuse"), (2_000, "suppressed")]:
        fates = outcomes(decided(rows, age=age))
        assert fates[len(rows) - 2] == fate
        assert fates[1_000] == "suppressed"


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"kept": -1}, r"Idea\.kept: must be a whole number of at least 0; got -1\."),
        ({"threshold": 1.5}, r"Idea\.threshold: must be a number from 0 to 1; got 1\.5\."),
        ({"threshold": -0.1}, r"Idea\.threshold: must be a number from 0 to 1; got -0\.1\."),
        ({"threshold": float("nan")}, r"Idea\.threshold: must be a number from 0 to 1; got nan\."),
        ({"threshold": True}, r"Idea\.threshold: must be a number from 0 to 1; got True\."),
        ({"threshold": "low"}, r"Idea\.threshold: must be a number from 0 to 1; got 'low'\."),
        ({"reuse": "worst"}, r"Idea\.reuse: must be one of random, best; got 'worst'\."),
    ],
)
def test_knobs_that_make_no_sense_are_refused(knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Idea(**{"kept": 200, "joins": "alone"} | knobs)
