"""K-VARP by its engine, as reconstructed: whole partitions leave together, the likest first."""

from __future__ import annotations

from typing import Any

import pytest

from shoal import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.algorithms import KVarp
from shoal.engine import Decisions
from shoal.errors import ParameterError
from shoal.spec.policy import Criterion
from tests.algorithms.rows import GAP, groups, outcomes, stream


def decided(
    rows: list[tuple[Any, ...]], *more: Criterion, k: int = 2, delay: int = 1, **knobs: Any
) -> Decisions:
    """What is decided while rows come."""
    played = stream(rows, Policy(KAnonymity(k), *more, delay=Delay(rows=delay), missing="maybe"))
    return played.start(KVarp(**{"kept": 200, "joins": "alone"} | knobs)).push(played.codes)


FIRST = ((50, 50, 50), "a")


def test_in_its_own_partition_a_row_leaves_with_its_nearest_neighbours_only() -> None:
    rows = [FIRST, ((90, 90, 90), "b"), ((60, 60, 60), "c"), ((50, 50, GAP), "d")]
    assert groups(decided(rows, delay=3)) == [{0, 2}]


def test_partitions_are_put_together_whole() -> None:
    """One more person would be enough; all of the partition leave, and nobody of the next."""
    rows = [FIRST, *[((at, at, GAP), at) for at in (50, 70, 90)], ((50, GAP, GAP), "z")]
    assert groups(decided(rows, delay=4)) == [{0, 1, 2, 3}]


def test_also_the_rest_of_its_own_partition_comes_along() -> None:
    rows = [FIRST, FIRST, ((90, 90, 90), "b"), ((50, 50, GAP), "c")]
    assert groups(decided(rows, k=3, delay=3)) == [{0, 1, 2, 3}]


def test_merging_counts_people_and_continues_until_there_are_enough() -> None:
    rows = [FIRST, ((50, 50, GAP), "a"), ((50, GAP, GAP), "b"), ((GAP,) * 3, "c")]
    assert groups(decided(rows, delay=3)) == [{0, 1, 2}]
    assert groups(decided(rows, k=3, delay=3)) == [{0, 1, 2, 3}]
    assert outcomes(decided(rows, k=4, delay=3)) == {0: "suppressed"}


def test_merging_continues_until_the_group_is_diverse() -> None:
    rows = [(*FIRST, 0), ((50, 50, GAP), "b", 0), ((50, GAP, GAP), "c", 1)]
    assert groups(decided(rows, delay=2)) == [{0, 1}]
    assert groups(decided(rows, DistinctLDiversity(2), delay=2)) == [{0, 1, 2}]


@pytest.mark.parametrize(("radius", "members"), [(0.2, {0, 3}), (0.1, {0, 1, 2}), (0.7, {0, 1, 2})])
def test_likeness_decides_between_equally_similar_partitions(
    radius: float, members: set[int]
) -> None:
    """Of the first two, 0.6 away, none is near; the other is 0.15 away. With a larger radius all
    are near, with a smaller one nobody is: then there are more rows in the first partition.
    """
    rows = [FIRST, ((GAP, 90, 70), "b"), ((GAP, 90, 70), "c"), ((65, 65, GAP), "d")]
    assert groups(decided(rows, delay=3, radius=radius)) == [members]


def test_likeness_counts_rows() -> None:
    """One row in the first partition is near, two in the second, which has fewer rows."""
    far, near = (90, 90), (51, 51)
    rows = [FIRST, ((GAP, *near), 1), ((GAP, *far), 2), ((GAP, *far), 3), ((*near, GAP), 4),
            ((*near, GAP), 5)]  # fmt: skip
    assert groups(decided(rows, delay=5)) == [{0, 4, 5}]


def test_a_similar_partition_comes_before_a_like_one() -> None:
    rows = [FIRST, ((50, GAP, GAP), "b"), ((90, 90, GAP), "c")]
    assert groups(decided(rows, delay=2)) == [{0, 2}]


def test_in_all_else_equal_partitions_are_taken_by_age() -> None:
    rows = [FIRST, ((GAP, 90, 90), "b"), ((90, 90, GAP), "c")]
    for seed in range(8):
        played = stream(rows, Policy(KAnonymity(2), delay=Delay(rows=2), missing="maybe"))
        assert groups(played.start(KVarp(), bytes([seed])).push(played.codes)) == [{0, 1}]


def test_merged_groups_are_kept_if_they_lose_little() -> None:
    base = [((50, 50), "a"), ((60, GAP), "b"), ((55, 50), "c"), ((55, 50), "c")]
    assert outcomes(decided(base))[2] == "reuse"
    assert outcomes(decided(base, threshold=0.05))[2] == "suppressed"


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"radius": 1.01}, r"KVarp\.radius: must be a number from 0 to 1; got 1\.01\."),
        ({"radius": None}, r"KVarp\.radius: must be a number from 0 to 1; got None\."),
        ({"threshold": -1}, r"KVarp\.threshold: must be a number from 0 to 1; got -1\."),
        ({"kept": -1}, r"KVarp\.kept: must be a whole number of at least 0; got -1\."),
        ({"reuse": "worst"}, r"KVarp\.reuse: must be one of random, best; got 'worst'\."),
    ],
)
def test_knobs_that_make_no_sense_are_refused(knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        KVarp(**{"kept": 200, "joins": "alone"} | knobs)
