"""Checkers are found by the criterion that they check."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from shoal.audit.criteria import checker_of, checks
from shoal.spec.criteria import DistinctLDiversity, KAnonymity, ZAnonymity, criteria


@pytest.mark.parametrize("criterion", criteria())
def test_every_criterion_has_a_checker(criterion: type) -> None:
    # The audit of z-anonymity is one of its own, which judges cells.
    made = criterion(2)
    assert (checker_of(made) is None) == (criterion is ZAnonymity)


def test_a_subclass_has_none_of_its_base() -> None:
    @dataclass(frozen=True, slots=True)
    class Stricter(DistinctLDiversity):
        pass

    assert checker_of(Stricter(2)) is None


def test_no_checker_is_replaced() -> None:
    with pytest.raises(ValueError, match="KAnonymity has a checker"):
        checks(KAnonymity)(lambda evidence, criterion: [])
