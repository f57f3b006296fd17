"""What the tests of schemas share: a registry in memory, and messages made by other libraries."""

from __future__ import annotations

import io
import json
import struct
import threading
from typing import Any

import fastavro
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from shoal.io.kafka.schemas.client import Registry
from shoal.io.kafka.schemas.settings import RegistrySettings
from shoal.io.kafka.schemas.values import RegisteredValues
from shoal.io.kafka.settings import KafkaSettings

REGISTRY = RegistrySettings("http://127.0.0.1:1")


class Memory:
    """A registry in memory."""

    def __init__(self) -> None:
        self.client = SchemaRegistryClient.new_client({"url": "mock://"})
        self.stopped = threading.Event()
        self.registry = Registry(REGISTRY, self.stopped, self.client)

    def add(self, text: Any, kind: str = "AVRO", subject: str = "people-value", **more: Any) -> int:
        """Register a schema."""
        schema = Schema(text if isinstance(text, str) else json.dumps(text), kind, **more)
        return int(self.client.register_schema(subject, schema))

    def values(self, columns, fields=None, kind="avro") -> RegisteredValues:
        """A parser."""
        settings = KafkaSettings("h:1", "people", kind, registry=REGISTRY, fields=fields or {})
        return RegisteredValues(settings, columns, self.stopped, self.registry)


def record(*fields, name="P") -> dict[str, Any]:
    """An Avro record: fields are pairs of a name and a type."""
    made = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, "fields": made}


def framed(number: int, data: bytes) -> bytes:
    """A message with the id of its schema."""
    return struct.pack(">bI", 0, number) + data


def avro(number: int, schema: Any, row: Any) -> bytes:
    """A message as fastavro makes it."""
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), row)
    return framed(number, file.getvalue())
