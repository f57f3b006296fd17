"""From boxes to what an outsider reads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shoal.arrow.labels import Labels
from shoal.errors import JobError
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.schema import Quasi, Schema

TOWN = Hierarchy.from_rows(
    [["berlin", "east", "*"], ["dresden", "east", "*"], ["bonn", "bonn", "*"]]
)
SCHEMA = Schema(
    subject=None,
    quasi=[
        Quasi("age", Range(0, 120, step=1)),
        Quasi("town", TOWN),
        Quasi("share", Range(0, 1)),
    ],
    keep=["ward"],
)
LO = np.array([[20.0, 0.0, 0.25], [0.0, 0.0, 0.0]])
HI = np.array([[29.0, 1.0, 0.5], [120.0, 2.0, 1.0]])
BOXES = np.array([1, 0, 1])


def written(numeric: str) -> dict[str, list[object]]:
    labels = Labels(SCHEMA, numeric)  # type: ignore[arg-type]
    columns = labels.columns(LO, HI, BOXES)
    assert len(columns) == len(labels.schema)
    for column, field in zip(columns, labels.schema, strict=True):
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        assert plain.type == field.type
    return {
        name: column.to_pylist() for name, column in zip(labels.schema.names, columns, strict=True)
    }


def test_ranges():
    assert written("range") == {
        "age": ["[0, 120]", "[20, 29]", "[0, 120]"],
        "town": ["*", "east", "*"],
        "share": ["[0, 1]", "[0.25, 0.5]", "[0, 1]"],
    }


def test_bounds():
    assert written("bounds") == {
        "age_min": [0, 20, 0],
        "age_max": [120, 29, 120],
        "town": ["*", "east", "*"],
        "share_min": [0.0, 0.25, 0.0],
        "share_max": [1.0, 0.5, 1.0],
    }


def test_midpoints():
    assert written("midpoint") == {
        "age": [60.0, 24.5, 60.0],
        "town": ["*", "east", "*"],
        "share": [0.5, 0.375, 0.5],
    }


def test_a_single_value_is_a_range_and_a_leaf():
    column = Labels(SCHEMA).columns(LO[:1] * 0, LO[:1] * 0, np.array([0]))
    assert [text.to_pylist() for text in column] == [["[0, 0]"], ["berlin"], ["[0, 0]"]]


def text_of(number):
    number = float(number)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def test_many_boxes_have_each_text_once():
    draw = np.random.default_rng(3)
    lo = np.column_stack([draw.integers(0, 50, 300), draw.integers(0, 2, 300), draw.random(300)])
    hi = lo + np.array([7.0, 0.0, 0.0])
    boxes = draw.integers(0, 300, 500)
    ages, towns, shares = Labels(SCHEMA).columns(lo, hi, boxes)
    assert ages.to_pylist() == [f"[{lo[b, 0]:.0f}, {hi[b, 0]:.0f}]" for b in boxes]
    assert towns.to_pylist() == [["berlin", "dresden"][int(lo[b, 1])] for b in boxes]
    assert shares.to_pylist() == [f"[{text_of(lo[b, 2])}, {text_of(hi[b, 2])}]" for b in boxes]
    for column in (ages, shares):
        assert len(column.dictionary.unique()) == len(column.dictionary)


def test_numbers_are_written_as_python_writes_them():
    draw = np.random.default_rng(5)
    signs = draw.choice([-1.0, 1.0], 3000)
    numbers = np.concatenate([
        signs * 10 ** draw.uniform(-12, 20, 3000), np.round(draw.random(3000) * 1e6, 2),
        signs * np.round(10 ** draw.uniform(-5, 17, 3000)),
        [0.0, -0.0, 1e9, 1e-4, 1e15, 1e16, 999999999.5, 1000000000.5, 0.00001],
    ])  # fmt: skip
    schema = Schema(subject=None, quasi=[Quasi("x", Range(-1e21, 1e21))])
    table = numbers.reshape(-1, 1)
    (column,) = Labels(schema).columns(table, table, np.arange(len(table)))
    expected = [f"[{text_of(x)}, {text_of(x)}]" for x in numbers.tolist()]
    assert column.to_pylist() == expected


@pytest.mark.parametrize("numeric", ["range", "bounds", "midpoint"])
def test_no_rows(numeric):
    none = np.empty((0, 3))
    columns = Labels(SCHEMA, numeric).columns(none, none, np.empty(0, np.int64))
    assert [len(column) for column in columns] == [0] * (5 if numeric == "bounds" else 3)


def test_names_that_clash_with_a_bound_are_refused():
    kept = Schema(subject=None, quasi=[Quasi("age", Range(0, 9))], keep=["age_max"])
    with pytest.raises(JobError, match="age_max: is also the name of a published bound"):
        Labels(kept, "bounds")
    Labels(kept, "range")
    two = Schema(subject=None, quasi=[Quasi("age", Range(0, 9)), Quasi("age_min", TOWN)])
    with pytest.raises(JobError, match="the same name"):
        Labels(two, "bounds")


EMPTY_LO = np.array([[20.0, np.inf, 0.25], [np.inf, 0.0, np.inf]])
EMPTY_HI = np.array([[29.0, -np.inf, 0.5], [-np.inf, 1.0, -np.inf]])


@pytest.mark.parametrize(
    ("numeric", "expected"),
    [
        ("range", [["[20, 29]", None, None], [None, "east", "east"], ["[0.25, 0.5]", None, None]]),
        ("bounds", [[20, None, None], [29, None, None], [None, "east", "east"],
                    [0.25, None, None], [0.5, None, None]]),
        ("midpoint", [[24.5, None, None], [None, "east", "east"], [0.375, None, None]]),
    ],
)  # fmt: skip
def test_what_a_row_lacks_is_null_in_every_column_of_it(numeric, expected):
    columns = Labels(SCHEMA, numeric).columns(
        EMPTY_LO, EMPTY_HI, np.array([0, 1, 1]), np.array([0b010, 0b101, 0b101])
    )
    assert [column.to_pylist() for column in columns] == expected


def test_a_gap_is_null_though_others_of_the_group_have_a_label():
    columns = Labels(SCHEMA).columns(LO, HI, BOXES, np.array([0b001, 0b110, 0]))
    assert [column.to_pylist() for column in columns] == [
        [None, "[20, 29]", "[0, 120]"], ["*", None, "*"], ["[0, 1]", None, "[0, 1]"],
    ]  # fmt: skip


def test_an_empty_side_reveals_nothing_of_a_row_that_claims_to_have_a_value():
    columns = Labels(SCHEMA).columns(EMPTY_LO[1:], EMPTY_HI[1:], np.array([0]))
    assert [column.to_pylist() for column in columns] == [["[0, 120]"], ["east"], ["[0, 1]"]]


def test_many_boxes_with_gaps():
    draw = np.random.default_rng(3)
    lo = np.column_stack([draw.integers(0, 50, 300), draw.integers(0, 2, 300), draw.random(300)])
    hi, boxes, gaps = lo.copy(), draw.integers(0, 300, 500), draw.integers(0, 8, 500)
    lo[::7, 0], hi[::7, 0] = np.inf, -np.inf
    ages, towns, shares = Labels(SCHEMA).columns(lo, hi, boxes, gaps)
    whole = [(0.0, 120.0) if a > b else (a, b) for a, b in zip(lo[:, 0], hi[:, 0], strict=True)]
    places = list(zip(boxes, gaps.tolist(), strict=True))
    assert ages.to_pylist() == [
        None if gap & 1 else "[{:.0f}, {:.0f}]".format(*whole[b]) for b, gap in places
    ]
    assert towns.to_pylist() == [
        None if gap & 2 else ["berlin", "dresden"][int(lo[b, 1])] for b, gap in places
    ]
    assert shares.to_pylist() == [
        None if gap & 4 else f"[{text_of(lo[b, 2])}, {text_of(hi[b, 2])}]" for b, gap in places
    ]
