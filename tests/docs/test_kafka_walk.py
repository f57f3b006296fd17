"""The steps of docs/kafka.md, and runs whose broker goes away: the real program, a real broker."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.testing.broker import Broker, NoBrokerError, create_topics
from tests.crashes.world import environment, n_taken_in, started, wait_until, wait_until_it_listens
from tests.world import COMMAND

ROOT = Path(__file__).parents[2]


def walk(folder: Path, address: str, source: str, sink: str) -> Path:
    """Copy the example, with the broker and the topics of the test."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    here = folder / "examples" / "kafka_to_kafka"
    job = (here / "job.toml").read_text()
    for page, mine in [
        ("127.0.0.1:9092", address),
        ('"people"', f'"{source}"'),
        ('"public"', f'"{sink}"'),
        ('"hospital"', f'"{sink}"'),
        ("every = 10", "every = 0.2"),
    ]:
        assert page in job
        job = job.replace(page, mine)
    (here / "job.toml").write_text(job)
    return here


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def finish(folder: Path, words: list[str], n_rows: int = 500) -> None:
    """Resume from a checkpoint, read all that there is, and stop cleanly."""
    with started([*words, "--log", "text"]) as process:
        wait_until_it_listens(process)
        wait_until(lambda: n_taken_in(folder) == n_rows)
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 0


@pytest.mark.story
def test_from_an_empty_topic_to_an_audited_output(tmp_path, kafka, topic, monkeypatch):
    source, sink = topic(), topic()
    here = walk(tmp_path, kafka, source, sink)
    monkeypatch.chdir(here)
    run(here, sys.executable, "send.py", "../anonymize_a_csv/people.csv", source, kafka)
    words = ["run", "job.toml", "--trace", "trace/", "--drain"]
    with started(words) as process:
        wait_until(lambda: n_taken_in(here) > 0)
        process.kill()
    finish(here, words)
    received = run(here, sys.executable, "receive.py", sink, "published.jsonl", kafka)
    assert int(received.split()[0]) > 400
    verdict = run(
        here, *COMMAND, "audit", "job.toml", "published.jsonl",
        "--original", "../anonymize_a_csv/people.csv", "--trace", "trace/",
    )  # fmt: skip
    assert verdict.startswith("kept: 12 of 12")


@pytest.fixture
def broker(tmp_path):
    """A broker that the test may kill."""
    try:
        with Broker() as broker:
            yield broker
    except NoBrokerError as error:
        pytest.skip(str(error))


def test_a_stop_while_the_broker_is_away_ends_and_nothing_is_lost(tmp_path, broker, monkeypatch):
    create_topics({"bootstrap.servers": broker.address}, ["people", "public"])
    here = walk(tmp_path, broker.address, "people", "public")
    monkeypatch.chdir(here)
    people = "../anonymize_a_csv/people.csv"
    run(here, sys.executable, "send.py", people, "people", broker.address)
    words = ["run", "job.toml", "--trace", "trace/"]
    with started([*words, "--log", "json"]) as process:
        wait_until(lambda: n_taken_in(here) == 500)
        broker.kill()
        process.send_signal(signal.SIGTERM)
        process.wait(600)
    broker.start()
    finish(here, [*words, "--drain"])
    run(here, sys.executable, "receive.py", "public", "published.jsonl", broker.address)
    verdict = run(
        here, *COMMAND, "audit", "job.toml", "published.jsonl",
        "--original", people, "--trace", "trace/",
    )  # fmt: skip
    assert verdict.startswith("kept: 12 of 12")
