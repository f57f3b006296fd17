"""The twin of z-anonymity: a z that follows the stream, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algorithms.events import STREAMS, WINDOWS, event, numbered
from tests.examples import examples
from tests.naive.z_anonymity import Decision, NaiveZAnonymity, Row, run


def moved(rows: Sequence[Row], **options: Any) -> list[tuple[int, int, int]]:
    """Of each estimate its row, and z before and after."""
    _, estimates = run(rows, **options)
    return [(e.row, e.z_before, e.z_after) for e in estimates]


#: Six rows of x x x x y y, by six subjects.
SIX = numbered(*[(s, "x" if s < 4 else "y") for s in range(6)])


def test_z_is_the_least_with_the_share_that_is_wanted() -> None:
    """At row 6 the window has rows 1 to 5: x x x y y.

    Under z = 2 or 3 the crowds are three with x and two others (with y, or with nothing): of five,
    three are among three alike. Under 4 nothing is published, and all are alike.
    """
    rows = [*SIX, *numbered((6, "x"))]
    decisions, (estimate,) = run(rows, z=2, window_rows=6, estimates=1, k=3, probability=0.9)
    assert (estimate.row, estimate.z_before, estimate.z_after) == (6, 2, 4)
    assert (estimate.n_subjects, estimate.share, estimate.entropy) == (5, 1.0, 0.0)
    assert estimate.time is None
    # In force at once, with the row's own exposure: x has four subjects now.
    assert [d.z for d in decisions] == [2] * 6 + [4]
    assert decisions[-1] == Decision((0,), (4,), 4)


def test_z_stays_where_the_share_is_as_wanted() -> None:
    _, (estimate,) = run(
        [*SIX, *numbered((6, "x"))], z=2, window_rows=6, estimates=1, k=3, probability=0.6
    )
    assert (estimate.z_before, estimate.z_after, estimate.share) == (2, 2, 0.6)
    assert estimate.entropy == pytest.approx(-0.6 * math.log(0.6) - 0.4 * math.log(0.4))


def test_without_a_probability_z_stays_and_the_share_is_reported() -> None:
    _, (estimate,) = run([*SIX, *numbered((6, "x"))], z=2, window_rows=6, estimates=1, k=3)
    assert (estimate.z_after, estimate.share) == (2, 0.6)


def test_z_comes_back_with_the_stream() -> None:
    rows = [*SIX, *numbered(*[(s, "x") for s in range(6, 14)])]
    options = {"z": 2, "window_rows": 6, "estimates": 1, "k": 3, "probability": 0.9}
    assert moved(rows, **options) == [(6, 2, 4), (12, 4, 2)]


def test_those_with_nothing_published_are_a_crowd() -> None:
    rows = numbered(("a", "x"), ("b", "y"), ("c", "z"), ("d", "x"))
    _, (estimate,) = run(rows, z=2, window_rows=3, estimates=1)
    assert (estimate.n_subjects, estimate.share) == (2, 1.0)  # b and c


def test_sets_are_equal_at_the_level_that_is_published() -> None:
    """Four are at "it", each from a place of their own, and two are somewhere else."""
    places = [(who, f"it*{who}") for who in "abcd"]
    rows = numbered(("g", None), *places, ("e", "fr"), ("f", "fr"), ("g", None))
    _, (estimate,) = run(rows, z=3, window_rows=7, estimates=1)
    assert (estimate.n_subjects, estimate.z_after, estimate.share) == (6, 3, 1.0)
    assert estimate.entropy == pytest.approx(math.log(3) - 2 / 3 * math.log(2))
    _, (estimate,) = run(rows, z=3, window_rows=7, estimates=1, k=3)
    assert estimate.share == 4 / 6


def test_who_is_shown_counts_in_no_estimate_for_the_others() -> None:
    """Under z = 3, c is published as of Turin, and stays there alone; d and e have no third."""
    turin = [event(0.0, "a", "it*turin"), event(0.0, "b", "it*turin"), event(5.0, "c", "it*turin")]
    others = [event(6.0, "d", "it*asti"), event(6.0, "e", "it*bra")]
    at_11 = event(11.0, "c", None)
    options = {"z": 3, "window_seconds": 10.0, "estimates": 1}
    _, (estimate,) = run([*turin, *others, at_11], **options)
    # c hides nobody, yet would be one of three at "it", if it came now.
    assert (estimate.n_subjects, estimate.share) == (3, 2 / 3)
    _, (estimate,) = run([*turin[:1], *turin[2:], *others, at_11], **options)
    assert (estimate.n_subjects, estimate.share) == (3, 1.0)


def test_equal_sets_are_equal_in_whatever_order_they_came() -> None:
    ab = [("a", "x"), ("a", "y"), ("b", "y"), ("b", "x")]
    rows = [event(float(t), *pair) for t, pair in enumerate(ab)]
    _, (estimate,) = run([*rows, event(10.0, "c", "z")], z=1, window_seconds=10.0, estimates=1)
    assert (estimate.n_subjects, estimate.share) == (2, 1.0)


def test_fewer_subjects_than_k_are_never_alike_enough() -> None:
    """z goes to where nothing that they have exposed would be published."""
    rows = numbered(("a", "x"), ("b", "x"), ("a", "x"), ("b", "x"))
    options = {"window_rows": 3, "estimates": 1, "k": 3, "probability": 0.5}
    assert moved(rows, z=1, **options) == [(3, 1, 3)]
    assert moved(rows, z=9, **options) == [(3, 9, 9)]


def test_nobody_in_the_window_is_as_good_as_all_alike() -> None:
    rows = [event(0.0, "a", "x"), event(0.0, "b", "y"), event(100.0, "c", "x")]
    _, (estimate,) = run(rows, z=1, window_seconds=10.0, probability=0.9)
    assert (estimate.n_subjects, estimate.share, estimate.entropy) == (0, 1.0, 0.0)
    assert (estimate.time, estimate.z_after) == (100.0, 1)


def test_an_estimate_comes_with_each_part_of_a_window_after_the_first_window() -> None:
    """A window of 8 in 4 parts, from 100: at 108, 110, 112 …, once in each that has a row."""
    times = [100.0, 107.9, 108.0, 109.5, 110.0, 110.0, 109.0, 117.0, 117.9, 118.0]
    rows = [event(time, "a", "x") for time in times]
    _, estimates = run(rows, z=2, window_seconds=8.0)
    published = [(estimate.row, estimate.time) for estimate in estimates]
    assert published == [(2, 108.0), (4, 110.0), (7, 117.0), (9, 118.0)]


def test_estimates_in_rows_come_by_their_number() -> None:
    rows = numbered(*[("a", "x")] * 12)
    assert [row for row, _, _ in moved(rows, z=2, window_rows=5, estimates=2)] == [5, 8, 10]


@settings(max_examples=examples(40), deadline=None, derandomize=True, database=None)
@given(
    rows=STREAMS,
    z=st.integers(1, 4),
    window=WINDOWS,
    probability=st.sampled_from([0.0, 0.3, 0.9, 1.0]),
    k=st.integers(1, 4),
)
def test_z_never_falls_below_the_promised_one_and_the_share_is_reached(
    rows: list[Row], z: int, window: dict[str, Any], probability: float, k: int
) -> None:
    decisions, estimates = run(rows, z=z, probability=probability, k=k, **window)
    assert all(decision.z >= z for decision in decisions)
    for estimate in estimates:
        assert estimate.share >= probability or estimate.n_subjects < k or not probability
        assert estimate.z_after <= max(z, estimate.n_subjects + 1)


def test_z_follows_no_plain_count() -> None:
    with pytest.raises(ValueError, match="residual count alone"):
        NaiveZAnonymity(2, window_rows=5, count="plain", probability=0.5)
