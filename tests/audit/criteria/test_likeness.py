from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.audit import Verdict
from shoal.audit.criteria.likeness import _gained
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.policy import (
    BasicLikeness,
    BetaLikeness,
    EnhancedLikeness,
    RangeLikeness,
    SemanticLikeness,
)
from tests.audit.criteria.measured_world import (
    BRONCHITIS,
    CANCER,
    DISEASES,
    FLU,
    NUMBERS,
    PNEUMONIA,
    SARS,
    ULCER,
    gains,
    holds,
    run,
    table,
)

WORST = "worst_group_gain_by_rows"


def like(
    criterion: BetaLikeness,
    *groups: list[Any],
    rest: list[Any] | None = None,
    domain: Domain | None = DISEASES,
) -> Verdict:
    rows = table(groups, rest or [])
    for row in rows:
        row.place = 0
    return run(rows, criterion, domain=domain)[f"{criterion.name} of disease"]


def test_example_4_1_gains_1() -> None:
    groups = [SARS, BRONCHITIS, CANCER], [PNEUMONIA, FLU, ULCER]
    for criterion in (BasicLikeness(1.0), EnhancedLikeness(1.0)):
        verdict = like(criterion, *groups)
        assert verdict.verdict == "kept"
        assert verdict.figures[WORST] == pytest.approx(1.0)
    verdict = like(EnhancedLikeness(0.99), *groups)
    assert verdict.verdict == "broken"
    assert "a gain above 0.99 or -ln p: 2 of 2 groups" in verdict.detail


def test_a_frequent_value_may_fill_a_group_in_the_basic_form_only() -> None:
    """p = 1/2: twice as much is a gain of 1, and -ln p is 0.69."""
    groups = ["x", "x"], ["y", "y"]
    assert like(BasicLikeness(1.0), *groups, domain=None).verdict == "kept"
    assert like(EnhancedLikeness(1.0), *groups, domain=None).verdict == "broken"


def test_where_all_have_one_value_nothing_is_gained() -> None:
    for criterion in (BasicLikeness(0.1), EnhancedLikeness(0.1)):
        verdict = like(criterion, ["x"], ["x", "x"], domain=None)
        assert verdict.verdict == "kept"
        assert verdict.figures[WORST] == 0.0


def test_a_value_seen_once_needs_a_group_that_is_large_enough() -> None:
    rest = ["y"] * 5
    assert like(BasicLikeness(1.0), ["x", "y", "y", "y"], rest=rest[:4], domain=None).verdict == (
        "kept"
    )
    assert like(BasicLikeness(1.0), ["x", "y", "y"], rest=rest, domain=None).verdict == "broken"


def test_at_the_cap_itself() -> None:
    """With p = 1/4 the cap of an enhanced gain is ln 4; a gain of 1 lies below, one of 3/2 not."""
    kept = like(EnhancedLikeness(9), ["x", "y"], rest=["y", "y"], domain=None)
    assert kept.verdict == "kept"
    five = ["x", "x", "x", "y", "y"]
    rest = ["y"] * 7
    assert math.log(4) < 3 / 5 / (3 / 12) - 1
    assert like(EnhancedLikeness(9), five, rest=rest, domain=None).verdict == "broken"


def test_semantic_likeness_looks_at_nodes() -> None:
    """Each value gains 1, as each may with p = 1/6; but all three together gain 1 with p = 1/2."""
    groups = [SARS, PNEUMONIA, BRONCHITIS], [CANCER, FLU, ULCER]
    assert like(EnhancedLikeness(1.5), *groups).verdict == "kept"
    assert like(SemanticLikeness(1.5), *groups).verdict == "broken"
    # From the level of the leaves downwards there is nothing but leaves.
    assert like(SemanticLikeness(1.5, level=2), *groups).verdict == "kept"
    mixed = [SARS, PNEUMONIA, CANCER, FLU], [BRONCHITIS, ULCER]
    verdict = like(SemanticLikeness(2.0), *mixed)
    assert verdict.figures[WORST] == pytest.approx(2.0)


def test_range_likeness_looks_at_runs() -> None:
    groups = [1, 2, 3], [11, 12, 13]
    assert like(EnhancedLikeness(1.5), *groups, domain=NUMBERS).verdict == "kept"
    assert like(RangeLikeness(1.5, epsilon=0), *groups, domain=NUMBERS).verdict == "kept"
    # Of two values with p = 1/3, -ln p is 1.1; of three 0.69, and 2 is their length.
    assert like(RangeLikeness(1.5, epsilon=1), *groups, domain=NUMBERS).verdict == "kept"
    assert like(RangeLikeness(1.5, epsilon=2), *groups, domain=NUMBERS).verdict == "broken"
    relative = RangeLikeness(1.5, epsilon=2.0, relative=True)
    assert like(relative, *groups, domain=Range(1, 99)).verdict == "broken"
    relative = RangeLikeness(1.5, epsilon=0.1, relative=True)
    assert like(relative, *groups, domain=Range(1, 99)).verdict == "kept"


def test_the_first_node_below_the_root_is_protected_as_others() -> None:
    group, rest = [SARS, PNEUMONIA, BRONCHITIS], [CANCER, FLU, ULCER]
    assert like(SemanticLikeness(1.5), group, rest=rest).verdict == "broken"
    assert like(SemanticLikeness(1.5), rest, rest=group).verdict == "broken"


def test_a_node_with_two_values_is_protected() -> None:
    """Each value gains 1, with p = 1/4; both together gain as much with p = 1/2."""
    group, rest = ["y", "z"], ["t", "w"]
    assert like(EnhancedLikeness(1.2), group, rest=rest, domain=TREE).verdict == "kept"
    assert like(SemanticLikeness(1.2), group, rest=rest, domain=TREE).verdict == "broken"


def neighbours(a: float, b: float, criterion: RangeLikeness) -> str:
    """One group has two neighbouring numbers only, and one all of the four that there are.

    With p = 1/4 each of them may gain 1; with p = 1/2 the two of them may not.
    """
    groups = [a, b], [a, b, 5000, 6000], [5000, 6000, 5000, 6000, a, b]
    return like(criterion, *groups, domain=Range(0.5, 9999)).verdict


@pytest.mark.parametrize(("a", "b"), [(1, 2), (0.7, 1.7), (100.6, 101.6)])
def test_a_run_of_two_values_is_protected(a: float, b: float) -> None:
    assert neighbours(a, b, RangeLikeness(1.2, epsilon=1)) == "broken"
    assert neighbours(a, b, RangeLikeness(1.2, epsilon=0.99)) == "kept"


@pytest.mark.parametrize(("a", "b"), [(0.7, 0.8), (100.6, 100.7), (1000.1, 1000.2)])
def test_the_length_of_a_run_may_be_off_by_rounding(a: float, b: float) -> None:
    assert b - a != 0.1
    assert neighbours(a, b, RangeLikeness(1.2, epsilon=0.1)) == "broken"
    assert neighbours(a, b, RangeLikeness(1.2, epsilon=0.0999)) == "kept"


def test_a_run_may_be_as_long_as_a_share_of_its_first_number() -> None:
    for epsilon, expected in ((0.1, "broken"), (0.0999, "kept")):
        relative = RangeLikeness(1.2, epsilon=epsilon, relative=True)
        assert neighbours(20, 22, relative) == expected


def test_a_run_may_hold_values_that_the_group_lacks() -> None:
    group, rest = [1, 3], [2, *([9] * 9)]
    verdict = like(RangeLikeness(4.0, epsilon=2), group, rest=rest, domain=NUMBERS)
    assert verdict.verdict == "broken"  # 1 to 3: 2/2 of 3/12, a gain of 3 above ln 4
    assert verdict.figures[WORST] == pytest.approx(5.0)


CRITERIA: list[tuple[BetaLikeness, Domain | None]] = [
    (form, domain)
    for domain in (NUMBERS, None)
    for beta in (0.5, 1.0, 3.0)
    for form in (BasicLikeness(beta), EnhancedLikeness(beta))
]
CRITERIA += [(RangeLikeness(b, epsilon=e), NUMBERS) for b in (0.5, 2.0) for e in (0, 1, 3, 100)]
CRITERIA += [(RangeLikeness(1.0, epsilon=e, relative=True), Range(1, 99)) for e in (0.4, 1.0, 2.5)]
numbers = st.integers(1, 8)


@given(
    st.lists(st.lists(numbers, min_size=1, max_size=8), min_size=1, max_size=4),
    st.lists(numbers, max_size=20),
    st.sampled_from(CRITERIA),
)
def test_numbers_by_the_definition(
    groups: list[list[int]], rest: list[int], drawn: tuple[BetaLikeness, Domain | None]
) -> None:
    agrees(groups, rest, *drawn)


TREE = Hierarchy.from_dict({"*": {"a": {"b": ["t", "u", "v"], "w": None}, "x": ["y", "z"]}})
leaves = st.sampled_from(TREE.leaves)


@given(
    st.lists(st.lists(leaves, min_size=1, max_size=8), min_size=1, max_size=4),
    st.lists(leaves, max_size=20),
    st.sampled_from([0.3, 1.0, 3.0]),
    st.integers(1, 4),
)
def test_trees_by_the_definition(
    groups: list[list[str]], rest: list[str], beta: float, level: int
) -> None:
    agrees(groups, rest, SemanticLikeness(beta, level=level), TREE)


def agrees(
    groups: list[list[Any]], rest: list[Any], criterion: BetaLikeness, domain: Domain | None
) -> None:
    beside = [value for group in groups for value in group] + rest
    verdict = like(criterion, *groups, rest=rest, domain=domain)
    good = all(holds(criterion, group, beside, domain) for group in groups)
    assert verdict.verdict == ("kept" if good else "broken")
    most = max(gain for group in groups for gain, _ in gains(criterion, group, beside, domain))
    assert verdict.figures[WORST] == pytest.approx(most, abs=1e-12)


@pytest.mark.parametrize("capped", [True, False])
def test_a_value_on_neither_side_gains_nothing(capped: bool) -> None:
    inside, beside = np.array([[1, 0, 1]]), np.array([[2, 0, 2]])
    sums = np.array([[2]]), np.array([[4]])
    allowed, gain = _gained(inside, beside, *sums, 0.5, capped=capped)
    assert allowed.tolist() == [[True, True, True]]
    assert gain.tolist() == [[0.0, -1.0, 0.0]]
