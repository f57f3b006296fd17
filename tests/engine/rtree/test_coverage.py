"""Leaves that cover a sample are found by their bytes, as they would be by their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.rtree import coverage
from shoal.engine.rtree.chain_sampling import scale_of
from tests.examples import examples

SETTINGS = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)
#: A number of any value, a number of few values, and codes of a tree.
LOWEST, HIGHEST = np.array([0.0, 10.0, 0.0]), np.array([1000.0, 20.0, 6.0])
SCALE = scale_of(LOWEST, HIGHEST, np.array([False, False, True]))


def boxes(draw: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Boxes with few different sides, so that many are equal, and some that are empty."""
    ends = [draw.choice([0, 0.3, 3.7, 4, 500, 999.9, 1000], (2, n)), draw.integers(10, 21, (2, n)),
            draw.integers(0, 7, (2, n))]  # fmt: skip
    lo, hi = np.sort(np.array(ends, float), axis=1).swapaxes(0, 1)
    empty = draw.random(lo.shape) < 0.1
    return np.where(empty, np.inf, lo), np.where(empty, -np.inf, hi)


@SETTINGS
@given(seed=st.integers(0, 10**6), n=st.sampled_from([1, 5, 150]))
def test_covering_leaves_are_all_found(seed: int, n: int) -> None:
    draw = np.random.default_rng(seed)
    los, his = boxes(draw, n)
    known = coverage.empty(3, n)
    for leaf in range(n):
        coverage.fit(known, SCALE, los, his, leaf)
    samples_lo, samples_hi = boxes(draw, 8)
    expected, flags = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    for lo, hi in zip(samples_lo.T.copy(), samples_hi.T.copy(), strict=True):
        coverage.add(known, SCALE, los, his, n, lo, hi, 1, flags, 1)
        covers = ((lo[:, None] >= los) & (hi[:, None] <= his)).all(axis=0)
        expected += covers
    assert known.n_samples.tolist() == expected.tolist()
    assert flags.tolist() == (expected > 0).astype(int).tolist()


@pytest.mark.parametrize("leaves", [8, 64])
def test_growing_keeps_everything(leaves: int) -> None:
    draw = np.random.default_rng(leaves)
    los, his = boxes(draw, 8)
    known = coverage.empty(3, 8)
    for leaf in range(8):
        coverage.fit(known, SCALE, los, his, leaf)
    larger = coverage.grown(known, leaves)
    assert larger.rough_lo.shape == (3, leaves)
    assert (larger.rough_lo[:, :8] == known.rough_lo).all()
    assert (larger.rough_hi[:, :8] == known.rough_hi).all()
