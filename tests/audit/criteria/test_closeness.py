from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.audit import Verdict
from shoal.audit.criteria.closeness import ordered
from shoal.spec.hierarchy import Domain, Hierarchy
from shoal.spec.policy import (
    Closeness,
    EuclideanCloseness,
    JensenShannonCloseness,
    TCloseness,
    VariationalCloseness,
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
    ordered_distance,
    run,
    table,
    tree_distance,
)

WORST = "worst_group_closeness_by_rows"


def close(
    t: float, *groups: list[Any], rest: list[Any] | None = None, domain: Domain | None = DISEASES
) -> Verdict:
    report = run(table(groups, rest or []), TCloseness(t), domain=domain)
    return report["t-closeness of disease"]


def test_example_3_1() -> None:
    groups = [SARS, PNEUMONIA, BRONCHITIS], [CANCER, FLU, ULCER]
    verdict = close(0.5, *groups)
    assert verdict.verdict == "kept"
    assert verdict.figures[WORST] == 0.5
    assert verdict.figures["n_groups"] == 2
    assert "0.5 at worst" in verdict.detail
    verdict = close(0.4999, *groups)
    assert verdict.verdict == "broken"
    assert "farther than 0.4999 from the window: 2 of 2 groups (0, 1)" in verdict.detail
    assert verdict.figures["n_groups_beyond"] == 2


def test_example_3_2_is_a_third_close() -> None:
    """One tuple from each of two buckets; a third is no float, and holds all the same."""
    groups = [SARS, CANCER], [PNEUMONIA, FLU], [BRONCHITIS, ULCER]
    verdict = close(1 / 3, *groups)
    assert verdict.verdict == "kept"
    assert verdict.figures[WORST] == pytest.approx(1 / 3, rel=1e-15)
    assert close(0.333, *groups).verdict == "broken"


def test_example_3_3_reaches_7_of_18() -> None:
    """Ten bronchitis and eight ulcers, against the table of Example 3.4 (many times over)."""
    counts = {SARS: 5, PNEUMONIA: 3, BRONCHITIS: 2, FLU: 4, ULCER: 2, CANCER: 2}
    everybody = [value for value, n in counts.items() for _ in range(5 * n)]
    group = [BRONCHITIS] * 10 + [ULCER] * 8
    for value in group:
        everybody.remove(value)
    verdict = close(1.0, group, rest=everybody)
    assert verdict.figures[WORST] == pytest.approx(float(Fraction(7, 18)), rel=1e-15)
    assert close(7 / 18, group, rest=everybody).verdict == "kept"
    assert close(0.3888, group, rest=everybody).verdict == "broken"


def test_salaries_in_order() -> None:
    """Example 3.5: all at one end cost 0 + 1/3 of 0.3 + 2/3 of 0.3 + 0.2."""
    verdict = close(0.5, [1, 1], rest=[2, 2, 2, 3, 3, 3, 4, 4], domain=NUMBERS)
    assert verdict.verdict == "kept"
    assert verdict.figures[WORST] == pytest.approx(0.5, rel=1e-15)
    # Only how many values lie between two of them counts, not how large they are.
    verdict = close(0.5, [1, 1], rest=[20, 20, 20, 21, 21, 21, 900, 900], domain=NUMBERS)
    assert verdict.figures[WORST] == pytest.approx(0.5, rel=1e-15)


def test_suppressed_rows_are_part_of_the_window() -> None:
    assert close(0.0, [SARS, CANCER]).verdict == "kept"
    assert close(0.0, [SARS, CANCER], rest=[SARS]).verdict == "broken"


@pytest.mark.parametrize(
    ("domain", "value"), [(NUMBERS, 7), (DISEASES, SARS), (Hierarchy.flat(["x"]), "x")]
)
def test_with_one_value_there_is_no_distance(domain: Domain, value: object) -> None:
    verdict = close(0.0, [value, value], [value], domain=domain)
    assert verdict.verdict == "kept"
    assert verdict.figures[WORST] == 0.0


def test_a_tree_that_is_a_leaf_has_no_distance() -> None:
    assert close(0.0, ["x", "x"], domain=Hierarchy(["x"], [0])).verdict == "kept"


def test_with_t_of_0_every_group_is_its_window() -> None:
    assert close(0.0, [SARS, CANCER], [SARS, CANCER, SARS, CANCER]).verdict == "kept"
    assert close(0.0, [SARS, CANCER], [SARS, CANCER, SARS]).verdict == "broken"


def test_with_t_of_1_anything_goes() -> None:
    assert close(1.0, [1], rest=[2] * 99, domain=NUMBERS).verdict == "kept"


def test_a_node_above_a_single_child_costs_nothing() -> None:
    tree = Hierarchy.from_dict({"*": {"a": {"b": ["x", "y"]}, "z": None}})
    verdict = close(1.0, ["x"], ["y"], domain=tree)
    assert verdict.figures[WORST] == pytest.approx(1 / 3 * 1 / 2)


UNEVEN = Hierarchy.from_dict({"*": {"a": {"b": ["t", "u", "v"], "w": None}, "x": ["y", "z"]}})


@given(
    st.lists(st.lists(st.sampled_from(UNEVEN.leaves), min_size=1, max_size=6), min_size=1),
    st.lists(st.sampled_from(UNEVEN.leaves), max_size=6),
)
def test_tree_by_another_formula(groups: list[list[str]], rest: list[str]) -> None:
    beside = [value for group in groups for value in group] + rest
    expected = max(tree_distance(group, beside, UNEVEN) for group in groups)
    rows = table(groups, rest)
    for row in rows:
        row.place = 0
    found = run(rows, TCloseness(1.0), domain=UNEVEN)["t-closeness of disease"].figures[WORST]
    assert found == pytest.approx(float(expected), rel=1e-12, abs=0)


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1),
    st.lists(st.integers(0, 9), max_size=6),
)
def test_order_by_the_definition(groups: list[list[int]], rest: list[int]) -> None:
    beside = [value for group in groups for value in group] + rest
    expected = max(ordered_distance(group, beside) for group in groups)
    rows = table(groups, rest)
    for row in rows:
        row.place = 0
    found = run(rows, TCloseness(1.0), domain=NUMBERS)["t-closeness of disease"].figures[WORST]
    assert found == pytest.approx(float(expected), rel=1e-12, abs=0)


def test_counts_that_need_more_than_64_bits() -> None:
    many = 3 * 10**9
    inside, beside = np.array([[many, 0, 0]]), np.array([[many, many, many]])
    assert ordered(inside, beside).tolist() == [0.5]


def test_sums_that_need_more_than_64_bits() -> None:
    """All moves over nine values: 9 times a product of two counts. Another group is small."""
    many = 2**30
    inside, beside = np.zeros((2, 10), dtype=np.int64), np.ones((2, 10), dtype=np.int64)
    inside[:, 0], beside[:, 9] = (many, 1), (many, 1)
    expected = [
        float(ordered_distance_of(one, other))
        for one, other in zip(inside.tolist(), beside.tolist(), strict=True)
    ]
    assert ordered(inside, beside).tolist() == pytest.approx(expected, rel=1e-15)


def ordered_distance_of(inside: list[int], beside: list[int]) -> Fraction:
    """Return the same as ``ordered_distance``, of counts."""
    work, carried = Fraction(0), Fraction(0)
    for one, other in zip(inside, beside, strict=True):
        carried += Fraction(one, sum(inside)) - Fraction(other, sum(beside))
        work += abs(carried)
    return work / (len(beside) - 1)


def test_of_two_values_one_can_be_moved_to_the_other_and_of_one_none() -> None:
    assert ordered(np.array([[2, 0]]), np.array([[1, 1]])).tolist() == [0.5]
    assert ordered(np.array([[0, 2, 0]]), np.array([[1, 1, 0]])).tolist() == [0.5]
    assert ordered(np.array([[2]]), np.array([[3]])).tolist() == [0.0]


# -- forms for which all values are alike ----------------------------------------------------------

#: The distance of shares from others, in words of the definition.
FORMS: dict[type[Closeness], Callable[[list[float], list[float]], float]] = {
    EuclideanCloseness: math.dist,
    VariationalCloseness: lambda q, p: sum(abs(a - b) for a, b in zip(q, p, strict=True)) / 2,
    JensenShannonCloseness: lambda q, p: math.sqrt(
        max(0.0, _entropy([(a + b) / 2 for a, b in zip(q, p, strict=True)])
        - (_entropy(q) + _entropy(p)) / 2)
    ),
}  # fmt: skip


def _entropy(shares: list[float]) -> float:
    return -math.fsum(share * math.log2(share) for share in shares if share)


def alike(
    kind: type[Closeness], t: float, *groups: list[Any], rest: list[Any] | None = None
) -> Verdict:
    report = run(table(groups, rest or []), kind(t), domain=None)
    return report[f"{kind.name} of disease"]


@pytest.mark.parametrize("kind", FORMS)
def test_half_of_a_window_of_two_values(kind: type[Closeness]) -> None:
    """All rows of a group have one of two values that are equally frequent."""
    distance = FORMS[kind]([1.0, 0.0], [0.5, 0.5])
    groups = ["x", "x"], ["y", "y"]
    verdict = alike(kind, distance, *groups)
    assert verdict.verdict == "kept"
    assert verdict.figures[WORST] == pytest.approx(distance, rel=1e-12)
    verdict = alike(kind, distance * 0.999, *groups)
    assert verdict.verdict == "broken"
    assert verdict.figures["n_groups_beyond"] == 2


@pytest.mark.parametrize("kind", FORMS)
def test_a_distance_may_be_off_by_rounding(kind: type[Closeness]) -> None:
    distance = FORMS[kind]([1.0, 0.0], [0.5, 0.5])
    assert alike(kind, distance * (1 - 1e-12), ["x", "x"], ["y", "y"]).verdict == "kept"
    assert alike(kind, distance * (1 - 1e-8), ["x", "x"], ["y", "y"]).verdict == "broken"


def test_a_distance_above_1_is_compared_with_t() -> None:
    """0.8 times the root of 2."""
    groups = ["x"], ["y"] * 4
    assert alike(EuclideanCloseness, 1.1, *groups).verdict == "broken"
    assert alike(EuclideanCloseness, 1.14, *groups).verdict == "kept"


@pytest.mark.parametrize("kind", FORMS)
def test_t_of_0_is_the_window_in_every_form(kind: type[Closeness]) -> None:
    thirds = ["x", "y", "z"], ["x", "x", "y", "y", "z", "z"]
    assert alike(kind, 0.0, *thirds).verdict == "kept"
    assert alike(kind, 0.0, *thirds, rest=["x"]).verdict == "broken"


@pytest.mark.parametrize("kind", FORMS)
def test_a_value_that_the_window_lacks_breaks_every_form(kind: type[Closeness]) -> None:
    rows = table([["x", "x"], ["y", "y"]])
    rows[0].shown = "z"
    verdict = run(rows, kind(9.0), domain=None)[f"{kind.name} of disease"]
    assert verdict.verdict == "broken"
    assert "a value that the window lacks: 1 of 2 groups (0)" in verdict.detail


@pytest.mark.parametrize("kind", FORMS)
@given(
    st.lists(st.lists(st.sampled_from("vwxyz"), min_size=1, max_size=6), min_size=1, max_size=4),
    st.lists(st.sampled_from("vwxyz"), max_size=6),
)
def test_forms_by_the_definition(
    kind: type[Closeness], groups: list[list[str]], rest: list[str]
) -> None:
    beside = [value for group in groups for value in group] + rest
    values = sorted(set(beside))
    share = lambda some: [some.count(value) / len(some) for value in values]  # noqa: E731
    expected = max(FORMS[kind](share(group), share(beside)) for group in groups)
    rows = table(groups, rest)
    for row in rows:
        row.place = 0
    found = run(rows, kind(2.0), domain=None)[f"{kind.name} of disease"].figures[WORST]
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-7)
