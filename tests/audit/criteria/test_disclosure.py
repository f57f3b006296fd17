from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.audit import Verdict
from shoal.audit.criteria.disclosure import disclosed
from shoal.spec.policy import DeltaDisclosure
from tests.audit.criteria.measured_world import disclosure, run, table

WORST = "worst_group_disclosure_by_rows"


def disclose(delta: float, *groups: list[str], rest: list[str] | None = None) -> Verdict:
    rows = table(groups, rest or [])
    for row in rows:
        row.place = 0
    return run(rows, DeltaDisclosure(delta), domain=None)["delta-disclosure of disease"]


def test_every_value_of_the_window_is_in_every_group() -> None:
    verdict = disclose(99.0, ["x", "y"], ["x"])
    assert verdict.verdict == "broken"
    assert verdict.figures[WORST] is None
    assert "a value absent, or |ln(q/p)| not below 99: 1 of 2 groups (1)" in verdict.detail


def test_more_and_less_count_alike() -> None:
    """q is 1/3 and 2/3, p is 1/2 each: ln 1.5 for what is rarer, ln 4/3 for what isn't."""
    groups = ["x", "x", "y"], ["x", "y", "y"]
    verdict = disclose(0.41, *groups)
    assert verdict.verdict == "kept"
    assert verdict.figures[WORST] == pytest.approx(math.log(1.5))
    assert disclose(math.log(1.5) * (1 - 1e-12), *groups).verdict == "kept"
    verdict = disclose(0.40, *groups)
    assert verdict.verdict == "broken"
    assert verdict.detail.endswith("; disclosure 0.4055 at worst, by subjects 0.4055")


def test_a_value_on_neither_side_discloses_nothing() -> None:
    assert disclosed(np.array([[1, 0, 1]]), np.array([[5, 0, 5]])).tolist() == [0.0]


def test_one_value_discloses_nothing() -> None:
    verdict = disclose(0.001, ["x"], ["x", "x"])
    assert verdict.verdict == "kept"
    assert verdict.figures[WORST] == 0.0


@given(
    st.lists(st.lists(st.sampled_from("xyz"), min_size=1, max_size=9), min_size=1, max_size=3),
    st.lists(st.sampled_from("xyz"), max_size=9),
    st.sampled_from([0.1, 0.5, 1.0, 2.0]),
)
def test_by_the_definition(groups: list[list[str]], rest: list[str], delta: float) -> None:
    beside = [value for group in groups for value in group] + rest
    worst = max(disclosure(group, beside) for group in groups)
    verdict = disclose(delta, *groups, rest=rest)
    assert verdict.verdict == ("kept" if worst < delta else "broken")
    expected = pytest.approx(worst, abs=1e-12) if math.isfinite(worst) else None
    assert verdict.figures[WORST] == expected
