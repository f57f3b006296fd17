from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.metrics.histogram import Histogram

shares = st.sampled_from([0.0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0])


def exact_quantile(numbers: list[float], share: float) -> float:
    """The least of the numbers that at least this share of them doesn't exceed."""
    return sorted(numbers)[max(1, math.ceil(share * len(numbers) - 1e-9)) - 1]


@given(st.lists(st.integers(0, 255), min_size=1), shares)
def test_small_whole_numbers_are_exact(numbers: list[int], share: float) -> None:
    histogram = Histogram()
    histogram.add(numbers)
    assert histogram.quantile(share) == exact_quantile(numbers, share)


@given(st.lists(st.integers(0, 10**15) | st.floats(1e-9, 1e15), min_size=1), shares)
def test_others_are_within_a_hundredth(numbers: list[float], share: float) -> None:
    histogram = Histogram()
    histogram.add(numbers)
    exact = exact_quantile(numbers, share)
    assert histogram.quantile(share) == pytest.approx(exact, rel=0.01 + 1e-9)


@given(st.lists(st.lists(st.integers(0, 10**6))))
def test_batches_do_not_matter(batches: list[list[int]]) -> None:
    one, many = Histogram(), Histogram()
    one.add([number for batch in batches for number in batch])
    for batch in batches:
        many.add(batch)
    for share in (0.0, 0.5, 0.99, 1.0):
        assert one.quantile(share) == many.quantile(share)
    assert (one.count, one.mean, one.least, one.largest) == (
        many.count,
        many.mean,
        many.least,
        many.largest,
    )


def test_mean_least_and_largest_are_exact() -> None:
    numbers = np.random.default_rng(2).integers(0, 10**6, 10_000)
    histogram = Histogram()
    histogram.add(numbers)
    assert histogram.mean == numbers.mean()
    assert (histogram.least, histogram.largest) == (numbers.min(), numbers.max())


def test_beyond_the_buckets_a_quantile_is_cut() -> None:
    histogram = Histogram()
    histogram.add([1e-12, 1e30])
    assert (histogram.least, histogram.largest) == (1e-12, 1e30)
    assert histogram.quantile(0.5) == pytest.approx(1e-9, rel=0.03)
    assert histogram.quantile(1.0) == pytest.approx(1e18, rel=0.03)


def test_nothing_has_no_figures() -> None:
    histogram = Histogram()
    histogram.add([])
    assert (histogram.count, histogram.mean, histogram.quantile(0.5)) == (0, None, None)


@given(st.lists(st.integers(0, 10**6)), st.lists(st.integers(0, 250), unique=True))
def test_small_bounds_fold_exactly(numbers: list[int], bounds: list[int]) -> None:
    histogram = Histogram()
    histogram.add(numbers)
    expected = tuple(sum(number <= bound for number in numbers) for bound in sorted(bounds))
    assert histogram.fold(sorted(bounds)) == expected


@given(st.lists(st.floats(1e-6, 1e9)), st.lists(st.floats(1e-3, 1e6), unique=True))
def test_other_bounds_fold_to_within_a_hundredth(numbers: list[float], bounds: list[float]) -> None:
    histogram = Histogram()
    histogram.add(numbers)
    for bound, found in zip(sorted(bounds), histogram.fold(sorted(bounds)), strict=True):
        assert sum(number <= bound / 1.011 for number in numbers) <= found
        assert found <= sum(number <= bound * 1.011 for number in numbers)


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_what_is_no_wait_is_refused(wrong: float) -> None:
    histogram = Histogram()
    with pytest.raises(ValueError, match="from 0 up"):
        histogram.add([1.0, wrong])
    assert histogram.count == 0
