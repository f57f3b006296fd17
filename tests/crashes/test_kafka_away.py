"""A run whose broker is away for long, or gives way to another topic: what health and log say."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import urllib.error
import urllib.request

import pytest
from confluent_kafka.admin import AdminClient

from shoal.audit import audit
from shoal.job import Job
from shoal.testing.broker import Broker, NoBrokerError, create_topics
from tests.crashes.test_kills_kafka import KafkaJob
from tests.crashes.world import crowd, n_taken_in, started, wait_until, wait_until_it_listens

#: How long the broker is away, in seconds.
AWAY_SECONDS = float(os.environ.get("SHOAL_AWAY_SECONDS", "8"))
#: The reason that ``/health`` gives meanwhile.
AWAY = "the source or the sink is unreachable"


@pytest.fixture
def broker():
    """A broker that the test may kill."""
    try:
        with Broker() as broker:
            create_topics(broker.client, ["people", "public"])
            yield broker
    except NoBrokerError as error:
        pytest.skip(str(error))


def health(port: int) -> dict[str, object]:
    """What ``/health`` says; nothing before it is served."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=30) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        found = json.load(error)
    except OSError:
        found = {}
    assert isinstance(found, dict)
    return found


def test_a_broker_that_is_away_for_long_is_waited_for(tmp_path, broker):
    table = crowd(240)
    # Published as it is, so that each row can be told apart.
    table = table.set_column(4, "ward", [[f"ward {i}" for i in range(len(table))]])
    job = KafkaJob(tmp_path / "away", broker.address, "people", "public")
    draw = random.Random(1)
    job.feed(table.slice(0, 120), draw)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [*job.command, "--drain", "--log", "text", "--metrics", f"127.0.0.1:{port}"]
    with started(words) as process:
        wait_until_it_listens(process)
        wait_until(lambda: n_taken_in(job.folder) == 120, seconds=300)
        wait_until(lambda: "status" in health(port), seconds=300)
        assert AWAY not in str(health(port))
        broker.kill()
        wait_until(lambda: AWAY in str(health(port)), seconds=300)
        assert health(port)["status"] == "failing"
        with pytest.raises(AssertionError):
            # It waits, and doesn't end.
            wait_until(lambda: process.poll() is not None, seconds=AWAY_SECONDS)
        broker.start()
        wait_until(lambda: AWAY not in str(health(port)), seconds=300)
        job.feed(table.slice(120), draw)
        wait_until(lambda: n_taken_in(job.folder) == 240, seconds=300)
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read().decode()
        assert process.wait(600) == 0, said
    assert "Kafka topic people" in said
    assert "no broker answers; waiting for it to come back" in said
    assert "the broker is back" in said
    published = [json.loads(line) for line in job.published()]
    lines = job.trace
    seqs = [seq for seq in lines["seq"].to_pylist() if seq is not None]
    assert sorted(seqs) == list(range(len(published)))
    assert len({row["ward"] for row in published}) == len(published)
    read = Job.load(job.job)
    report = audit(
        read.schema, read.policy, table.from_pylist(published), numeric=read.publish.numeric,
        suppressed=read.publish.suppressed, trace=lines,
        original=table.select([name for name in table.schema.names if name in read.schema.columns]),
    )  # fmt: skip
    assert report.verdict == "kept"


def test_a_topic_that_was_created_again_isnt_resumed(tmp_path, broker):
    job = KafkaJob(tmp_path / "again", broker.address, "people", "public")
    draw = random.Random(2)
    job.feed(crowd(120), draw)
    job.finish(120)
    before = job.published()
    admin = AdminClient(broker.client)
    admin.delete_topics(["people"])["people"].result(60)
    wait_until(lambda: is_created(broker))
    job.feed(crowd(200), draw)
    with started([*job.command, "--drain"]) as process:
        said = process.communicate(timeout=600)[1].decode()
        assert process.returncode == 5, said
    assert "Kafka topic people" in said
    assert "was deleted and created again under the same name" in said
    assert job.published() == before


def is_created(broker: Broker) -> bool:
    """Create the topic; a broker deletes the former one in a while."""
    try:
        return create_topics(broker.client, ["people"]) == ["people"]
    except Exception:
        return False
