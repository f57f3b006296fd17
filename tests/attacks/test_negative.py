"""Negative information: whom a kept group would have taken wasn't due."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.attacks.negative import Negative
from tests.attacks.hand_made import Row, by_knowledge, stream

WHO = "people of a group; learns who was due"
#: When Cid is due, Dan and Eve leave with him; [24, 27] covers both of them.
ROWS = [
    Row("ann", 24, 1, (24, 27)),
    Row("bob", 27, 1, (24, 27)),
    Row("cid", 30, 6, (25, 30)),
    Row("dan", 26, 6, (25, 30)),
    Row("eve", 25, 6, (25, 30)),
    Row("fay", 90, 9, (90, 95)),
    Row("gus", 95, 9, (90, 95)),
]


@pytest.mark.parametrize("reuse", ["random", "best"])
def test_kept_groups_tell_who_was_due(reuse: str) -> None:
    given: dict[str, Any] = {"kept": 10, "threshold": 0.5, "joins": "alone", "reuse": reuse}
    found = by_knowledge(Negative(), stream(ROWS, knobs=given))[WHO]
    # Fay was due, too; no kept group covers her or Gus.
    assert found.success.successes == pytest.approx(1 + 1 / 2)
    assert found.baseline == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert found.notes == ("kept groups excluded people in 1 of 2 groups",)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"kept": 0, "threshold": 0.5, "joins": "alone", "reuse": "random"},
        # Dan may have lacked company.
        {"kept": 10, "threshold": 0.5, "joins": "together", "reuse": "random"},
    ],
)
def test_without_kept_groups_anybody_may_have_been_due(given: dict[str, Any]) -> None:
    found = by_knowledge(Negative(), stream(ROWS, knobs=given))[WHO]
    assert found.success.rate == found.baseline
    assert found.verdict == "within"


def test_a_group_that_leaves_early_has_nobody_who_was_due() -> None:
    (found,) = Negative().run(stream(ROWS[:2]))
    assert found.verdict == "skipped"
