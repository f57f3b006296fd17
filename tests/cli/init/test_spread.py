from __future__ import annotations

import numpy as np

from shoal.cli.init.spread import Spread


def spread_of(numbers: list[float]) -> Spread:
    return Spread.of_numbers(*np.unique(np.array(numbers), return_counts=True))


def test_an_outlier_does_not_widen_the_range() -> None:
    found = spread_of([*(18 + i % 72 for i in range(500)), 450])
    assert (found.low, found.high) == (18, 89)
    assert found.n_outside(found.low, found.high) == (0, 1)
    assert found.n_outside(0, 500) == (0, 0)
    assert (found.least, found.most) == (18, 450)


def test_outliers_on_both_sides_are_counted() -> None:
    found = spread_of([-(10**6), *range(1, 400), 10**6, 10**6])
    assert found.n_outside(found.low, found.high) == (1, 2)
    assert (found.low, found.high) == (1, 399)


def test_a_number_for_unknown_may_be_frequent() -> None:
    found = spread_of([*(18 + i % 72 for i in range(970)), *[999] * 30])
    assert (found.high, found.outliers) == (89, ((999, 30),))


def test_a_tail_is_no_outlier_and_codes_have_none() -> None:
    rng = np.random.default_rng(1)
    tail = spread_of(rng.exponential(10, 2000).round(1).tolist())
    assert sum(tail.n_outside(tail.low, tail.high)) < 20
    codes = spread_of([1, 2, 3, 99] * 50)
    assert (codes.low, codes.high, codes.outliers) == (1, 99, ())


def test_few_rows_have_no_outliers() -> None:
    assert spread_of([*range(30), 10**6]).outliers == ()


def test_frequencies_tell_counts_from_codes() -> None:
    assert spread_of([0] * 300 + [1] * 200 + [2] * 90 + [3] * 20).n_peaks == 1
    assert spread_of([1] * 300 + [2] * 10 + [3] * 200 + [4] * 5 + [5] * 300).n_peaks == 3


def test_ids_recur_evenly_and_measurements_do_not() -> None:
    rng = np.random.default_rng(1)
    assert spread_of(rng.integers(0, 200, 2000).tolist()).evenness > 0.8
    assert spread_of(rng.normal(100, 15, 2000).round().tolist()).evenness < 0.3


def test_the_repr_shows_no_number_of_the_data() -> None:
    assert "450" not in repr(spread_of([*range(100), 450]))
