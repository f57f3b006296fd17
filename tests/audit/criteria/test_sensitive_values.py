from __future__ import annotations

import math
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from shoal.audit.criteria.sensitive_values import read_values
from shoal.spec.hierarchy import Domain, Hierarchy, Range

TREE = Hierarchy.flat(["x", "y", "7"])


@pytest.mark.parametrize(
    ("domain", "arrived", "shown"),
    [
        (Range(0, 9), ["1", " 2.0", "1"], [1.0, 2.0, 1.0]),
        (Range(0, 9), [1, 2, 1], ["1.0", "2", "1"]),
        (TREE, ["x", "7", "x"], [" x", "7", "x "]),
        (TREE, [7, 7, 7], [7.0, 7.0, 7.0]),
        (None, ["1", "é", " b"], ["1", "e\u0301", "b"]),
        (None, [1, 2, None], ["1", "2.0", ""]),
        (Range(0, 1e9), [date(1970, 1, 2), date(1990, 5, 5)], [86400, 641865600]),
    ],
)
def test_one_value_is_one_however_it_is_written(
    domain: Domain | None, arrived: list[Any], shown: list[Any]
) -> None:
    values = read_values(pa.array(arrived), pa.array(shown), domain)
    assert values.arrived.tolist() == values.shown.tolist()
    assert values.n_outside == 0


def test_numbers_and_leaves_are_in_order() -> None:
    values = read_values(pa.array(["10", "9"]), pa.array(["9.5"]), Range(0, 99))
    assert values.places.tolist() == [9.0, 9.5, 10.0]
    values = read_values(pa.array(["7", "x"]), pa.array([], pa.string()), TREE)
    assert values.places.tolist() == [0.0, 2.0]
    assert values.arrived.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("domain", "arrived", "n_outside", "n_missing"),
    [
        (Range(0, 9), ["1", "?", "10", "-1", "nan", None, " "], 4, 2),
        (Range(0, 9), [0, 9, 9.5], 1, 0),
        (Range(0, 9), [1.0, math.nan, None, math.inf], 1, 2),
        (TREE, ["x", "*", "z", None, ""], 2, 2),
        (None, ["x", None, ""], 0, 0),  # missing is a value like any other
    ],
)
def test_what_has_no_place_is_counted(
    domain: Domain | None, arrived: list[Any], n_outside: int, n_missing: int
) -> None:
    values = read_values(pa.array(arrived), pa.array(arrived[:1]), domain)
    assert (values.n_outside, values.n_missing) == (n_outside, n_missing)
