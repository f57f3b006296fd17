import math

import numpy as np
import pytest

from shoal.datasets import gaussian_points, uniform_points
from shoal.errors import ParameterError
from shoal.spec.hierarchy import Range

GENERATORS = {"uniform_points": uniform_points, "gaussian_points": gaussian_points}
N = 100_000
#: By mean and deviation.
NORMAL = {"x": (5.0, 2.0), "y": (3.3, 3.0), "z": (6.6, 3.0)}

generators = pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS.keys())


def columns(make):
    table = make(N, seed=2).table()
    return {name: table[name].to_numpy() for name in ("x", "y", "z")}


def normal_below(x, mean, deviation):
    return (1 + math.erf((x - mean) / deviation / math.sqrt(2))) / 2


def within(mean, deviation, lo, hi):
    """The share of a normal variable, cut to 0…10, that lies between two numbers."""
    below = [normal_below(x, mean, deviation) for x in (0, lo, hi, 10)]
    return (below[2] - below[1]) / (below[3] - below[0])


# Five standard deviations of a binomial count, below: a fair draw exceeds them once in a million.


def test_uniform_points_are_even():
    for values in columns(uniform_points).values():
        counts, _ = np.histogram(values, bins=20, range=(0, 10))
        assert (np.abs(counts - N / 20) < 5 * math.sqrt(N * 0.05 * 0.95)).all()


@pytest.mark.parametrize("name", NORMAL)
def test_gaussian_points_are_normal_between_the_edges(name):
    counts, edges = np.histogram(columns(gaussian_points)[name], bins=20, range=(0, 10))
    for count, lo, hi in zip(counts, edges, edges[1:], strict=False):
        share = within(*NORMAL[name], lo, hi)
        assert abs(count - N * share) < 5 * math.sqrt(N * share * (1 - share))


@generators
def test_columns_are_independent(make):
    off_diagonal = np.corrcoef(list(columns(make).values()))[np.triu_indices(3, 1)]
    assert (np.abs(off_diagonal) < 5 / math.sqrt(N)).all()


@generators
def test_numbers_are_real_and_no_edge_is_crowded(make):
    for values in columns(make).values():
        assert len(np.unique(values)) == N
        assert values.min() > 0
        assert values.max() < 10


@generators
def test_the_schema(make):
    schema = make(10).schema
    assert schema.each_row
    assert [a.name for a in schema.quasi] == ["x", "y", "z"]
    assert {a.domain for a in schema.quasi} == {Range(0, 10)}


@generators
def test_no_rows(make):
    data = make(0)
    assert data.table().num_rows == 0
    assert data.table().column_names == ["x", "y", "z"]
    assert list(data.batches()) == []


@pytest.mark.parametrize("name", GENERATORS)
def test_refuses(name):
    with pytest.raises(ParameterError, match=rf"{name}\.rows"):
        GENERATORS[name](-1)
