"""Buckets of sensitive values: the thesis's examples, and the twins on what is drawn."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.kernels.buckets import Buckets, by_order, by_share, by_tree, one_bucket
from shoal.engine.kernels.likeness import most_of
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.testing.strategies import hierarchies
from tests.engine.kernels.test_emd import trees
from tests.examples import examples
from tests.naive.buckets import Ground, bucket_cat, bucket_num, cost, dp_partition
from tests.naive.papers.test_emd import DISEASES, RAGGED

SETTINGS = settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)
EXAMPLE_3_4 = [5, 3, 2, 4, 2, 2]
NOTHING = Fraction(0)


def array(counts: list[int]) -> np.ndarray:
    return np.array(counts, np.int64)


def listed(buckets: Buckets) -> list[list[int]]:
    """The values of each bucket, by their places in the window."""
    of_value = buckets.of_value.tolist()
    found = [[v for v, b in enumerate(of_value) if b == n] for n in range(len(buckets.sizes))]
    assert [bucket[0] for bucket in found] == buckets.first.tolist()
    assert [bucket[-1] for bucket in found] == buckets.last.tolist()
    return found


def of_tree(counts: list[int], t: float, domain: Hierarchy = DISEASES) -> Buckets:
    values = np.arange(len(counts))
    return by_tree(trees(RAGGED, domain), 1, values, array(counts), t, 0.0)


# -- worked examples -------------------------------------------------------------------------------


def test_example_3_2() -> None:
    buckets = of_tree([1] * 6, 0.45)
    assert listed(buckets) == [[0, 1, 2], [3, 4, 5]]
    # One row of each: a third close, which is the bound itself.
    assert Fraction(int(buckets.cost), int(buckets.whole) * 6) == Fraction(1, 3)
    # At t = 0 there are six buckets and one group.
    assert listed(of_tree([1] * 6, 0.0)) == [[v] for v in range(6)]


def test_example_3_3() -> None:
    buckets = of_tree(EXAMPLE_3_4, 0.45)
    assert Fraction(int(buckets.cost), int(buckets.whole) * 18) == Fraction(7, 18)
    assert buckets.sizes.tolist() == [10, 8]


def test_example_3_4() -> None:
    assert listed(of_tree(EXAMPLE_3_4, 0.2)) == [[0], [1], [2], [3, 4, 5]]
    whole = of_tree(EXAMPLE_3_4, 1.0)
    assert (listed(whole), Fraction(int(whole.cost), int(whole.whole) * 18)) == (
        [[0, 1, 2, 3, 4, 5]], Fraction(16, 18),
    )  # fmt: skip


def test_example_3_5() -> None:
    buckets = by_order(array([2, 3, 3, 2]), 0.25, 0.0)
    assert listed(buckets) == [[0, 1], [2, 3]]
    whole = by_order(array([2, 3, 3, 2]), 0.6, 0.0)
    assert (int(whole.cost), int(whole.whole)) == (15, 3)  # 15 of 30: a half
    assert listed(whole) == [[0, 1, 2, 3]]


def test_example_4_2() -> None:
    counts = array([2, 3, 3, 3, 4, 4])
    most = np.array([most_of(2.0, True, n, 19) for n in counts])
    buckets, shares = by_share(counts, most, np.arange(6))
    assert listed(buckets) == [[0, 1], [2, 3], [4, 5]]
    assert np.round(shares, 2).tolist() == [0.32, 0.45, 0.54]
    assert buckets.sizes.tolist() == [5, 6, 8]


# -- traps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [0.0, 1.0, 7.0])
def test_buckets_at_the_edges_of_t(t: float) -> None:
    expected = [[v] for v in range(6)] if t == 0 else [list(range(6))]
    assert listed(of_tree(EXAMPLE_3_4, t)) == expected
    assert listed(by_order(array(EXAMPLE_3_4), t, 0.0)) == expected


def test_a_cost_of_just_t_is_too_much() -> None:
    # All four salaries in one bucket cost a half; below that, not at it.
    assert len(by_order(array([2, 3, 3, 2]), 0.5, 0.0).sizes) == 2
    assert len(by_order(array([2, 3, 3, 2]), 0.5 + 1e-9, 0.0).sizes) == 1


def test_one_value_is_one_bucket_that_costs_nothing() -> None:
    for t in (0.0, 0.3):
        for buckets in (by_order(array([4]), t, 0.0), of_tree([4], t)):
            assert (listed(buckets), int(buckets.cost), int(buckets.whole) > 0) == ([[0]], 0, True)
    buckets, shares = by_share(array([4]), np.array([1.0]), np.arange(1))
    assert (listed(buckets), shares.tolist()) == ([[0]], [1.0])


def test_what_is_spent_on_the_way_counts() -> None:
    assert len(by_order(array([2, 3, 3, 2]), 0.6, 0.05).sizes) == 1
    assert len(by_order(array([2, 3, 3, 2]), 0.6, 0.2).sizes) == 2


def test_equal_shares_may_not_be_combined_at_the_cap() -> None:
    # Example 4.1 at beta = 1: two of six values would have just what one may have.
    for beta, n_buckets in ((1.0, 6), (1.01, 3)):
        most = np.array([most_of(beta, True, 1, 6)] * 6)
        assert len(by_share(array([1] * 6), most, np.arange(6))[0].sizes) == n_buckets


def test_one_bucket_leaves_out_values_that_no_row_has() -> None:
    buckets = one_bucket(array([0, 2, 0, 1]))
    assert (buckets.of_value.tolist(), listed(buckets)) == ([-1, 0, -1, 0], [[1, 3]])
    assert (buckets.sizes.tolist(), int(buckets.cost)) == ([3], 0)


# -- the twins -------------------------------------------------------------------------------------

#: How often each value of the window occurs among the rows that are parted; some don't at all.
COUNTS = st.lists(st.integers(0, 4), min_size=1, max_size=8).filter(any)
T = st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.25, 0.4, 0.5, 1.0])
SPENT = st.sampled_from([NOTHING, Fraction(1, 16), Fraction(1, 5)])


def same(buckets: Buckets, expected: list[list[int]], ground: Ground, counts: Counter[int]) -> None:
    assert listed(buckets) == sorted(expected)
    assert buckets.sizes.tolist() == [sum(counts[v] for v in b) for b in sorted(expected)]
    bound = sum((cost(ground, counts, bucket) for bucket in expected), NOTHING)
    n_rows = counts.total()
    assert Fraction(int(buckets.cost), int(buckets.whole) * n_rows) == bound
    # What the algorithm guarantees, unless each value has its own bucket.
    assert sorted(v for bucket in expected for v in bucket) == sorted(counts)


@SETTINGS
@given(counts=COUNTS, t=T, spent=SPENT)
def test_numbers_are_put_in_the_buckets_of_the_twin(
    counts: list[int], t: float, spent: Fraction
) -> None:
    ground = Ground(Range(0, 9), range(len(counts)))
    occurring = Counter({v: n for v, n in enumerate(counts) if n})
    expected = bucket_num(ground, occurring, t, spent)
    same(by_order(array(counts), t, float(spent)), expected, ground, occurring)


@SETTINGS
@given(domain=hierarchies(), counts=COUNTS, t=T, spent=SPENT)
def test_categories_are_put_in_the_buckets_of_the_twin(
    domain: Hierarchy, counts: list[int], t: float, spent: Fraction
) -> None:
    values = list(range(0, len(domain), 2 if len(domain) > 5 else 1))
    occurring = Counter({v: n for v, n in zip(values, counts, strict=False) if n})
    if not occurring:
        return
    ground = Ground(domain, values)
    expected = bucket_cat(ground, occurring, t, spent)
    places = [[values.index(v) for v in bucket] for bucket in expected]
    found = by_tree(
        trees(RAGGED, domain), 1, np.array(values), array([occurring[v] for v in values]),
        t, float(spent),
    )  # fmt: skip
    assert listed(found) == sorted(places)
    bound = sum((cost(ground, occurring, bucket) for bucket in expected), NOTHING)
    assert Fraction(int(found.cost), int(found.whole) * occurring.total()) == bound


@SETTINGS
@given(
    counts=COUNTS,
    left=st.lists(st.integers(0, 3), min_size=8, max_size=8),
    beta=st.sampled_from([0.1, 0.5, 1.0, 2.0, 9.0]),
    enhanced=st.booleans(),
)
def test_likely_values_are_put_in_the_buckets_of_the_twin(
    counts: list[int], left: list[int], beta: float, enhanced: bool
) -> None:
    # The window has all rows of the pool, and some that have left.
    window = [n + gone for n, gone in zip(counts, left, strict=False)]
    occurring = Counter({v: n for v, n in enumerate(counts) if n})
    frequency = Counter(dict(enumerate(window)))
    most = np.array([most_of(beta, enhanced, n, sum(window)) if n else 0.0 for n in window])
    found, shares = by_share(array(counts), most, np.arange(len(counts)))
    expected = dp_partition(occurring, frequency, lambda v: Fraction(float(most[v])))
    assert listed(found) == sorted((sorted(bucket) for bucket in expected), key=min)
    assert shares.tolist() == [min(most[v] for v in bucket) for bucket in listed(found)]
    # What the buckets are for: all rows of each may have its rarest value (Lemma 4.4).
    for bucket, share in zip(listed(found), shares, strict=True):
        together = sum(counts[v] for v in bucket)
        assert len(bucket) == 1 or together < share * sum(counts)
