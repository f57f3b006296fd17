"""Record real envelopes: Debezium in Kafka Connect captures a table of a real MySQL or MariaDB.

The people are made up. What is recorded is in ``tests/io/kafka/envelopes``, a message a line::

    python -m tests.io.kafka.record_mysql mysql mariadb
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from pathlib import Path

from shoal.testing.broker import Broker
from shoal.testing.schema_registry import SchemaRegistry
from tests.debezium import JSON, JSON_WITH_SCHEMA, Connect, MySql, avro
from tests.io.kafka.record_envelopes import FOLDER, _save, _schema, read

TABLE = """
CREATE TABLE visit (
    id int PRIMARY KEY, person varchar(20) NOT NULL, age int, born date, fee decimal(8, 2),
    arrived datetime(6), left_at timestamp(6) NULL, note text, tags json, active tinyint(1),
    sex enum('f', 'm'), weight double
)
"""


def row(number: int) -> str:
    """A made-up visit."""
    return (
        f"({number}, 'p{number}', {20 + number}, date '1990-01-01' + interval {number} day, "
        f"{number}.50, timestamp '2024-02-29 12:30:00.123456' + interval {number} minute, "
        f"'2024-02-29 11:30:00', 'first', '{{}}', 1, 'f', {number}.125)"
    )


INSERT = "INSERT INTO visit VALUES "
#: Before Debezium starts: these rows are its snapshot.
BEFORE = [TABLE, INSERT + row(1) + ", " + row(2) + ", " + row(3)]
#: Afterwards, one transaction each.
AFTER = [
    INSERT + row(4),
    "UPDATE visit SET age = 44 WHERE id = 4",
    "DELETE FROM visit WHERE id = 1",
    "UPDATE visit SET id = 12 WHERE id = 2",
    "ALTER TABLE visit ADD COLUMN ward int",
    INSERT + row(5)[:-1] + ", 7)",
    "ALTER TABLE visit DROP COLUMN tags",
    "INSERT INTO visit (id, person) VALUES (6, 'p6')",
    "TRUNCATE visit",
    "INSERT INTO visit (id, person, age) VALUES (7, 'p7', 27)",
]
#: The number of messages that these make: three rows of the snapshot, then four inserts, an update,
#: a delete and its tombstone, a changed key (delete, tombstone, insert), a truncate.
N_CHANGES = 3 + 4 + 1 + 2 + 3 + 1
SETTINGS = {"skipped.operations": "none", "provide.transaction.metadata": "true"}


def record(name: str, kind: str, worker: dict[str, str], kafka: str, folder: Path) -> str:
    """Record one form of envelopes, and what Debezium writes beside them."""
    is_binary = name.endswith("avro")
    with MySql(kind) as server:
        server.run(*BEFORE)
        connector = server.connector("shop.visit", folder) | SETTINGS
        with Connect(folder / "connect", kafka, connector, worker) as connect:
            for n, statements in ((3, AFTER), (N_CHANGES, [])):
                changes = read(kafka, "shop.shop.visit", n, connect)
                if statements:
                    server.run(*statements)
            _save(name, changes, is_binary=is_binary)
            for other, where, n in (("transactions", "shop.transaction", 4), ("schema", "shop", 4)):
                found = read(kafka, where, n, connect)
                _save(f"{name}_{other}_messages", found[:n], is_binary=is_binary)
        return server.version


def main(kinds: list[str]) -> None:
    """Record all forms of these kinds of servers."""
    for kind in kinds:
        for form, worker in (("json", JSON), ("json_schema", JSON_WITH_SCHEMA)):
            with Broker() as broker, tempfile.TemporaryDirectory() as folder:
                name = f"{kind}_{form}"
                print(name, record(name, kind, worker, broker.address, Path(folder)), flush=True)
        with (
            Broker() as broker, SchemaRegistry() as registry,
            tempfile.TemporaryDirectory() as folder,
        ):  # fmt: skip
            name = f"{kind}_avro"
            where = Path(folder)
            print(name, record(name, kind, avro(registry.address), broker.address, where))
            schemas = {}
            for path in sorted(FOLDER.glob(f"{name}*.jsonl")):
                for line in path.read_text().splitlines():
                    if (value := json.loads(line)["value"]) is not None:
                        number = int.from_bytes(base64.b64decode(value)[1:5], "big")
                        schemas[str(number)] = _schema(registry.address, number)
            (FOLDER / f"{name}_schemas.json").write_text(json.dumps(schemas, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
