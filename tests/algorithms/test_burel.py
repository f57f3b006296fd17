"""BUREL as an engine: the thesis's examples, the eligibility condition, traps and refusals."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Policy, Range
from shoal.algorithms import find
from shoal.errors import JobError, ParameterError, UnsupportedError
from shoal.spec.criteria import (
    BasicLikeness,
    BetaLikeness,
    Criterion,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    KAnonymity,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
)
from shoal.spec.hierarchy import Domain
from shoal.spec.policy import Window
from tests.algorithms.rows import groups, outcomes
from tests.algorithms.test_sabre import taken
from tests.examples import examples
from tests.naive.burel import NaiveBurel
from tests.naive.papers.test_emd import RAGGED
from tests.naive.sizes import eligible
from tests.naive.space import Space as NaiveSpace
from tests.tables import FIGURE_4_1, SALARY, Table, schema, spread

SETTINGS = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)


# -- worked examples -------------------------------------------------------------------------------


def test_example_4_1() -> None:
    # Each disease once, at beta a little more than 1: two groups with one row of every bucket.
    table = Table(spread([1] * 6), EnhancedLikeness(1.01), domains=[FIGURE_4_1])
    found = groups(table.run("burel"))
    assert taken(table, found, [{0, 1}, {2, 3}, {4, 5}]) == [[1, 1, 1]] * 2
    # A gain of just 1: the groups would do for beta = 1, which forms one of all rows.
    strict = Table(spread([1] * 6), EnhancedLikeness(1.0), domains=[FIGURE_4_1])
    assert all(strict.keeps(sorted(group)) for group in found)
    assert groups(strict.run("burel")) == [set(range(6))]


@pytest.mark.parametrize("seed", [b"1", b"2", b"3"])
def test_example_4_2(seed: bytes) -> None:
    table = Table(spread([2, 3, 3, 3, 4, 4]), EnhancedLikeness(2.0), domains=[FIGURE_4_1])
    found = groups(table.run("burel", seed=seed))
    buckets = [{0, 1}, {2, 3}, {4, 5}]
    assert taken(table, found, buckets) == [[3, 3, 4], [1, 2, 2], [1, 1, 2]]


# -- the theorem -----------------------------------------------------------------------------------

POINTS = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=40
)


@SETTINGS
@given(
    points=POINTS,
    kind=st.sampled_from([BasicLikeness, EnhancedLikeness]),
    beta=st.sampled_from([0.05, 0.3, 1.0, 2.0, 9.0]),
)
def test_every_group_is_eligible(
    points: list[tuple[int, int, int]], kind: Any, beta: float
) -> None:
    table = Table(points, kind(beta), domains=[None])
    found = groups(table.run("burel"))
    assert sorted(row for group in found for row in group) == list(range(len(points)))
    assert all(table.keeps(sorted(group)) for group in found)
    twin = NaiveBurel(NaiveSpace([Range(0, 100)], [1.0], "glm"), table.promises, draw=lambda n: 0)
    buckets, _ = twin.plan(table.naive, table.naive)
    counts = Counter(row.sensitive[0] for row in table.naive)
    caps = [min(twin.cap(Fraction(counts[v], len(points))) for v in b) for b in buckets]
    if len(found) > 1:
        sizes = taken(table, found, [set(bucket) for bucket in buckets])
        assert all(eligible(group, caps) for group in sizes)


@SETTINGS
@given(
    points=st.lists(
        st.tuples(st.integers(0, 100), st.integers(0, 9), st.integers(0, 3), st.integers(0, 4)),
        min_size=1,
        max_size=30,
    ),
    k=st.integers(1, 4),
    criteria=st.sampled_from(
        [
            [SemanticLikeness(0.8, attribute="s0", level=1)],
            [SemanticLikeness(0.8, attribute="s0", level=2), BasicLikeness(1.0, attribute="s1")],
            [RangeLikeness(0.8, attribute="s1", epsilon=1.0)],
            [EnhancedLikeness(0.8), RangeLikeness(0.8, attribute="s1", epsilon=2.0)],
            [EnhancedLikeness(1.5), DistinctLDiversity(2)],
        ]
    ),
)
def test_nodes_ranges_and_several_attributes(
    points: list[tuple[int, ...]], k: int, criteria: list[Criterion]
) -> None:
    table = Table(points, KAnonymity(k), *criteria, domains=[RAGGED, SALARY])
    decided = table.run("burel")
    assert sorted(decided.rows.tolist()) == list(range(len(points)))
    assert all(table.keeps(sorted(group)) for group in groups(decided))
    if table.keeps(range(len(points))):
        assert set(outcomes(decided).values()) == {"group"}


def test_relative_ranges() -> None:
    # From 5 to 9 is shorter than from 1 to 2, relatively.
    points = [(x, x, v) for x, v in enumerate([1.0, 2.0, 5.0, 9.0] * 4)]
    criterion = RangeLikeness(0.8, epsilon=0.9, relative=True)
    table = Table(points, criterion, domains=[Range(1, 9)])
    found = groups(table.run("burel"))
    assert len(found) > 1
    assert all(table.keeps(sorted(group)) for group in found)


# -- traps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [BasicLikeness, EnhancedLikeness])
def test_one_value_only(kind: type[BetaLikeness]) -> None:
    # p = 1: the logarithm allows no gain, and none is needed.
    table = Table(spread([8]), kind(0.1), domains=[RAGGED])
    assert [len(group) for group in groups(table.run("burel"))] == [1] * 8


def test_basic_likeness_lets_a_frequent_value_fill_groups() -> None:
    # Nine of ten: with a gain of 2, all of a group; by the enhanced form, never.
    for kind, fills in ((BasicLikeness, True), (EnhancedLikeness, False)):
        table = Table(spread([36, 4]), kind(2.0), domains=[RAGGED])
        shares = taken(table, groups(table.run("burel")), [{0}, {1}])
        assert any(rare == 0 for _, rare in shares) is fills


def test_a_value_seen_once_is_in_a_group_that_is_large_enough() -> None:
    table = Table(spread([20, 20, 1]), EnhancedLikeness(1.0), domains=[RAGGED])
    found = groups(table.run("burel"))
    (its_own,) = [group for group in found if 40 in group]
    # 1 of 41, doubled: half as many rows at least.
    assert len(its_own) >= 41 / 2


def test_a_bucket_that_runs_dry() -> None:
    table = Table(spread([6, 6, 6, 1]), EnhancedLikeness(9.0), domains=[RAGGED])
    found = groups(table.run("burel"))
    assert len(found) > 1
    assert all(table.keeps(sorted(group)) for group in found)


def test_a_small_beta_leaves_one_group() -> None:
    table = Table(spread([3, 4, 5]), EnhancedLikeness(0.01), domains=[RAGGED])
    assert groups(table.run("burel")) == [set(range(12))]


def test_odd_rows_go_left() -> None:
    table = Table(spread([5]), KAnonymity(2), BasicLikeness(0.5), domains=[RAGGED])
    assert [len(group) for group in groups(table.run("burel"))] == [3, 2]


def test_missing_values_are_distinguished_where_the_domain_is_open() -> None:
    # The code of what is missing is one like any other.
    points = [(x, x, v) for x, v in enumerate([-1, -1, 7, 7, 9, 9])]
    table = Table(points, EnhancedLikeness(1.2), domains=[None])
    found = groups(table.run("burel"))
    assert len(found) == 2
    assert all(table.keeps(sorted(group)) for group in found)


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (Policy(TCloseness(0.2), window="all"), "'burel' can't enforce t-closeness"),
        (Policy(DeltaDisclosure(0.2), window="all"), "'burel' can't enforce delta-disclosure"),
        (Policy(EnhancedLikeness(1.0), window=Window(4, 2)), "publishes a whole table at once"),
    ],
)
def test_what_it_cannot_keep_is_refused(policy: Policy, says: str) -> None:
    with pytest.raises(UnsupportedError, match=says):
        find("burel")().start(schema([RAGGED]), policy)


@pytest.mark.parametrize(
    ("criterion", "domain"),
    [
        (SemanticLikeness(1.0), None),
        (SemanticLikeness(1.0), SALARY),
        (RangeLikeness(1.0), RAGGED),
        (RangeLikeness(1.0, relative=True), SALARY),
    ],
)
def test_a_domain_that_does_not_do_is_refused(criterion: Criterion, domain: Domain | None) -> None:
    with pytest.raises(JobError, match=r"policy\.beta: "):
        find("burel")().start(schema([domain]), Policy(criterion, window="all"))


def test_a_look_at_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"Burel\.look"):
        find("burel")(look=0)
