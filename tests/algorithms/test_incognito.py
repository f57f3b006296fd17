"""Full-domain generalization for t-closeness."""

from __future__ import annotations

import pytest

from shoal import DeltaDisclosure, KAnonymity, Policy, Quasi, Range, Schema, TCloseness
from shoal.algorithms import TIncognito
from shoal.engine.base import Outcome
from shoal.errors import ParameterError, UnsupportedError
from tests.algorithms.tables import MIXED, SQUARE, keeps_promises, mixed, publish
from tests.engine.kernels.tables import Table

test_drawn_tables_keep_the_promise = keeps_promises(TIncognito)


def test_the_same_levels_for_all_rows() -> None:
    decided = publish(TIncognito(), Table(SQUARE, [KAnonymity(2)], MIXED))
    # Exact values don't do; an eighth of each range does.
    assert decided.lo.tolist() == [[0, 0], [87.5, 0]]
    assert decided.hi.tolist() == [[12.5, 12.5], [100, 12.5]]


def test_closeness_makes_levels_coarser() -> None:
    assert mixed(TIncognito(), KAnonymity(2), TCloseness(0.2, attribute="ill")) == [[0, 2], [1, 3]]
    assert mixed(TIncognito(), KAnonymity(2), TCloseness(0.25, attribute="ill")) == [[0, 1], [2, 3]]


def test_levels_is_how_finely_numbers_are_cut() -> None:
    table = Table(SQUARE, [KAnonymity(2)], MIXED)
    assert publish(TIncognito(levels=2), table).hi.tolist() == [[50, 50], [100, 50]]
    assert publish(TIncognito(levels=1), table).hi.tolist() == [[100, 0], [100, 10]]


def test_a_table_that_can_not_leave_is_suppressed() -> None:
    decided = publish(TIncognito(), Table(SQUARE, [KAnonymity(5)], MIXED))
    assert set(decided.outcomes) == {Outcome.suppressed}


@pytest.mark.parametrize("levels", [0, 17, 1.5, True])
def test_a_wrong_number_of_levels_is_refused(levels: int) -> None:
    with pytest.raises(ParameterError, match=r"TIncognito\.levels: must be"):
        TIncognito(levels=levels)


def test_too_many_combinations_of_levels_are_refused() -> None:
    schema = Schema(None, [Quasi(f"q{d}", Range(0, 1)) for d in range(9)])
    with pytest.raises(UnsupportedError, match="'t-incognito' searches all combinations"):
        TIncognito().start(schema, Policy(KAnonymity(2), window="all"))


def test_what_it_can_not_keep_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="can't enforce delta-disclosure"):
        TIncognito().check(Policy(DeltaDisclosure(1.0), window="all"))
