"""What SABRE and BUREL share: which values share a bucket, how many rows of it a group takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.buckets import (
    EVERYWHERE,
    burel_parts,
    closeness_rule,
    likeness_rule,
    sabre_parts,
)
from shoal.engine.kernels.group_sizes import SizeRule
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.rng import seeded
from shoal.spec.criteria import (
    BasicLikeness,
    BetaLikeness,
    Criterion,
    EnhancedLikeness,
    KAnonymity,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
)
from shoal.spec.hierarchy import Domain
from tests.engine.kernels.test_parts import members
from tests.examples import examples
from tests.naive.burel import NaiveBurel
from tests.naive.papers.test_emd import DISEASES, RAGGED
from tests.naive.sabre import NaiveSabre
from tests.naive.space import Space as NaiveSpace
from tests.tables import FIGURE_4_1, SALARY, Table, spread

SETTINGS = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)


def some(rows: RowArrays, chosen: Sequence[int]) -> RowArrays:
    at = list(chosen)
    return RowArrays(
        rows.lo[:, at].copy(), rows.hi[:, at].copy(), rows.subjects[at], rows.sensitive[at],
        rows.gaps[at],
    )  # fmt: skip


def plan(
    rule: SizeRule, bucket: np.ndarray, sizes: np.ndarray, rows: RowArrays, j: int = 0
) -> tuple[list[set[int]], list]:
    """The codes of each bucket, and the rows that groups take of each."""
    n = len(rule.buckets.sizes)
    codes = rows.sensitive[:, j]
    assert np.bincount(bucket, minlength=n).tolist() == rule.buckets.sizes.tolist()
    return [set(codes[bucket == b].tolist()) for b in range(n)], sizes.tolist()


# -- worked examples -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "domain", "t", "buckets", "sizes"),
    [
        pytest.param(
            [1] * 6, DISEASES, 0.45, [{0, 1, 2}, {3, 4, 5}], [[1, 1]] * 3, id="Example 3.2"
        ),
        pytest.param(
            [1] * 6, DISEASES, 0.0, [{v} for v in range(6)], [[1] * 6], id="Example 3.2, t = 0"
        ),
        pytest.param(
            [5, 3, 2, 4, 2, 2], DISEASES, 0.2, [{0}, {1}, {2}, {3, 4, 5}],
            [[5, 3, 2, 8]], id="Example 3.4",
        ),
        pytest.param(
            [5, 3, 2, 4, 2, 2], DISEASES, 0.45, [{0, 1, 2}, {3, 4, 5}],
            [[3, 2], [1, 1], [1, 1]] * 2, id="Example 3.7",
        ),
    ],
)  # fmt: skip
def test_worked_examples_of_closeness(
    counts: list[int], domain: Domain, t: float, buckets: list[set[int]], sizes: list[list[int]]
) -> None:
    table = Table(spread(counts), TCloseness(t), domains=[domain])
    assert plan(*closeness_rule(table.limits, table.rows), table.rows) == (buckets, sizes)


def test_example_3_5() -> None:
    salaries = [1] * 2 + [2] * 3 + [3] * 3 + [4] * 2
    points = [(x, x, float(v)) for x, v in enumerate(salaries)]
    table = Table(points, TCloseness(0.25), domains=[SALARY])
    rule, bucket, sizes = closeness_rule(table.limits, table.rows)
    assert bucket.tolist() == [0 if v < 3 else 1 for v in salaries]
    assert rule.buckets.sizes.tolist() == [5, 5]
    # Buckets as large as each other: one row of each is as good as all.
    assert sizes.tolist() == [[1, 1]] * 5


def test_example_4_2() -> None:
    table = Table(spread([2, 3, 3, 3, 4, 4]), EnhancedLikeness(2.0), domains=[FIGURE_4_1])
    assert plan(*likeness_rule(table.limits, table.rows), table.rows) == (
        [{0, 1}, {2, 3}, {4, 5}],
        [[3, 3, 4], [1, 2, 2], [1, 1, 2]],
    )


@pytest.mark.parametrize(("beta", "n_buckets", "n_groups"), [(1.0, 6, 1), (1.01, 3, 2)])
def test_example_4_1(beta: float, n_buckets: int, n_groups: int) -> None:
    # Two values would have just what one may have at beta = 1, and must have less (Lemma 4.4).
    table = Table(spread([1] * 6), EnhancedLikeness(beta), domains=[FIGURE_4_1])
    buckets, sizes = plan(*likeness_rule(table.limits, table.rows), table.rows)
    assert (len(buckets), len(sizes)) == (n_buckets, n_groups)


# -- which attribute, and by how much --------------------------------------------------------------


def test_the_first_attribute_that_must_be_close_rules_by_its_strictest_t() -> None:
    points = [(i, i, i % 4, float(i % 4), i % 6) for i in range(24)]
    table = Table(
        points,
        TCloseness(0.3, attribute="s1"), TCloseness(0.4, attribute="s1"),
        TCloseness(0.1, attribute="s2"), EnhancedLikeness(0.2, attribute="s0"),
        domains=[None, SALARY, DISEASES],
    )  # fmt: skip
    rule, bucket, _ = closeness_rule(table.limits, table.rows)
    assert (rule.t, rule.j, rule.spent) == (0.3, -1, 0.0)
    assert set(bucket.tolist()) == set(range(len(rule.buckets.sizes)))


def test_the_first_attribute_that_must_be_alike_rules_by_all_that_is_asked_of_it() -> None:
    points = [(i, i, i % 4, i % 4) for i in range(24)]
    table = Table(
        points,
        TCloseness(0.3, attribute="s0"), BasicLikeness(0.5, attribute="s1"),
        EnhancedLikeness(9.0, attribute="s1"),
        domains=[SALARY, None],
    )  # fmt: skip
    rule, _, _ = likeness_rule(table.limits, table.rows)
    # One and a half quarters: the logarithm would allow more.
    assert rule.most.tolist() == [0.375] * len(rule.most)


@pytest.mark.parametrize(
    ("find", "criterion"),
    [(closeness_rule, EnhancedLikeness(0.5)), (likeness_rule, TCloseness(0.5))],
)
def test_without_its_promise_all_rows_are_in_one_bucket(find: object, criterion: Criterion) -> None:
    for criteria in ([KAnonymity(3)], [KAnonymity(3), criterion]):
        table = Table(spread([4, 4, 5]), *criteria, domains=[DISEASES])
        found = find(table.limits, table.rows)  # type: ignore[operator]
        assert plan(*found, table.rows) == ([{0, 1, 2}], [[4], [3], [3], [3]])


# -- the twins, of rows that are left of a window --------------------------------------------------

POINTS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 3)), min_size=1, max_size=20)
SPACE = NaiveSpace([Table([(0, 0, 0)], KAnonymity(1), domains=[None]).schema.quasi[0].domain],
                   [1.0], "glm")  # fmt: skip


@SETTINGS
@given(
    points=POINTS,
    skip=st.integers(0, 4),
    k=st.integers(1, 3),
    t=st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]),
    domain=st.sampled_from([RAGGED, SALARY]),
    look=st.sampled_from([EVERYWHERE, 1, 8]),
)
def test_sabre_parts_are_within_t_and_no_row_is_lost(
    points: list[tuple[int, int]], skip: int, k: int, t: float, domain: Domain, look: int
) -> None:
    named = [(x, n, v) for n, (x, v) in enumerate(points)]
    table = Table(named, KAnonymity(k), TCloseness(t), domains=[domain])
    chosen = range(skip, len(points))
    if not chosen or not table.keeps(chosen):
        return
    pool = some(table.rows, chosen)
    twin = NaiveSabre(SPACE, table.promises, draw=lambda n: 0)
    buckets, sizes = twin.plan([table.naive[i] for i in chosen], table.naive)
    found = plan(*closeness_rule(table.limits, pool), pool)
    assert found == ([set(bucket) for bucket in buckets], sizes)
    parts = sabre_parts(table.space.sides, table.limits, pool, seeded(b"1", "test"), look)
    groups = [[chosen[i] for i in group] for group in members(parts)]
    assert sorted(row for group in groups for row in group) == list(chosen)
    # Theorem 3.4 guarantees it for every group by its sizes: nothing has to be repaired.
    assert all(table.keeps(group) for group in groups)


@SETTINGS
@given(
    points=POINTS,
    skip=st.integers(0, 4),
    k=st.integers(1, 3),
    criterion=st.sampled_from(
        [
            BasicLikeness(0.3), BasicLikeness(1.0), EnhancedLikeness(0.3), EnhancedLikeness(1.5),
            SemanticLikeness(0.8, level=2),
        ]
    ),
)  # fmt: skip
def test_burel_parts_are_eligible_and_no_row_is_lost(
    points: list[tuple[int, int]], skip: int, k: int, criterion: BetaLikeness
) -> None:
    named = [(x, n, v) for n, (x, v) in enumerate(points)]
    table = Table(named, KAnonymity(k), criterion, domains=[RAGGED])
    chosen = range(skip, len(points))
    if not chosen or not table.keeps(chosen):
        return
    pool = some(table.rows, chosen)
    twin = NaiveBurel(SPACE, table.promises, draw=lambda n: 0)
    buckets, sizes = twin.plan([table.naive[i] for i in chosen], table.naive)
    assert plan(*likeness_rule(table.limits, pool), pool) == (
        [set(bucket) for bucket in buckets],
        sizes,
    )
    parts = burel_parts(table.space.sides, table.limits, pool, seeded(b"1", "test"), 8)
    groups = [[chosen[i] for i in group] for group in members(parts)]
    assert sorted(row for group in groups for row in group) == list(chosen)
    if not isinstance(criterion, SemanticLikeness):
        assert all(table.keeps(group) for group in groups)


def test_ranges_are_left_to_the_repair() -> None:
    # Of a bucket each value is like, a run of them isn't: the sizes don't know.
    points = [(x, x, v) for x, v in enumerate([1.0, 2.0, 8.0, 9.0] * 3)]
    table = Table(points, RangeLikeness(0.8, epsilon=1.0), domains=[SALARY])
    rule, _, sizes = likeness_rule(table.limits, table.rows)
    plain = Table(points, EnhancedLikeness(0.8), domains=[SALARY])
    same, _, others = likeness_rule(plain.limits, plain.rows)
    assert rule.most.tolist() == same.most.tolist()
    assert sizes.tolist() == others.tolist()
