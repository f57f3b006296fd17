from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.audit.columns import column, combined_codes, integers, numbers, same


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, None, 3]), [1, np.nan, 3]),
        (pa.array(["1e3", " -2.5 ", "+7", "x", "", None]), [1000, -2.5, 7, *[np.nan] * 3]),
        (pa.array([Decimal("1.50")]), [1.5]),
        (pa.array([dt.datetime(1970, 1, 1, 0, 1)], pa.timestamp("us")), [60]),
        (pa.array([True]), [np.nan]),
        (pa.nulls(2), [np.nan, np.nan]),
        (pa.array([], pa.string()), []),
    ],
)
def test_numbers(array: Any, expected: list[float]) -> None:
    assert numbers(array) == pytest.approx(expected, nan_ok=True)


def test_wholes() -> None:
    assert integers(pa.array([0.0, 1.5, None, 7.0, float("inf")])).tolist() == [0, -1, -1, 7, -1]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (["a", "b", None], ["a", "c", None], [True, False, True]),
        ([1, 2, None], [1.0, 2.5, 3.0], [True, False, False]),
        (["1", "1.50", "x"], [1.0, 1.5, float("nan")], [True, True, False]),
        ([float("nan")], [float("nan")], [True]),
        ([2**60 + 1], [2**60], [False]),
        (["true", "false"], [True, True], [True, False]),
        ([None, "a"], ["a", None], [False, False]),
    ],
)
def test_same(one: list[Any], other: list[Any], expected: list[bool]) -> None:
    assert same(pa.array(one), pa.array(other)).tolist() == expected
    assert same(pa.array(other), pa.array(one)).tolist() == expected


@pytest.mark.parametrize("other", [pa.nulls(2), pa.array([None, 1]), pa.array([None, b"\xff"])])
def test_a_column_without_any_value_equals_nulls_only(other: Any) -> None:
    expected = other.is_null().to_pylist()
    assert same(pa.nulls(2), other).tolist() == expected
    assert same(other, pa.nulls(2)).tolist() == expected


def test_an_empty_text_is_null() -> None:
    table = pa.table({"a": pa.array(["x", ""]).dictionary_encode()})
    assert column(table, "a").to_pylist() == ["x", None]


def test_of_two_columns_with_one_name_the_first_is_read() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert column(table, "a").to_pylist() == [1]


def test_dense_numbers_combinations() -> None:
    rng = np.random.default_rng(3)
    keys = [rng.integers(0, 1_000_000, 500) // 100_000 for _ in range(6)]
    found = combined_codes(*keys)
    assert len(set(found.tolist())) == len(set(zip(*(k.tolist() for k in keys), strict=True)))
