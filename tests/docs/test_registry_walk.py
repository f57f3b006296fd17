"""The steps of docs/registry.md: the real program, a real broker, a real registry."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

from tests.crashes.world import n_taken_in, started, wait_until
from tests.docs.test_kafka_walk import finish, run
from tests.world import COMMAND

ROOT = Path(__file__).parents[2]
REGISTRY = "http://127.0.0.1:8081/apis/ccompat/v7"


def walk(folder: Path, kafka: str, registry: str, source: str, sink: str) -> Path:
    """Copy the example, with the servers and the topics of the test."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    here = folder / "examples" / "registry_to_registry"
    job = (here / "job.toml").read_text()
    for page, mine in [
        ("127.0.0.1:9092", kafka),
        (REGISTRY, registry),
        ('"people"', f'"{source}"'),
        ('"public"', f'"{sink}"'),
        ('"hospital"', f'"{sink}"'),
        ("every = 10", "every = 0.2"),
    ]:
        assert page in job
        job = job.replace(page, mine)
    (here / "job.toml").write_text(job)
    return here


def test_from_an_empty_registry_to_an_audited_output(
    tmp_path, kafka, topic, schema_registry, monkeypatch
):
    source, sink = topic(), topic()
    here = walk(tmp_path, kafka, schema_registry, source, sink)
    monkeypatch.chdir(here)
    people = "../anonymize_a_csv/people.csv"
    run(here, sys.executable, "send.py", people, source, kafka, schema_registry)
    words = ["run", "job.toml", "--trace", "trace/", "--drain"]
    with started(words) as process:
        wait_until(lambda: n_taken_in(here) > 0)
        process.kill()
    finish(here, words)
    received = run(
        here, sys.executable, "receive.py", sink, "published.jsonl", kafka, schema_registry
    )
    assert int(received.split()[0]) > 400
    verdict = run(
        here, *COMMAND, "audit", "job.toml", "published.jsonl", "--original", people,
        "--trace", "trace/",
    )  # fmt: skip
    assert verdict.startswith("kept: 12 of 12")


def test_other_columns_under_the_same_subject_are_refused(
    tmp_path, kafka, topic, schema_registry, monkeypatch
):
    source, sink = topic(), topic()
    here = walk(tmp_path, kafka, schema_registry, source, sink)
    monkeypatch.chdir(here)
    run(here, sys.executable, "send.py", "../anonymize_a_csv/people.csv", source, kafka,
        schema_registry)  # fmt: skip
    finish(here, ["run", "job.toml", "--drain"])
    job = (here / "job.toml").read_text()
    other = topic()
    job = job.replace(f'"{sink}"', f'"{other}"').replace('"state"', '"other"')
    subject = f'format = "avro"\nsubject = "{sink}-value"'
    head, _, tail = job.rpartition('format = "avro"')
    job = head + subject + tail + '\n[publish]\nnumeric = "midpoint"\n'
    (here / "other.toml").write_text(job)
    with started(["run", "other.toml"]) as process:
        _, err = process.communicate(timeout=600)
        assert process.returncode == 4
    assert f"aren't compatible with the schema that subject {sink}-value has".encode() in err
    assert process.returncode != -signal.SIGTERM
