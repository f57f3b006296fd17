"""The kinds of inputs that are fuzzed: a good one of each, and what reads it."""

from __future__ import annotations

import io
import json
import struct
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.io import open_source
from shoal.io.kafka.values import ArrowValues, CsvValues, JsonValues, Values
from shoal.job import Job

__all__ = ["CANARY", "READERS", "TARGETS"]

#: A value of a person, in every input that has rows. No message may show it.
CANARY = "Zarathustra"
ROWS = [
    {"name": f"{CANARY} {i}", "age": 20 + i, "town": town, "at": f"2026-01-0{i + 1}T00:00:00Z"}
    for i, town in enumerate(["bonn", 'ko"ln', "a,b\nc", "", "münchen"])
]
COLUMNS = ("name", "age", "town")
JOB = """\
[schema]
subject = "name"
time = "at"
[schema.quasi]
age = { range = [0, 120], step = 1, weight = 2 }
town = { values = ["bonn", "berlin"] }
code = { mask = 3 }
[schema.sensitive]
illness = {}
[schema.keep]
columns = ["ward"]
[policy]
k = 10
l = { illness = { recursive = 3, c = 2 } }
t = { illness = { variation = 0.2 } }
window = { rows = 20000, advance = 5000 }
delay = { rows = 10000, seconds = 30, clock = "wall" }
lateness = 5
[algorithm]
name = "castle"
clusters = 50
[publish]
numeric = "range"
[run]
checkpoint = { folder = "state", every = 10, seal = "env:KEY" }
[bad_rows]
limit = 0.05
[private]
seal = true
file_hours = 24
keep_days = 30
[audit]
sample = 0.01
[output]
path = "out.csv"
"""
AVRO = {
    "type": "record", "name": "P", "fields": [
        {"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"]},
        {"name": "town", "type": "string"},
        {"name": "fee", "type": {
            "type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2,
        }},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
    ],
}  # fmt: skip
PROTOBUF = """\
syntax = "proto3";
message P {
  string name = 1; optional sint32 age = 2; string town = 3; map<string, int64> scores = 4;
  Address home = 5; message Address { string zip = 1; Address next = 2; }
}
"""


def _csv() -> bytes:
    quoted = [
        ",".join('"' + str(row[name]).replace('"', '""') + '"' for name in COLUMNS) for row in ROWS
    ]
    return "\n".join([",".join(COLUMNS), *quoted, ""]).encode()


def _jsonl() -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()


def _arrow() -> bytes:
    table = pa.Table.from_pylist(ROWS)
    output = io.BytesIO()
    with pa.ipc.new_stream(output, table.schema) as writer:
        writer.write_table(table)
    return output.getvalue()


def _parquet() -> bytes:
    output = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), output, row_group_size=2)
    return output.getvalue()


def _avro() -> bytes:
    name, town = f"{CANARY} 0".encode(), "münchen".encode()
    fields = [
        bytes([2 * len(name)]) + name, b"\x02" + bytes([2 * 42]), bytes([2 * len(town)]) + town,
        b"\x04\x01\x2c", b"\x04\x02\x04ab\x00\x00",
    ]  # fmt: skip
    return struct.pack(">bI", 0, 1) + b"".join(fields)


def _protobuf() -> bytes:
    name, town = f"{CANARY} 0".encode(), "münchen".encode()
    fields = [
        b"\x0a" + bytes([len(name)]) + name, b"\x10\x54", b"\x1a" + bytes([len(town)]) + town,
        b"\x22\x05\x0a\x01a\x10\x07", b"\x2a\x09\x0a\x03abc\x12\x02\x0a\x00",
    ]  # fmt: skip
    return struct.pack(">bI", 0, 1) + b"\x00" + b"".join(fields)


def _envelope() -> bytes:
    kinds = {"name": "string", "age": "int32", "town": "string"}
    fields = [{"field": name, "type": kind, "optional": True} for name, kind in kinds.items()]
    row = {name: ROWS[0][name] for name in COLUMNS}
    source = {"connector": "postgresql", "table": "people", "ts_ms": 1, "snapshot": "false"}
    return json.dumps(
        {
            "schema": {"type": "struct", "fields": [
                {"field": "after", "type": "struct", "optional": True, "fields": fields},
            ]},
            "payload": {"before": None, "after": row, "source": source, "op": "c", "ts_ms": 2},
        }
    ).encode()  # fmt: skip


def _read_file(ending: str) -> Callable[[bytes], None]:
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / f"rows.{ending}"

    def read(data: bytes, _keep: object = folder) -> None:
        path.write_bytes(data)
        source = open_source(path, COLUMNS)
        try:
            for chunk in source:
                _no_canary(" ".join(bad.text for bad in chunk.bad))
        finally:
            source.close()

    return read


def _read_message(values: Callable[[], Values]) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        rows = values().read([data, b"", data[: len(data) // 2]], first_row=0)
        _no_canary(" ".join(bad.text for bad in rows.bad))

    return read


@cache
def _registered(kind: str) -> Values:
    """Return the reader of messages whose schema is the first one in a registry in memory."""
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

    from shoal.io.kafka.schemas.client import Registry
    from shoal.io.kafka.schemas.settings import RegistrySettings
    from shoal.io.kafka.schemas.values import RegisteredValues
    from shoal.io.kafka.settings import KafkaSettings

    where = RegistrySettings("http://127.0.0.1:1")
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    text = json.dumps(AVRO) if kind == "avro" else PROTOBUF
    client.register_schema("people-value", Schema(text, kind.upper()))
    stopped = threading.Event()
    settings = KafkaSettings("h:1", "people", kind, registry=where)
    return RegisteredValues(settings, COLUMNS, stopped, Registry(where, stopped, client))


def _envelopes() -> Values:
    from shoal.io.kafka.json_envelopes import JsonEnvelopes

    return JsonEnvelopes(JsonValues(COLUMNS), "every")


def _read_job(data: bytes) -> None:
    Job.parse(data.decode("utf-8", "surrogateescape"))


def _no_canary(text: str) -> None:
    if CANARY in text:
        raise AssertionError("a message shows a value of a person")


#: The readers of messages.
READERS: dict[str, Callable[[], Values]] = {
    "json message": lambda: JsonValues(COLUMNS),
    "csv message": lambda: CsvValues(None, COLUMNS, "people"),
    "arrow message": lambda: ArrowValues(COLUMNS),
    "avro message": lambda: _registered("avro"),
    "protobuf message": lambda: _registered("protobuf"),
    "envelope": _envelopes,
}
_MESSAGES = [_jsonl(), _csv(), _arrow(), _avro(), _protobuf(), _envelope()]
TARGETS: dict[str, tuple[bytes, Callable[[bytes], None]]] = {
    "csv file": (_csv(), _read_file("csv")),
    "jsonl file": (_jsonl(), _read_file("jsonl")),
    "arrow file": (_arrow(), _read_file("arrow")),
    "parquet file": (_parquet(), _read_file("parquet")),
    **{
        name: (good, _read_message(reader))
        for (name, reader), good in zip(READERS.items(), _MESSAGES, strict=True)
    },
    "job": (JOB.encode(), _read_job),
}
