import io
import json
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import JobError, ResourceError
from shoal.io import JsonSink, JsonSource
from shoal.io.formats.jsonl import NoLinesError
from shoal.io.streams import Input, Output


def chunks(data, columns=None, **options):
    return list(JsonSource(Input(io.BytesIO(data), "people.jsonl"), columns, **options))


def read(data, columns=None, **options):
    rows, bad = [], []
    for chunk in chunks(data, columns, **options):
        rows += zip(chunk.rows.tolist(), chunk.batch.to_pylist(), strict=True)
        bad += chunk.bad
    return rows, bad


def lines(*rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_types_are_those_of_the_values():
    row = {"i": 1, "f": 1.5, "s": "2012-01-01", "b": True, "n": None}
    [chunk] = chunks(lines(row, row))
    assert chunk.batch.schema.types == [
        pa.int64(),
        pa.float64(),
        pa.string(),
        pa.bool_(),
        pa.null(),
    ]
    assert chunk.batch.to_pylist() == [row, row]


def test_missing_keys_are_null_and_other_columns_are_left_alone():
    data = lines({"a": 1, "x": [1, {"y": 2}]}, {"x": {}}, {"b": "q"})
    rows, bad = read(data, ["b", "a"])
    assert [row for _, row in rows] == [
        {"b": None, "a": 1},
        {"b": None, "a": None},
        {"b": "q", "a": None},
    ]
    assert bad == []


def test_mixed_types_become_text_and_stay_so():
    data = lines({"a": 1}, {"a": "x"}, {"a": True}) + lines(*[{"a": 7}] * 20)
    got = chunks(data, chunk_bytes=40)
    assert {str(chunk.batch.schema.types[0]) for chunk in got} == {"string"}
    values = [value for chunk in got for value in chunk.batch["a"].to_pylist()]
    assert values == ["1", "x", "true", *["7"] * 20]


def test_types_widen_after_the_look_ahead():
    data = lines(*[{"a": 1, "b": None}] * 2000, {"a": 2.5, "b": "late"})
    got = chunks(data, chunk_bytes=4000)
    assert got[0].batch.schema.types == [pa.int64(), pa.null()]
    assert got[-1].batch.schema.types == [pa.float64(), pa.string()]
    assert got[-1].batch.to_pylist()[-1] == {"a": 2.5, "b": "late"}


def test_numbers_beyond_64_bits_stay_exact():
    rows, _ = read(b'{"a": 12345678901234567890}\n{"a": 12345678901234567891}\n{"a": 1}\n')
    assert [row["a"] for _, row in rows] == ["12345678901234567890", "12345678901234567891", "1"]


def test_nan_and_infinity_are_seen():
    rows, _ = read(b'{"a": NaN}\n{"a": -Infinity}\n{"a": 1e400}\n{"a": 1}\n')
    values = [row["a"] for _, row in rows]
    assert math.isnan(values[0])
    assert values[1:] == [-math.inf, math.inf, 1.0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense", "not a JSON object"),
        (b"[1, 2]", "not a JSON object"),
        (b'{"a": 1', "not a JSON object"),
        (b'{"a": 1} {"a": 2}', "not a JSON object"),
        (b'{"a": [1]}', "column a isn't a plain value"),
        (b'{"a": {"b": 1}}', "column a isn't a plain value"),
        (b'{"a": "\xff"}', "broken UTF-8"),
        (b'{"a": "\\ud800"}', "broken UTF-8 in column a"),
        (b"[" * 100_000, "not a JSON object"),
    ],
)
def test_a_bad_line_costs_its_own_row_only(line, reason):
    rows, bad = read(b'{"a": "x"}\n\n' + line + b'\r\n{"a": "y"}', ["a"])
    assert rows == [(0, {"a": "x"}), (2, {"a": "y"})]
    assert [(b.row, b.reason, b.raw) for b in bad] == [(1, reason, line)]


def test_two_lines_that_arrow_would_read_otherwise():
    rows, bad = read(b'{"a": 0}\n{"a": 1} {"a":\n2}\n')
    assert rows == [(0, {"a": 0})]
    assert [b.row for b in bad] == [1, 2]


def test_a_line_that_is_too_long_is_a_bad_row():
    rows, bad = read(lines({"a": "x"}, {"a": "y" * 100}, {"a": "z"}), max_row_bytes=50)
    assert [row for row, _ in rows] == [0, 2]
    assert [(b.row, len(b.raw)) for b in bad] == [(1, 50)]


@pytest.mark.parametrize(
    ("data", "kind"), [(b"", NoLinesError), (b"\n", ResourceError), (b"[]\n", ResourceError)]
)
def test_an_input_without_objects_is_refused(data, kind):
    with pytest.raises(ResourceError, match="no line with a JSON object") as refused:
        read(data)
    assert refused.type is kind


def test_missing_columns_are_named():
    with pytest.raises(JobError, match="Did you mean 'age'"):
        read(lines({"age": 1, "sex": "F"}), ["agee", "sex"])


def test_a_rare_column_of_a_file_is_found():
    rows, _ = read(lines({"a": 1}, {"a": 2, "b": 3}), ["b"])
    assert [row["b"] for _, row in rows] == [None, 3]


column = st.one_of(
    st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=10),
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=10),
    st.lists(st.one_of(st.none(), st.floats(allow_nan=False)), max_size=10),
    st.lists(st.booleans(), max_size=10),
)


@given(column, st.integers(1, 50), st.integers(1, 4))
def test_rows_dont_depend_on_chunks(values, chunk_bytes, batch_rows):
    data = b'{"a": null}\n' + b"\n[]\n".join(lines({"a": value}) for value in values)
    rows, bad = read(data, chunk_bytes=chunk_bytes, batch_rows=batch_rows)
    assert (rows, bad) == read(data)
    assert [row["a"] for _, row in rows] == [None, *values]


@given(st.lists(st.tuples(st.none() | st.text(), st.none() | st.floats()), min_size=1))
def test_written_lines_are_json(rows):
    raw = io.BytesIO()
    sink = JsonSink(Output(raw, "out"), pa.schema([('s "x"', pa.string()), ("f", pa.float64())]))
    texts, numbers = (list(column) for column in zip(*rows, strict=True))
    sink.write(
        pa.record_batch({"f": pa.array(numbers, pa.float64()), 's "x"': pa.array(texts, "string")})
    )
    sink.flush()
    got = [json.loads(line) for line in raw.getvalue().split(b"\n")[:-1]]
    finite = [n if n is not None and math.isfinite(n) else None for n in numbers]
    assert [row['s "x"'] for row in got] == texts
    assert [row["f"] for row in got] == finite
