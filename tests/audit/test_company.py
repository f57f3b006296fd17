"""Suppressed rows that others were held with."""

from __future__ import annotations

import pytest

from shoal.spec.policy import Delay, DistinctLDiversity, EntropyLDiversity, KAnonymity
from tests.audit.world import World


@pytest.fixture
def suppressed(world: World) -> World:
    """Row 6 is suppressed when row 8 comes; row 8 stays held, and rows 9 and 10 leave later."""
    world.criteria = [KAnonymity(2)]
    world.line(6).update(published=8, published_s=80.0)
    world.delay = Delay(rows=4)
    return world


def test_a_row_that_had_enough_company_is_suppressed_without_need(suppressed: World) -> None:
    verdict = suppressed.report()["suppression"]
    assert verdict.verdict == "broken"
    assert "1 of them, though enough others were held for a group" in verdict.detail
    assert verdict.figures == {"n_suppressed": 1, "n_judged": 1, "n_needless": 1}


def test_too_few_subjects_are_no_company(suppressed: World) -> None:
    suppressed.criteria = [KAnonymity(3)]
    assert suppressed.report()["suppression"].figures["n_needless"] == 0


def test_a_subject_is_no_company_for_itself(suppressed: World) -> None:
    suppressed.line(8)["subject"] = suppressed.original[8]["person"] = "fay"
    assert suppressed.report()["suppression"].verdict == "kept"


def test_rows_that_left_at_the_same_moment_may_have_left_before(suppressed: World) -> None:
    suppressed.trace.remove(suppressed.line(8))
    suppressed.line(6).update(published=10, published_s=100.0)
    assert suppressed.report()["suppression"].figures["n_needless"] == 0


def test_where_values_are_to_be_diverse_it_is_reported(suppressed: World) -> None:
    suppressed.criteria.append(DistinctLDiversity(2))
    verdict = suppressed.report()["suppression"]
    assert verdict.verdict == "kept"
    assert verdict.figures["n_needless"] == 1
    assert "though enough others were held" in verdict.detail
    suppressed.original[8]["disease"] = suppressed.original[6]["disease"]
    assert suppressed.report()["suppression"].figures["n_needless"] == 0
    assert suppressed.report(original=False)["suppression"].figures["n_judged"] == 0


def test_other_criteria_may_be_broken_by_a_larger_group(suppressed: World) -> None:
    suppressed.criteria.append(EntropyLDiversity(1.5))
    assert suppressed.report()["suppression"].figures["n_judged"] == 0
