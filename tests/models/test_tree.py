"""The samples for an error: enough of them, and the default of the trees."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.algorithms import TreeDensity, TreeFull
from shoal.errors import ParameterError
from shoal.models.tree import error_of, samples_for


def test_the_error_is_kept() -> None:
    """Of 2,000 samplings of a box with half of the rows, the worst case, few are wrong by more."""
    error, probability = 0.05, 0.9
    n = samples_for(error, probability)
    shares = np.random.default_rng(3).binomial(n, 0.5, 2_000) / n
    assert np.mean(np.abs(shares - 0.5) > error) <= 1 - probability


def test_the_error_of_all_boxes_is_kept() -> None:
    """Every interval of 30 rows at once, in one dimension."""
    draw, window, error = np.random.default_rng(4), 30, 0.1
    n = samples_for(error, 0.9, n_quasi=1, window=window)
    wrong = 0
    for _ in range(200):
        below = np.concatenate([[0], np.cumsum(np.bincount(draw.integers(0, window, n)))]) / n
        apart = below - np.arange(len(below)) / window
        wrong += apart.max() - apart.min() > error
    assert wrong <= 20


def test_error_and_samples_are_inverse() -> None:
    for options in ({}, {"n_quasi": 4, "window": 500}):
        n = samples_for(0.03, 0.99, **options)
        assert error_of(n, 0.99, **options) <= 0.03 < error_of(n - 1, 0.99, **options)


def test_the_default_of_the_trees_is_derived() -> None:
    derived = 100 * math.ceil(samples_for(0.025, 0.95) / 100)
    assert TreeDensity().samples == TreeFull().samples == derived


def test_what_makes_no_sense_is_refused() -> None:
    for error, probability in ((0.0, 0.9), (1.0, 0.9), (0.1, 0.0), (0.1, 1.0)):
        with pytest.raises(ParameterError, match="between 0 and 1"):
            samples_for(error, probability)
    with pytest.raises(ParameterError, match="both"):
        samples_for(0.1, n_quasi=2)
    with pytest.raises(ParameterError, match="at least 1"):
        error_of(0)
