"""Avro messages, made by fastavro, become rows; broken ones become bad rows."""

from __future__ import annotations

import datetime as dt
import json
import random
import struct
import time
import uuid
from decimal import Decimal

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.io.kafka.schemas.avro import AvroReader, SchemaTextError, parse_avro
from shoal.io.kafka.schemas.cursor import Cursor, padded
from shoal.io.kafka.schemas.payloads import zigzag
from tests.io.kafka.schemas.world import Memory, avro, framed, record

TREE = record(("zip", "string"), ("inner", ["null", "T"]), name="T")
EVERYTHING = record(
    ("age", ["null", "int"]),
    ("sex", {"type": "enum", "name": "S", "symbols": ["F", "M"]}),
    ("tags", {"type": "array", "items": ["null", "string"]}),
    ("scores", {"type": "map", "values": "double"}),
    ("address", ["null", TREE]),
    ("born", {"type": "int", "logicalType": "date"}),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ("exactly", {"type": "long", "logicalType": "timestamp-micros"}),
    ("wall", {"type": "long", "logicalType": "local-timestamp-millis"}),
    ("clock", {"type": "int", "logicalType": "time-millis"}),
    ("fee", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
    ("dose", {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal",
              "precision": 18, "scale": 3}),
    ("id", {"type": "string", "logicalType": "uuid"}),
    ("weight", "double"),
    ("height", ["float", "null"]),
    ("is_new", "boolean"),
    ("raw", "bytes"),
)  # fmt: skip
NAMES = [field["name"] for field in EVERYTHING["fields"]]
PLAIN = [name for name in NAMES if name not in ("tags", "scores", "address")]
UTC = dt.UTC


def somebody(draw: random.Random) -> dict:
    at = dt.datetime(2026, 1, 1, tzinfo=UTC) + dt.timedelta(milliseconds=draw.randrange(10**12))
    nested = {"zip": str(draw.randrange(99999)), "inner": {"zip": "é", "inner": None}}
    return {
        "age": draw.choice([None, draw.randrange(-5, 10**6)]),
        "sex": draw.choice("FM"),
        "tags": [draw.choice([None, "a" * draw.randrange(200)]) for _ in range(draw.randrange(4))],
        "scores": {str(i): draw.random() for i in range(draw.randrange(3))},
        "address": draw.choice([None, nested]),
        "born": dt.date(1900, 1, 1) + dt.timedelta(draw.randrange(60000)),
        "at": at,
        "exactly": at + dt.timedelta(microseconds=7),
        "wall": at.replace(tzinfo=None),
        "clock": dt.time(draw.randrange(24), 59, 1, 7000),
        "fee": Decimal(draw.randrange(-(10**9), 10**9)) / 100,
        "dose": Decimal(draw.randrange(-(10**9), 10**9)) / 1000,
        "id": uuid.UUID(int=draw.getrandbits(128)),
        "weight": draw.random(),
        "height": draw.choice([None, 1.5]),
        "is_new": draw.random() < 0.5,
        "raw": bytes(draw.randrange(3)),
    }


def test_every_type_is_read_as_what_it_is():
    memory, draw = Memory(), random.Random(1)
    number = memory.add(EVERYTHING)
    people = [somebody(draw) for _ in range(500)]
    paths = {"zip": "address.zip", "inner": "address.inner.zip", "again": "age"}
    values = memory.values([*PLAIN, *paths], paths)
    rows = values.read([avro(number, EVERYTHING, person) for person in people], 7)
    assert rows.rows.tolist() == list(range(7, 507))
    assert not rows.bad
    for person, row in zip(people, rows.batch.to_pylist(), strict=True):
        address = person["address"]
        expected = {name: person[name] for name in PLAIN} | {"id": str(person["id"])}
        expected |= {
            "zip": address and address["zip"], "inner": address and "é", "again": person["age"],
        }  # fmt: skip
        assert row == expected


@pytest.fixture(scope="module")
def whole():
    memory = Memory()
    number = memory.add(EVERYTHING)
    message = avro(number, EVERYTHING, somebody(random.Random(3)))
    return memory.values([*PLAIN, "zip"], {"zip": "address.zip"}), message


def test_each_truncated_message_is_one_bad_row(whole):
    values, message = whole
    cut = [message[:length] for length in range(len(message))]
    rows = values.read([*cut, message, message + b"\x00"], 0)
    assert rows.rows.tolist() == [len(message)]
    assert [row.raw for row in rows.bad] == [*cut, message + b"\x00"]
    assert [row.reason for row in rows.bad][:5] == [
        "an empty message", *["shorter than a mark and the id of a schema"] * 4
    ]  # fmt: skip
    assert {row.reason for row in rows.bad[5:]} == {
        "its bytes don't fit its schema: it is truncated or damaged"
    }


@given(st.data())
def test_damaged_messages_never_touch_their_neighbours(whole, data):
    values, message = whole
    damaged = bytearray(message)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(5, len(message) - 1))] = data.draw(st.integers(0, 255))
    rows = values.read([message, bytes(damaged), message], 0)
    assert rows.n_rows == 3
    assert {0, 2} <= set(rows.rows.tolist())
    whole_row = values.read([message], 0).batch.to_pylist()
    found = dict(zip(rows.rows.tolist(), rows.batch.to_pylist(), strict=True))
    assert [found[0]] == [found[2]] == whole_row


@pytest.fixture(scope="module")
def longs():
    memory, schema = Memory(), record(("n", "long"))
    return memory.values(["n"]), memory.add(schema), schema


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_all_long_integers(longs, numbers):
    values, number, schema = longs
    rows = values.read([avro(number, schema, {"n": n}) for n in numbers], 0)
    assert rows.batch["n"].to_pylist() == numbers


def test_numbers_and_texts_that_cant_be_are_bad_rows():
    memory = Memory()
    fee = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}
    schema = record(
        ("at", {"type": "long", "logicalType": "timestamp-millis"}),
        ("fee", fee),
        ("word", "string"),
    )
    number = memory.add(schema)
    zero, one, word = b"\x00", b"\x02\x01", b"\x02A"
    most = (10**38 - 1).to_bytes(16, "big", signed=True)
    messages = [
        zero + one + word,
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + one + word,  # 292 million years
        zero + b"\x20" + b"\x7f" * 16 + word,  # more than 38 digits
        zero + b"\x22" + b"\x00" * 17 + word,
        zero + b"\x00" + word,  # no number at all
        zero + one + b"\x02\xff",  # no UTF-8
        zero + b"\x20" + most + word,
        b"\x80" * 11 + one + word,
    ]
    rows = memory.values(["at", "fee", "word"]).read([framed(number, m) for m in messages], 0)
    assert rows.rows.tolist() == [0, 6]
    assert [row.row for row in rows.bad] == [1, 2, 3, 4, 5, 7]
    assert rows.bad[4].reason == "broken UTF-8 in column word"
    assert rows.batch["fee"].to_pylist() == [Decimal(1), Decimal(10**38 - 1)]


def test_what_is_nested_too_deeply_or_too_long_is_a_bad_row():
    memory = Memory()
    schema = record(
        ("n", "int"), ("tree", ["null", TREE]), ("nothing", {"type": "array", "items": "null"}),
        ("many", {"type": "array", "items": "T"}),
    )  # fmt: skip
    number = memory.add(schema)
    deep = b"\x02" + b"\x02" + b"\x00\x02" * 5000
    items = struct.Struct(">bI").pack(0, number)
    plain = avro(number, schema, {"n": 1, "tree": None, "nothing": [None] * 9, "many": []})
    a_trillion = items + b"\x02\x00" + b"\x80\x80\x80\x80\x80\x40\x00" + b"\x00"
    too_many = items + b"\x02\x00\x00" + b"\x80\x80\x80\x80\x80\x40" + b"\x00\x00" * 50
    rows = memory.values(["n"]).read([items + deep, plain, a_trillion, too_many], 0)
    # Items without bytes can be skipped, however many there are.
    assert rows.rows.tolist() == [1, 2]
    assert rows.batch["n"].to_pylist() == [1, 1]


def test_blocks_with_their_size_are_skipped():
    memory, schema = Memory(), record(("tags", {"type": "array", "items": "string"}), ("n", "int"))
    number = memory.add(schema)
    blocks = b"\x03\x08" + b"\x02a\x02b" + b"\x02\x02c" + b"\x00"
    rows = memory.values(["n"]).read([framed(number, blocks + b"\x0e")], 0)
    assert rows.batch.to_pylist() == [{"n": 7}]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "isn't JSON"),
        ("[" * 5000, "isn't JSON"),
        ('{"type": "record", "name": "1", "fields": []}', "without a valid name"),
        ('{"type": "record", "name": "A"}', "without fields"),
        ('{"type": "array", "items": "B"}', "uses type 'B', which it doesn't define"),
        ('{"type": "enum", "name": "E"}', "without symbols"),
        ('{"type": "fixed", "name": "E"}', "without a size"),
        ('["null", {"type": "fixed", "name": "E", "size": 1}, {"type": "fixed", "name": "E"}]',
         "defines E twice"),
        ("7", "neither a name nor an object"),
        (f"{'[' * 500}7{']' * 500}", "nested too deeply"),
        ('{"type": "enum", "name": "E", "symbols": ["\\ud800"]}', "isn't text"),
    ],
)  # fmt: skip
def test_what_isnt_a_schema(text, why):
    with pytest.raises(SchemaTextError, match=why):
        parse_avro(text)


def test_names_in_name_spaces_are_found_as_avro_says():
    inner = {"type": "record", "name": "b.C", "fields": [{"name": "x", "type": "int"}]}
    schema = {
        "type": "record", "name": "A", "namespace": "a",
        "fields": [{"name": "c", "type": inner}, {"name": "d", "type": "b.C"},
                   {"name": "self", "type": ["null", "A"]}],
    }  # fmt: skip
    fastavro.parse_schema(schema)
    memory = Memory()
    number = memory.add(schema)
    row = {"c": {"x": 1}, "d": {"x": 2}, "self": {"c": {"x": 3}, "d": {"x": 4}, "self": None}}
    values = memory.values(["a", "b", "c"], {"a": "c.x", "b": "d.x", "c": "self.d.x"})
    rows = values.read([avro(number, schema, row)], 0)
    assert rows.batch.to_pylist() == [{"a": 1, "b": 2, "c": 4}]


def test_a_truncated_message_of_a_recursive_type_is_one_bad_row():
    """What is behind its end says that there is more, on both sides, for ever."""
    tree = {
        "type": "record", "name": "T",
        "fields": [{"name": "l", "type": ["T", "null"]}, {"name": "r", "type": ["T", "null"]}],
    }  # fmt: skip
    reader = AvroReader(parse_avro(json.dumps(tree)), {})
    data = b"\x00\x00" + b"\x02\x02"
    cursor = Cursor(padded(data), np.array([0, 2]), np.array([1, 4]))
    reader.read(cursor)
    assert cursor.broken.tolist() == [True, False]


def test_items_without_a_byte_are_passed_over_however_many():
    schema = record(("gaps", {"type": "array", "items": "null"}), ("n", "int"))
    memory = Memory()
    number = memory.add(schema)
    # Each block has as many items as there are bytes in the message.
    block = zigzag(500_000)
    message = framed(number, block * (500_000 // len(block)) + b"\x00" + zigzag(7))
    begin = time.process_time()
    rows = memory.values(["n"]).read([message], 0)
    assert time.process_time() - begin < 5
    assert rows.batch.to_pylist() == [{"n": 7}]


@pytest.mark.parametrize(
    "around", [lambda kind: kind, lambda kind: {"type": "array", "items": kind}]
)
def test_types_without_a_byte_are_passed_over_however_often_they_contain_each_other(around):
    """Forty types, each of which has the one before it twice: 2 ** 40 values without a byte."""
    kind: object = record(("x", "null"), ("y", {"type": "fixed", "name": "F", "size": 0}), name="D")
    for place in range(40):
        before = kind["name"]
        kind = record(("l", kind), ("r", before), name=f"D{place}")
    memory = Memory()
    number = memory.add(record(("all", around(kind)), ("n", "int")))
    empty = b"" if around(kind) is kind else zigzag(3) + b"\x00"
    rows = memory.values(["n"]).read([framed(number, empty + zigzag(7))], 0)
    assert rows.batch.to_pylist() == [{"n": 7}]


@pytest.mark.parametrize("logical", [["date"], {"date": 1}, 7, None])
def test_a_logical_type_that_isnt_a_name_is_ignored(logical):
    kind = parse_avro(json.dumps({"type": "int", "logicalType": logical}))
    assert (kind.kind, kind.logical) == ("int", None)


def test_a_scale_that_isnt_a_number_is_ignored():
    given = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": True}
    assert parse_avro(json.dumps(given)).logical is None
