"""From a table of a real MySQL and of a real MariaDB, through Debezium, to an audited output."""

from __future__ import annotations

import csv
import json
import signal

from tests.crashes.world import n_taken_in, started, wait_until
from tests.debezium import JSON_WITH_SCHEMA, Connect
from tests.docs.test_cdc_walk import ROOT, _topics
from tests.docs.test_kafka_walk import run
from tests.world import COMMAND

TABLE = """
CREATE TABLE admission (
    id int AUTO_INCREMENT PRIMARY KEY, patient_id varchar(20), admitted_at datetime, age int,
    sex varchar(10), profession varchar(40), diagnosis varchar(40)
)
"""
COLUMNS = ("patient_id", "admitted_at", "age", "sex", "profession", "diagnosis")
LAST = ("P999999", "2026-04-01 00:00:00", "40", "Male", "Clerk", "Diabetes")


def insert(rows) -> str:
    """A statement that inserts people."""
    values = [
        "(" + ", ".join(f"'{value}'" if value else "NULL" for value in row) + ")" for row in rows
    ]
    return f"INSERT INTO admission ({', '.join(COLUMNS)}) VALUES {', '.join(values)}"


def test_from_a_table_to_an_audited_output_with_a_kill(tmp_path, kafka, mysql):
    with (ROOT / "examples" / "anonymize_a_csv" / "people.csv").open(newline="") as file:
        people = [tuple(row[name] for name in COLUMNS) for row in csv.DictReader(file)]
    mysql.run(TABLE, insert(people[:400]))
    job = (ROOT / "examples" / "changes_to_file" / "job.toml").read_text()
    prefix = f"shop-{tmp_path.name}-{mysql.kind}"
    topic = f"{prefix}.shop.admission"
    for page, mine in (
        ("127.0.0.1:9092", kafka), ("hospital.public.admission", topic),
        ("../anonymize_a_csv/", f"{ROOT}/examples/anonymize_a_csv/"), ("every = 10", "every = 0.2"),
    ):  # fmt: skip
        assert page in job
        job = job.replace(page, mine)
    (tmp_path / "job.toml").write_text(job)
    connector = mysql.connector("shop.admission", tmp_path) | {"topic.prefix": prefix}
    words = ["run", str(tmp_path / "job.toml"), "--trace", f"{tmp_path}/trace/", "--drain"]
    with Connect(tmp_path / "connect", kafka, connector, JSON_WITH_SCHEMA) as connect:
        wait_until(lambda: topic in _topics(kafka), 120)
        with started(words) as process:
            wait_until(lambda: n_taken_in(tmp_path) > 0, 120)
            process.kill()
        mysql.run(
            insert(people[400:]), "UPDATE admission SET age = age + 1 WHERE age > 60",
            "DELETE FROM admission WHERE age > 80", "UPDATE admission SET id = 10000 WHERE id = 7",
            "ALTER TABLE admission ADD COLUMN note text", insert([LAST]),
        )  # fmt: skip
        with started([*words, "--log", "text", "--log-file", str(tmp_path / "run.log")]) as process:
            wait_until(lambda: n_taken_in(tmp_path) == len(people) + 1, 180)
            process.send_signal(signal.SIGTERM)
            assert process.wait(600) == 0, connect.log[-2000:]
    original = tmp_path / "original.jsonl"
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in [*people, LAST]]
    for row in rows:
        row["age"] = int(row["age"]) if row["age"] else None
        row["admitted_at"] = row["admitted_at"].replace(" ", "T")
    original.write_text("".join(json.dumps(row) + "\n" for row in rows))
    verdict = run(
        tmp_path, *COMMAND, "audit", "job.toml", "published.jsonl", "--original", str(original),
        "--trace", "trace/",
    )  # fmt: skip
    assert verdict.startswith("kept: 12 of 12"), verdict
