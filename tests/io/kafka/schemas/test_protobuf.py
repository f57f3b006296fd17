"""Protobuf messages, made by Google's library, become rows; broken ones become bad rows."""

from __future__ import annotations

import base64
import datetime as dt
import random
import time

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from google.protobuf import wrappers_pb2 as _wrappers
from hypothesis import given
from hypothesis import strategies as st

from shoal.io.kafka.schemas.avro import SchemaTextError
from shoal.io.kafka.schemas.payloads import varint, zigzag
from shoal.io.kafka.schemas.proto_text import parse_proto
from shoal.io.kafka.schemas.protobuf import ProtobufReader, proto_paths
from tests.io.kafka.schemas.world import Memory, framed

TEXT = """
syntax = "proto3";  // a comment
package clinic.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
option java_package = "org.example";

message Other { int32 x = 1; message Deep { string word = 1; } }
/* A person; not { balanced */
message Person {
  reserved 90 to 95, 99;
  optional int32 age = 1;
  string ward = 2;
  Sex sex = 3;
  enum Sex { option allow_alias = false; UNKNOWN = 0; F = 1; M = 5 [deprecated = true]; }
  repeated string tags = 4;
  map<string, int64> scores = 5;
  Address home = 6;
  message Address { string zip = 1; optional Address next = 2; .clinic.v1.Person.Sex of = 3; }
  google.protobuf.Timestamp at = 7;
  google.protobuf.Int64Value visits = 8;
  oneof contact { string mail = 9; sint64 phone = 10; }
  double weight = 11; float height = 12; bool is_new = 13; bytes raw = 14;
  uint32 u32 = 15; uint64 u64 = 16; fixed32 f32 = 17; sfixed64 s64 = 18; fixed64 f64 = 19;
  int64 far = 1000 [json_name = "far", (custom.option) = { a: [1, 2] }];
}
"""
KINDS = {
    "int32": 5, "string": 9, "sint64": 18, "double": 1, "float": 2, "bool": 8, "bytes": 12,
    "uint32": 13, "uint64": 4, "fixed32": 7, "sfixed64": 16, "fixed64": 6, "int64": 3,
}  # fmt: skip
PLAIN = (
    ("ward", "string", 2), ("weight", "double", 11), ("height", "float", 12),
    ("is_new", "bool", 13), ("raw", "bytes", 14), ("u32", "uint32", 15), ("u64", "uint64", 16),
    ("f32", "fixed32", 17), ("s64", "sfixed64", 18), ("f64", "fixed64", 19), ("far", "int64", 1000),
)  # fmt: skip


def person_class():
    """The class of a person, in the words of Google's library."""
    assert _wrappers
    file = descriptor_pb2.FileDescriptorProto(
        name="person.proto", package="clinic.v1", syntax="proto3",
        dependency=["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"],
    )  # fmt: skip
    person = file.message_type.add(name="Person")
    sex = person.enum_type.add(name="Sex")
    for name, number in (("UNKNOWN", 0), ("F", 1), ("M", 5)):
        sex.value.add(name=name, number=number)
    address = person.nested_type.add(name="Address")
    address.field.add(name="zip", number=1, type=9, label=1)
    address.field.add(
        name="next", number=2, type=11, label=1, type_name=".clinic.v1.Person.Address"
    )
    address.field.add(name="of", number=3, type=14, label=1, type_name=".clinic.v1.Person.Sex")
    person.oneof_decl.add(name="contact")
    person.oneof_decl.add(name="_age")
    person.field.add(name="age", number=1, type=5, label=1, oneof_index=1, proto3_optional=True)
    person.field.add(name="sex", number=3, type=14, label=1, type_name=".clinic.v1.Person.Sex")
    person.field.add(name="tags", number=4, type=9, label=3)
    for name, number, kind in (
        ("home", 6, ".clinic.v1.Person.Address"), ("at", 7, ".google.protobuf.Timestamp"),
        ("visits", 8, ".google.protobuf.Int64Value"),
    ):  # fmt: skip
        person.field.add(name=name, number=number, type=11, label=1, type_name=kind)
    person.field.add(name="mail", number=9, type=9, label=1, oneof_index=0)
    person.field.add(name="phone", number=10, type=18, label=1, oneof_index=0)
    for name, kind, number in PLAIN:
        person.field.add(name=name, number=number, type=KINDS[kind], label=1)
    pool = descriptor_pool.Default()
    pool.Add(file)
    found = pool.FindMessageTypeByName("clinic.v1.Person")
    return message_factory.GetMessageClass(found)


PERSON = person_class()
#: The second message type of the schema, as Confluent's serializers write it.
SECOND = b"\x02\x02"
COLUMNS = {
    **{name: name for name, _, _ in PLAIN}, "age": "age", "sex": "sex", "zip": "home.zip",
    "of": "home.next.of", "at": "at", "visits": "visits", "mail": "mail", "phone": "phone",
}  # fmt: skip


def somebody(draw: random.Random):
    made = PERSON(
        ward=draw.choice(["", "A", "é" * 100]), sex=draw.choice([0, 1, 5]),
        weight=draw.random(), height=1.5, is_new=draw.random() < 0.5, raw=b"\x00\xff",
        u32=draw.choice([0, 2**32 - 1]), u64=2**63 - 1, f32=2**32 - 1, s64=-1, f64=7,
        far=draw.choice([0, -1, 2**40]), tags=["t"] * draw.randrange(4),
    )  # fmt: skip
    if draw.random() < 0.5:
        made.age = draw.choice([0, -1, 40])
    if draw.random() < 0.7:
        made.home.zip = draw.choice(["", "123"])
        made.home.next.of = draw.choice([0, 5])
    if draw.random() < 0.7:
        stamp = dt.datetime(1960, 1, 1, 1, 1, 1, 7) + dt.timedelta(draw.randrange(40000))
        made.at.FromDatetime(stamp)
    if draw.random() < 0.7:
        made.visits.value = draw.choice([0, 7])
    if draw.random() < 0.3:
        made.mail = draw.choice(["", "a@b"])
    elif draw.random() < 0.5:
        made.phone = draw.choice([0, -5])
    return made


def expected(person) -> dict:
    names = {0: "UNKNOWN", 1: "F", 5: "M"}
    has = person.HasField
    at = person.at.ToDatetime(dt.UTC) if has("at") else None
    return {
        **{name: getattr(person, name) for name, _, _ in PLAIN},
        "age": person.age if has("age") else None,
        "sex": names[person.sex],
        "zip": person.home.zip if has("home") else None,
        "of": names[person.home.next.of] if person.home.HasField("next") else None,
        "at": at,
        "visits": person.visits.value if has("visits") else None,
        "mail": person.mail if has("mail") else None,
        "phone": person.phone if has("phone") else None,
    }


def compiled() -> str:
    """The schema as Confluent's Python client registers it; the second type is the first here."""
    found = descriptor_pb2.FileDescriptorProto()
    PERSON.DESCRIPTOR.file.CopyToProto(found)
    found.message_type.insert(0, descriptor_pb2.DescriptorProto(name="Other"))
    return base64.b64encode(found.SerializeToString()).decode()


@pytest.fixture(scope="module", params=["text", "compiled"])
def world(request):
    memory = Memory()
    number = memory.add(TEXT if request.param == "text" else compiled(), "PROTOBUF")
    return memory.values(list(COLUMNS), COLUMNS, "protobuf"), number


def test_every_type_is_read_as_what_it_is(world):
    values, number = world
    draw = random.Random(1)
    people = [somebody(draw) for _ in range(500)]
    messages = [framed(number, SECOND + person.SerializeToString()) for person in people]
    rows = values.read(messages, 3)
    assert not rows.bad
    assert rows.rows.tolist() == list(range(3, 503))
    assert rows.batch.to_pylist() == [expected(person) for person in people]


def test_fields_in_any_order_and_many_times_the_last_one_counts(world):
    values, number = world
    one, other = PERSON(ward="A", age=1), PERSON(ward="B", f64=2)
    data = one.SerializeToString() + b"\x22\x01x" * 5000 + other.SerializeToString()
    rows = values.read([framed(number, SECOND + data)], 0)
    merged = PERSON()
    merged.ParseFromString(data)
    assert rows.batch.to_pylist() == [expected(merged)]


def test_a_message_inside_that_comes_in_parts_is_put_together(world):
    values, number = world
    draw = random.Random(3)
    contents = []
    for n_parts in range(1, 40):
        parts = [somebody(draw) for _ in range(n_parts % 4 + 1)]
        for part in parts[1:]:
            # A second contact would replace the first one.
            part.ClearField("mail")
            part.ClearField("phone")
            if draw.random() < 0.5:
                part.home.ClearField("zip")
                part.at.ClearField("seconds")
                part.visits.ClearField("value")
        contents.append(b"".join(part.SerializeToString() for part in parts))
    rows = values.read([framed(number, SECOND + data) for data in contents], 0)
    assert not rows.bad
    merged = [PERSON.FromString(data) for data in contents]
    assert rows.batch.to_pylist() == [expected(person) for person in merged]
    # One by one they are read in another way.
    alone = [
        values.read([framed(number, SECOND + data)], 0).batch.to_pylist()[0] for data in contents
    ]
    assert alone == rows.batch.to_pylist()


@pytest.mark.parametrize(
    "part",
    [
        b"\x08\x07",  # an age
        b"\x32\x02\x0a\x00",  # a home with an empty zip
        b"\x3a\x02\x08\x01",  # a time
        b"\x3a\xa0\x06" + b"\x08\x01" * 400,  # times of very many seconds
        b"\x32\x84\x08" + b"\x0a\x00" * 514,
    ],
    ids=["age", "home", "time", "seconds", "zips"],
)
def test_a_field_that_is_repeated_without_end_is_a_bad_row_soon(world, part):
    values, number = world
    good = framed(number, SECOND + PERSON(age=3).SerializeToString())
    hostile = framed(number, SECOND + part * (1_000_000 // len(part)))
    begin = time.process_time()
    rows = values.read([good, hostile, good], 0)
    assert time.process_time() - begin < 5
    assert [row.row for row in rows.bad] == [1]
    assert rows.batch["age"].to_pylist() == [3, 3]
    # With many others, and one by one, the same is refused.
    assert [row.row for row in values.read([good] * 100 + [hostile], 0).bad] == [100]
    assert [row.row for row in values.read([hostile], 0).bad] == [0]
    few = framed(number, SECOND + part * max(1, 500 // len(part)))
    assert not values.read([few], 0).bad


def test_fields_that_arent_wanted_are_passed_over_soon(world):
    values, number = world
    data = PERSON(age=3).SerializeToString() + b"\x22\x01x" * 60_000
    messages = [framed(number, SECOND + data)] * 6
    begin = time.process_time()
    rows = values.read(messages, 0)
    assert time.process_time() - begin < 10
    assert rows.batch["age"].to_pylist() == [3] * 6


def test_messages_of_very_many_types_and_schemas_are_read_soon():
    memory = Memory()
    n = 300
    number = memory.add("".join(f"message M{i} {{ int32 x = 1; }}" for i in range(n)), "PROTOBUF")
    others = [
        memory.add(f"message A {{ int32 x = 1; }} message B{i} {{}}", "PROTOBUF", f"s{i}")
        for i in range(n)
    ]
    filler = b"\x12\x80\x80\x04" + bytes(1 << 16)
    of_types = [framed(number, b"\x02" + zigzag(i) + b"\x08\x07") for i in range(n)]
    of_schemas = [framed(other, b"\x00\x08\x07") for other in others]
    big = [framed(number, b"\x00" + filler + b"\x08\x07")] * 100
    values = memory.values(["x"], kind="protobuf")
    values.read(of_types + of_schemas, 0)
    begin = time.process_time()
    rows = values.read(of_types + big + of_schemas, 0)
    # A copy of all messages for each type or schema would be four gigabytes.
    assert time.process_time() - begin < 2
    assert rows.rows.tolist() == list(range(700))
    assert rows.batch["x"].to_pylist() == [7] * 700


@pytest.mark.parametrize("tag", [1 << 32, (1 << 32) + 8, 1 << 63, (1 << 64) - 8])
def test_a_tag_of_no_field_is_refused_however_many_messages_come_with_it(world, tag):
    values, number = world
    good = framed(number, SECOND + PERSON(age=3).SerializeToString())
    strange = framed(number, SECOND + varint(tag) + b"\x00" + PERSON(age=3).SerializeToString())
    assert [row.row for row in values.read([strange], 0).bad] == [0]
    assert [row.row for row in values.read([good] * 9 + [strange] * 9, 0).bad] == [*range(9, 18)]


@given(st.data())
def test_damaged_messages_never_touch_their_neighbours(world, data):
    values, number = world
    person = somebody(random.Random(data.draw(st.integers(0, 20))))
    whole = framed(number, SECOND + person.SerializeToString())
    damaged = bytearray(whole[: data.draw(st.integers(5, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3)) if len(damaged) > 5 else 0):
        damaged[data.draw(st.integers(5, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    rows = values.read([whole, bytes(damaged), whole], 0)
    assert rows.n_rows == 3
    found = dict(zip(rows.rows.tolist(), rows.batch.to_pylist(), strict=True))
    assert found[0] == found[2] == expected(person)


@pytest.mark.parametrize(
    "data",
    [
        b"\x02",  # a path of one, and nothing there
        b"\x82\x80\x80\x80\x80\x80\x01",
        b"\x01",
        SECOND + b"\x00",  # field 0
        SECOND + b"\x0b",  # a group
        SECOND + b"\x08",
        SECOND + b"\x12\x05abc",
        SECOND + b"\x18\x63",  # a sex that the schema doesn't know
        SECOND + b"\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # u64 beyond 63 bits
        SECOND + b"\x12\x01\xff",  # no UTF-8
        SECOND + b"\x3a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00",  # beyond all time
        SECOND + b"\x32\x02\x0a\x05abcde",  # a zip that is longer than its address
    ],
)
def test_each_broken_message_is_one_bad_row(world, data):
    values, number = world
    rows = values.read([framed(number, data)], 9)
    assert [row.row for row in rows.bad] == [9]


@pytest.mark.parametrize(
    ("paths", "path", "reason"),
    [
        ({"x": "tags"}, SECOND, "field tags is repeated (column x)"),
        ({"x": "scores"}, SECOND, "field scores is repeated (column x)"),
        ({"x": "home"}, SECOND, "field home isn't a plain value (column x)"),
        ({"x": "home.none"}, SECOND, "has no field home.none (column x)"),
        ({"x": "ward"}, b"\x00", "has no field ward (column x)"),
        ({"x": "x"}, b"\x02\x08", "has no such message type"),
    ],
)
def test_schemas_without_the_column_make_bad_rows(paths, path, reason):
    memory = Memory()
    number = memory.add(TEXT, "PROTOBUF")
    rows = memory.values(["x"], paths, "protobuf").read([framed(number, path)], 0)
    assert [row.reason for row in rows.bad] == [f"schema {number} {reason}"]


def test_other_message_types_of_the_schema_are_found_by_their_places():
    memory = Memory()
    number = memory.add(TEXT, "PROTOBUF")
    messages = [framed(number, b"\x00" + b"\x08\x07"), framed(number, b"\x02\x00" + b"\x08\x08")]
    rows = memory.values(["x"], kind="protobuf").read(messages, 0)
    assert rows.batch["x"].to_pylist() == [7, 8]
    deep = memory.values(["word"], kind="protobuf")
    rows = deep.read([framed(number, b"\x04\x00\x00" + b"\x0a\x01A")], 0)
    assert rows.batch["word"].to_pylist() == ["A"]


def test_a_time_is_read_to_the_microsecond(world):
    values, number = world
    stamp = timestamp_pb2.Timestamp(seconds=-1, nanos=999_999_999)
    person = PERSON(at=stamp)
    rows = values.read([framed(number, SECOND + person.SerializeToString())], 0)
    assert rows.batch["at"].to_pylist() == [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("message A {", "ends in the middle"),
        ("message A { int32 x = y; }", "without a number"),
        ("message A { int32 x 1; }", "'1' where '=' is expected"),
        ("message A { repeated group B = 1 { } }", "a group"),
        ("enum A { B = C; }", "without a number"),
        ("hello!", "where a definition is expected"),
        ("hell", "neither a text nor a descriptor"),
        ("message A {" * 100, "nested too deeply"),
        (f"message A {{ int32 x = {'9' * 5000}; }}", "without a number"),
        ("message A { int32 x = 536870912; }", "without a number"),
        (f"enum A {{ B = {2**31}; }}", "without a number"),
        (f"enum A {{ B = {-(2**31) - 1}; }}", "without a number"),
    ],
)
def test_what_isnt_a_schema(text, why):
    with pytest.raises(SchemaTextError, match=why):
        parse_proto(text)


@pytest.mark.parametrize(
    "inside", ["string x = 1;", "XValue value = 1;", "repeated int32 value = 1;"]
)
def test_a_message_that_is_only_named_like_a_wrapper_is_none(inside):
    text = f"package google.protobuf; message XValue {{ {inside} }} message M {{ XValue a = 1; }}"
    types = parse_proto(text)
    message = types.messages[1]
    assert [path for path, _ in proto_paths(types, message)] in ([], ["a.x"])
    problem = ProtobufReader(types, message, {"a": "a"}).problem
    assert problem == "field a isn't a plain value (column a)"
