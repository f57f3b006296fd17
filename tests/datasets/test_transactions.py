import collections

import numpy as np
import pyarrow as pa
import pytest

from shoal.datasets import Dataset, _transactions, transactions
from shoal.errors import ParameterError
from shoal.spec.hierarchy import Range
from shoal.spec.schema import Quasi, Schema


def people(n, name="age"):
    table = pa.table({name: list(range(n)), "secret": ["x"] * n})
    return Dataset.from_table(table, Schema(None, [Quasi(name, Range(0, 99))]), name="people")


@pytest.mark.parametrize("items", [1, 5.0, 10.0, 15.0])
def test_baskets_have_the_mean_number_of_items(items):
    n = 4000
    counts = np.bincount(transactions(n, items=items, seed=4).table()["basket"].to_numpy())
    assert len(counts) == n
    assert counts.min() >= 1
    assert abs(counts.mean() - items) <= 5 * np.sqrt((items - 1) / n)


def test_a_basket_has_no_item_twice_and_is_in_one_place():
    table = transactions(500, items=15, seed=4).table()
    rows = list(zip(table["basket"].to_pylist(), table["item"].to_pylist(), strict=True))
    assert len(set(rows)) == len(rows)
    baskets = table["basket"].to_numpy()
    assert (np.diff(baskets) >= 0).all()
    assert table["person"].equals(table["basket"])


def test_items_are_bought_together():
    table = transactions(3000, items=5, seed=4).table()
    baskets = collections.defaultdict(set)
    for basket, item in zip(table["basket"].to_pylist(), table["item"].to_pylist(), strict=True):
        baskets[basket].add(item)
    alone = collections.Counter(item for items in baskets.values() for item in items)
    pairs = collections.Counter(
        pair
        for items in baskets.values()
        for pair in ((a, b) for a in items for b in items if a < b)
    )
    (a, b), together = pairs.most_common(1)[0]
    by_chance = alone[a] * alone[b] / len(baskets)
    assert together > 2 * by_chance


def test_baskets_are_filled_when_patterns_do_not_suffice(monkeypatch):
    monkeypatch.setattr(_transactions, "ROUNDS", 1)
    table = transactions(500, items=20, seed=4).table()
    assert abs(table.num_rows / 500 - 20) < 1
    pairs = table.select(["basket", "item"])
    assert pairs.group_by(["basket", "item"]).aggregate([]).num_rows == table.num_rows


def test_customers_are_the_people_and_the_surplus_is_drawn_from_them():
    stream = transactions(300, items=3, people=people(100), seed=4)
    assert stream.table().column_names == ["person", "basket", "age", "item"]
    age_of = dict(
        zip(stream.table()["person"].to_pylist(), stream.table()["age"].to_pylist(), strict=True)
    )
    assert [age_of[person] for person in range(100)] == list(range(100))
    surplus = {age_of[person] for person in range(100, 300)}
    assert surplus <= set(range(100))
    assert len(surplus) > 50


def test_a_person_has_one_set_of_quasi_values():
    stream = transactions(300, items=8, seed=4)
    columns = ["person", *(attribute.name for attribute in stream.schema.quasi)]
    assert stream.table().select(columns).group_by(columns).aggregate([]).num_rows == 300


def test_the_basket_is_not_published():
    assert "basket" not in transactions(3, seed=4).schema.columns


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"customers": 0}, "transactions.customers"),
        ({"customers": 5, "items": 0.5}, "from 1 to 100; got 0.5"),
        ({"customers": 5, "items": 101}, "from 1 to 100; got 101"),
        ({"customers": 5, "people": people(5, name="item")}, "needs: item"),
        ({"customers": 5, "people": people(0)}, "has no rows"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ParameterError, match=message):
        transactions(**arguments)
