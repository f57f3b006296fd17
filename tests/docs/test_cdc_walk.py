"""The steps of docs/cdc.md: a real Postgres, a real Debezium, a real broker, the real program."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

from tests.crashes.world import n_taken_in, started, wait_until
from tests.debezium import Connect, Postgres
from tests.docs.test_kafka_walk import run
from tests.world import COMMAND

ROOT = Path(__file__).parents[2]
LAST = "P999999,2026-04-01 00:00:00,,40,Male,,Clerk,Diabetes,"


def properties(path: Path) -> dict[str, str]:
    """Read settings of Kafka Connect."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def set_up(folder: Path, kafka: str, postgres: Postgres) -> Path:
    """Copy the example, with the servers of the test."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    here = folder / "examples" / "changes_to_file"
    job = (here / "job.toml").read_text()
    for page, mine in (("127.0.0.1:9092", kafka), ("every = 10", "every = 0.2")):
        assert page in job
        job = job.replace(page, mine)
    (here / "job.toml").write_text(job)
    people = here.parent / "anonymize_a_csv" / "people.csv"
    postgres.run((here / "table.sql").read_text())
    rows = (here / "rows.sql").read_text()
    assert "../anonymize_a_csv/people.csv" in rows
    postgres.run(rows.strip().replace("../anonymize_a_csv/people.csv", str(people)))
    return here


def test_the_commands_of_the_page_name_the_database_of_the_connector():
    connector = properties(ROOT / "examples" / "changes_to_file" / "connector.properties")
    page = (ROOT / "docs" / "cdc.md").read_text()
    commands = re.findall(r"^psql (.*)$", page, re.M)
    assert len(commands) == 2
    ends = ("hostname", "-h"), ("user", "-U"), ("dbname", "-d")
    words = " ".join(f"{option} {connector[f'database.{key}']}" for key, option in ends)
    assert all(command.startswith(f"{words} -f ") for command in commands)


def test_from_a_table_to_an_audited_output(tmp_path, kafka, postgres, monkeypatch):
    here = set_up(tmp_path, kafka, postgres)
    monkeypatch.chdir(here)
    connector = properties(here / "connector.properties")
    connector |= {"database.port": str(postgres.port)}
    worker = properties(here / "worker.properties")
    for own in ("bootstrap.servers", "listeners", "offset.storage.file.filename"):
        del worker[own]
    words = ["run", "job.toml", "--trace", "trace/", "--drain"]
    with Connect(tmp_path / "connect", kafka, connector, worker) as connect:
        wait_until(lambda: "hospital.public.admission" in _topics(kafka), 120)
        with started(words) as process:
            wait_until(lambda: n_taken_in(here) > 0, 120)
            process.kill()
        n_updates, n_deletes = (
            int(postgres.run(f"SELECT count(*) FROM admission WHERE {which}"))
            for which in ("age > 60", "ward = 'Surgery'")
        )
        assert n_updates > 50 and n_deletes > 50
        postgres.run(*(here / "changes.sql").read_text().split(";")[:-1])
        # A last row: once it is taken in, all changes before it have been read.
        names, values = "patient_id, admitted_at, age, sex, profession, diagnosis", LAST.split(",")
        listed = ", ".join(f"'{value}'" for value in [*values[:2], *values[3:5], *values[6:8]])
        postgres.run(f"INSERT INTO admission ({names}) VALUES ({listed})")
        with started([*words, "--log", "text", "--log-file", "run.log"]) as process:
            wait_until(lambda: n_taken_in(here) == 501, 180)
            process.send_signal(signal.SIGTERM)
            assert process.wait(600) == 0, connect.log[-2000:]
    with (here.parent / "anonymize_a_csv" / "people.csv").open("a") as people:
        people.write(f"{LAST}\n")
    # A delete has a tombstone; a changed key is a delete, a tombstone and an insert.
    n_skipped = n_updates + 2 * n_deletes + 3
    [ended] = [line for line in (here / "run.log").read_text().splitlines() if "run ended" in line]
    assert f"skipped {n_skipped}" in ended
    verdict = run(
        here, *COMMAND, "audit", "job.toml", "published.jsonl",
        "--original", "../anonymize_a_csv/people.csv", "--trace", "trace/",
    )  # fmt: skip
    assert verdict.startswith("kept: 12 of 12"), verdict


def _topics(kafka: str) -> dict[str, object]:
    from confluent_kafka.admin import AdminClient

    return dict(AdminClient({"bootstrap.servers": kafka}).list_topics(timeout=30).topics)
