"""FADS's naive twin: the flaws Shoal fixes, and the age of what is kept."""

from __future__ import annotations

import pytest

from shoal.spec.hierarchy import Hierarchy, Range
from tests.algorithms.world import both, check_section, feed, flags_of, groups, line
from tests.naive.fads import Deviations, NaiveFads

GROUPS = ["fads", "fast"]


@pytest.mark.parametrize("name", GROUPS)
def test_fads_1_distance_is_of_the_hull(name: str) -> None:
    rows = [(20, "a"), (90, "b"), (21, "c"), (91, "d")]
    options = {"workers": 1, "block": 4} if name == "fast" else {}
    paper, shoal = (
        groups(feed(line(name, 2, delay_rows=3, kept=0, deviations=d, **options), rows, end=False))
        for d in both(name, "distance_is_of_the_hull")
    )
    assert paper[0] == {0, 1}  # points have nothing in common, so that all are at distance 0
    assert shoal[0] == {0, 2}


def test_fads_1_of_categories_both_are_the_same() -> None:
    jobs = Hierarchy.from_dict({"any": {"staff": ["s", "t"], "guest": ["g", "h"]}})
    rows = [((20, 0), "a"), ((20, 2), "b"), ((float("nan"), 1), "c"), ((20, float("nan")), "d")]
    for deviations in both("fads", "distance_is_of_the_hull"):
        twin = NaiveFads(
            [Range(0, 100, step=50), jobs], [1.0, 1.0], k=2, missing="maybe", deviations=deviations
        )
        feed(twin, rows, end=False)
        a, b, c, d = twin.held.values()
        # The common part and the hull are [0, 50], a quarter of the whole weight; any is a half.
        assert twin.distance(a, b) == 0.25 + 0.5
        # By the formula a gap has nothing in common with anything, and costs nothing.
        of_gap = 0.5 if deviations.distance_is_of_the_hull else 0.0
        assert twin.distance(a, c) == of_gap + 0.25
        assert twin.distance(a, d) == 0.25 + of_gap


@pytest.mark.parametrize("name", GROUPS)
def test_fads_2_too_few_are_suppressed(name: str) -> None:
    rows = [(20, "a"), (60, "b")]
    options = {"workers": 1} if name == "fast" else {}
    paper, shoal = (
        feed(line(name, 3, deviations=d, **options), rows)
        for d in both(name, "too_few_are_suppressed")
    )
    assert {(d.outcome, d.n_subjects) for d in paper} == {("group", 2)}  # k is 3
    assert {d.outcome for d in shoal} == {"suppressed"}


@pytest.mark.parametrize(("age", "outcome"), [(2, "reuse"), (1, "suppressed")])
def test_a_group_can_be_reused_until_it_is_too_old(age: int, outcome: str) -> None:
    twin = line("fads", 2, delay_rows=1, age=age)
    decisions = feed(twin, [(20, "a"), (20, "b"), (20, "c"), (20, "c")], end=False)
    assert [d.outcome for d in decisions] == ["group", "group", outcome]


def test_reuse_doesnt_make_a_group_young_again() -> None:
    twin = line("fads", 2, delay_rows=1, age=3)
    rows = [(20, "a"), (20, "b"), *[(20, "c")] * 5]
    outcomes = [d.outcome for d in feed(twin, rows, end=False)]
    assert outcomes == ["group", "group", "reuse", "reuse", "suppressed", "suppressed"]


def test_the_oldest_kept_group_goes_first() -> None:
    twin = line("fads", 2, delay_rows=1, kept=2)
    feed(twin, [(at, f"{name}{at}") for at in range(0, 60, 10) for name in "ab"])
    assert [group.number for group in twin.kept] == [4, 5]


def test_every_deviation_is_described_and_tested() -> None:
    check_section("FADS", "fads", flags_of(Deviations))
