from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.arrow.codec import Codec
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.schema import Quasi, Schema, Sensitive
from tests.examples import examples

SEX = Hierarchy.flat(["Female", "Male"])


def codec(**roles: Any) -> Codec:
    roles.setdefault("subject", "id")
    roles.setdefault("quasi", [Quasi("age", Range(0, 120, step=1)), Quasi("sex", SEX)])
    return Codec(Schema(**roles), key=b"12345678")


def batch(**columns: Any) -> pa.RecordBatch:
    arrays = {name: c if isinstance(c, pa.Array) else pa.array(c) for name, c in columns.items()}
    return pa.record_batch(list(arrays.values()), names=list(arrays))


def good(**changes: Any) -> pa.RecordBatch:
    columns: dict[str, Any] = {"id": ["a", "b"], "age": [30, 40], "sex": ["Male", "Female"]}
    return batch(**(columns | changes))


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("id", ["a", None], "id is missing"),
        ("id", ["a", "  "], "id is missing"),
        ("id", [1.0, float("nan")], "id is missing"),
        ("age", [30, None], "age is missing"),
        ("age", ["30", ""], "age is missing"),
        ("age", ["30", "4o"], "age isn't a number"),
        ("age", ["30", "0x1F"], "age isn't a number"),
        ("age", ["30", "1_000"], "age isn't a number"),
        ("age", [30.0, float("nan")], "age isn't a finite number"),
        ("age", [30.0, float("inf")], "age isn't a finite number"),
        ("age", ["30", "-inf"], "age isn't a finite number"),
        ("age", ["30", "nan"], "age isn't a finite number"),
        ("age", [30, 121], "age is out of its range"),
        ("age", [30, -1], "age is out of its range"),
        ("sex", ["Male", "male"], "sex has a category that its hierarchy lacks"),
        ("sex", ["Male", "*"], "sex has a category that its hierarchy lacks"),
        ("sex", ["Male", None], "sex is missing"),
        ("sex", ["Male", ""], "sex is missing"),
    ],
)
def test_each_kind_of_bad_row_has_its_reason(column: str, values: list[Any], reason: str) -> None:
    encoded = codec().encode(good(**{column: values}))
    assert encoded.reasons == {1: reason}
    assert encoded.good.tolist() == [0]
    assert len(encoded.codes.subjects) == 1
    assert all(len(column) == 1 for column in encoded.payload.values())


def test_the_first_reason_of_a_row_counts_and_no_value_is_shown() -> None:
    encoded = codec().encode(batch(id=[None, "CANARY"], age=["x", "CANARY"], sex=["?", "CANARY"]))
    assert encoded.reasons == {0: "id is missing", 1: "age isn't a number"}
    assert "CANARY" not in repr(encoded.reasons)


@pytest.mark.parametrize(
    "ages",
    [
        pa.array([30, 40], pa.int8()),
        pa.array([30, 40], pa.uint64()),
        pa.array([30.0, 40.0], pa.float32()),
        pa.array(["30", " 40.0 "]),
        pa.array(["3e1", "+40"]),
        pa.array([decimal.Decimal("30.00"), decimal.Decimal("40.00")]),
        pa.array(["30", "40"]).dictionary_encode(),
    ],
)
def test_numbers_come_in_many_types(ages: pa.Array) -> None:
    assert codec().encode(good(age=ages)).codes.values[:, 0].tolist() == [30.0, 40.0]


@pytest.mark.parametrize("ages", [pa.array([True, False]), pa.array([b"30", b"40"])])
def test_what_is_no_number_at_all_is_bad(ages: pa.Array) -> None:
    assert set(codec().encode(good(age=ages)).reasons.values()) == {"age isn't a number"}


@pytest.mark.parametrize(
    ("values", "leaves"),
    [
        (pa.array([1, 2]), ["1", "2"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([dt.date(1980, 5, 17), dt.date(1981, 1, 1)]), ["1980-05-17", "1981-01-01"]),
        (pa.array([" 1", "2 "]), ["1", "2"]),
        (pa.array(["1", "2"]).dictionary_encode(), ["1", "2"]),
    ],
)
def test_categories_are_matched_by_their_text(values: pa.Array, leaves: list[str]) -> None:
    c = codec(quasi=[Quasi("age", Hierarchy.flat(leaves))])
    encoded = c.encode(batch(id=["a", "b"], age=values))
    assert encoded.codes.values[:, 0].tolist() == [0.0, 1.0]


def test_one_person_is_one_code_whatever_the_type() -> None:
    kinds = [
        pa.array([7, 8]),
        pa.array([7.0, 8.0]),
        pa.array(["7", " 8 "]),
        pa.array(["7", "8"]).dictionary_encode(),
        pa.array(["7", "8"], pa.large_string()),
    ]
    codes = [codec().encode(good(id=kind)).codes.subjects.tolist() for kind in kinds]
    assert all(code == codes[0] for code in codes)
    assert codes[0][0] != codes[0][1]


def test_slices_of_a_batch_are_hashed_by_their_own_rows() -> None:
    whole = codec().encode(good()).codes.subjects
    part = codec().encode(good().slice(1)).codes.subjects
    assert part.tolist() == whole[1:].tolist()


def test_codes_depend_on_the_key() -> None:
    schema = Schema(subject="id", quasi=[Quasi("age", Range(0, 120))])
    one, two = (Codec(schema, key=key).encode(good()) for key in (b"a" * 8, b"b" * 8))
    assert one.codes.subjects.tolist() != two.codes.subjects.tolist()


def test_without_a_subject_each_row_is_one_across_batches() -> None:
    c = codec(subject=None)
    first, second = c.encode(good(age=[30, 999])), c.encode(good())
    assert first.codes.subjects.tolist() == [0]
    assert second.codes.subjects.tolist() == [1, 2]


def test_open_sensitive_values_are_distinguished_and_null_is_one_of_them() -> None:
    c = codec(sensitive=[Sensitive("disease")])
    encoded = c.encode(
        batch(id=list("abcd"), age=[1] * 4, sex=["Male"] * 4, disease=["flu", " flu", None, ""])
    )
    flu, again, null, empty = encoded.codes.sensitive[:, 0].tolist()
    assert flu == again
    assert null == empty != flu
    assert encoded.payload["disease"].to_pylist() == ["flu", " flu", None, ""]


def test_sensitive_values_that_json_would_publish_as_null_are_bad() -> None:
    """Else a group with three of them had three values when it was counted, and none as output."""
    c = codec(sensitive=[Sensitive("pay")])
    ids, ages, sexes = list("abcd"), [1] * 4, ["Male"] * 4
    pay = [1.5, float("inf"), float("-inf"), float("nan")]
    encoded = c.encode(batch(id=ids, age=ages, sex=sexes, pay=pay))
    assert encoded.reasons == dict.fromkeys((1, 2), "pay isn't a finite number")
    assert encoded.payload["pay"].to_pylist()[0] == 1.5
    # Later texts become numbers, as they are published.
    pay = ["2", "inf", "-Infinity", "1e999"]
    encoded = c.encode(batch(id=ids, age=ages, sex=sexes, pay=pay))
    assert sorted(encoded.reasons) == [1, 2, 3]


def test_closed_sensitive_values_are_checked() -> None:
    c = codec(sensitive=[Sensitive("job", SEX), Sensitive("pay", Range(0, 10))])
    encoded = c.encode(
        batch(
            id=list("abcde"),
            age=[1] * 5,
            sex=["Male"] * 5,
            job=["Male", "x", "Male", None, "Male"],
            pay=[1.0, 1.0, 11.0, 1.0, -0.0],
        )
    )
    assert encoded.reasons == {
        1: "job has a category that its hierarchy lacks",
        2: "pay is out of its range",
    }
    assert encoded.codes.sensitive[:, 0].tolist() == [1, -1, 1]


def test_minus_zero_is_zero() -> None:
    c = codec(sensitive=[Sensitive("pay", Range(-1, 10))])
    encoded = c.encode(good(pay=[0.0, -0.0]))
    assert len(set(encoded.codes.sensitive[:, 0].tolist())) == 1


def test_codes_of_sensitive_numbers_are_ordered_as_the_numbers() -> None:
    tiny, huge = 5e-324, 1e300
    numbers = [-huge, -2.5, -1.0, -tiny, 0.0, tiny, 0.5, 1.0, 2.0**53, huge]
    c = codec(sensitive=[Sensitive("pay", Range(-huge, huge))])
    people = [str(i) for i in range(len(numbers))]
    rows = batch(id=people, age=[1] * len(numbers), sex=["Male"] * len(numbers), pay=numbers)
    codes = c.encode(rows).codes.sensitive[:, 0]
    assert (np.diff(codes.astype(object)) > 0).all()


@settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)
@given(
    st.lists(
        st.floats(-1e300, 1e300) | st.integers(-3, 3).map(float) | st.none(), min_size=2, max_size=9
    )
)
def test_codes_of_sensitive_numbers_tell_order_and_what_is_missing(numbers: list[Any]) -> None:
    n = len(numbers)
    c = codec(sensitive=[Sensitive("pay", Range(-1e300, 1e300))])
    pay = pa.array(numbers, pa.float64())
    codes = c.encode(batch(id=["a"] * n, age=[1] * n, sex=["Male"] * n, pay=pay)).codes.sensitive
    pairs = list(zip(numbers, codes[:, 0].tolist(), strict=True))
    assert all((number is None) == (code == -1) for number, code in pairs)
    given_ = [pair for pair in pairs if pair[0] is not None]
    for number, code in given_:
        for other, other_code in given_:
            assert (number < other, number == other) == (code < other_code, code == other_code)


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (SEX, ["Male", None]),
        (SEX, ["Male", " "]),
        (SEX, pa.array(["Male", None]).dictionary_encode()),
        (Range(0, 10), [1, None]),
        (Range(0, 10), [1.0, float("nan")]),
        (Range(0, 10), ["1", ""]),
        (None, ["x", None]),
        (None, ["x", ""]),
    ],
)
def test_where_sensitive_values_are_complete_a_missing_one_is_bad(domain: Any, values: Any) -> None:
    quasi = [Quasi("age", Range(0, 120))]
    schema = Schema("id", quasi, [Sensitive("pay", domain), Sensitive("free")])
    rows = good(pay=values, free=[None, None])
    encoded = Codec(schema, key=bytes(8), complete=frozenset({"pay"})).encode(rows)
    assert encoded.reasons == {1: "pay is missing"}
    assert not Codec(schema, key=bytes(8)).encode(rows).reasons


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        (pa.array([1, 2]), [1.0, 2.0]),
        (pa.array(["1.5", "2"]), [1.5, 2.0]),
        (pa.array([dt.datetime(1970, 1, 1, 0, 0, 1, 500000)] * 2), [1.5, 1.5]),
        (pa.array([dt.datetime(1970, 1, 1, 0, 0, 2)] * 2, pa.timestamp("s", "UTC")), [2.0, 2.0]),
        (pa.array(["1970-01-01 00:00:03", "1970-01-01T00:00:04"]), [3.0, 4.0]),
        (pa.array([dt.date(1970, 1, 2)] * 2), [86400.0, 86400.0]),
    ],
)
def test_times_become_seconds(times: pa.Array, seconds: list[float]) -> None:
    encoded = codec(time="at").encode(good(at=times))
    assert encoded.codes.times.tolist() == seconds


@pytest.mark.parametrize("wrong", ["soon", ""])
def test_a_time_that_is_none_is_bad(wrong: str) -> None:
    encoded = codec(time="at").encode(good(at=["1970-01-01", wrong]))
    assert list(encoded.reasons) == [1]


def test_without_a_time_column_times_are_unknown() -> None:
    assert np.isnan(codec().encode(good()).codes.times).all()


def test_the_payload_keeps_its_first_types() -> None:
    c = codec(keep=["n"])
    assert c.encode(good(n=[1, 2])).payload["n"].type == pa.int64()
    later = c.encode(good(n=["3", "x"]))
    assert later.payload["n"].to_pylist() == [3]
    assert later.reasons == {1: "n isn't of the type it had before (int64)"}


def test_a_column_of_nulls_and_a_dictionary_become_plain() -> None:
    c = codec(keep=["n", "m"])
    encoded = c.encode(good(n=[None, None], m=pa.array(["x", "y"]).dictionary_encode()))
    assert [column.type for column in encoded.payload.values()] == [pa.string(), pa.string()]
    assert c.types.names == ["n", "m"]


def test_the_subject_travels_with_the_payload_only_for_a_trace() -> None:
    schema = Schema(subject="id", quasi=[Quasi("age", Range(0, 120))], keep=["sex"])
    assert Codec(schema, key=bytes(8)).encode(good()).payload.keys() == {"sex"}
    traced = Codec(schema, key=bytes(8), with_subject=True)
    assert traced.encode(good()).payload.keys() == {"sex", "id"}


def test_an_empty_batch_is_fine() -> None:
    encoded = codec().encode(good().slice(0, 0))
    assert len(encoded.codes.subjects) == 0
    assert encoded.reasons == {}


def test_the_repr_of_a_codec_has_no_values() -> None:
    c = codec()
    c.encode(good(id=["CANARY", "b"]))
    assert "CANARY" not in repr(c)


def same_person(*ids: pa.Array) -> bool:
    codes = {int(code) for kind in ids for code in codec().encode(good(id=kind)).codes.subjects}
    return len(codes) == 1


@pytest.mark.parametrize(
    "ids",
    [
        [pa.array([48123456789] * 2), pa.array([48123456789.0] * 2)],
        [pa.array([0.0, -0.0])],
        [pa.array([decimal.Decimal("7.00")] * 2), pa.array([7, 7]), pa.array(["7.0", "7"])],
        [pa.array([7.5, 7.5]), pa.array(["7.50", "7.5"])],
        [pa.array(["Jose\u0301", "Jos\u00e9"])],
        [pa.array(["a\u200bb", "\ufeffab"])],
        [pa.array([b"ab", b"ab"]), pa.array(["ab", "ab"])],
        [pa.array(["ab", "ab"], pa.string_view())],
    ],
)
def test_spellings_of_one_person_are_one_person(ids: list[pa.Array]) -> None:
    assert same_person(*ids)


def test_different_people_stay_different() -> None:
    ids = pa.array(["7", "07", "7a", "A7", "a7", "7.5", "-7", "7 7"])
    batch_ = batch(id=ids, age=[1] * 8, sex=["Male"] * 8)
    assert len(set(codec().encode(batch_).codes.subjects.tolist())) == 8


def test_bytes_that_are_no_text_can_be_subjects() -> None:
    encoded = codec().encode(good(id=pa.array([b"\xff\x00" * 8, b"\xfe\x00" * 8], pa.binary(16))))
    assert len(set(encoded.codes.subjects.tolist())) == 2
    traced = Codec(Schema("id", [Quasi("age", Range(0, 120))]), key=bytes(8), with_subject=True)
    words = traced.encode(good(id=pa.array([b"\xff", None]))).payload["id"].to_pylist()
    assert words == ["ff"]


def test_a_fraction_too_large_to_be_exact_is_no_subject() -> None:
    encoded = codec().encode(good(id=[1.0, 2.0**60]))
    assert encoded.reasons == {1: "id is a fraction too large to tell people apart by"}


@pytest.mark.parametrize(
    "values",
    [
        pa.array([None, float("nan")]),
        pa.array(["", None]),
        pa.array([b"", None]),
        pa.array(["", None], pa.string_view()),
        pa.array([0.0, -0.0]),
        pa.array(["7.0", "7"]),
    ],
)
def test_spellings_of_one_sensitive_value_are_one_value(values: pa.Array) -> None:
    encoded = codec(sensitive=[Sensitive("s")]).encode(good(s=values))
    assert len(set(encoded.codes.sensitive[:, 0].tolist())) == 1


def test_sensitive_values_are_counted_as_they_are_published() -> None:
    c = codec(sensitive=[Sensitive("s")])
    first = c.encode(good(s=[7.0, 8.0]))
    later = c.encode(good(s=["7.0", "7.00"]))
    assert later.payload["s"].to_pylist() == [7.0, 7.0]
    assert set(later.codes.sensitive[:, 0].tolist()) == {int(first.codes.sensitive[0, 0])}


def test_one_bad_time_is_one_bad_row() -> None:
    encoded = codec(time="at").encode(
        batch(
            id=list("abcd"),
            age=[1] * 4,
            sex=["Male"] * 4,
            at=["5", "oops", "1970-01-01T00:00:06Z", "1970-01-01T01:00:07+01:00"],
        )
    )
    assert encoded.reasons == {1: "at isn't a time"}
    assert encoded.codes.times.tolist() == [5.0, 6.0, 7.0]


def test_nanoseconds_are_fine() -> None:
    at = pa.array([1_700_000_000_123_456_789] * 2, pa.timestamp("ns"))
    assert codec(time="at").encode(good(at=at)).codes.times.tolist() == [1700000000.123456] * 2


def test_a_dictionary_of_nothing_is_missing() -> None:
    nowhere = pa.array([None, None], pa.int32())
    nothing = pa.DictionaryArray.from_arrays(nowhere, pa.array([], pa.string()))
    encoded = codec(sensitive=[Sensitive("s")]).encode(good(sex=nothing, s=nothing))
    assert set(encoded.reasons.values()) == {"sex is missing"}


# -- missing quasi values --------------------------------------------------------------------------


def gappy(**changes: Any) -> Any:
    schema = Schema("id", [Quasi("age", Range(0, 120, step=1)), Quasi("sex", SEX)])
    return Codec(schema, key=bytes(8), with_gaps=True).encode(good(**changes))


@pytest.mark.parametrize(
    ("column", "values", "present"),
    [
        ("age", [30, None], 30),
        ("age", ["30", ""], 30),
        ("age", ["30", "  "], 30),
        ("age", pa.array(["30", None]).dictionary_encode(), 30),
        ("sex", ["Male", None], 1),
        ("sex", ["Male", " "], 1),
        ("sex", pa.array(["Male", ""]).dictionary_encode(), 1),
    ],
)
def test_what_is_missing_may_be(column: str, values: Any, present: float) -> None:
    encoded = gappy(**{column: values})
    assert not encoded.reasons
    d = ["age", "sex"].index(column)
    assert encoded.codes.values[0, d] == present
    assert np.isnan(encoded.codes.values).tolist() == [[False] * 2, [d == 0, d == 1]]


def test_a_column_without_any_value_is_all_gaps() -> None:
    for name in ("age", "sex"):
        encoded = gappy(**{name: pa.nulls(2)})
        assert not encoded.reasons
        assert np.isnan(encoded.codes.values[:, ["age", "sex"].index(name)]).all()


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("age", [30.0, float("nan")]),
        ("age", ["30", "?"]),
        ("age", [30, 121]),
        ("sex", ["Male", "?"]),
        ("id", ["a", None]),
    ],
)
def test_what_is_wrong_is_not_missing(column: str, values: Any) -> None:
    assert list(gappy(**{column: values}).reasons) == [1]
