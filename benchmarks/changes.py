"""Reading changes of a database beside plain JSON, without a broker: one change to a message.

    python -m benchmarks.changes

Inserts of rows of six columns, as Debezium writes them. All formats take turns in one process, so
that a busy machine slows them alike; the figures are medians, and ratios to plain JSON.
"""

from __future__ import annotations

import argparse
import functools
import io
import json
import statistics
import threading
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa

from benchmarks.registry import COLUMNS, OneSchema, rows, seconds
from shoal.io.kafka.envelopes import AvroEnvelopes
from shoal.io.kafka.json_envelopes import JsonEnvelopes
from shoal.io.kafka.schemas.settings import RegistrySettings
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.values import JsonValues

#: What Debezium says about where a change comes from, in short.
SOURCE = {
    "version": "3.6.1.Final", "connector": "postgresql", "name": "hospital", "ts_ms": 1790000000000,
    "snapshot": "false", "db": "hospital", "schema": "public", "table": "admission", "lsn": 26731,
}  # fmt: skip
KINDS = {"int64": ("int64", "long"), "double": ("double", "double"), "string": ("string", "string")}
Read = Callable[[list[bytes]], Any]


def struct(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    """A structure in the words of Kafka Connect."""
    return {"type": "struct", "fields": fields, "optional": True, "name": name}


def connect_schema(schema: pa.Schema) -> dict[str, Any]:
    """The schema that is in each JSON message, unless it is switched off."""
    columns = [
        {"type": KINDS[str(field.type)][0], "optional": True, "field": field.name}
        for field in schema
    ]
    source = [{"type": "string", "optional": False, "field": name} for name in SOURCE]
    fields = [
        struct("admission.Value", columns) | {"field": "before"},
        struct("admission.Value", columns) | {"field": "after"},
        struct("io.debezium.connector.postgresql.Source", source) | {"field": "source"},
        {"type": "string", "optional": False, "field": "op"},
        {"type": "int64", "optional": True, "field": "ts_ms"},
    ]
    return struct("admission.Envelope", fields)


def avro_schema(schema: pa.Schema) -> dict[str, Any]:
    """The schema that is in a registry."""
    columns = [
        {"name": field.name, "type": ["null", KINDS[str(field.type)][1]]} for field in schema
    ]
    numbers = {"ts_ms", "lsn"}
    source = [{"name": n, "type": "long" if n in numbers else "string"} for n in SOURCE]
    value = {"type": "record", "name": "Value", "fields": columns}
    fields = [
        {"name": "before", "type": ["null", value]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": source}},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"]},
    ]
    return {"type": "record", "name": "Envelope", "fields": fields}


def worlds(batch: pa.RecordBatch) -> dict[str, tuple[list[bytes], Read]]:
    """Return for each format the messages, and what reads them."""
    people = batch.to_pylist()
    changes = [
        {"before": None, "after": row, "source": SOURCE, "op": "c", "ts_ms": 1790000000001}
        for row in people
    ]
    plain = JsonValues(COLUMNS)
    made: dict[str, tuple[list[bytes], Read]] = {
        "rows in JSON": (_lines(people), functools.partial(plain.read, first_row=0))
    }
    whole = [{"schema": connect_schema(batch.schema), "payload": change} for change in changes]
    for name, messages in (("JSON", changes), ("JSON with a schema", whole)):
        reader = JsonEnvelopes(JsonValues(COLUMNS), "inserts")
        made[f"changes in {name}"] = (
            _lines(messages), functools.partial(reader.read, first_row=0),
        )  # fmt: skip
    schema = avro_schema(batch.schema)
    registry: Any = OneSchema()
    registry.register("admission-value", "AVRO", json.dumps(schema))
    settings = KafkaSettings(
        "h:1", "admission", "avro", registry=RegistrySettings("http://h"), changes="inserts"
    )
    envelopes = AvroEnvelopes(settings, COLUMNS, threading.Event(), registry)
    made["changes in Avro"] = (
        _avro(schema, changes), functools.partial(envelopes.read, first_row=0),
    )  # fmt: skip
    return made


def _lines(values: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(value, separators=(",", ":")).encode() for value in values]


def _avro(schema: dict[str, Any], values: list[dict[str, Any]]) -> list[bytes]:
    parsed = fastavro.parse_schema(schema)
    made = []
    for value in values:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, parsed, value)
        made.append(b"\x00\x00\x00\x00\x01" + file.getvalue())
    return made


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000, help="rows of a chunk (20000)")
    parser.add_argument("--repeats", type=int, default=9, help="how often each is timed (9)")
    options = parser.parse_args()
    found = worlds(rows(options.rows, published=False))
    took: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(options.repeats):
        for name, (messages, read) in found.items():
            took[name].append(seconds(lambda: read(messages)))  # noqa: B023
    print("| | rows/s | ratio | bytes of a message |\n|---|---:|---:|---:|")
    for name, (messages, read) in found.items():
        assert read(messages).batch.num_rows == options.rows
        rate = options.rows / statistics.median(took[name])
        ratios = [j / t for j, t in zip(took["rows in JSON"], took[name], strict=True)]
        n_bytes = sum(map(len, messages)) / len(messages)
        print(f"| {name} | {rate:,.0f} | {statistics.median(ratios):.2f} | {n_bytes:,.0f} |")


if __name__ == "__main__":
    main()
