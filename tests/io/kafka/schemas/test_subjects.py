"""What a subject of a registry says about columns."""

from __future__ import annotations

import json
import time

import pytest

from shoal.errors import JobError, ResourceError
from shoal.io.kafka.schemas.subjects import MOST_COLUMNS, describe_subject
from tests.io.kafka.schemas.world import Memory, record


def described(text, kind="AVRO"):
    memory = Memory()
    memory.add(text, kind)
    return describe_subject(memory.registry, "people-value")


def kinds(found) -> dict[str, tuple[str, bool]]:
    return {name: (leaf.kind, leaf.is_optional) for name, leaf in found.leaves.items()}


def test_avro_gives_names_types_and_what_may_be_missing():
    sex = {"type": "enum", "name": "Sex", "symbols": ["f", "m"]}
    home = record(("zip", "string"), ("at", "double"), name="H")
    found = described(
        record(
            ("id", "string"),
            ("born", {"type": "int", "logicalType": "date"}),
            ("cost", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
            ("seen", ["null", {"type": "long", "logicalType": "timestamp-millis"}]),
            ("home", ["null", home]),
            ("work", "H"),
            ("sex", sex),
            ("tags", {"type": "array", "items": "string"}),
            ("either", ["int", "string"]),
        )
    )
    assert kinds(found) == {
        "id": ("text", False), "born": ("date", False), "cost": ("decimal of scale 2", False),
        "seen": ("timestamp", True), "home_zip": ("text", True), "home_at": ("number", True),
        "work_zip": ("text", False), "work_at": ("number", False), "sex": ("text", False),
    }  # fmt: skip
    assert found.leaves["sex"].symbols == ("f", "m")
    assert found.format == "avro"
    assert found.fields == {
        "home_zip": "home.zip", "home_at": "home.at", "work_zip": "work.zip", "work_at": "work.at"
    }  # fmt: skip
    assert not found.is_envelope


def test_protobuf_gives_those_of_its_first_message():
    text = """
    syntax = "proto3";
    import "google/protobuf/timestamp.proto";
    message Person {
      string id = 1; optional int32 age = 2; Home home = 3; repeated string tags = 4;
      google.protobuf.Timestamp seen = 5; google.protobuf.Int64Value pay = 6; Person boss = 7;
      enum Sex { X = 0; F = 1; } Sex sex = 8;
    }
    message Home { string zip = 1; Person owner = 2; }
    """
    found = described(text, "PROTOBUF")
    assert found.format == "protobuf"
    assert kinds(found) == {
        "id": ("text", False), "age": ("integer", True), "zip": ("text", True),
        "seen": ("timestamp", True), "pay": ("integer", True), "sex": ("text", False),
    }  # fmt: skip
    assert found.fields == {"zip": "home.zip"}


def test_an_envelope_gives_the_columns_of_its_row():
    row = record(("id", "int"), ("name", ["null", "string"]), name="Value")
    found = described(record(("before", ["null", row]), ("after", ["null", "Value"]),
                             ("op", "string"), ("ts_ms", ["null", "long"])))  # fmt: skip
    assert found.is_envelope
    assert list(found.leaves) == ["id", "name"]
    assert found.fields == {}


def test_types_that_nest_each_other_end_soon():
    itself = record(("next", ["null", "P"]), ("n", "int"))
    assert list(described(itself).leaves) == ["n"]
    # Each type has twice the fields of the one inside: two to the power of thirty paths.
    deep: object = record(("n", "int"), name="T0")
    for level in range(1, 31):
        deep = record(("a", deep), ("b", f"T{level - 1}"), name=f"T{level}")
    begin = time.perf_counter()
    found = described(deep)
    assert len(found.leaves) == MOST_COLUMNS
    assert time.perf_counter() - begin < 10


def test_types_that_nest_each_other_without_a_plain_value_end_soon():
    # Two to the power of sixty paths, and none of them ends with a value.
    deep: object = record(("tags", {"type": "array", "items": "int"}), name="T0")
    for level in range(1, 60):
        deep = record(("a", deep), ("b", f"T{level - 1}"), name=f"T{level}")
    proto = 'syntax = "proto3"; message T60 { repeated int32 tags = 1; }'
    for level in range(59, -1, -1):
        inner = f"T{level + 1}"
        proto = proto.replace(";", f"; message T{level} {{ {inner} a = 1; {inner} b = 2; }}", 1)
    begin = time.perf_counter()
    for text, kind in ((deep, "AVRO"), (proto, "PROTOBUF")):
        with pytest.raises(ResourceError, match="has no field that can be a column"):
            described(text, kind)
    assert time.perf_counter() - begin < 10


def test_as_many_fields_as_there_are_looks_are_looked_at(monkeypatch):
    inner = record(("x", "int"), ("y", "int"), name="I")
    text = record(("a", "int"), ("b", inner), ("c", "I"), ("d", "int"))
    proto = (
        'syntax = "proto3"; message P { int32 a = 1; I b = 2; I c = 3; int32 d = 4; }'
        "message I { int32 x = 1; int32 y = 2; }"
    )
    for module in ("avro", "protobuf"):
        monkeypatch.setattr(f"shoal.io.kafka.schemas.{module}.MOST_LOOKS", 5)
    for found in (described(text), described(proto, "PROTOBUF")):
        assert list(found.paths.values()) == ["a", "b.x", "b.y"]


def test_an_unknown_subject_is_named_with_what_is_near():
    memory = Memory()
    memory.add(record(("n", "int")))
    with pytest.raises(JobError) as error:
        describe_subject(memory.registry, "people-valu")
    assert str(error.value) == (
        "--schema: subject people-valu isn't in schema registry http://127.0.0.1:1. "
        "Did you mean 'people-value'?"
    )


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        (json.dumps({"type": "object"}), "JSON", "is of format json. Those that can be read are"),
        ('"string"', "AVRO", "its schema can't be read: it isn't a record."),
        (record(("tags", {"type": "array", "items": "int"})), "AVRO", "has no field that can be a"),
        ('syntax = "proto3";', "PROTOBUF", "its schema can't be read: it has no message type."),
    ],
)
def test_schemas_that_tell_no_columns_are_refused(text, kind, why):
    with pytest.raises(ResourceError) as error:
        described(text, kind)
    assert "subject people-value" in str(error.value)
    assert why in str(error.value)
