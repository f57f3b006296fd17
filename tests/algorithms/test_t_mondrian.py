"""Mondrian for t-closeness."""

from __future__ import annotations

import pytest

from shoal import DeltaDisclosure, KAnonymity, Policy, TCloseness, TMondrian
from shoal.errors import UnsupportedError
from tests.algorithms.tables import keeps_promises, mixed

test_drawn_tables_keep_the_promise = keeps_promises(TMondrian)


def test_a_cut_that_tells_too_much_isnt_made() -> None:
    criterion = TCloseness(0.2, attribute="ill")
    assert mixed(TMondrian(), KAnonymity(2), criterion) == [[0, 2], [1, 3]]


def test_a_promise_that_is_easily_kept_changes_nothing() -> None:
    criterion = TCloseness(0.25, attribute="ill")
    assert mixed(TMondrian(), KAnonymity(2), criterion) == [[0, 1], [2, 3]]


def test_without_its_criterion_it_is_mondrian() -> None:
    assert mixed(TMondrian(), KAnonymity(2)) == [[0, 1], [2, 3]]


def test_what_it_can_not_keep_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="can't enforce delta-disclosure"):
        TMondrian().check(Policy(DeltaDisclosure(1.0), window="all"))
