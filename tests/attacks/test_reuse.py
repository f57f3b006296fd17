"""Reuse: who joins an old group leaves alone, and the choice of the group tells more."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.attacks.reuse import Reuse
from tests.attacks.hand_made import Row, by_knowledge, groups, joining_alone, stream

CHOICE = "values of everybody, and which groups were kept"
#: Example 5.5 of the thesis: who comes out in [24, 27] isn't in the better box [26, 28].
EXAMPLE = [
    Row("ann", 26, 1, (26, 28)),
    Row("bob", 28, 1, (26, 28)),
    Row("cid", 24, 3, (24, 27)),
    Row("dan", 27, 3, (24, 27)),
    Row("eve", 25, 8, (24, 27), outcome="reuse"),
    Row("fay", 26, 9, (26, 28), outcome="reuse"),
]


def knobs(**given: Any) -> dict[str, Any]:
    return {"kept": 10, "threshold": 0.5, "age": None, "joins": "alone", **given}


def test_without_reuse_there_is_nothing_to_attack() -> None:
    (found,) = Reuse().run(stream(groups()))
    assert found.verdict == "skipped"
    assert found.notes


def test_who_joins_alone_is_found() -> None:
    rows = groups()
    found = by_knowledge(Reuse(), stream([*rows, *joining_alone(rows)], knobs=knobs()))
    assert found["instant of release"].success.rate == 1
    assert found["instant of release"].verdict == "exceeded"
    assert "71.4 % of the published rows" in found["instant of release"].notes[0]


def test_company_of_another_box_hides_when_and_not_who() -> None:
    rows = [
        Row("ann", 20, 1, (20, 22)),
        Row("bob", 22, 1, (20, 22)),
        Row("cid", 60, 3, (60, 62)),
        Row("dan", 62, 3, (60, 62)),
        Row("eve", 21, 8, (20, 22), outcome="reuse"),
        Row("fay", 61, 8, (60, 62), outcome="reuse"),
    ]
    found = by_knowledge(Reuse(), stream(rows, knobs=knobs(joins="together")))
    assert found["instant of release"].success.rate == 1 / 2
    assert found["instant of release, all quasi values"].success.rate == 1


def test_the_best_group_excludes_who_fits_a_better_one() -> None:
    found = by_knowledge(Reuse(), stream(EXAMPLE, knobs=knobs(reuse="best")))[CHOICE]
    assert found.success.rate == 1
    assert found.baseline == pytest.approx((1 / 2 + 1) / 2)


def test_a_random_group_makes_some_likelier() -> None:
    found = by_knowledge(Reuse(), stream(EXAMPLE, knobs=knobs(reuse="random")))[CHOICE]
    # Eve gets [24, 27] for sure, Fay in half of the cases: 2/3, and for Fay nobody else fits.
    assert found.success.rate == pytest.approx((2 / 3 + 1) / 2)


@pytest.mark.parametrize(
    "forgotten", [{"kept": 1}, {"threshold": 0.0}, {"age": 5}, {"recent": 1, "kept": 0}]
)
def test_a_group_that_is_no_longer_kept_excludes_nobody(forgotten: dict[str, Any]) -> None:
    found = by_knowledge(Reuse(), stream(EXAMPLE, knobs=knobs(reuse="best", **forgotten)))[CHOICE]
    assert found.success.rate == found.baseline


def test_castle_keeps_what_loses_no_more_than_the_mean() -> None:
    given = {"kept": 10, "recent": 100, "joins": "alone", "reuse": "best"}
    found = by_knowledge(Reuse(), stream(EXAMPLE, knobs=given))[CHOICE]
    assert found.success.rate == 1
