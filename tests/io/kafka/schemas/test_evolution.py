"""Schemas that change while a job runs, that are missing, or that are of another kind."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from confluent_kafka.schema_registry import SchemaReference

from shoal.errors import CheckpointError
from shoal.io.kafka.schemas import values as module
from tests.io.kafka.schemas.world import Memory, avro, framed, record

OLD = record(("age", "int"), ("sex", "string"))
NEW = record(("name", "string"), ("age", ["null", "long"]), ("sex", "string"), ("x", "bytes"))
REMOVED = record(("sex", "string"))
RETYPED = record(("age", "string"), ("sex", "string"))


def test_new_fields_are_dropped_and_wider_numbers_are_read():
    memory = Memory()
    old, new = memory.add(OLD), memory.add(NEW)
    messages = [
        avro(old, OLD, {"age": 1, "sex": "M"}),
        avro(new, NEW, {"name": "Ann", "age": 2**40, "sex": "F", "x": b"x"}),
        avro(old, OLD, {"age": 3, "sex": "M"}),
        avro(new, NEW, {"name": "Bob", "age": None, "sex": "F", "x": b""}),
    ]
    rows = memory.values(["age", "sex"]).read(messages, 0)
    assert rows.batch["age"].to_pylist() == [1, 2**40, 3, None]
    assert rows.batch["sex"].to_pylist() == ["M", "F", "M", "F"]


def test_a_removed_or_retyped_field_makes_bad_rows_that_say_so():
    memory = Memory()
    old, removed, retyped = (memory.add(schema) for schema in (OLD, REMOVED, RETYPED))
    messages = [
        avro(old, OLD, {"age": 1, "sex": "M"}),
        avro(removed, REMOVED, {"sex": "M"}),
        avro(retyped, RETYPED, {"age": "1", "sex": "M"}),
    ]
    rows = memory.values(["age", "sex"]).read(messages, 0)
    assert rows.rows.tolist() == [0]
    assert [row.reason for row in rows.bad] == [
        f"schema {removed} has no field age (column age)",
        f"schema {retyped} has column age as text, and it was integer before",
    ]


def test_what_a_column_is_is_kept_over_a_restart():
    memory = Memory()
    old, retyped = memory.add(OLD), memory.add(RETYPED)
    values = memory.values(["age", "sex"])
    values.read([avro(old, OLD, {"age": 1, "sex": "M"})], 0)
    resumed = memory.values(["age", "sex"])
    resumed.restore(values.kinds)
    rows = resumed.read([avro(retyped, RETYPED, {"age": "1", "sex": "M"})], 1)
    assert [row.row for row in rows.bad] == [1]
    assert rows.batch.schema == values.read([], 0).batch.schema


def test_whole_numbers_are_read_into_a_column_of_fractions_and_not_the_other_way():
    memory = Memory()
    schemas = [record(("x", "double")), record(("x", "int"))]
    numbers = [memory.add(schema) for schema in schemas]
    pairs = list(zip(numbers, schemas, strict=True))
    messages = [avro(number, schema, {"x": 2}) for number, schema in pairs]
    assert memory.values(["x"]).read(messages, 0).batch["x"].to_pylist() == [2.0, 2.0]
    assert len(memory.values(["x"]).read(messages[::-1], 0).bad) == 1


@pytest.mark.parametrize(
    ("schema", "kind", "reason"),
    [
        (record(("age", ["int", "string"])), "AVRO", "field age may be of 2 types (column age)"),
        (record(("age", {"type": "array", "items": "int"})), "AVRO",
         "field age isn't a plain value (column age)"),
        ('"int"', "AVRO", "isn't a record"),
        ('{"type": "record"}', "AVRO", "has a record without a valid name"),
        ("message A { optional int32 age = 1; }", "PROTOBUF", "is of format protobuf"),
    ],
)  # fmt: skip
def test_schemas_that_cant_be_read_make_bad_rows(schema, kind, reason):
    memory = Memory()
    number = memory.add(schema, kind)
    rows = memory.values(["age"]).read([framed(number, b"\x02")], 5)
    assert [(row.row, row.reason) for row in rows.bad] == [(5, f"schema {number} {reason}")]
    assert rows.batch.num_rows == 0


def test_what_has_no_mark_or_an_unknown_schema_is_a_bad_row():
    memory = Memory()
    number = memory.add(OLD)
    good = avro(number, OLD, {"age": 1, "sex": "M"})
    rows = memory.values(["age"]).read([b'{"age": 1}', good, framed(99, b""), None, good], 0)
    assert rows.rows.tolist() == [1, 4]
    assert [row.reason for row in rows.bad] == [
        "its first byte isn't 0, so that it has no id of a schema",
        "schema 99 isn't in the registry",
        "an empty message",
    ]
    assert rows.lost == (99,)


def test_a_replay_finds_no_schema_that_wasnt_there_the_first_time(monkeypatch):
    memory = Memory()
    values = memory.values(["age"])
    message = avro(1, OLD, {"age": 1, "sex": "M"})
    assert values.read([message], 0).lost == (1,)
    number = memory.add(OLD)
    assert number == 1
    # It isn't asked for again at once, and a replay doesn't ask at all.
    assert values.read([message], 1).lost == (1,)
    monkeypatch.setattr(module, "ASK_AGAIN_SECONDS", 0.0)
    assert values.read([message], 2).rows.tolist() == [2]
    resumed = memory.values(["age"])
    again = resumed.read([message], 0, lost=[1])
    assert [row.reason for row in again.bad] == ["schema 1 isn't in the registry"]
    assert resumed.read([message], 2, lost=[]).rows.tolist() == [2]


def test_a_schema_that_is_gone_at_a_replay_ends_it():
    with pytest.raises(CheckpointError, match="with schema 1, which isn't in the registry any"):
        Memory().values(["age"]).read([avro(1, OLD, {"age": 1, "sex": "M"})], 0, lost=[])


def test_schemas_that_refer_to_others():
    memory = Memory()
    zip_code = record(("zip", "string"), name="Zip")
    address = record(("zip", "Zip"), name="Address")
    person = record(("home", "Address"))
    memory.add(zip_code, subject="zip")
    refers = [SchemaReference("Zip", "zip", 1)]
    memory.add(address, subject="address", references=refers)
    refers = [SchemaReference("Address", "address", 1)]
    number = memory.add(person, references=refers)
    values = memory.values(["zip"], {"zip": "home.zip.zip"})
    assert values.read([framed(number, b"\x06abc")], 0).batch.to_pylist() == [{"zip": "abc"}]


def test_only_so_many_schemas_are_kept(monkeypatch):
    monkeypatch.setattr(module, "MOST_SCHEMAS", 3)
    monkeypatch.setattr(module, "MOST_MISSES", 3)
    memory = Memory()
    values = memory.values(["age"])
    for place in range(10):
        schema = record(("age", "int"), (f"x{place}", "int"))
        number = memory.add(schema)
        assert values.read([framed(number, b"\x02\x02"), framed(1000 + place, b"")], 0).n_rows == 2
    assert len(values._readers) == len(values._asked) == 3


def test_many_unknown_ids_cost_few_requests(monkeypatch, caplog):
    caplog.set_level(logging.WARNING, "shoal")
    monkeypatch.setattr(module, "MOST_MISSES", 5)
    now = [1000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    memory, asked = Memory(), []
    number = memory.add(OLD)
    good = avro(number, OLD, {"age": 1, "sex": "M"})
    whole = memory.registry.schema
    monkeypatch.setattr(memory.registry, "schema", lambda n: asked.append(n) or whole(n))
    values = memory.values(["age"])
    strangers = [framed(place, b"") for place in range(100, 200)]
    rows = values.read([good, *strangers, good], 0)
    # The rows of known schemas are read, and each other message is one bad row.
    assert rows.rows.tolist() == [0, 101]
    assert [row.row for row in rows.bad] == list(range(1, 101))
    assert rows.lost == tuple(range(100, 200))
    assert asked == [number, *range(100, 105)]
    assert values.read([*strangers, good], 102).rows.tolist() == [202]
    assert asked == [number, *range(100, 105)]
    assert len(caplog.records) == 1
    assert "more than 5 different ids of schemas that aren't in the registry" in caplog.text
    now[0] += module.ASK_AGAIN_SECONDS
    values.read(strangers, 203)
    assert asked[6:] == list(range(100, 105))
    now[0] += module.ASK_AGAIN_SECONDS
    # Later a new one is asked for, and found.
    newer = memory.add(record(("age", "int"), ("more", "int")))
    assert values.read([framed(newer, b"\x02\x02")], 303).rows.tolist() == [303]
    # A replay is told which ones weren't there, and asks for none of them.
    again = memory.values(["age"]).read([good, *strangers, good], 0, lost=rows.lost)
    assert [(row.row, row.reason) for row in again.bad] == [
        (row.row, row.reason) for row in rows.bad
    ]
