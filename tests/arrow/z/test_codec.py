"""The codec under z-anonymity: keys, published times, names."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.arrow.codec import NAMED, Codec, _down
from shoal.spec.ladder import Grid, Open, Path
from shoal.spec.schema import Quasi, Schema

QUASI = [Quasi("page", Open()), Quasi("area", Path("/", 2)), Quasi("cell", Grid("y", "x", [500]))]
SCHEMA = Schema("who", QUASI, keep=["note"], time="at")
UTC = pa.timestamp("us", "UTC")


def batch(**changes: Any) -> pa.RecordBatch:
    columns = {
        "who": ["a", "b", "a"], "at": [0.0, 61.5, 125.0], "page": ["p", "q", "p"],
        "area": ["it/to", "it/mi", "fr"], "y": [45.0, 45.0, 46.0], "x": [7.0, 7.0, 7.0],
        "note": ["n0", "n1", "n2"],
    } | changes  # fmt: skip
    return pa.record_batch(
        {n: c if isinstance(c, pa.Array) else pa.array(c) for n, c in columns.items()}
    )


def codec(**options: Any) -> Codec:
    return Codec(SCHEMA, key=bytes(range(8)), per_value=True, **options)


def test_cells_stand_for_values():
    encoded = codec().encode(batch())
    codes = encoded.codes
    assert codes.values.shape == (3, 0)
    assert codes.keys.shape == (3, 4)
    same = [len(set(codes.keys[:, j].tolist())) for j in range(4)]
    assert same == [2, 3, 2, 2]
    assert codes.subjects[0] == codes.subjects[2] != codes.subjects[1]
    assert not encoded.reasons
    assert "who" not in encoded.payload
    assert "at" not in encoded.payload


def test_bad_rows_leave_no_cells():
    encoded = codec().encode(batch(who=["a", None, "c"], page=["p", "q", ""]))
    assert encoded.reasons == {1: "who is missing", 2: "page is missing"}
    assert encoded.codes.keys.shape == (1, 4)
    assert all(len(column) == 1 for column in encoded.payload.values())
    none = codec().encode(batch(page=[None, None, None]))
    assert none.codes.keys.shape == (0, 4)
    gaps = codec(with_gaps=True).encode(batch(page=["p", "q", ""], y=[45.0, None, 46.0]))
    assert not gaps.reasons
    assert (gaps.codes.keys == 0).tolist() == [
        [False] * 4, [False, False, False, True], [True, False, False, False],
    ]  # fmt: skip


def test_a_codec_continues_another_one_with_its_key():
    one, other = codec(named=True), Codec(SCHEMA, key=bytes(8), per_value=True, named=True)
    before = one.encode(batch()).codes
    assert not set(before.keys.flat) & set(other.encode(batch()).codes.keys.flat)
    next_one = codec(named=True, n_rows=one.n_rows, types=one.types)
    after = next_one.encode(batch()).codes
    assert next_one.n_rows == 2 * one.n_rows
    assert next_one.types == one.types
    assert (after.keys == before.keys).all()
    assert (after.subjects == before.subjects).all()


def test_names_are_in_one_spelling_and_only_where_they_are_wanted():
    found = codec(named=True).encode(batch(who=["7", "7.0", " 7"])).payload[NAMED]
    assert found.to_pylist() == ["7", "7", "7"]
    assert NAMED not in codec().encode(batch()).payload


MOMENTS = [
    dt.datetime(1970, 1, 1, 0, minute, second) for minute, second in [(0, 5), (1, 2), (9, 0)]
]
TIMES = [
    (pa.array([5.0, 62.0, 540.0]), 60, pa.float64(), [0.0, 60.0, 540.0]),
    (pa.array([5, 62, 540]), 60, pa.float64(), [0.0, 60.0, 540.0]),
    (pa.array([5.25, 62.0, 540.0]), 0, pa.float64(), [5.25, 62.0, 540.0]),
    (pa.array([-0.5, 62.0, 540.0]), 60, pa.float64(), [-60.0, 60.0, 540.0]),
    (pa.array(["5", "62.5", "540"]), 0.5, pa.float64(), [5.0, 62.5, 540.0]),
    (pa.array(MOMENTS, pa.timestamp("ms")), 60, UTC, [0, 60, 540]),
    (pa.array(MOMENTS, pa.timestamp("us", "Europe/Rome")), 60, UTC, [0, 60, 540]),
    (pa.array([m.isoformat() for m in MOMENTS]), 60, UTC, [0, 60, 540]),
    (pa.array([m.isoformat() + "Z" for m in MOMENTS]), 0, UTC, [5, 62, 540]),
    (pa.array([m.isoformat() + "+01:00" for m in MOMENTS]), 60, UTC, [-3600, -3540, -3060]),
    (pa.array([m.date() for m in MOMENTS]), 60, UTC, [0, 0, 0]),
    (pa.array([m.isoformat() for m in MOMENTS]).dictionary_encode(), 60, UTC, [0, 60, 540]),
]


@pytest.mark.parametrize(("column", "step", "kind", "expected"), TIMES)
def test_a_published_time_is_rounded_down_whatever_its_type(column, step, kind, expected):
    made = codec(time_step=step)
    reported = made.encode(batch(at=column)).payload["at"]
    assert reported.type == made.types.field("at").type == kind
    if kind == UTC:
        reported = pa.array([moment.timestamp() for moment in reported.to_pylist()])
    assert reported.to_pylist() == expected


def test_a_time_that_is_none_is_bad_and_its_type_stays():
    made = codec(time_step=60)
    first = made.encode(batch(at=["5", "x", None]))
    assert first.reasons == {1: "at isn't a time", 2: "at is missing"}
    assert first.payload["at"].to_pylist() == [0.0]
    # Later rows may tell it otherwise; what is published stays a number.
    later = made.encode(batch(at=["1970-01-01T00:02:05", "130", "inf"]))
    assert later.payload["at"].to_pylist() == [120.0, 120.0]
    assert later.reasons == {2: "at isn't a finite number"}


@pytest.mark.parametrize("time", ["1e30", "-1e30"])
def test_a_time_beyond_all_calendars_is_bad_where_it_has_to_be_a_moment(time):
    made = codec(time_step=0)
    made.encode(batch(at=["1970-01-01", "1970-01-02", "1970-01-03"]))
    later = made.encode(batch(at=["1970-01-04", time, "5"]))
    assert later.reasons == {1: "at is beyond what a timestamp can tell"}
    assert np.isfinite(later.codes.times).all()


def test_the_subject_for_a_trace_is_text():
    reported = (
        codec(with_subject=True).encode(batch(who=[b"\x00", b"\x01", b"\x00"])).payload["who"]
    )
    assert reported.to_pylist() == ["00", "01", "00"]


@pytest.mark.parametrize("step", [0.1, 0.25, 1.0, 60.0, 0.3])
def test_a_published_time_is_the_largest_multiple_of_the_step(step):
    times = np.concatenate((np.arange(60) * step, np.arange(60) / 10, [0.3, 0.6, 59.999999]))
    down = _down(times, step)
    assert (down <= times).all()
    assert (times - down < step * (1 + 1e-9)).all()
    assert _down(np.array([0.3, 0.6, 0.7]), 0.1).tolist() == [0.3, 0.6, 0.7]
