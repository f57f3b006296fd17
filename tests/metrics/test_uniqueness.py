from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

from shoal.errors import ParameterError
from shoal.metrics import uniqueness


def slow_sharing(rows: list[tuple], people: list) -> dict:
    """Return for each person the least number of people with the values of one of their rows."""
    who = defaultdict(set)
    for row, person in zip(rows, people, strict=True):
        who[row].add(person)
    least: dict = {}
    for row, person in zip(rows, people, strict=True):
        least[person] = min(least.get(person, len(people)), len(who[row]))
    return least


@pytest.mark.parametrize("seed", range(4))
def test_as_the_definition_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = rng.integers(0, 40, 120).tolist()
    columns = {
        "age": rng.integers(20, 29, 120).tolist(),
        "sex": rng.choice(["f", "m", None], 120).tolist(),
        "area": rng.choice(["a", "b", "c", "d"], 120).tolist(),
    }
    table = pa.table({"who": people, **columns})
    expected = slow_sharing(list(zip(*columns.values(), strict=True)), people)
    found = uniqueness(table, list(columns), "who")
    assert sorted(found.n_sharing.tolist()) == sorted(expected.values())
    assert found.n_unique == sum(n == 1 for n in expected.values()) > 0
    assert found.n_below(3) == sum(n < 3 for n in expected.values())
    each_row = uniqueness(table, list(columns))
    assert each_row.n_subjects == 120


def test_one_unique_row_makes_a_person_unique() -> None:
    table = pa.table({"who": ["a", "a", "b"], "age": [30, 31, 30]})
    assert uniqueness(table, ["age"], "who").n_sharing.tolist() == [1, 2]


def test_several_rows_of_one_person_are_one_person() -> None:
    table = pa.table({"who": ["a", "a", "a"], "age": [30, 30, 30]})
    assert uniqueness(table, ["age"], "who").share == 1.0
    assert uniqueness(table, ["age"]).share == 0.0


def test_spellings_of_a_subject_are_one_and_rows_without_one_are_not_counted() -> None:
    table = pa.table({"who": ["7", " 7", "7.0", None, ""], "age": [1, 2, 3, 4, 5]})
    found = uniqueness(table, ["age"], "who")
    assert found.n_subjects == found.n_unique == 1


def test_no_rows_and_no_columns() -> None:
    empty = pa.table({"age": pa.array([], pa.int64())})
    assert uniqueness(empty, ["age"]).share is None
    table = pa.table({"age": [1, 2, 3]})
    assert uniqueness(table, []).share == 0.0


def test_columns_of_all_types_and_chunks() -> None:
    chunks = pa.chunked_array([["a", "b"], ["a"]]).dictionary_encode()
    table = pa.table({"x": chunks, "y": pa.chunked_array([[1.5], [2.0, 1.5]])})
    assert uniqueness(table, ["x", "y"]).n_sharing.tolist() == [2, 1, 2]


def test_more_combinations_than_a_product_of_codes_could_hold() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({f"c{n}": rng.permutation(500) for n in range(20)})
    assert uniqueness(table, table.column_names).share == 1.0


def test_an_unknown_column_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'age'"):
        uniqueness(pa.table({"age": [1]}), ["agee"])


def test_the_repr_shows_counts_only() -> None:
    assert repr(uniqueness(pa.table({"age": [1, 2]}), ["age"])) == "Uniqueness(2 of 2 subjects)"
