"""IoT by its engine, as reconstructed: whole partitions leave together, the largest first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal import Delay, KAnonymity, Policy
from shoal.algorithms import Iot, KVarp
from shoal.engine import Decisions
from shoal.errors import ParameterError
from tests.algorithms.rows import GAP, groups, outcomes, stream

FIRST = ((50, 50, 50), "a")


def decided(
    rows: list[tuple[Any, ...]], *, k: int = 2, delay: int = 1, seed: int = 0, **knobs: Any
) -> Decisions:
    """What is decided while rows come."""
    played = stream(rows, Policy(KAnonymity(k), delay=Delay(rows=delay), missing="maybe"))
    return played.start(Iot(**knobs), seed.to_bytes(4, "big")).push(played.codes)


def test_its_own_partition_is_enough() -> None:
    rows = [FIRST, ((90, 90, 90), "b"), ((60, 60, 60), "c"), ((50, 50, GAP), "d")]
    assert groups(decided(rows, delay=3)) == [{0, 2}]


def test_the_largest_of_equally_similar_partitions_is_merged_whole() -> None:
    """Also if a smaller one is nearer by its values, which is K-VARP's choice."""
    rows = [FIRST, ((50, 50, GAP), "b"), ((GAP, 90, 90), "c"), ((GAP, 90, 90), "d")]
    for seed in range(8):
        assert groups(decided(rows, delay=3, seed=seed)) == [{0, 2, 3}]
    played = stream(rows, Policy(KAnonymity(2), delay=Delay(rows=3), missing="maybe"))
    assert groups(played.start(KVarp()).push(played.codes)) == [{0, 1}]


def test_a_similar_partition_comes_before_a_large_one() -> None:
    rows = [FIRST, *[((50, GAP, GAP), n) for n in range(4)], ((90, 90, GAP), "b")]
    assert groups(decided(rows, delay=5)) == [{0, 5}]


def test_rows_count_for_what_is_large_people_for_what_is_enough() -> None:
    """The larger partition is one person's, whose own row is due: another one has to follow."""
    rows = [FIRST, ((GAP, 50, 50), "a"), ((GAP, 50, 50), "a"), ((90, 90, GAP), "b")]
    assert groups(decided(rows, delay=3)) == [{0, 1, 2, 3}]
    assert outcomes(decided(rows, k=3, delay=3)) == {0: "suppressed"}


def test_among_equals_each_is_equally_likely() -> None:
    rows = [FIRST, ((50, 50, GAP), "b"), ((GAP, 90, 90), "c"), ((10, GAP, 10), "d")]
    chosen = [max(groups(decided(rows, delay=3, seed=seed))[0]) for seed in range(300)]
    counts = np.bincount(chosen, minlength=4)[1:]
    # Chi-square with two degrees of freedom: above 13.8 in one of a thousand fair draws.
    assert float(((counts - 100) ** 2 / 100).sum()) < 13.8


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"threshold": 2}, r"Iot\.threshold: must be a number from 0 to 1; got 2\."),
        ({"kept": -1}, r"Iot\.kept: must be a whole number of at least 0; got -1\."),
        ({"kept": 10**8}, r"Iot\.kept: must be at most 10,000,000; got 100000000\."),
        ({"reuse": "worst"}, r"Iot\.reuse: must be one of random, best; got 'worst'\."),
    ],
)
def test_knobs_that_make_no_sense_are_refused(knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Iot(**knobs)
