"""How much more frequent a value may be: each form separately, and at its boundary."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.engine.kernels.likeness import (
    is_like,
    like,
    like_in_ranges,
    like_in_tree,
    most_of,
    numbers_of,
    undisclosed,
)
from tests.engine.kernels.test_emd import SETTINGS, trees
from tests.naive.measured import order_code
from tests.naive.papers.test_emd import RAGGED


def counts(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


@pytest.mark.parametrize(("n", "share"), [(2, 0.316), (3, 0.449), (4, 0.539)])
def test_example_4_2_largest_shares(n: int, share: float) -> None:
    assert round(most_of(2.0, True, n, 19), 3) == share


def test_the_least_of_beta_and_the_logarithm_counts() -> None:
    assert most_of(0.5, True, 1, 10) == 0.15000000000000002
    assert most_of(9.0, True, 1, 10) == pytest.approx(0.1 * (1 + math.log(10)))
    assert most_of(9.0, False, 1, 10) == 1.0


def test_the_only_value_may_fill_a_group_and_nothing_more() -> None:
    for enhanced in (False, True):
        assert is_like(7, 7, 3, 3, 0.5, enhanced)
    assert most_of(0.5, True, 3, 3) == 1.0


@pytest.mark.parametrize("scale", [1, 7, 10**5])
def test_a_gain_of_just_beta_is_allowed(scale: int) -> None:
    # From one tenth to three twentieths: a gain of a half, which floating point doesn't hit.
    assert is_like(3 * scale, 20 * scale, 1, 10, 0.5, True)
    assert not is_like(3 * scale + 1, 20 * scale, 1, 10, 0.5, True)


def test_every_value_must_be_like() -> None:
    assert like(counts(1, 1), 2, counts(2, 2), 4, 0.1, True)
    assert not like(counts(2, 0), 2, counts(2, 2), 4, 0.1, True)
    assert not like(counts(0, 2), 2, counts(2, 2), 4, 0.1, False)


def test_a_frequent_value_may_fill_a_group_by_the_basic_form_only() -> None:
    assert like(counts(2, 0), 2, counts(3, 1), 4, 0.5, False)
    assert not like(counts(2, 0), 2, counts(3, 1), 4, 0.5, True)


@pytest.mark.parametrize(
    ("here", "there", "beta", "deepest"),
    [
        # c1 and c2 may gain as much as they do, C may not: its logarithm is smaller.
        ((1, 0, 1, 1), (3, 3, 1, 1), 1.7, 2),
        # Here it is B, one level up, that has all of the group.
        ((0, 2, 1, 1), (4, 2, 1, 1), 1.0, 1),
        # And here no node.
        ((2, 2, 1, 1), (3, 3, 1, 1), 1.0, 0),
    ],
)
def test_nodes_are_protected_from_a_level_on(
    here: tuple[int, ...], there: tuple[int, ...], beta: float, deepest: int
) -> None:
    both, values = trees(RAGGED, RAGGED), np.arange(4)
    n, n_all = sum(here), sum(there)
    for level in (1, 2, 3):
        found = like_in_tree(both, 1, values, counts(*here), n, counts(*there), n_all, beta, level)
        assert found is (level > deepest)


def test_leaves_are_protected_at_any_level() -> None:
    both, values = trees(RAGGED, RAGGED), np.arange(4)
    assert not like_in_tree(both, 1, values, counts(2, 1, 1, 1), 5, counts(1, 3, 3, 3), 10, 0.5, 99)


def test_numbers_are_recovered_from_codes() -> None:
    numbers = [-1e300, -2.5, -5e-324, 0.0, 5e-324, 0.5, 1e300]
    codes = np.array([order_code(number) for number in numbers])
    assert numbers_of(codes).tolist() == numbers
    assert sorted(codes.tolist()) == codes.tolist()


@SETTINGS
@given(numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=5))
def test_any_number_is_recovered(numbers: list[float]) -> None:
    codes = np.array([order_code(number) for number in numbers], np.int64)
    assert numbers_of(codes).tolist() == numbers


def test_runs_of_values_are_protected_together() -> None:
    numbers, of = np.array([1.0, 2.0, 4.0, 8.0]), counts(1, 1, 1, 1)
    low, high = counts(1, 1, 0, 0), counts(0, 0, 1, 1)
    assert like_in_ranges(numbers, low, 2, of, 4, 2.0, 0.5, False)
    # A length of just epsilon is a run.
    assert not like_in_ranges(numbers, low, 2, of, 4, 2.0, 1.0, False)
    assert like_in_ranges(numbers, high, 2, of, 4, 2.0, 1.0, False)
    assert not like_in_ranges(numbers, high, 2, of, 4, 2.0, 1.0, True)
    # Single values are runs of no length.
    assert not like_in_ranges(numbers, counts(1, 0, 0, 0), 1, of, 4, 2.0, 0.0, True)


@pytest.mark.parametrize("relative", [False, True])
def test_a_single_zero_is_protected_as_any_other_number(relative: bool) -> None:
    numbers, of = np.array([0.0, 1.0, 2.0]), counts(1, 1, 2)
    assert not like_in_ranges(numbers, counts(2, 0, 0), 2, of, 4, 0.5, 0.0, relative)
    assert like_in_ranges(numbers, counts(1, 1, 2), 4, of, 4, 0.5, 0.0, relative)


def test_runs_may_end_in_values_that_the_group_lacks() -> None:
    # From 1 to 3 as a whole nothing is gained; from 1 to 2 much is.
    numbers, of = np.array([1.0, 2.0, 3.0, 9.0]), counts(1, 1, 3, 5)
    assert not like_in_ranges(numbers, counts(2, 2, 0, 4), 8, of, 10, 1.0, 2.0, False)
    assert like_in_ranges(numbers, counts(1, 1, 2, 4), 8, of, 10, 1.0, 2.0, False)


def test_disclosure_is_strict_on_both_sides_and_needs_every_value() -> None:
    of = counts(4, 1, 1)
    assert undisclosed(counts(2, 1, 1), 4, of, 6, 0.7)
    doubled, halved = counts(1, 1, 1), counts(10, 1, 1)
    assert not undisclosed(doubled, 3, of, 6, math.log(2))
    assert undisclosed(doubled, 3, of, 6, math.log(2) + 1e-9)
    assert not undisclosed(halved, 12, of, 6, math.log(2))
    assert undisclosed(halved, 12, of, 6, math.log(2) + 1e-9)
    assert not undisclosed(counts(3, 0, 1), 4, of, 6, 50.0)


@pytest.mark.parametrize("delta", [99.0, 700.0, 1e9])
def test_the_largest_delta_asks_only_that_every_value_occurs(delta: float) -> None:
    of = counts(10**9, 1)
    assert undisclosed(counts(1, 1), 2, of, 10**9 + 1, delta)
    assert not undisclosed(counts(2, 0), 2, of, 10**9 + 1, delta)


def test_a_run_just_as_long_as_epsilon_is_protected() -> None:
    # 0.8 - 0.7 is a little more than 0.1, in the last bit.
    numbers = np.array([0.7, 0.8, 5.0, 8.0])
    here, there = np.array([2, 2, 0, 0]), np.array([2, 2, 2, 2])
    assert not like_in_ranges(numbers, here, 4, there, 8, 1.3, 0.1, False)
    assert like_in_ranges(numbers, here, 4, there, 8, 1.3, 0.09, False)
