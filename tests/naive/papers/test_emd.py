"""The Earth Mover's Distance and the measured criteria of the twins: the thesis's numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.spec.criteria import (
    BasicLikeness,
    DeltaDisclosure,
    EnhancedLikeness,
    Measured,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
)
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from tests.examples import examples
from tests.naive.emd import (
    emd,
    heights,
    least_work,
    ordered_distances,
    ordered_emd,
    tree_distances,
    tree_emd,
)
from tests.naive.measured import Measure, number_of, order_code

#: Figure 3.1.
DISEASES = Hierarchy.from_dict(
    {
        "respiratory and digestive diseases": {
            "respiratory diseases": ["SARS", "pneumonia", "bronchitis"],
            "digestive diseases": ["gastric flu", "gastric ulcer", "intestinal cancer"],
        }
    }
)
#: A leaf beside an inner node, and one that is two levels deep.
RAGGED = Hierarchy.from_dict({"*": {"a": None, "B": {"b1": None, "C": ["c1", "c2"]}}})
ALIKE = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)


def codes(*labels: str) -> list[int]:
    return [DISEASES.leaves.index(label) for label in labels]


#: Table 3.1: each disease once.
TABLE_3_1 = list(range(6))


def allows(
    criterion: Measured, domain: Domain | None, group: Sequence[int], window: Sequence[int]
) -> bool:
    return Measure(criterion, 0, domain).allows(group, window)


def test_example_3_1() -> None:
    assert emd(DISEASES, codes("SARS", "pneumonia", "bronchitis"), TABLE_3_1) == Fraction(1, 2)


def test_example_3_2_a_third_close() -> None:
    for group in (["SARS", "gastric flu"], ["pneumonia", "gastric ulcer"]):
        assert emd(DISEASES, codes(*group), TABLE_3_1) == Fraction(1, 3)
        assert allows(TCloseness(1 / 3), DISEASES, codes(*group), TABLE_3_1)
        assert not allows(TCloseness(0.333), DISEASES, codes(*group), TABLE_3_1)


def test_example_4_1_likeness_of_1() -> None:
    # Two groups, each with one row of every bucket of two values.
    for group in ([0, 2, 4], [1, 3, 5]):
        assert allows(EnhancedLikeness(1.0), DISEASES, group, TABLE_3_1)
        assert not allows(EnhancedLikeness(0.99), DISEASES, group, TABLE_3_1)


def test_heights_are_counted_from_below() -> None:
    named = dict(zip(RAGGED.labels, heights(RAGGED), strict=True))
    assert named == {"*": 3, "a": 0, "B": 2, "b1": 0, "C": 1, "c1": 0, "c2": 0}


def test_a_domain_of_one_value_is_no_distance_away() -> None:
    assert emd(Range(0, 9), [5], [5, 5]) == 0
    assert emd(Hierarchy.flat(["a"]), [0], [0, 0]) == 0
    assert emd(Hierarchy.from_rows([("a",)]), [0], [0]) == 0


def test_a_value_that_the_window_lacks_breaks_everything() -> None:
    assert emd(DISEASES, [0], [1, 2]) is None
    every: list[Measured] = [
        TCloseness(5.0), BasicLikeness(1e6), EnhancedLikeness(1e6), SemanticLikeness(1e6),
        DeltaDisclosure(100.0),
    ]  # fmt: skip
    assert not any(allows(criterion, DISEASES, [0, 1], [1, 2]) for criterion in every)


FEW = st.lists(st.integers(0, 3), min_size=4, max_size=4)


@ALIKE
@given(q=FEW, p=FEW)
def test_the_formulas_are_the_least_work(q: list[int], p: list[int]) -> None:
    if not sum(q) or not sum(p):
        return
    before, after = [Fraction(a, sum(p)) for a in p], [Fraction(a, sum(q)) for a in q]
    assert ordered_emd(after, before) == least_work(after, before, ordered_distances(4))
    assert tree_emd(RAGGED, after, before) == least_work(after, before, tree_distances(RAGGED))


def test_the_least_work_may_take_back_what_was_sent() -> None:
    # The first pile would fill the first hole, which the second pile can't do without.
    distances = [[Fraction(0), Fraction(1)], [Fraction(1), Fraction(5)]]
    half = Fraction(1, 2)
    assert least_work([half, half], [half, half], distances) == 1


SOME = st.lists(st.integers(0, 3), min_size=1, max_size=6)
CRITERIA: list[tuple[Measured, Domain]] = [
    (TCloseness(0.3), RAGGED),
    (TCloseness(0.3), Range(-5, 5)),
    (BasicLikeness(0.5), RAGGED),
    (EnhancedLikeness(0.5), RAGGED),
    (SemanticLikeness(0.5, level=1), RAGGED),
    (DeltaDisclosure(0.7), RAGGED),
]


@ALIKE
@given(one=SOME, other=SOME, rest=SOME)
def test_a_union_is_no_farther_than_the_farther_one(
    one: list[int], other: list[int], rest: list[int]
) -> None:
    window = one + other + rest
    for domain in (RAGGED, Range(-5, 5)):
        both = [emd(domain, group, window) for group in (one, other)]
        union = emd(domain, one + other, window)
        assert union is not None
        assert union <= max(d for d in both if d is not None)
    for criterion, domain in CRITERIA:
        if all(allows(criterion, domain, group, window) for group in (one, other)):
            assert allows(criterion, domain, one + other, window)


def test_closeness_at_its_edges() -> None:
    window = [0, 0, 1, 3]
    assert allows(TCloseness(0.0), RAGGED, window * 2, window)
    assert not allows(TCloseness(0.0), RAGGED, [0, 0, 1, 1], window)
    assert allows(TCloseness(1.0), RAGGED, [3], window)


def test_basic_likeness_lets_a_frequent_value_fill_a_group() -> None:
    window = [0, 0, 0, 1]
    assert allows(BasicLikeness(0.5), RAGGED, [0], window)
    assert not allows(EnhancedLikeness(0.5), RAGGED, [0], window)
    assert not allows(BasicLikeness(0.5), RAGGED, [1, 0], window)


def test_enhanced_likeness_of_the_only_value() -> None:
    assert allows(EnhancedLikeness(2.0), RAGGED, [0, 0], [0, 0, 0])


def test_semantic_likeness_protects_nodes_from_its_level_on() -> None:
    # c1 and c2, each as often as beta allows; together they are two thirds, after two sixths.
    window, group = [0, 0, 1, 1, 2, 3], [0, 2, 3]
    assert allows(EnhancedLikeness(1.0), RAGGED, group, window)
    assert allows(SemanticLikeness(1.0, level=3), RAGGED, group, window)
    assert allows(SemanticLikeness(1.0, level=2), RAGGED, group, window)
    assert not allows(SemanticLikeness(0.99, level=2), RAGGED, group, window)
    wide = [0, 0, 0, 1, 2, 3]
    assert allows(SemanticLikeness(1.0, level=2), RAGGED, [1, 2, 3, 0, 1, 2], wide)
    assert not allows(SemanticLikeness(1.0, level=1), RAGGED, [1, 2, 3, 1, 2, 3], wide)


def test_range_likeness_protects_runs_of_values() -> None:
    window = [order_code(n) for n in (1.0, 2.0, 4.0, 8.0)]
    group = [order_code(n) for n in (1.0, 2.0)]
    domain = Range(1, 10)
    assert allows(RangeLikeness(2.0, epsilon=0.5), domain, group, window)
    assert not allows(RangeLikeness(2.0, epsilon=1.0), domain, group, window)
    # From 4 to 8 is as far as from 1 to 2, relatively.
    late = [order_code(n) for n in (4.0, 8.0)]
    assert allows(RangeLikeness(2.0, epsilon=1.0), domain, late, window)
    assert not allows(RangeLikeness(2.0, epsilon=1.0, relative=True), domain, late, window)


def test_disclosure_needs_every_value_and_is_strict() -> None:
    assert not allows(DeltaDisclosure(9.0), RAGGED, [0], [0, 1])
    window = [0, 0, 0, 0, 1, 2]
    assert allows(DeltaDisclosure(0.7), RAGGED, [0, 0, 1, 2], window)
    # The share of the second value is just twice what it was.
    doubled = [0, 1, 2]
    assert not allows(DeltaDisclosure(math.log(2)), RAGGED, doubled, window)
    assert allows(DeltaDisclosure(math.log(2) + 1e-6), RAGGED, doubled, window)


@pytest.mark.parametrize("number", [0.0, -0.0, 1.5, -1.5, 1e300, -1e300, 5e-324, -5e-324])
def test_codes_of_numbers_tell_them_back(number: float) -> None:
    assert number_of(order_code(number)) == number
    assert order_code(number) != -1


def test_codes_of_numbers_have_their_order() -> None:
    numbers = [-1e300, -2.0, -1.0, -5e-324, 0.0, 5e-324, 0.5, 3.0, 1e300]
    assert sorted(numbers, key=order_code) == numbers
