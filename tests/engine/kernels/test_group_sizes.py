"""How many rows of each bucket a group takes: the thesis's trees, traps, and the twins."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.kernels.buckets import Buckets, by_order, by_share, by_tree
from shoal.engine.kernels.group_sizes import SizeRule, group_sizes, is_fair, moved
from shoal.engine.kernels.likeness import most_of
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.testing.strategies import hierarchies
from tests.engine.kernels.test_emd import trees
from tests.examples import examples
from tests.naive.buckets import Ground, cost
from tests.naive.papers.test_emd import DISEASES, RAGGED
from tests.naive.sizes import dichotomize, eligible, within, work

SETTINGS = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)
NONE = np.empty(0, np.int64)


def array(counts: list[int]) -> np.ndarray:
    return np.array(counts, np.int64)


def plain(sizes: list[int], most: list[float] | None = None, fewest: int = 1) -> SizeRule:
    """A rule that asks for rows, and for shares of buckets, and for nothing else."""
    n, zeros = len(sizes), np.zeros(len(sizes), np.int64)
    buckets = Buckets(np.arange(n), array(sizes), zeros, zeros, 0, 1)
    shares = np.ones(n) if most is None else np.array(most)
    return SizeRule(buckets, shares, np.inf, 0.0, fewest, trees(RAGGED), NONE, -1)


def close_tree(
    counts: list[int], t: float, domain: Hierarchy = DISEASES, fewest: int = 1
) -> SizeRule:
    values, both = np.arange(len(counts)), trees(RAGGED, domain)
    buckets = by_tree(both, 1, values, array(counts), t, 0.0)
    return SizeRule(buckets, np.ones(len(buckets.sizes)), t, 0.0, fewest, both, values, 1)


def close_order(counts: list[int], t: float, spent: float = 0.0, fewest: int = 1) -> SizeRule:
    buckets = by_order(array(counts), t, spent)
    most, values = np.ones(len(buckets.sizes)), np.arange(len(counts))
    return SizeRule(buckets, most, t, spent, fewest, trees(RAGGED), values, -1)


# -- worked examples -------------------------------------------------------------------------------


def test_example_3_6() -> None:
    rule = close_tree([5, 3, 2, 4, 2, 2], 0.45)
    cost = Fraction(int(moved(rule, array([3, 2]), 5)), 5 * 18 * int(rule.buckets.whole))
    assert cost == Fraction(2, 45)


def test_example_3_7() -> None:
    rule = close_tree([5, 3, 2, 4, 2, 2], 0.45)
    assert is_fair(rule, array([3, 2]))
    assert not is_fair(rule, array([2, 1]))
    assert group_sizes(rule).tolist() == [[3, 2], [1, 1], [1, 1]] * 2


def test_example_4_2() -> None:
    counts = array([2, 3, 3, 3, 4, 4])
    most = np.array([most_of(2.0, True, n, 19) for n in counts])
    buckets, shares = by_share(counts, most, np.arange(6))
    rule = SizeRule(buckets, shares, np.inf, 0.0, 1, trees(RAGGED), NONE, -1)
    for sizes, fair in (([2, 3, 4], True), ([3, 3, 4], True), ([2, 2, 2], False)):
        assert is_fair(rule, array(sizes)) is fair
    # Figure 4.3 with the odd row on the left, where the thesis has it on the right.
    assert group_sizes(rule).tolist() == [[3, 3, 4], [1, 2, 2], [1, 1, 2]]


# -- traps -----------------------------------------------------------------------------------------


def test_halves_are_rounded_up() -> None:
    # Banker's rounding would give 2 and 3 of five, and of the one row 0 and 1.
    assert group_sizes(plain([5, 1], fewest=2)).tolist() == [[3, 1], [2, 0]]
    assert group_sizes(plain([5], fewest=2)).tolist() == [[3], [2]]
    assert group_sizes(plain([7], fewest=3)).tolist() == [[4], [3]]


def test_an_array_of_ones_is_not_halved() -> None:
    assert group_sizes(plain([1, 1, 1])).tolist() == [[1, 1, 1]]
    assert group_sizes(plain([1])).tolist() == [[1]]
    assert group_sizes(plain([2, 1])).tolist() == [[1, 1], [1, 0]]


def test_a_group_may_take_no_row_of_a_bucket() -> None:
    assert group_sizes(plain([3, 1])).tolist() == [[1, 1], [1, 0], [1, 0]]


def test_a_share_of_just_the_most_is_fair() -> None:
    third = plain([3, 3, 3], [1 / 3] * 3)
    assert is_fair(third, array([7, 7, 7]))
    assert not is_fair(third, array([7, 7, 6]))


def test_many_groups() -> None:
    # More than there is room for at first, and 2^10 of them evenly.
    assert group_sizes(plain([1024])).tolist() == [[1]] * 1024
    assert group_sizes(plain([300, 200])).sum(axis=0).tolist() == [300, 200]


@pytest.mark.parametrize("t", [0.0, 1.0, 7.0])
def test_sizes_at_the_edges_of_t(t: float) -> None:
    rule = close_tree([4, 2, 2, 4, 2, 2], t)
    # At t = 0 the shares must be those of all rows; from 1 on every row may leave alone.
    expected = [[2, 1, 1, 2, 1, 1]] * 2 if t == 0 else [[1]] * 16
    assert group_sizes(rule).tolist() == expected


def test_at_t_0_only_even_halves_are_fair() -> None:
    assert group_sizes(close_order([3, 3], 0.0)).tolist() == [[1, 1]] * 3
    assert group_sizes(close_order([3, 2], 0.0)).tolist() == [[3, 2]]


# -- the twins -------------------------------------------------------------------------------------

COUNTS = st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any)
T = st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.45, 0.5, 1.0])


def bucketed(rule: SizeRule, values: list[int]) -> list[list[int]]:
    of_value = rule.buckets.of_value.tolist()
    return [
        [values[i] for i, b in enumerate(of_value) if b == n]
        for n in range(len(rule.buckets.sizes))
    ]


def same_as_dichotomize(
    rule: SizeRule, ground: Ground, counts: Counter[int], t: float, spent: Fraction, fewest: int
) -> None:
    """The groups, and the work of each, are those of the definitions."""
    buckets = bucketed(rule, sorted(ground.ranks))
    bound = sum((cost(ground, counts, bucket) for bucket in buckets), Fraction(0))
    all_of = rule.buckets.sizes.tolist()

    def allowed(sizes: list[int]) -> bool:
        return within(work(ground, buckets, all_of, sizes), bound, spent, t)

    found = group_sizes(rule).tolist()
    assert found == dichotomize(all_of, allowed, fewest)
    for sizes in found:
        n, whole = sum(sizes), int(rule.buckets.whole) * sum(all_of)
        cost_of_group = Fraction(int(moved(rule, array(sizes), n)), n * whole)
        assert cost_of_group == work(ground, buckets, all_of, sizes)
        # Theorem 3.4: D + U ≤ t, unless all rows are one group.
        assert len(found) == 1 or allowed(sizes)


@SETTINGS
@given(
    counts=COUNTS, t=T, spent=st.sampled_from([Fraction(0), Fraction(1, 8)]), k=st.integers(1, 4)
)
def test_groups_of_numbers_are_those_of_the_twin(
    counts: list[int], t: float, spent: Fraction, k: int
) -> None:
    rule = close_order(counts, t, float(spent), k)
    occurring = Counter({v: n for v, n in enumerate(counts) if n})
    ground = Ground(Range(0, 9), range(len(counts)))
    same_as_dichotomize(rule, ground, occurring, t, spent, k)


@SETTINGS
@given(domain=hierarchies(), counts=COUNTS, t=T, k=st.integers(1, 4))
def test_groups_of_categories_are_those_of_the_twin(
    domain: Hierarchy, counts: list[int], t: float, k: int
) -> None:
    counts = (counts + [1] * 8)[: len(domain)]
    occurring = Counter({v: n for v, n in enumerate(counts) if n})
    if not occurring:
        return
    rule = close_tree(counts, t, domain, k)
    ground = Ground(domain, range(len(counts)))
    same_as_dichotomize(rule, ground, occurring, t, Fraction(0), k)


@SETTINGS
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    shares=st.lists(st.sampled_from([0.2, 1 / 3, 0.5, 1.0]), min_size=5, max_size=5),
    k=st.integers(1, 4),
)
def test_eligible_groups_are_those_of_the_twin(
    sizes: list[int], shares: list[float], k: int
) -> None:
    shares = shares[: len(sizes)]
    caps = [Fraction(share) for share in shares]
    found = group_sizes(plain(sizes, shares, k)).tolist()
    assert found == dichotomize(sizes, lambda half: eligible(half, caps), k)
    assert np.sum(found, axis=0).tolist() == sizes
    assert len(found) == 1 or all(eligible(group, caps) for group in found)
