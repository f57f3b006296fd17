"""Topics with a real broker and a real registry; the other side is Confluent's own library."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from shoal.errors import ResourceError
from shoal.io.kafka.schemas.payloads import ProtobufForm
from shoal.io.kafka.schemas.settings import RegistrySettings
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.sink import KafkaSink
from shoal.io.kafka.source import KafkaSource
from shoal.testing.schema_registry import SchemaRegistry
from tests.io.kafka.schemas.test_protobuf import PERSON, expected
from tests.io.kafka.schemas.world import framed
from tests.io.kafka.world import as_tuples, fill, read, values

PERSON_AVRO = """{"type": "record", "name": "P", "fields": [
    {"name": "age", "type": ["null", "int"]}, {"name": "tags", "type": {"type": "array",
    "items": "string"}}, {"name": "home", "type": {"type": "record", "name": "H",
    "fields": [{"name": "zip", "type": "string"}]}}]}"""
PEOPLE = [{"age": age, "tags": ["a"], "home": {"zip": str(age)}} for age in (1, None, 3)]


def settings(address, topic, registry, kind="avro", **more) -> KafkaSettings:
    registry = RegistrySettings(registry)
    return KafkaSettings(address, topic, kind, registry=registry, **more)


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def serialized(registry: str, topic: str, rows=PEOPLE) -> list[bytes]:
    with SchemaRegistryClient({"url": registry}) as client:
        serialize = AvroSerializer(client, PERSON_AVRO)
        return [serialize(row, context(topic)) for row in rows]


def test_avro_of_confluents_serializer_is_read_and_read_again(kafka, topic, schema_registry):
    name = topic()
    good = serialized(schema_registry, name)
    unknown = framed(10**9, b"x")
    fill(kafka, name, [good[0], b"\x01" + good[1][1:], good[1][:-1], unknown, good[1], good[2]])
    made = settings(kafka, name, schema_registry, fields={"zip": "home.zip"})
    source = KafkaSource(made, ["age", "zip"])
    start = source.begins_at()
    chunks = read(source, 6)
    rows, bad = as_tuples(chunks)
    assert rows == [(0, {"age": 1, "zip": "1"}), (4, {"age": None, "zip": "None"}),
                    (5, {"age": 3, "zip": "3"})]  # fmt: skip
    assert [row for row, _, _ in bad] == [1, 2, 3]
    assert bad[2][1] == f"schema {10**9} isn't in the registry"
    source.close()
    again = KafkaSource(made, ["age", "zip"])
    again.seek(start)
    replayed = [again.replay(chunk.spans) for chunk in chunks]
    assert as_tuples(replayed) == (rows, bad)
    assert [chunk.position for chunk in replayed] == [chunk.position for chunk in chunks]
    again.close()


def test_protobuf_of_confluents_serializer_is_read(kafka, topic, schema_registry):
    name = topic()
    people = [PERSON(age=7, ward="A", sex=5), PERSON(u64=9)]
    people[1].home.zip = "é"
    people[1].at.FromJsonString("2026-01-02T03:04:05.000006Z")
    with SchemaRegistryClient({"url": schema_registry}) as client:
        serialize = ProtobufSerializer(PERSON, client, {"use.deprecated.format": False})
        fill(kafka, name, [serialize(person, context(name)) for person in people])
    fields = {"zip": "home.zip"}
    columns = ["age", "ward", "sex", "zip", "u64", "at"]
    source = KafkaSource(settings(kafka, name, schema_registry, "protobuf", fields=fields), columns)
    rows, bad = as_tuples(read(source, 2))
    source.close()
    assert not bad
    wanted = [{name: expected(person)[name] for name in columns} for person in people]
    assert [row for _, row in rows] == wanted


def published(kafka, name, registry, kind, table: pa.Table, **more) -> None:
    made = settings(kafka, name, registry, kind, rows=1, **more)
    sink = KafkaSink(made, table.schema, None, job=name)
    for batch in table.to_batches():
        sink.write(batch)
    sink.close()


TABLE = pa.table({"age": ["[30, 40]", None], "n_min": [1, 2], "n_max": [3, None]})


def test_confluents_deserializer_reads_the_output(kafka, topic, schema_registry):
    name = topic()
    published(kafka, name, schema_registry, "avro", TABLE)
    found = values(kafka, name)
    with SchemaRegistryClient({"url": schema_registry}) as client:
        deserialize = AvroDeserializer(client)
        assert [deserialize(value, context(name)) for value in found] == TABLE.to_pylist()


def test_googles_library_reads_the_output(kafka, topic, schema_registry):
    name = topic()
    published(kafka, name, schema_registry, "protobuf", TABLE)
    assert "optional int64 n_max = 3" in ProtobufForm(TABLE.schema).text
    file = descriptor_pb2.FileDescriptorProto(name="row.proto", package="shoal", syntax="proto3")
    row = file.message_type.add(name="PublishedRow")
    for place, (field, kind) in enumerate((("age", 9), ("n_min", 3), ("n_max", 3))):
        row.oneof_decl.add(name=f"_{field}")
        row.field.add(
            name=field, number=place + 1, type=kind, label=1, oneof_index=place,
            proto3_optional=True,
        )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("shoal.PublishedRow"))
    # Confluent's deserializer wants the compiled schema, which this registry doesn't make.
    found = values(kafka, name)
    assert {value[5:6] for value in found} == {b"\x00"}
    messages = [made.FromString(value[6:]) for value in found]
    names = TABLE.schema.names
    assert [
        {name: getattr(one, name) if one.HasField(name) else None for name in names}
        for one in messages
    ] == TABLE.to_pylist()


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_an_incompatible_output_is_refused_before_the_first_row(
    kafka, topic, schema_registry, kind
):
    name, other = topic(), topic()
    published(kafka, name, schema_registry, kind, TABLE)
    # The same columns again are known, and another column may be added.
    subject = f"{name}-value"
    published(kafka, other, schema_registry, kind, TABLE, subject=subject)
    third = topic()
    more = TABLE.append_column("ward", [["A", "B"]])
    published(kafka, third, schema_registry, kind, more, subject=subject)
    fourth = topic()
    retyped = TABLE.set_column(0, "age", [[35.0, 45.0]])
    with pytest.raises(
        ResourceError, match=f"compatible with the schema that subject {name}-value"
    ):
        published(kafka, fourth, schema_registry, kind, retyped, subject=subject)
    assert values(kafka, fourth) == []
    with SchemaRegistryClient({"url": schema_registry}) as client:
        assert client.get_versions(subject) == [1, 2]


def test_a_registry_that_goes_away_is_waited_for(kafka, topic, tmp_path):
    name = topic()
    with SchemaRegistry() as registry:
        fill(kafka, name, serialized(registry.address, name))
        second = PERSON_AVRO.replace('"age"', '"years"')
        with SchemaRegistryClient({"url": registry.address}) as client:
            number = client.register_schema(f"{name}-2", Schema(second, "AVRO"))
        source = KafkaSource(settings(kafka, name, registry.address), ["age"])
        assert len(read(source, 3)) >= 1
        registry.pause()
        fill(kafka, name, [framed(number, b"\x02\x02\x00\x00")])
        found: list = []
        thread = threading.Thread(target=lambda: found.extend(read(source, 1)))
        thread.start()
        end = time.monotonic() + 60
        while not source.is_away and time.monotonic() < end:
            time.sleep(0.05)
        assert source.is_away
        assert not found
        registry.resume()
        thread.join(60)
        assert [row.reason for row in found[0].bad] == [
            f"schema {number} has no field age (column age)"
        ]
        registry.pause()
        fill(kafka, name, [framed(number + 1, b"")])
        thread = threading.Thread(target=lambda: found.extend(source))
        thread.start()
        end = time.monotonic() + 60
        while not source.is_away and time.monotonic() < end:
            time.sleep(0.05)
        # A stop ends the waiting; the message isn't taken for bad.
        source.stop()
        thread.join(60)
        assert len(found) == 1
        registry.resume()
        source.close()
