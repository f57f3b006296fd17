"""A topic that was deleted and created again under the same name is another topic."""

from __future__ import annotations

import time
import uuid

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from shoal.errors import CheckpointError
from shoal.io.kafka import topic as kafka_topic
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.sink import KafkaSink
from shoal.io.kafka.source import KafkaSource
from shoal.testing.broker import create_topics
from tests.io.kafka.world import SCHEMA, fill, numbers, read, rows

AGAIN = "was deleted and created again under the same name"
MESSAGES = [b'{"n": %d}' % n for n in range(6)]


@pytest.fixture
def name(kafka):
    name = f"again-{uuid.uuid4().hex[:12]}"
    create_topics({"bootstrap.servers": kafka}, [name])
    return name


def create_again(address, name):
    client = {"bootstrap.servers": address}
    admin = AdminClient(client)
    admin.delete_topics([name])[name].result(60)
    end = time.monotonic() + 60
    while True:
        # A broker deletes a topic in a while.
        try:
            if create_topics(client, [name]):
                return
        except Exception:
            assert time.monotonic() < end
        time.sleep(0.1)


def test_an_input_that_was_created_again_isnt_resumed(kafka, name):
    fill(kafka, name, MESSAGES)
    source = KafkaSource(KafkaSettings(kafka, name), ["n"])
    position = read(source, 6)[-1].position
    source.close()
    again = KafkaSource(KafkaSettings(kafka, name), ["n"])
    again.seek(position)
    again.close()
    create_again(kafka, name)
    # As many rows as before: the offsets alone don't tell.
    fill(kafka, name, MESSAGES)
    other = KafkaSource(KafkaSettings(kafka, name), ["n"])
    with pytest.raises(CheckpointError, match=AGAIN) as caught:
        other.seek(position)
    assert position["topic"] in str(caught.value)
    assert "Rows that were held or not yet read are gone with it" in str(caught.value)
    # A checkpoint of a former version doesn't know.
    del position["topic"]
    other.seek(position)
    other.close()


def test_an_output_that_was_created_again_isnt_resumed(kafka, name):
    chosen = KafkaSettings(kafka, name)
    sink = KafkaSink(chosen, SCHEMA, None, job=name)
    sink.write(rows(0, 5))
    mark = sink.commit()
    sink.close()
    former = {"rows": mark["rows"]}
    for resumed in (mark, former):
        KafkaSink(chosen, SCHEMA, resumed, job=name).close()
    create_again(kafka, name)
    with pytest.raises(CheckpointError, match=AGAIN):
        KafkaSink(chosen, SCHEMA, mark, job=name)
    # Even if it has as many rows of a job of this name.
    fresh = KafkaSink(chosen, SCHEMA, None, job=name)
    fresh.write(rows(0, 5))
    fresh.close()
    with pytest.raises(CheckpointError, match=AGAIN):
        KafkaSink(chosen, SCHEMA, mark, job=name)
    KafkaSink(chosen, SCHEMA, former, job=name).close()
    assert numbers(kafka, name) == list(range(5))


def test_a_source_notices_it_while_it_reads(kafka, name, monkeypatch):
    monkeypatch.setattr(kafka_topic, "WATCH_SECONDS", 0.2)
    fill(kafka, name, MESSAGES)
    source = KafkaSource(KafkaSettings(kafka, name), ["n"])
    n_rows = sum(len(chunk.rows) for chunk in read(source, 6))
    create_again(kafka, name)
    fill(kafka, name, MESSAGES * 3)
    with pytest.raises(CheckpointError, match=rf"{AGAIN}|the topic was created again"):
        for chunk in source:
            n_rows += len(chunk.rows)
            assert n_rows < 100
    source.close()


def test_a_sink_notices_it_while_it_writes(kafka, name, monkeypatch):
    monkeypatch.setattr(kafka_topic, "WATCH_SECONDS", 0.0)
    sink = KafkaSink(KafkaSettings(kafka, name), SCHEMA, None, job=name, commit_seconds=None)
    sink.write(rows(0, 5))
    sink.commit()
    create_again(kafka, name)
    with pytest.raises(CheckpointError, match=AGAIN):
        for begin in range(5, 500, 5):
            sink.write(rows(begin, begin + 5))
            sink.commit()
            time.sleep(0.1)
    sink.abandon()


def test_a_broker_without_ids_and_one_that_doesnt_answer(kafka, name, monkeypatch):
    watch = KafkaSource(KafkaSettings(kafka, name), ["n"])._reader.topic
    known = watch.id

    def fails(code):
        def ask():
            watch._answer = kafka_topic.Future()
            watch._answer.set_exception(KafkaException(KafkaError(code)))

        return ask

    monkeypatch.setattr(watch, "_ask", fails(KafkaError._TIMED_OUT))
    watch.check()
    assert watch.id == known
    watch.id = None
    monkeypatch.setattr(watch, "_ask", fails(KafkaError._UNSUPPORTED_FEATURE))
    watch.open()
    assert watch.id is None
    watch.expect(known)
    watch.look()
    watch.check()
