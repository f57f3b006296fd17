import json

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import JobError
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.values import values_for


def reader(kind, asked, **keys):
    return values_for(KafkaSettings("localhost:9092", "people", format=kind, **keys), asked)


def as_tuples(rows):
    good = [
        (int(number), row) for number, row in zip(rows.rows, rows.batch.to_pylist(), strict=True)
    ]
    return good, [(row.row, row.reason, row.raw) for row in rows.bad]


def arrow(columns):
    memory = pa.BufferOutputStream()
    batch = pa.record_batch(columns)
    with pa.ipc.new_stream(memory, batch.schema) as writer:
        writer.write_batch(batch)
    return memory.getvalue().to_pybytes()


# -- JSON ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"a": 1}', [1]),
        (b'{"a": 1}\n{"a": 2}\n', [1, 2]),
        (b'\r\n{"a": 1}\r\n\r\n{"a": 2}', [1, 2]),
        (b'[{"a": 1}, {"a": 2}]', [1, 2]),
        (b'[\n  {"a": 1}\n]\n', [1]),
        (b'{\n  "a": 1,\n  "b": {}\n}', [1]),
        (b"[]", []),
    ],
)
def test_shapes_of_json(value, expected):
    rows = reader("json", ["a"]).read([b'{"a": 0}', value, b'{"a": 9}'], 5)
    assert rows.batch["a"].to_pylist() == [0, *expected, 9]
    assert rows.rows.tolist() == list(range(5, 7 + len(expected)))
    assert rows.bad == []


@pytest.mark.parametrize(
    ("value", "bad"),
    [
        (None, [(1, "an empty message", b"")]),
        (b"", [(1, "an empty message", b"")]),
        (b" \n", [(1, "an empty message", b" \n")]),
        (b"nonsense", [(1, "not a JSON object", b"nonsense")]),
        (b"many\nlines\nof it", [(1, "not a JSON object", b"many\nlines\nof it")]),
        (b'{"a": {}', [(1, "not a JSON object", b'{"a": {}')]),
        (b'{"a": 1} {"a": 2}', [(1, "not a JSON object", b'{"a": 1} {"a": 2}')]),
        (b"[" * 99_999, [(1, "not a JSON object", b"[" * 99_999)]),
        (b'{"a": [1]}', [(1, "column a isn't a plain value", b'{"a": [1]}')]),
        (b'{"a": "\xff"}', [(1, "broken UTF-8", b'{"a": "\xff"}')]),
    ],
)
def test_a_json_message_that_cant_be_read_costs_its_own_row_only(value, bad):
    good, found = as_tuples(reader("json", ["a"]).read([b'{"a": 0}', value, b'{"a": 9}'], 0))
    assert good == [(0, {"a": 0}), (2, {"a": 9})]
    assert found == bad


def test_bad_lines_among_good_ones():
    messages = [b'{"a": 1}\n[]\n{"a": 2}', None, b'x\n{"a": 3}', None]
    good, bad = as_tuples(reader("json", ["a"]).read(messages, 10))
    assert good == [(10, {"a": 1}), (12, {"a": 2}), (15, {"a": 3})]
    assert [(row, reason) for row, reason, _ in bad] == [
        (11, "not a JSON object"),
        (13, "an empty message"),
        (14, "not a JSON object"),
        (16, "an empty message"),
    ]


def test_types_are_learned_and_can_be_given():
    first, second = reader("json", ["a"]), reader("json", ["a"])
    first.read([b'{"a": 1}', b'{"a": 1.5}'], 0)
    second.restore(first.kinds)
    assert second.read([b'{"a": 2}'], 2).batch.schema.types == [pa.float64()]
    assert second.read([None], 3).batch.schema.types == [pa.float64()]


scraps = st.lists(
    st.sampled_from([b'{"a": "x"}', b'{"a": "', b'"}', b"{", b"}", b"[", b"]", b"\n", b"\r", b" "]),
    max_size=6,
).map(b"".join)


@settings(deadline=None)
@given(st.lists(st.none() | scraps, max_size=6))
def test_json_messages_dont_touch_each_other(messages):
    columns = ["a"]
    together = as_tuples(reader("json", columns).read(messages, 0))
    separately, n_rows = ([], []), 0
    for message in messages:
        rows = reader("json", columns).read([message], n_rows)
        n_rows += rows.n_rows
        for found, new in zip(separately, as_tuples(rows), strict=True):
            found += new
    assert together == separately


# -- CSV ----------------------------------------------------------------------------------------


def test_csv_with_fields_named():
    values = reader("csv", ["b"], columns=("a", "b"))
    assert values.names == ("a", "b")
    good, bad = as_tuples(values.read([b"1,x", b'2,"y\nz"\n3\n\n4,w\r\n', b"  ", b"5,v"], 0))
    assert good == [(0, {"b": "x"}), (1, {"b": "y\nz"}), (3, {"b": "w"}), (5, {"b": "v"})]
    assert bad == [(2, "1 field where 2 are expected", b"3"), (4, "an empty message", b"  ")]


def test_csv_with_fields_that_arent_there():
    with pytest.raises(JobError, match="Did you mean 'age'"):
        reader("csv", ["agee"], columns=("age", "sex"))


def test_a_quote_left_open_ends_with_its_message():
    values = reader("csv", ["a"], columns=("a", "b"))
    good, bad = as_tuples(values.read([b'1,x\n2,"y\n3,z', b"4,w", b'5,"v"'], 0))
    assert good == [(0, {"a": "1"}), (2, {"a": "3"}), (3, {"a": "4"}), (4, {"a": "5"})]
    assert bad == [(1, "a quote is opened and never closed", b'2,"y')]


def test_csv_headers_may_differ_from_message_to_message():
    values = reader("csv", ["a"])
    messages = [b"a,b\n1,2\n", b"a,b\n3,4", b"b,a\n5,6", b"\na,b", b"a,b\n7,8", b"a,bc\n9,0"]
    good, bad = as_tuples(values.read(messages, 0))
    assert [row["a"] for _, row in good] == ["1", "3", "6", "7", "9"]
    assert bad == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"b,c\n1,2", "its header has no column a"),
        (b"a,b,b\n1,2,3", "two columns of its header have the same name"),
        (b"a,\xff\n1,2", "its first line isn't a header in UTF-8"),
        (None, "an empty message"),
    ],
)
def test_a_csv_message_without_a_good_header(value, reason):
    good, bad = as_tuples(reader("csv", ["a"]).read([b"a\n1", value, b"a\n2"], 0))
    assert good == [(0, {"a": "1"}), (2, {"a": "2"})]
    assert bad == [(1, reason, value or b"")]


@settings(deadline=None)
@given(st.lists(st.text('a,"\n\r é', max_size=8).map(str.encode) | st.just(b'b\xff,"'), max_size=6))
def test_csv_messages_dont_touch_each_other(messages):
    together = as_tuples(reader("csv", ["a"], columns=("a", "b")).read(messages, 0))
    separately, n_rows = ([], []), 0
    for message in messages:
        rows = reader("csv", ["a"], columns=("a", "b")).read([message], n_rows)
        n_rows += rows.n_rows
        for found, new in zip(separately, as_tuples(rows), strict=True):
            found += new
    assert together == separately


# -- Arrow --------------------------------------------------------------------------------------


def test_arrow_types_meet():
    words = pa.array(["u", "v", "u"]).dictionary_encode()
    messages = [
        arrow({"a": pa.array([1]), "b": pa.array(["x"])}),
        arrow({"b": words, "a": pa.array([0.5, 1.5, None]), "c": pa.array([[1], [2], []])}),
        arrow({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())}),
    ]
    rows = reader("arrow", ["a", "b"]).read(messages, 3)
    assert rows.batch.schema.types == [pa.float64(), pa.string()]
    assert rows.batch.to_pydict() == {"a": [1.0, 0.5, 1.5, None], "b": ["x", "u", "v", "u"]}
    assert rows.rows.tolist() == [3, 4, 5, 6]


def test_arrow_types_that_cant_meet_become_text():
    messages = [arrow({"a": pa.array([1])}), arrow({"a": pa.array(["x"])})]
    assert reader("arrow", ["a"]).read(messages, 0).batch.to_pydict() == {"a": ["1", "x"]}


def test_a_stream_without_batches_has_no_rows():
    memory = pa.BufferOutputStream()
    kinds = pa.schema([("a", pa.dictionary(pa.int8(), pa.string()))])
    pa.ipc.new_stream(memory, kinds).close()
    rows = reader("arrow", ["a"]).read([memory.getvalue().to_pybytes()], 0)
    assert (rows.n_rows, rows.batch.schema.types) == (0, [pa.string()])


def damaged_inside():
    """A stream whose text has offsets that run backwards in the middle."""
    value = arrow({"a": pa.array(["some", "words", "here"])})
    offsets = np.array([0, 4, 9, 13], np.int32).tobytes()
    assert value.count(offsets) == 1
    return value.replace(offsets, np.array([0, 9, 4, 13], np.int32).tobytes())


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "an empty message"),
        (b"nonsense", "not a whole Arrow stream"),
        (arrow({"a": pa.array(["x"])})[:-30], "not a whole Arrow stream"),
        (arrow({"b": pa.array([1])}), "it has no column a"),
        (arrow({"a": pa.array([[1]])}), "column a holds nested values"),
        (damaged_inside(), "not a whole Arrow stream"),
    ],
)
def test_an_arrow_message_that_cant_be_read(value, reason):
    whole = [arrow({"a": pa.array([word])}) for word in ("x", "y")]
    good, bad = as_tuples(reader("arrow", ["a"]).read([whole[0], value, whole[1]], 0))
    assert good == [(0, {"a": "x"}), (2, {"a": "y"})]
    assert bad == [(1, reason, value or b"")]


def test_two_arrow_columns_of_one_name():
    memory = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pa.ipc.new_stream(memory, batch.schema) as writer:
        writer.write_batch(batch)
    rows = reader("arrow", ["a"]).read([memory.getvalue().to_pybytes()], 0)
    assert [row.reason for row in rows.bad] == ["two of its columns have the same name"]


def test_broken_text_in_arrow_is_a_bad_row():
    broken = pa.array([b"x", b"\xff", b"z"]).view(pa.string())
    good, bad = as_tuples(reader("arrow", ["a"]).read([None, arrow({"a": broken})], 0))
    assert good == [(1, {"a": "x"}), (3, {"a": "z"})]
    assert [(row, reason) for row, reason, _ in bad] == [
        (0, "an empty message"),
        (2, "broken UTF-8 in column a"),
    ]


def test_an_arrow_chunk_of_bad_messages_only():
    rows = reader("arrow", ["a"]).read([b"x"], 0)
    assert (rows.batch.num_rows, rows.batch.schema.names) == (0, ["a"])


def test_values_of_people_are_in_no_repr():
    rows = reader("json", ["a"]).read([json.dumps({"a": [1, "canary"]}).encode()], 0)
    assert "canary" not in repr(rows.bad)
