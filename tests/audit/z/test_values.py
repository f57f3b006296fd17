"""Values of the original, in whatever form they come, and their ladders."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest

from shoal.audit.z.values import read_ladders, texts
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import Grid, Open, Path
from shoal.spec.schema import Quasi


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (pa.array([7, 8, None]), ["7", "8", ""]),
        (pa.array([-0.0, float("nan"), 1e-7, 0.25]), ["0", "", "1e-7", "0.25"]),
        (pa.array([0.5], pa.float32()), ["0.5"]),
        (pa.array([True]), ["true"]),
        (pa.array([datetime.date(2024, 5, 1)]), ["2024-05-01"]),
        (pa.array([decimal.Decimal("7.50")]), ["7.50"]),
        (pa.array([b"\xff"]), ["ff"]),
        (pa.array([b"ab"], pa.binary(2)), ["6162"]),
        (pa.array(["e\u200d\u0301\u200b "]), ["\xe9"]),
        (pa.array(["e\u0301 ", "7.0"]), ["\xe9", "7.0"]),
    ],
)
def test_one_text_for_one_value(array: Any, words: list[str]) -> None:
    indices, found = texts(array)
    assert [found[i] for i in indices] == words


def test_values_that_are_written_in_two_ways_are_one() -> None:
    found = read_ladders(Quasi("item", Open()), pa.table({"item": ["7", " 7", "", None, "8"]}))
    assert found.value.tolist() == [0, 0, -1, -1, 1]
    assert found.lacks.tolist() == [False, False, True, True, False]
    assert found.labels == ["7", "8"]


def test_what_cannot_be_seen_is_missing() -> None:
    table = pa.table({"item": ["\u200b", "\u200b ", "x", "x\u200b"]})
    for domain in (Open(), Path("/", levels=1)):
        found = read_ladders(Quasi("item", domain), table)
        assert found.lacks.tolist() == [True, True, False, False]
        assert found.value.tolist() == [-1, -1, 0, 0]


@pytest.mark.parametrize("kind", [pa.binary(2), pa.binary_view(), pa.large_binary()])
def test_bytes_are_written_in_digits(kind: Any) -> None:
    table = pa.table({"item": pa.array([b"ab", None, b"ab"], kind)})
    found = read_ladders(Quasi("item", Open()), table)
    assert (found.labels, found.lacks.tolist()) == (["6162"], [False, True, False])


def test_places_that_are_not_on_earth() -> None:
    table = pa.table({"lat": [90.0, 91.0, 0.0], "lon": [-180.0, 0.0, 181.0]})
    found = read_ladders(Quasi("cell", Grid("lat", "lon", [1000])), table)
    assert found.value.tolist() == [0, -1, -1]


def test_a_node_is_a_label_under_its_coarser_labels() -> None:
    table = pa.table({"area": ["it*to", "it*mi", "it", "fr*to"]})
    found = read_ladders(Quasi("area", Path("*", levels=2)), table)
    assert found.nodes.tolist() == [[1, 0], [2, 0], [3, 0], [5, 4]]
    assert found.parents == [-1, 0, 0, 0, -1, 4]
    assert found.labels == ["it", "it*to", "it*mi", "it", "fr", "fr*to"]


def test_what_a_domain_lacks_has_no_ladder() -> None:
    tree = Hierarchy.from_dict({"*": {"a": ["x", "y"]}})
    food = read_ladders(Quasi("food", tree), pa.table({"food": [" x", "a", "q", None]}))
    assert food.value.tolist() == [0, -1, -1, -1]
    age = read_ladders(Quasi("age", Range(0, 9, step=5)), pa.table({"age": ["4", "12", "?", None]}))
    assert age.value.tolist() == [0, -1, -1, -1]
    assert age.lacks.tolist() == [False, False, False, True]
    grid = Quasi("cell", Grid("lat", "lon", [1000]))
    place = pa.table({"lat": [45.0, 45.0, None, float("nan")], "lon": ["7", "7", "7", "7"]})
    cell = read_ladders(grid, place)
    assert cell.value.tolist() == [0, 0, -1, -1]
    assert cell.lacks.tolist() == [False, False, True, True]


def test_no_values_at_all() -> None:
    found = read_ladders(Quasi("age", Range(0, 9, step=5)), pa.table({"age": pa.array([], "i8")}))
    assert found.nodes.shape == (0, 1)
    assert found.labels == []
