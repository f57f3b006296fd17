"""Mondrian for beta-likeness."""

from __future__ import annotations

import pytest

from shoal import (
    BasicLikeness,
    EnhancedLikeness,
    KAnonymity,
    LMondrian,
    Policy,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
)
from shoal.errors import UnsupportedError
from shoal.spec.criteria import BetaLikeness
from tests.algorithms.tables import keeps_promises, mixed

test_drawn_tables_keep_the_promise = keeps_promises(LMondrian)


def test_a_cut_that_tells_too_much_isnt_made() -> None:
    criterion = BasicLikeness(0.9, attribute="ill")
    assert mixed(LMondrian(), KAnonymity(2), criterion) == [[0, 2], [1, 3]]


def test_a_promise_that_is_easily_kept_changes_nothing() -> None:
    criterion = BasicLikeness(1.0, attribute="ill")
    assert mixed(LMondrian(), KAnonymity(2), criterion) == [[0, 1], [2, 3]]


def test_without_its_criterion_it_is_mondrian() -> None:
    assert mixed(LMondrian(), KAnonymity(2)) == [[0, 1], [2, 3]]


def test_what_it_can_not_keep_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="can't enforce t-closeness"):
        LMondrian().check(Policy(TCloseness(0.2), window="all"))


@pytest.mark.parametrize(
    ("criterion", "cuts"),
    [
        # Of two illnesses with a share of one half each, none may have more than 0.85 of a group.
        (EnhancedLikeness(1.0, attribute="ill"), [[0, 2], [1, 3]]),
        (SemanticLikeness(1.0, attribute="ill"), [[0, 2], [1, 3]]),
        # All have the same pay, which is known already.
        (RangeLikeness(1.0, attribute="pay", epsilon=1.0), [[0, 1], [2, 3]]),
    ],
)
def test_all_forms_of_likeness_are_kept(criterion: BetaLikeness, cuts: list[list[int]]) -> None:
    assert mixed(LMondrian(), KAnonymity(2), criterion) == cuts
