"""FADS by its engine: neighbours in the whole window, and groups that grow too old."""

from __future__ import annotations

from typing import Any

import pytest

from shoal import Delay, KAnonymity, Policy
from shoal.algorithms import Fads
from shoal.engine import Decisions
from shoal.errors import ParameterError
from shoal.spec.policy import Missing
from tests.algorithms.rows import GAP, groups, outcomes, stream


def decided(
    rows: list[tuple[Any, ...]],
    *,
    k: int = 2,
    delay: int = 1,
    missing: Missing = "quarantine",
    **knobs: Any,
) -> Decisions:
    """What is decided while rows come; rows join kept groups one by one."""
    played = stream(rows, Policy(KAnonymity(k), delay=Delay(rows=delay), missing=missing))
    return played.start(Fads(**{"kept": 50, "joins": "alone"} | knobs)).push(played.codes)


def test_the_group_is_the_row_and_its_nearest_neighbours() -> None:
    rows = [(50, "a"), (90, "b"), (45, "c"), (10, "d"), (54, "e"), (56, "f")]
    assert groups(decided(rows, k=3, delay=5)) == [{0, 2, 4}]


def test_near_is_what_loses_little_over_all_attributes() -> None:
    rows = [((50, 50), "a"), ((50, 90), "b"), ((60, 60), "c"), ((90, 50), "d")]
    assert groups(decided(rows, delay=3)) == [{0, 2}]


def test_a_gap_is_no_short_cut() -> None:
    """A row that lacks everything would cost nothing, and hide nobody: like gaps come first."""
    rows = [((50, 5), "a"), ((GAP, GAP), "b"), ((70, 6), "c"), ((GAP, GAP), "d")]
    assert groups(decided(rows, delay=3, missing="maybe")) == [{0, 2}]


def test_a_row_with_a_gap_prefers_those_with_the_same() -> None:
    rows = [((50, GAP), "a"), ((70, GAP), "b"), ((55, 5), "c")]
    assert groups(decided(rows, delay=2, missing="maybe")) == [{0, 1}]


@pytest.mark.parametrize(("age", "n_reused"), [(1, 0), (2, 1), (5, 4)])
def test_a_group_is_reused_until_it_is_too_old(age: int, n_reused: int) -> None:
    """The group leaves when row 1 comes. Reuse doesn't make it young again."""
    rows = [(20, "a"), (20, "b"), *[(20, "c")] * 8]
    fates = list(outcomes(decided(rows, age=age)).values())
    assert fates == ["group"] * 2 + ["reuse"] * n_reused + ["suppressed"] * (7 - n_reused)


def test_of_several_covering_groups_the_old_ones_drop_out() -> None:
    """[20, 40] loses more than [29, 31], and is the only one young enough."""
    rows = [(29, "a"), (31, "b"), (20, "c"), (40, "d"), (30, "e"), (30, "e")]
    best = decided(rows, age=3, reuse="best")
    assert best.lo[best.boxes[best.rows.tolist().index(4)]].tolist() == [20.0]
    older = decided(rows, age=4, reuse="best")
    assert older.lo[older.boxes[older.rows.tolist().index(4)]].tolist() == [29.0]


def test_every_group_is_kept_however_much_it_loses() -> None:
    rows = [(0, "a"), (100, "b"), (50, "c"), (50, "c")]
    assert outcomes(decided(rows))[2] == "reuse"


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"kept": -1}, r"Fads\.kept: must be a whole number of at least 0; got -1\."),
        ({"kept": 2.0}, r"Fads\.kept: must be a whole number of at least 0; got 2\.0\."),
        ({"age": 0}, r"Fads\.age: must be a whole number of at least 1; got 0\."),
        ({"age": 10**8}, r"Fads\.age: must be at most 10,000,000; got 100000000\."),
        ({"reuse": "worst"}, r"Fads\.reuse: must be one of random, best; got 'worst'\."),
    ],
)
def test_knobs_that_make_no_sense_are_refused(knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Fads(**knobs)
