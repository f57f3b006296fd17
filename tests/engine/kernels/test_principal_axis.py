"""The direction in which points are spread most: by hand, and as a library finds it."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.engine.kernels.principal_axis import principal_direction, scatter
from tests.naive.dynamic_group import principal


def turned(d: int, random: np.random.Generator, *spreads: float) -> np.ndarray:
    """A covariance with these eigenvalues in random directions."""
    axes, _ = np.linalg.qr(random.normal(size=(d, d)))
    return axes @ np.diag(spreads) @ axes.T


def test_scatter_is_the_covariance_times_the_number_of_points() -> None:
    points = np.array([[0.0, 1.0, 9.0, 5.0], [3.0, 3.0, 9.0, 0.0]])
    members = np.array([0, 1, 3])
    centre = points[:, members].mean(axis=1)
    expected = 3 * np.cov(points[:, members], bias=True)
    np.testing.assert_allclose(scatter(points, members, centre), expected)


def test_the_longer_of_two_axes_is_taken_whichever_it_is() -> None:
    assert principal_direction(np.diag([4.0, 9.0])).tolist() == pytest.approx([0, 1])
    assert principal_direction(np.diag([9.0, 4.0])).tolist() == pytest.approx([1, 0])


def test_two_small_axes_that_go_together_are_longer_than_a_large_one_alone() -> None:
    # A guess from the largest variance, which is that of the first axis, would stay there.
    matrix = np.array([[3.0, 0.0, 0.0], [0.0, 2.9, 2.9], [0.0, 2.9, 2.9]])
    assert principal_direction(matrix).tolist() == pytest.approx([0, 0.5, 0.5])


def test_of_directions_that_are_equally_long_the_first_is_taken() -> None:
    assert principal_direction(np.diag([2.0, 2.0])).tolist() == pytest.approx([0.5, 0])


def test_where_nothing_is_spread_there_is_no_direction() -> None:
    assert principal_direction(np.zeros((3, 3))).tolist() == [0, 0, 0]


@pytest.mark.parametrize("d", [1, 2, 6, 20])
def test_is_the_first_eigenvector(d: int) -> None:
    random = np.random.default_rng(d)
    for scale in (1e-12, 1.0, 1e12):
        matrix = turned(d, random, *(scale * np.linspace(1.0, 0.01, d)))
        found = principal_direction(np.ascontiguousarray((matrix + matrix.T) / 2))
        wanted = np.linalg.eigh(matrix)[1][:, -1]
        cosine = abs(found @ wanted) / np.linalg.norm(found)
        assert cosine == pytest.approx(1.0, abs=1e-9)
        assert found[np.abs(found).argmax()] > 0


def test_equals_its_twin_to_the_last_bit() -> None:
    random = np.random.default_rng(7)
    for d in (1, 2, 3, 7):
        points = random.random((d, 12)).round(2)
        matrix = scatter(points, np.arange(12), points.mean(axis=1))
        assert principal_direction(matrix).tolist() == principal(matrix.tolist())
