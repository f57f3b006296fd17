"""dynamicGroup for k-anonymity and l-diversity."""

from __future__ import annotations

import pytest

from shoal import Delay, DistinctLDiversity, KAnonymity, Policy, TCloseness
from shoal.algorithms import DynamicGroup
from shoal.engine.base import Outcome
from shoal.errors import ParameterError, UnsupportedError
from shoal.spec.hierarchy import Range
from tests.algorithms.tables import MIXED, SQUARE, groups, keeps_promises, mixed, publish
from tests.engine.kernels.tables import Table

test_drawn_tables_keep_the_promise = keeps_promises(DynamicGroup)
test_drawn_tables_without_history_keep_the_promise = keeps_promises(lambda: DynamicGroup(history=1))


def test_neighbours_are_together_where_people_are_all_that_counts() -> None:
    assert mixed(DynamicGroup(), KAnonymity(2)) == [[0, 1], [2, 3]]
    assert mixed(DynamicGroup(history=1), KAnonymity(2)) == [[0, 1], [2, 3]]


def test_groups_that_are_not_diverse_are_merged() -> None:
    assert mixed(DynamicGroup(), DistinctLDiversity(2, "ill")) == [[0, 1, 2, 3]]


def test_history_is_a_knob() -> None:
    rows = [((x,), n, 0, 1.0) for n, x in enumerate([0.0, 100.0, 40.0, 60.0, 1.0, 99.0])]
    table = Table([Range(0, 100)], [KAnonymity(2)], rows)
    assert groups(publish(DynamicGroup(history=6), table)) == [[0, 4], [2, 3], [1, 5]]
    # The first two are a group, however far apart; the next two have it cut, and draw in the rest.
    assert groups(publish(DynamicGroup(history=2), table)) == [[0, 2, 4], [1, 3, 5]]


@pytest.mark.parametrize("history", [0, -1, 1.5, True, 10_000_001])
def test_a_history_that_makes_no_sense_is_refused(history: object) -> None:
    with pytest.raises(ParameterError, match=r"DynamicGroup\.history: must be"):
        DynamicGroup(history=history)  # type: ignore[arg-type]


def test_a_table_that_can_not_leave_is_suppressed() -> None:
    decided = publish(DynamicGroup(), Table(SQUARE, [KAnonymity(5)], MIXED))
    assert set(decided.outcomes) == {Outcome.suppressed}
    one_person = [(values, 7, ill, pay) for values, _, ill, pay in MIXED]
    decided = publish(DynamicGroup(), Table(SQUARE, [KAnonymity(2)], one_person))
    assert set(decided.outcomes) == {Outcome.suppressed}


def test_an_empty_table_is_no_groups() -> None:
    assert len(publish(DynamicGroup(), Table(SQUARE, [KAnonymity(2)], [])).rows) == 0


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Policy(KAnonymity(2), TCloseness(0.2), window="all"), "can't enforce t-closeness"),
        (Policy(KAnonymity(2), delay=Delay(rows=10)), "publishes a whole table at once"),
        (Policy(KAnonymity(2), window="all", missing="maybe"), 'missing values that are "maybe"'),
    ],
)
def test_what_it_can_not_keep_is_refused(policy: Policy, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        DynamicGroup().check(policy)
