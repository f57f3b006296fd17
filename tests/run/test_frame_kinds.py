"""Rows as dictionaries become columns; what can't be in a column is a bad row."""

from __future__ import annotations

import json
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.errors import ParameterError
from shoal.run.frame_kinds import DICTS, chunks_of, is_frame, plain_table


def cut(rows: Any) -> list[tuple[str, list[int], list[int]]]:
    """The type of the column, the rows and the bad rows of each chunk."""
    kind, chunks = chunks_of(rows, ["a"], key="rows", first=10)
    assert kind is DICTS
    return [
        (str(chunk.batch.schema.field("a").type), chunk.rows.tolist(), [b.row for b in chunk.bad])
        for chunk in chunks
    ]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ({"a": 1, "b": object()}, [("int64", [10], [])]),
        ([{"a": 1}, {"a": 2.5}, {}], [("double", [10, 11, 12], [])]),
        ([{"a": 1}, {"a": "x"}], [("int64", [10], []), ("string", [11], [])]),
        ([{"a": 2**60}, {"a": 0.5}], [("int64", [10], []), ("double", [11], [])]),
        ([{"a": [1]}, {"a": 3}], [("int64", [11], [10])]),
        ([{"a": 3}, {"a": {1}}], [("int64", [10], [11])]),
        ({"a": 2**70}, [("null", [], [10])]),
        ({"a": "\ud800"}, [("null", [], [10])]),
        ({"a": float("nan")}, [("null", [10], [])]),
        ({"a": np.float32(3)}, [("float", [10], [])]),
        ({"a": uuid.UUID(int=1)}, [("string", [10], [])]),
        ([], [("null", [], [])]),
    ],
)
def test_dicts_are_cut_where_types_change(rows: Any, found: Any) -> None:
    assert cut(rows) == found


def test_a_bad_row_is_kept_with_all_of_its_values() -> None:
    (chunk,) = chunks_of({"a": [1], "b": "CANARY"}, ["a"], key="rows")[1]
    (bad,) = chunk.bad
    assert bad.reason == "a isn't a text, number, time or boolean"
    assert json.loads(bad.raw or b"") == {"a": [1], "b": "CANARY"}


def test_long_frames_are_cut() -> None:
    table = pa.table({"a": np.arange(100_000)})
    _, chunks = chunks_of(table, ["a"], key="rows", first=5)
    assert [len(chunk.rows) for chunk in chunks] == [65536, 100_000 - 65536]
    assert chunks[1].rows[0] == 5 + 65536


def test_a_table_of_releases_has_no_dictionary() -> None:
    batch = pa.record_batch({"a": pa.array(["x"]).dictionary_encode()})
    table = plain_table([batch], pa.schema([("a", pa.string())]))
    assert table.schema.field("a").type == pa.string()


def test_what_is_no_frame() -> None:
    assert is_frame(pa.table({"a": [1]}))
    assert not is_frame([{"a": 1}])
    with pytest.raises(ParameterError, match=r"^rows: must be a dict.*got builtins\.set"):
        chunks_of({1}, ["a"], key="rows")
