"""Record real envelopes: Debezium in Kafka Connect captures a table of a real Postgres.

The people are made up. What is recorded is in ``tests/io/kafka/envelopes``, a message a line::

    python -m tests.io.kafka.record_envelopes
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from shoal.testing.broker import Broker
from shoal.testing.schema_registry import SchemaRegistry
from tests.debezium import JSON, JSON_WITH_SCHEMA, Connect, Postgres, avro

FOLDER = Path(__file__).parent / "envelopes"
TABLE = """
CREATE TABLE visit (
    id int PRIMARY KEY, person text NOT NULL, age int, born date, fee numeric(8, 2), weight numeric,
    arrived timestamp, left_at timestamptz, note text, tags jsonb, active boolean
)
"""
#: A note that is too long to be stored with its row.
LONG = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 400) i)"


def row(number: int, note: str = "'first'") -> str:
    """A made-up visit."""
    return (
        f"({number}, 'p{number}', {20 + number}, date '1990-01-01' + {number}, {number}.50, "
        f"{number}.125, timestamp '2024-02-29 12:30:00.123456' + interval '{number} min', "
        f"timestamptz '2024-02-29 12:30:00+01', {note}, '{{}}', true)"
    )


INSERT = "INSERT INTO visit VALUES "
#: Before Debezium starts: these rows are its snapshot.
BEFORE = [TABLE, INSERT + row(1) + ", " + row(2), INSERT + row(3, LONG)]
#: Afterwards, one transaction each.
AFTER = [
    INSERT + row(4),
    "UPDATE visit SET age = 44 WHERE id = 4",
    "UPDATE visit SET age = 43 WHERE id = 3",
    "DELETE FROM visit WHERE id = 1",
    "UPDATE visit SET id = 12 WHERE id = 2",
    "SELECT pg_logical_emit_message(true, 'note', 'hello')",
    "ALTER TABLE visit ADD COLUMN ward int",
    INSERT + row(5)[:-1] + ", 7)",
    "ALTER TABLE visit DROP COLUMN tags",
    INSERT + "(6, 'p6', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "TRUNCATE visit",
    INSERT + row(7).replace(", '{}'", ""),
]
#: The number of messages that these make: three rows of the snapshot, then four inserts, two
#: updates, a delete and its tombstone, a changed key (delete, tombstone, insert), a truncate.
N_CHANGES = 3 + 4 + 2 + 2 + 3 + 1
SETTINGS = {
    "skipped.operations": "none",
    "provide.transaction.metadata": "true",
    "heartbeat.interval.ms": "500",
    "logical.decoding.message.prefix.include.list": "note",
}


def read(kafka: str, topic: str, n: int, connect: Connect) -> list[Any]:
    """Read a topic until it has this many messages."""
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "record"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Any] = []
    end = time.monotonic() + 180
    while len(found) < n:
        assert time.monotonic() < end, f"{len(found)} messages in {topic}; {connect.log[-5000:]}"
        found += [message for message in consumer.consume(100, 0.2) if message.error() is None]
    consumer.close()
    return found


def _text(data: bytes | None, *, is_binary: bool) -> str | None:
    if data is None:
        return None
    return base64.b64encode(data).decode() if is_binary else data.decode()


def _line(message: Any, *, is_binary: bool) -> str:
    headers = [name for name, _ in message.headers() or ()]
    return json.dumps(
        {
            "key": _text(message.key(), is_binary=is_binary),
            "headers": headers,
            "value": _text(message.value(), is_binary=is_binary),
        }
    )


def _save(name: str, messages: list[Any], *, is_binary: bool = False) -> None:
    lines = [_line(message, is_binary=is_binary) for message in messages]
    (FOLDER / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


def record(name: str, worker: dict[str, str], kafka: str, folder: Path) -> None:
    """Record one form of envelopes, and what Debezium writes beside them."""
    is_binary = name.endswith("avro")
    with Postgres() as postgres:
        postgres.run(*BEFORE)
        connector = postgres.connector("public.visit") | SETTINGS
        with Connect(folder / "connect", kafka, connector, worker) as connect:
            topic = "shop.public.visit"
            for n, statements in ((3, AFTER), (N_CHANGES, [])):
                changes = read(kafka, topic, n, connect)
                if statements:
                    postgres.run(*statements)
            _save(name, changes, is_binary=is_binary)
            for other, where, n in (
                ("transactions", "shop.transaction", 4),
                ("heartbeats", "__debezium-heartbeat.shop", 1),
                ("messages", "shop.message", 1),
            ):
                found = read(kafka, where, n, connect)
                _save(f"{name}_{other}", found[:n], is_binary=is_binary)


def main(names: list[str]) -> None:
    """Record the forms of these names, or all."""
    FOLDER.mkdir(exist_ok=True)
    for name, worker in (("postgres_json", JSON), ("postgres_json_schema", JSON_WITH_SCHEMA)):
        if name in names or not names:
            with Broker() as broker, tempfile.TemporaryDirectory() as folder:
                record(name, worker, broker.address, Path(folder))
    if "postgres_avro" in names or not names:
        with (
            Broker() as broker, SchemaRegistry() as registry,
            tempfile.TemporaryDirectory() as folder,
        ):  # fmt: skip
            record("postgres_avro", avro(registry.address), broker.address, Path(folder))
            schemas = {}
            for path in sorted(FOLDER.glob("postgres_avro*.jsonl")):
                for line in path.read_text().splitlines():
                    if (value := json.loads(line)["value"]) is not None:
                        number = int.from_bytes(base64.b64decode(value)[1:5], "big")
                        schemas[str(number)] = _schema(registry.address, number)
            (FOLDER / "postgres_avro_schemas.json").write_text(json.dumps(schemas, indent=1) + "\n")


def _schema(address: str, number: int) -> str:
    with urllib.request.urlopen(f"{address}/schemas/ids/{number}", timeout=30) as answer:
        return str(json.load(answer)["schema"])


if __name__ == "__main__":
    main(sys.argv[1:])
