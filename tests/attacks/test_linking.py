"""Linking: groups of one are found, groups of k at the rate of 1/k."""

from __future__ import annotations

import pytest

from shoal.attacks.linking import SEVERAL
from shoal.spec.policy import KAnonymity
from tests.attacks.world import crowd, made, rate, setting


def test_groups_of_one_are_linked_and_exceed_the_bound():
    result = made("linking", setting(crowd(60, 1), KAnonymity(5)))[0]
    assert rate(result) == 1.0
    assert result.verdict == "exceeded"
    assert result.bound == pytest.approx(0.2)
    assert result.baseline == pytest.approx(1 / 60)


def test_groups_of_k_are_linked_at_the_bound():
    result = made("linking", setting(crowd(20, 5), KAnonymity(5)))[0]
    assert rate(result) == pytest.approx(0.2)
    assert result.verdict == "within"


@pytest.mark.parametrize("k", [3, 7, 10])
def test_the_bound_itself_is_not_exceeded_by_rounding(k):
    assert made("linking", setting(crowd(9, k), KAnonymity(k)))[0].verdict == "within"


def test_a_few_groups_of_k_less_one_are_seen_where_everybody_is_attacked():
    rows = crowd(4, 4)
    result = made("linking", setting(rows, KAnonymity(5)))[0]
    assert result.success is not None
    assert result.success.interval == (0.25, 0.25)
    assert result.verdict == "exceeded"
    # Of a sample it can't be told: there may be larger groups.
    assert made("linking", setting(rows, KAnonymity(5), n_targets=12))[0].verdict == "within"


def test_who_comes_again_is_a_sample_of_their_rows():
    rows = [*crowd(4, 5), ("p0-0", 1, "Oslo", "flu", ("[0, 4]", "North"))]
    result = made("linking", setting(rows, KAnonymity(5)))[0]
    assert result.success is not None
    assert not result.success.exact


def test_people_are_counted_and_not_their_rows():
    # One of five people has 16 of 20 rows; averaged over people it is one of five all the same.
    box = ("[20, 24]", "North")
    rows = [("often", 20, "Oslo", "flu", box)] * 16
    rows += [(f"once-{i}", 21 + i, "Oslo", "flu", box) for i in range(4)]
    result = made("linking", setting(rows, KAnonymity(5)))[0]
    assert result.success is not None
    assert result.success.attempts == 5
    assert rate(result) == pytest.approx(0.2)


def test_who_has_most_rows_of_a_box_is_found_more_often_and_that_is_noted():
    box = ("[20, 24]", "North")
    rows = [("often", 20, "Oslo", "flu", box)] * 16 + [("once", 21, "Oslo", "flu", box)]
    alone = [
        made("linking", setting(rows, KAnonymity(2), n_targets=1, seed=seed))[0]
        for seed in range(20)
    ]
    assert {round(rate(each), 3) for each in alone} == {round(16 / 17, 3), round(1 / 17, 3)}
    assert all(each.notes == ((SEVERAL,) if rate(each) > 0.5 else ()) for each in alone)
    # Where everybody has one row, too small a group has no such excuse.
    assert made("linking", setting(crowd(60, 1), KAnonymity(5)))[0].notes == ()


def test_who_was_suppressed_is_not_found():
    rows = [*crowd(1, 4), ("x", 90, "Bari", "flu", None)]
    result = made("linking", setting(rows))[0]
    assert result.success is not None
    assert result.success.successes == pytest.approx(1.0)
    assert result.success.attempts == 5


def test_suppressed_people_dont_hide_that_the_others_are_found():
    rows = [*crowd(4, 4), *((f"x{i}", 90, "Bari", "flu", None) for i in range(30))]
    results = {each.knowledge: each for each in made("linking", setting(rows, KAnonymity(5)))}
    assert results["all quasi values"].verdict == "within"
    published = results["all quasi values, is published"]
    assert published.success is not None
    assert published.success.attempts == 16
    assert published.verdict == "exceeded"
    # Where nobody was suppressed it would say the same twice.
    assert len(made("linking", setting(crowd(4, 4)))) == 2


def test_less_knowledge_finds_less():
    given = setting(crowd(10, 2), known=("city",))
    everything, city = made("linking", given)
    assert rate(everything) == pytest.approx(0.5)
    assert city.knowledge == "city"
    assert rate(city) == pytest.approx(1 / 20)


def test_without_a_k_there_is_no_bound():
    from shoal.spec.policy import DistinctLDiversity

    result = made("linking", setting(crowd(5, 3), DistinctLDiversity(2)))[0]
    assert result.verdict == "unbounded"
