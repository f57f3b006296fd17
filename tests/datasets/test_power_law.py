import numpy as np
import pytest

from shoal.datasets import power_law
from shoal.errors import ParameterError
from shoal.spec.hierarchy import Range


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.0])
def test_the_law_holds(alpha):
    n, largest = 200_000, 30
    data = power_law(n, 1, alpha=alpha, largest=largest, seed=2)
    counts = np.bincount(data.table()["a1"].to_numpy(), minlength=largest + 1)
    assert counts[0] == 0
    law = np.arange(1, largest + 1) ** -alpha
    law /= law.sum()
    # Five standard deviations of a binomial count: a fair draw exceeds them once in a million.
    bound = 5 * np.sqrt(n * law * (1 - law))
    assert (np.abs(counts[1:] - n * law) < bound).all()


def test_columns_are_independent():
    data = power_law(50_000, 3, alpha=0.5, largest=100, seed=2)
    table = data.table()
    values = np.array([table[name].to_numpy() for name in ("a1", "a2", "a3")])
    off_diagonal = np.corrcoef(values)[np.triu_indices(3, 1)]
    assert (np.abs(off_diagonal) < 5 / np.sqrt(50_000)).all()


def test_the_schema():
    schema = power_law(10, 2, alpha=1.0, largest=7).schema
    assert schema.each_row
    assert [a.name for a in schema.quasi] == ["a1", "a2"]
    assert {a.domain for a in schema.quasi} == {Range(1, 7, step=1)}


def test_no_rows():
    data = power_law(0, 1, alpha=1.0, largest=7)
    assert data.table().num_rows == 0
    assert list(data.batches()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": -1.0}, "power_law.alpha"),
        ({"alpha": float("inf")}, "power_law.alpha"),
        ({"largest": 1}, "power_law.largest"),
        ({"columns": 0}, "power_law.columns"),
        ({"rows": -1}, "power_law.rows"),
    ],
)
def test_refuses(change, message):
    with pytest.raises(ParameterError, match=message):
        power_law(**{"rows": 10, "columns": 1, "alpha": 1.0, "largest": 9} | change)
