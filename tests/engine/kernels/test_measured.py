"""Every measured criterion: the kernel against its definition, drawn and on its boundary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.kernels.measured import all_measured, emd_of
from shoal.engine.kernels.predicate import any_measured, breakable, meets
from shoal.engine.kernels.window_counts import window_counts_of
from shoal.spec.criteria import (
    BasicLikeness,
    BetaLikeness,
    Closeness,
    DeltaDisclosure,
    EnhancedLikeness,
    EuclideanCloseness,
    JensenShannonCloseness,
    KAnonymity,
    Measured,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
)
from shoal.spec.hierarchy import Domain, Range
from tests.examples import examples
from tests.naive.emd import emd, shares
from tests.naive.measured import Measure
from tests.naive.papers.test_emd import DISEASES, RAGGED
from tests.tables import SALARY, Table

SETTINGS = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)
BOUNDS = st.sampled_from([0.05, 0.2, 0.25, 0.5, 1.0, 2.0])
FORMS: dict[str, tuple[st.SearchStrategy[Measured], Domain | None]] = {
    "numbers": (st.builds(TCloseness, BOUNDS), SALARY),
    "categories": (st.builds(TCloseness, BOUNDS), RAGGED),
    "exactly": (st.just(TCloseness(0.0)), RAGGED),
    "euclid": (st.builds(EuclideanCloseness, BOUNDS), None),
    "variation": (st.builds(VariationalCloseness, BOUNDS), RAGGED),
    "jensen-shannon": (st.builds(JensenShannonCloseness, BOUNDS), SALARY),
    "euclid exactly": (st.just(EuclideanCloseness(0.0)), None),
    "jensen-shannon exactly": (st.just(JensenShannonCloseness(0.0)), None),
    "basic": (st.builds(BasicLikeness, BOUNDS), None),
    "enhanced": (st.builds(EnhancedLikeness, BOUNDS), RAGGED),
    "semantic": (st.builds(SemanticLikeness, BOUNDS, level=st.integers(1, 3)), RAGGED),
    "ranges": (
        st.builds(RangeLikeness, BOUNDS, epsilon=st.sampled_from([0.0, 1.0, 2.5])),
        Range(-5, 5),
    ),
    "relative": (
        st.builds(
            RangeLikeness, BOUNDS, epsilon=st.sampled_from([0.5, 1.0]), relative=st.just(True)
        ),
        Range(1, 10),
    ),
    "disclosure": (st.builds(DeltaDisclosure, BOUNDS), None),
}
VALUES = st.lists(st.integers(0, 3), min_size=1, max_size=8)


def kept(criterion: Measured, domain: Domain | None, group: list[int], rest: list[int]) -> bool:
    """Whether a group that comes first in its table keeps a criterion, by kernel and definition."""
    begins = domain.lo if isinstance(domain, Range) else 0
    points = [(0, n, begins + value) for n, value in enumerate(group + rest)]
    table = Table(points, criterion, domains=[domain])
    limits, n = table.limits, len(group)
    found = all_measured(limits.measures, limits.window, table.codes.sensitive[:n])
    assert found == table.keeps(range(n))
    assert meets(limits, table.codes.subjects[:n], table.codes.sensitive[:n]) == found
    return bool(found)


@pytest.mark.parametrize("form", FORMS)
def test_kernel_and_definition_agree(form: str) -> None:
    criteria, domain = FORMS[form]
    found = set()

    @SETTINGS
    @given(criterion=criteria, group=VALUES, rest=VALUES)
    def agree(criterion: Measured, group: list[int], rest: list[int]) -> None:
        found.add(kept(criterion, domain, group, rest))

    agree()
    assert found == {False, True}


@pytest.mark.parametrize("domain", [SALARY, RAGGED], ids=["numbers", "categories"])
@SETTINGS
@given(group=VALUES, rest=VALUES)
def test_a_distance_of_just_t_is_close(domain: Domain, group: list[int], rest: list[int]) -> None:
    distance = emd(domain, group, group + rest)
    assert distance is not None
    assert kept(TCloseness(float(distance)), domain, group, rest)
    if distance:
        assert not kept(TCloseness(float(distance) * (1 - 1e-9)), domain, group, rest)


#: Of shares 1 and 0 in a group and of p and 1 - p in its window, by hand.
BY_HAND = {
    EuclideanCloseness: lambda p: math.sqrt(2.0) * (1 - p),
    VariationalCloseness: lambda p: 1 - p,
    JensenShannonCloseness: lambda p: math.sqrt(
        (math.log2(2 / (1 + p)) + p * math.log2(2 * p / (1 + p)) + (1 - p)) / 2
    ),
}


@pytest.mark.parametrize("kind", BY_HAND)
@pytest.mark.parametrize("n", [2, 3, 10])
def test_a_share_distance_of_just_t_is_close(kind: type[Closeness], n: int) -> None:
    distance = BY_HAND[kind](1 / n)
    assert kept(kind(distance), None, [0], [1] * (n - 1))
    assert not kept(kind(distance * (1 - 1e-9)), None, [0], [1] * (n - 1))


@pytest.mark.parametrize("kind", BY_HAND)
@SETTINGS
@given(one=VALUES, other=VALUES, rest=VALUES)
def test_a_union_is_no_farther_than_the_farther_of_two(
    kind: type[Closeness], one: list[int], other: list[int], rest: list[int]
) -> None:
    for t in (0.0, 0.1, 0.2, 0.3, 0.5, 0.8):
        if kept(kind(t), None, one, other + rest) and kept(kind(t), None, other, one + rest):
            assert kept(kind(t), None, one + other, rest)


@pytest.mark.parametrize("kind", [BasicLikeness, EnhancedLikeness])
@SETTINGS
@given(group=VALUES, rest=VALUES)
def test_a_gain_of_just_beta_is_like(
    kind: type[BetaLikeness], group: list[int], rest: list[int]
) -> None:
    q, p = shares(group), shares(group + rest)
    gain = max(q[value] / p[value] - 1 for value in q)
    capped = kind is EnhancedLikeness and any(
        q[v] > (1 + Fraction(-math.log(p[v]))) * p[v] * (1 + Fraction(1, 10**12)) for v in q
    )
    if gain:
        assert kept(kind(float(gain)), None, group, rest) is not capped
        assert not kept(kind(float(gain) * (1 - 1e-9)), None, group, rest)


@SETTINGS
@given(group=VALUES, rest=VALUES)
def test_a_change_of_just_delta_discloses(group: list[int], rest: list[int]) -> None:
    q, p = shares(group), shares(group + rest)
    if q.keys() != p.keys() or q == p:
        return
    change = max(abs(math.log(q[value] / p[value])) for value in q)
    assert not kept(DeltaDisclosure(change), None, group, rest)
    assert kept(DeltaDisclosure(change * (1 + 1e-9)), None, group, rest)


@pytest.mark.parametrize(
    ("criterion", "domain"),
    [
        (TCloseness(5.0), DISEASES),
        (TCloseness(5.0), SALARY),
        (BasicLikeness(1e6), None),
        (EnhancedLikeness(1e6), None),
        (SemanticLikeness(1e6), DISEASES),
        (RangeLikeness(1e6, epsilon=9.0), SALARY),
        (DeltaDisclosure(100.0), None),
    ],
)
def test_a_value_that_the_window_lacks_breaks_everything(
    criterion: Measured, domain: Domain | None
) -> None:
    table = Table([(0, n, value) for n, value in enumerate([1, 2])], criterion, domains=[domain])
    strange = Table([(0, n, value) for n, value in enumerate([1, 0])], criterion, domains=[domain])
    limits = table.limits
    assert all_measured(limits.measures, limits.window, table.codes.sensitive)
    assert not all_measured(limits.measures, limits.window, strange.codes.sensitive)
    assert not Measure(criterion, 0, domain).holds(strange.naive, table.naive)
    if isinstance(criterion, TCloseness):
        assert emd_of(limits.measures, limits.window, 0, strange.codes.sensitive) == np.inf


def test_all_criteria_of_all_attributes_must_hold() -> None:
    # The first attribute is as the table, the second isn't, and it is the other way round.
    points = [(0, 0, 0, 0), (0, 1, 1, 0), (0, 2, 0, 1), (0, 3, 1, 1)]
    domains = [DISEASES, SALARY]
    one, other = [0, 1], [0, 2]
    for criteria, holds in (
        ([TCloseness(0.1)], (False, False)),
        ([TCloseness(0.1, attribute="s0")], (True, False)),
        ([TCloseness(0.1, attribute="s1")], (False, True)),
        ([TCloseness(0.1, attribute="s0"), EnhancedLikeness(0.1)], (False, False)),
        ([TCloseness(0.9), TCloseness(0.1, attribute="s1")], (False, True)),
        ([TCloseness(0.9)], (True, True)),
    ):
        table = Table(points, *criteria, domains=domains)
        limits = table.limits
        found = tuple(
            bool(all_measured(limits.measures, limits.window, table.codes.sensitive[rows]))
            for rows in (one, other)
        )
        assert found == holds == (table.keeps(one), table.keeps(other))


def test_distances_are_those_of_the_given_measure() -> None:
    points = [(0, n, *values) for n, values in enumerate([(0, 0), (1, 5), (3, 5), (3, 9)])]
    table = Table(points, TCloseness(0.1), domains=[DISEASES, SALARY])
    limits, some = table.limits, table.codes.sensitive[:2]
    found = [float(emd_of(limits.measures, limits.window, i, some)) for i in range(2)]
    assert found == [0.5, 0.25]


@SETTINGS
@given(one=VALUES, other=VALUES, rest=VALUES)
def test_what_two_groups_keep_both_together_keep(
    one: list[int], other: list[int], rest: list[int]
) -> None:
    criteria = [
        TCloseness(0.3, attribute="s0"), TCloseness(0.3, attribute="s1"),
        EnhancedLikeness(0.6, attribute="s1"), SemanticLikeness(0.8, attribute="s0", level=1),
        RangeLikeness(0.8, attribute="s1", epsilon=1.0), DeltaDisclosure(1.0, attribute="s2"),
    ]  # fmt: skip
    points = [(0, n, v, v, v) for n, v in enumerate(one + other + rest)]
    domains = [RAGGED, SALARY, None]

    def holds(criterion: Measured, rows: Sequence[int]) -> bool:
        table = Table(points, criterion, domains=domains)
        limits = table.limits
        return bool(all_measured(limits.measures, limits.window, table.codes.sensitive[rows]))

    first, second = range(len(one)), range(len(one), len(one) + len(other))
    for criterion in criteria:
        if holds(criterion, list(first)) and holds(criterion, list(second)):
            assert holds(criterion, [*first, *second])


def test_whether_anything_is_measured_and_can_be_lost() -> None:
    point = [(0, 0, 0)]
    close = Table(point, TCloseness(0.5), domains=[DISEASES]).limits
    plain = Table(point, KAnonymity(2), domains=[DISEASES]).limits
    assert (bool(any_measured(close)), bool(breakable(close))) == (True, True)
    assert (bool(any_measured(plain)), bool(breakable(plain))) == (False, False)
    assert window_counts_of(np.empty((0, 1), np.int64)).n.tolist() == [0]
