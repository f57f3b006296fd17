"""Rows that join kept groups: not by default, and then in company."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from shoal import Delay, DistinctLDiversity, KAnonymity, Policy, Quasi, Range, Schema, Sensitive
from shoal.algorithms import find, names
from shoal.engine import Codes, Decisions
from shoal.engine.base import Outcome
from shoal.testing.checks import CHECKS
from shoal.testing.hostile import hostile_streams
from shoal.testing.streams import Stream, play

SCHEMA = Schema("p", [Quasi("x", Range(0, 1000)), Quasi("y", Range(0, 1000))], [Sensitive("s")])
#: All that can reuse groups.
REUSING = [
    name for name in names() if "kept" in {field.name for field in dataclasses.fields(find(name))}
]
#: Groups are kept whatever they lose, so that most rows are covered by one.
KNOBS: dict[str, dict[str, Any]] = {
    name: {"kept": 50} | ({"threshold": 1.0} if hasattr(find(name), "threshold") else {})
    for name in REUSING
}


def crowd(policy: Policy, *, n_rows: int = 500, n_people: int = 10**6) -> Stream:
    draw = np.random.default_rng(3)
    codes = Codes(
        draw.normal(500, 150, (n_rows, 2)).clip(0, 1000).round(),
        draw.integers(0, n_people, n_rows),
        (draw.random((n_rows, 1)) < 0.4).astype(np.int64),
        np.full(n_rows, np.nan),
    )
    return Stream(SCHEMA, policy, codes)


def instants(decided: Decisions) -> list[np.ndarray[Any, Any]]:
    """The published rows of each instant at which a row joins a kept group."""
    out = decided.boxes >= 0
    return [
        decided.rows[out & (decided.instants == instant)]
        for instant in np.unique(decided.instants[decided.outcomes == Outcome.reuse])
    ]


def test_nothing_is_kept_by_default_and_rows_join_together() -> None:
    assert REUSING == ["castle", "fads", "fast", "idea", "iot", "k-varp"]
    for name in REUSING:
        recipe: Any = find(name)()
        assert (recipe.kept, recipe.joins) == (0, "together")
        decided = play(recipe, crowd(Policy(KAnonymity(4), delay=Delay(rows=60)), n_rows=200))
        assert not (decided.outcomes == Outcome.reuse).any()


@pytest.mark.parametrize("name", REUSING)
def test_where_there_are_people_no_row_joins_with_fewer_than_k(name: str) -> None:
    stream = crowd(Policy(KAnonymity(4), delay=Delay(rows=60)))
    together, alone = (
        instants(play(find(name)(**KNOBS[name], joins=joins), stream))
        for joins in ("together", "alone")
    )
    assert together
    assert min(map(len, together)) >= 4
    # In rounds rows leave with others in any case.
    assert name == "fast" or min(map(len, alone)) == 1


@pytest.mark.parametrize("name", REUSING)
def test_company_is_of_different_people_with_different_values(name: str) -> None:
    policy = Policy(KAnonymity(4), DistinctLDiversity(2), delay=Delay(rows=80))
    stream = crowd(policy, n_people=40)
    found = instants(play(find(name)(**KNOBS[name]), stream))
    assert found
    for rows in found:
        assert len(set(stream.codes.subjects[rows].tolist())) >= 4
        assert len(set(stream.codes.sensitive[rows, 0].tolist())) >= 2


@pytest.mark.parametrize("name", REUSING)
def test_without_company_a_row_takes_along_whoever_can_join(name: str) -> None:
    """Four people are a group; then three come again, who can't be one."""
    policy = Policy(KAnonymity(4), delay=Delay(rows=4))
    people = [1, 2, 3, 4, *[7, 8, 9] * 4]
    n = len(people)
    codes = Codes(
        np.tile([500.0, 500.0], (n, 1)), np.array(people), np.zeros((n, 1), np.int64),
        np.full(n, np.nan),
    )  # fmt: skip
    decided = play(find(name)(**KNOBS[name]), Stream(SCHEMA, policy, codes))
    joined = instants(decided)
    assert joined
    assert max(len(set(np.array(people)[rows].tolist())) for rows in joined) == 3


@pytest.mark.parametrize("name", REUSING)
def test_rows_that_join_leave_last_in_an_order_that_tells_nothing(name: str) -> None:
    decided = play(find(name)(**KNOBS[name]), crowd(Policy(KAnonymity(4), delay=Delay(rows=60))))
    in_order = 0
    for instant in np.unique(decided.instants):
        now = decided.instants == instant
        joins = decided.outcomes[now] == Outcome.reuse
        assert (np.diff(joins.astype(int)) >= 0).all()
        rows = decided.rows[now][joins]
        in_order += len(rows) > 3 and bool((np.diff(rows) > 0).all())
    assert in_order <= 2


@pytest.mark.parametrize("joins", ["together", "alone"])
@pytest.mark.parametrize("name", REUSING)
def test_the_contract_holds_with_kept_groups(name: str, joins: str) -> None:
    recipe = find(name)(kept=20, joins=joins)  # type: ignore[call-arg]
    for stream in hostile_streams(find(name)).values():
        for check in CHECKS:
            check(recipe, stream)
