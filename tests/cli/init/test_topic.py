"""``shoal init`` from a topic and a subject of a registry: both real."""

from __future__ import annotations

import csv
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from shoal.cli.init.from_schema import draft_from_schema
from shoal.cli.init.roles import Asked
from shoal.cli.init.topic import Topic
from shoal.errors import JobError
from shoal.io.base import BadRow, Chunk
from shoal.io.kafka.schemas import client
from shoal.io.kafka.schemas.columns import Leaf
from shoal.io.kafka.schemas.subjects import Described
from shoal.job import Job
from tests.docs.test_kafka_walk import finish, run
from tests.io.kafka.schemas.world import framed
from tests.io.kafka.world import fill
from tests.world import COMMAND, shoal

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
ADMISSION = (EXAMPLES / "registry_to_registry" / "admission.avsc").read_text()
JSON_SCHEMA = '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}'
ENVELOPES = ROOT / "tests" / "io" / "kafka" / "envelopes"
PEOPLE = str(EXAMPLES / "anonymize_a_csv" / "people.csv")


def register(registry: str, subject: str, text: str, kind: str = "AVRO") -> None:
    with SchemaRegistryClient({"url": registry}) as asked:
        asked.register_schema(subject, Schema(text, kind))


def test_a_draft_of_a_topic_can_be_run_and_the_audit_finds_it_kept(
    tmp_path, kafka, topic, schema_registry, monkeypatch, capfd
):
    name = topic()
    send = EXAMPLES / "registry_to_registry" / "send.py"
    run(send.parent, sys.executable, str(send), PEOPLE, name, kafka, schema_registry)
    monkeypatch.chdir(tmp_path)
    words = ("init", f"kafka://{kafka}/{name}", "--registry", schema_registry)
    assert shoal(monkeypatch, *words) == 0
    out, err = capfd.readouterr()
    assert out == "shoal run job.toml -o published.csv\n"
    assert "wrote job.toml from 500 rows\nReview it, then:\n" in err
    text = Path("job.toml").read_text()
    assert text.startswith(f'# Drafted from 500 rows of "topic {name}".')
    keys = tomllib.loads(text)
    assert keys["input"] == {
        "kafka": kafka, "topic": name, "format": "avro", "registry": schema_registry,
        "fields": {"age": "patient.age", "sex": "patient.sex", "profession": "patient.profession"},
    }  # fmt: skip
    assert keys["schema"]["subject"] == "patient_id"
    assert keys["schema"]["time"] == "admitted_at"
    assert {"age", "sex", "profession"} <= set(keys["schema"]["quasi"])
    assert keys["schema"]["quasi"]["sex"] == {"values": ["Female", "Male"]}
    # By the schema an age may be missing, and some are.
    assert keys["policy"]["missing"] == "extended"
    assert 'left out: "phone"' in text
    finish_words = ["run", "job.toml", "-o", "published.csv", "--trace", "trace/", "--drain"]
    finish(tmp_path, finish_words)
    verdict = run(
        tmp_path, *COMMAND, "audit", "job.toml", "published.csv", "--trace", "trace/",
        "--original", PEOPLE,
    )  # fmt: skip
    assert verdict.startswith("kept: 13 of 13")


@pytest.mark.parametrize("is_filled", [False, True])
def test_without_a_message_that_fits_the_schema_alone_makes_a_draft_that_must_be_completed(
    is_filled, tmp_path, kafka, topic, schema_registry, monkeypatch, capfd
):
    name, job = topic(3), tmp_path / "job.toml"
    register(schema_registry, f"other-{name}", ADMISSION)
    if is_filled:
        fill(kafka, name, [b"\x01nothing", framed(10**9, b"x"), framed(10**9, b"y")])
    words = ("init", f"kafka://{kafka}/{name}", "--registry", schema_registry, "-o", job)
    assert shoal(monkeypatch, *words) == 2
    assert f"--schema: subject {name}-value isn't in schema registry" in capfd.readouterr().err
    assert shoal(monkeypatch, *words, "--schema", f"other-{name}", "--quasi", "age") == 0
    err = capfd.readouterr().err
    assert "Drafted from the schema alone" in err
    unread = f"3 of 3 messages of the sample can't be read, mostly because: schema {10**9} isn't in"
    assert (unread in err) == is_filled
    assert "1 of 1 quasi attributes are comments" in err
    assert "wrote" in err
    assert "Complete it, then:" in err
    with pytest.raises(JobError, match="quasi"):
        Job.load(job)
    assert shoal(monkeypatch, *words, "--schema", f"other-{name}", "--force") == 0
    text = job.read_text()
    assert 'sex = { values = ["Female", "Male"] }' in text
    assert "# age = { range = [0, 100], step = 1 }" in text
    assert "# diagnosis = {} " in text
    made = Job.load(job)
    assert made.schema.subject == "patient_id"
    assert made.schema.time == "admitted_at"
    assert [quasi.name for quasi in made.schema.quasi] == ["sex"]
    # What the comments propose is valid, too.
    whole = text.replace("# age = {", "age = {").replace("# diagnosis = {", "diagnosis = {")
    job.write_text(whole.replace("# l = 3", "l = 3"))
    assert [quasi.name for quasi in Job.load(job).schema.quasi] == ["age", "sex"]


def test_a_draft_of_json_messages_without_a_schema_can_be_run_and_is_kept(
    tmp_path, kafka, topic, monkeypatch, capfd
):
    name = topic(2)
    with Path(PEOPLE).open(newline="") as file:
        people = list(csv.DictReader(file))
    for person in people:
        person |= {"age": int(person["age"]) if person["age"] else None, "tags": ["a"]}
    fill(kafka, name, [json.dumps(person).encode() for person in people])
    monkeypatch.chdir(tmp_path)
    assert shoal(monkeypatch, "init", f"kafka://{kafka}/{name}", "--rows", "499") == 0
    out, err = capfd.readouterr()
    assert out == "shoal run job.toml -o published.csv\n"
    assert 'warning: Left out: "tags": it has objects or arrays as values.' in err
    assert "from 499 rows\nReview it, then:\n" in err
    keys = tomllib.loads(Path("job.toml").read_text())
    assert keys["input"] == {"kafka": kafka, "topic": name, "format": "json"}
    assert keys["schema"]["subject"] == "patient_id"
    assert {"age", "sex", "profession"} <= set(keys["schema"]["quasi"])
    words = ["run", "job.toml", "-o", "published.csv", "--trace", "trace/", "--drain"]
    finish(tmp_path, words)
    verdict = run(
        tmp_path, *COMMAND, "audit", "job.toml", "published.csv", "--trace", "trace/",
        "--original", PEOPLE,
    )  # fmt: skip
    assert verdict.startswith("kept: ")


def test_a_draft_of_changes_in_json_names_the_columns_of_the_row(
    tmp_path, kafka, topic, monkeypatch, capfd
):
    name, job = topic(), tmp_path / "job.toml"
    recorded = ENVELOPES / "postgres_json_schema.jsonl"
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    fill(kafka, name, [line["value"].encode() for line in lines if line["value"]])
    words = ("init", f"kafka://{kafka}/{name}", "-o", job, "--k", "2", "--measure", "0")
    assert shoal(monkeypatch, *words) == 0
    capfd.readouterr()
    keys = tomllib.loads(job.read_text())["input"]
    assert keys == {"kafka": kafka, "topic": name, "format": "json", "changes": "inserts"}
    # Only updates and deletes: there is no row to draft from.
    other = topic()
    fill(kafka, other, [b'{"op": "d", "before": {"id": 1}, "after": {"id": 1}, "source": {}}'])
    words = ("init", f"kafka://{kafka}/{other}", "-o", job, "--force")
    assert shoal(monkeypatch, *words) == 4
    assert "none of the first messages is a row: all changes in them are" in capfd.readouterr().err


@pytest.mark.parametrize("values", [[], [b"no json", b"[1, 2]", b"7"]])
def test_a_topic_that_has_no_message_in_json_is_refused(
    values, tmp_path, kafka, topic, monkeypatch, capfd
):
    name, job = topic(), tmp_path / "job.toml"
    if values:
        fill(kafka, name, values)
    assert shoal(monkeypatch, "init", f"kafka://{kafka}/{name}", "-o", job) == 4
    assert "has no messages in JSON to draft a job from. Send some first" in capfd.readouterr().err
    assert not job.exists()


def test_a_topic_that_isnt_there_is_said(tmp_path, kafka, monkeypatch, capfd):
    job = tmp_path / "job.toml"
    assert shoal(monkeypatch, "init", f"kafka://{kafka}/no-such-topic", "-o", job) == 4
    assert "no-such-topic" in capfd.readouterr().err


def test_schemas_of_another_kind_are_refused(
    tmp_path, kafka, topic, schema_registry, monkeypatch, capfd
):
    name, job = topic(), tmp_path / "job.toml"
    register(schema_registry, f"{name}-value", JSON_SCHEMA, "JSON")
    words = ("init", f"kafka://{kafka}/{name}", "--registry", schema_registry, "-o", job)
    assert shoal(monkeypatch, *words) == 4
    err = capfd.readouterr().err
    assert f"subject {name}-value: is of format json. Those that can be read are avro and" in err
    register(schema_registry, f"{name}-proto", 'syntax = "proto3"; message A { int32 age = 1; }',
             "PROTOBUF")  # fmt: skip
    assert shoal(monkeypatch, *words, "--schema", f"{name}-proto", "--from", "avro") == 2
    assert f"--from: is avro, and the schema of subject {name}-proto is protobuf. Leave it out" in (
        capfd.readouterr().err
    )
    assert not job.exists()


def test_a_registry_that_is_away_is_said(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(client, "OPEN_SECONDS", 0.2)
    monkeypatch.setattr(client, "PAUSE_SECONDS", 0.05)
    job = tmp_path / "job.toml"
    words = ("init", "kafka://127.0.0.1:1/people", "--registry", "http://127.0.0.1:1", "-o", job)
    assert shoal(monkeypatch, *words) == 4
    assert "schema registry http://127.0.0.1:1: no registry answers (" in capfd.readouterr().err


def people_topic(opened: Any = None) -> Topic:
    leaves = {"patient_id": Leaf("text"), "sex": Leaf("text", symbols=("F", "M"))}
    described = Described("avro", leaves, {name: name for name in leaves})
    keys = {"kafka": "h:1", "topic": "people", "format": "avro", "registry": "http://h:1"}
    return Topic("people", "people-value", described, keys, opened)


def test_a_draft_has_a_name_that_a_job_may_have(tmp_path):
    job = tmp_path / "my job.toml"
    job.write_text(draft_from_schema(people_topic(), job_name=job.stem, asked=Asked(), k=5).job)
    assert Job.load(job).name == "my-job"


class Unreadable:
    """A topic without end, of which no message can be read."""

    is_away, n_read = False, 0

    def open(self, columns, *, replay):
        return self

    def __iter__(self):
        while self.n_read < 100_000:
            bad = [BadRow(self.n_read + i, "it is damaged", b"") for i in range(100)]
            self.n_read += len(bad)
            yield Chunk(pa.record_batch({"sex": []}), np.empty(0, np.int64), bad)

    def lag(self):
        return 7

    def stop(self):
        """It has no end."""

    close = stop


def test_a_topic_that_cant_be_read_isnt_read_to_its_end():
    endless = Unreadable()
    found = people_topic(endless).sample(1000)
    assert (found.n_bad, found.table.num_rows, found.reason) == (1000, 0, "it is damaged")
    assert endless.n_read == 1000


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("people.csv", "--registry", "http://x"), "--registry: goes with a topic of Kafka. Write"),
        (("people.csv", "--set", "settings.a=b"), "--set: goes with a topic of Kafka. Write"),
        (("kafka://h:1/t", "--from", "csv"), "--registry: is missing: without a schema, only mess"),
        (("kafka://h:1/t", "--schema", "s"), "--registry: is missing: without a schema, only mess"),
        (("kafka://h:1", "--registry", "http://x"), "DATA: isn't a topic; got kafka://h:1"),
        (
            ("kafka://h:1/t", "--registry", "http://x", "--set", "password=hunter2"),
            "--set: isn't a setting of the input. Write settings.NAME=VALUE or",
        ),
        (
            ("kafka://ann:hunter2@h:1/t", "--registry", "http://x"),
            "DATA: has a user in its address. Write --set settings.sasl.username=… and",
        ),
        (("kafka://ann:hunter2@h:1",), "DATA: has a user in its address"),
        (
            ("kafka://h:1/t", "--registry", "http://x", "--set", "registry_settings.token=hunter2"),
            "input.registry_settings.token: is a secret in plain text",
        ),
    ],
)
def test_options_that_dont_fit_are_refused(words, why, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("a\n1\n")
    assert shoal(monkeypatch, "init", *words) == 2
    err = capfd.readouterr().err
    assert why in err
    assert "hunter2" not in err
