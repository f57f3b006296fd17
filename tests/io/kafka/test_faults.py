"""Brokers that go away and come back, are slow, refuse a message, or want a password."""

import json
import threading
import time
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from shoal.errors import ResourceError
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.sink import KafkaSink
from shoal.io.kafka.source import KafkaSource
from shoal.testing.broker import Broker, NoBrokerError, create_topics
from tests.io.kafka.proxy import ThrottlingProxy
from tests.io.kafka.world import SCHEMA, fill, numbers, read, rows


@pytest.fixture(scope="module")
def own_broker():
    """A broker that may be killed."""
    try:
        with Broker() as own:
            yield own
    except NoBrokerError as error:
        pytest.skip(str(error))


@pytest.fixture
def broker(own_broker):
    """The same, and running."""
    own_broker.start()
    return own_broker


def settings(broker, name, **keys):
    create_topics(broker.client, [name])
    return KafkaSettings(broker.address, name, **keys)


def test_a_source_waits_for_its_broker(broker, caplog):
    away = settings(broker, "waits")
    fill(broker.address, "waits", [b'{"n": 0}'])
    source = KafkaSource(away, ["n"])
    first = read(source, 1)
    broker.kill()
    quiet = threading.Timer(3, source.stop)
    quiet.start()
    assert list(source) == []
    assert caplog.text.count("no broker answers; waiting") == 1
    broker.start()
    source._stopped.clear()
    fill(broker.address, "waits", [b'{"n": 1}'])
    [chunk] = read(source, 1)
    assert chunk.batch["n"].to_pylist() == [1]
    assert caplog.text.count("the broker is back") == 1
    assert first[0].position["streams"] == {"0": 1}
    source.close()


def test_a_broker_that_is_back_is_noticed_in_silence(broker, caplog):
    source = KafkaSource(settings(broker, "silent"), ["n"])
    broker.kill()
    threading.Timer(3, source.stop).start()
    assert list(source) == []
    broker.start()
    source._stopped.clear()
    end = time.monotonic() + 30
    while "the broker is back" not in caplog.text:
        source._reader.take(1)
        assert time.monotonic() < end
    source.close()


def test_a_sink_continues_when_its_broker_is_back(broker, caplog):
    sink = KafkaSink(settings(broker, "goes-on", rows=3), SCHEMA, None, job="goes-on")
    for begin in (0, 20):
        sink.write(rows(begin, begin + 10))
        sink.commit()
        if begin == 0:
            # A broker that was started just now may not answer at once either.
            caplog.clear()
        sink.write(rows(begin + 10, begin + 20))
        broker.kill()
        back = threading.Timer(2, broker.start)
        back.start()
        assert sink.commit()["rows"] == begin + 20
        back.join()
    sink.close()
    assert numbers(broker.address, "goes-on") == list(range(40))
    assert caplog.text.count("no broker answers; waiting") == 2
    assert caplog.text.count("the broker is back") == 2


def test_a_transaction_that_took_too_long_is_made_again(broker, caplog):
    keys = {"rows": 3, "settings": {"transaction.timeout.ms": 1000}}
    sink = KafkaSink(
        settings(broker, "slow", **keys), SCHEMA, None, job="slow", commit_seconds=None
    )
    sink.write(rows(0, 10))
    sink.commit()
    sink.write(rows(10, 20))
    sink._transactions._producer.flush(10)
    # The broker takes it back by itself, about when it is a second old.
    end = time.monotonic() + 30
    while True:
        fill(broker.address, "slow", [json.dumps({"n": -1}).encode()])
        if numbers(broker.address, "slow")[-1] == -1:
            break
        assert time.monotonic() < end
        time.sleep(0.2)
    assert sink.commit()["rows"] == 20
    sink.close()
    assert [n for n in numbers(broker.address, "slow") if n >= 0] == list(range(20))
    seen = [n for n in numbers(broker.address, "slow", "read_uncommitted") if n >= 0]
    assert seen == [*range(20), *range(10, 20)]
    assert "a transaction failed and was repeated" in caplog.text


def test_a_stopped_sink_doesnt_wait(broker):
    chosen = settings(broker, "stops", rows=3)
    sink = KafkaSink(chosen, SCHEMA, None, job="stops", commit_seconds=None)
    sink.write(rows(0, 5))
    mark = sink.commit()
    broker.kill()
    sink.write(rows(5, 9))
    threading.Timer(1, sink.stop).start()
    with pytest.raises(ResourceError, match="4 rows wait to be published"):
        sink.commit()
    sink.close()
    broker.start()
    again = KafkaSink(chosen, SCHEMA, mark, job="stops")
    again.write(rows(5, 9))
    again.close()
    assert numbers(broker.address, "stops") == list(range(9))


def test_a_paused_broker_is_waited_for(broker):
    sink = KafkaSink(settings(broker, "paused"), SCHEMA, None, job="paused", commit_seconds=None)
    sink.write(rows(0, 5))
    broker.pause()
    threading.Timer(2, broker.resume).start()
    sink.close()
    assert numbers(broker.address, "paused") == list(range(5))


def test_a_broker_may_be_away_for_longer_than_a_transaction_may_be_open(broker, caplog):
    chosen = settings(broker, "long", rows=3, settings={"transaction.timeout.ms": 1500})
    sink = KafkaSink(chosen, SCHEMA, None, job="long", commit_seconds=None)
    sink.write(rows(0, 10))
    sink.commit()
    sink.write(rows(10, 20))
    broker.kill()
    back = threading.Timer(8, broker.start)
    back.start()
    assert sink.commit()["rows"] == 20
    back.join()
    assert not sink.is_away
    sink.close()
    assert numbers(broker.address, "long") == list(range(20))
    assert "a transaction failed and was repeated" in caplog.text


def test_a_message_that_the_topic_refuses_is_an_error_that_says_what_to_do(broker):
    sink = KafkaSink(settings(broker, "small"), SCHEMA, None, job="small", commit_seconds=None)
    sink.write(rows(0, 5))
    sink.commit()
    change(broker, "small", "max.message.bytes", 1500)
    sink.write(rows(5, 200))
    with pytest.raises(ResourceError, match=r"Raise max\.message\.bytes of the topic, or set mess"):
        sink.commit()
    sink.abandon()
    assert numbers(broker.address, "small") == list(range(5))


def change(broker, topic, name, value):
    """Change a setting of a topic."""
    entry = ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET)
    place = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(broker.client)
    [done] = admin.incremental_alter_configs([place]).values()
    done.result(60)


def test_a_slow_broker_loses_and_doubles_nothing(own_broker):
    """A proxy passes some kilobytes a second, for half of the rows nothing for some seconds."""
    with slow_broker() as (slow, proxy):
        create_topics(slow.client, ["slow-in", "slow-out"])
        values = [b'{"n": %d, "word": "%s"}' % (n, b"x" * 100) for n in range(300)]
        fill(slow.address, "slow-in", values)
        source = KafkaSource(KafkaSettings(slow.address, "slow-in"), ["n"])
        to = KafkaSettings(
            slow.address, "slow-out", rows=3, settings={"transaction.timeout.ms": 2000}
        )
        sink = KafkaSink(to, SCHEMA, None, job="slow", commit_seconds=0.1)
        proxy.rate = 20_000
        for number, chunk in enumerate(taken(source, 300)):
            numbers_read = chunk.batch["n"].to_pylist()
            sink.write(rows(numbers_read[0], numbers_read[-1] + 1))
            if number == 1:
                # Longer than the broker keeps a transaction open.
                proxy.rate = 0
                threading.Timer(4, lambda: setattr(proxy, "rate", 20_000)).start()
            sink.commit()
        source.close()
        sink.close()
        proxy.rate = 10_000_000
        assert proxy.n_bytes > 60_000
        assert numbers(slow.address, "slow-out") == list(range(300))


def taken(source, n_rows):
    """The chunks of a source until there are this many rows."""
    for chunk in source:
        yield chunk
        if chunk.position["rows"] >= n_rows:
            return


@contextmanager
def slow_broker():
    """A broker that is reached through a proxy."""
    with ThrottlingProxy() as proxy:
        slow = Broker(settings={"advertised.listeners": f"PLAINTEXT://{proxy.address}"})
        proxy.target = slow.address
        with slow:
            yield slow, proxy


def test_a_wrong_password_is_an_error_at_once(own_broker, monkeypatch):
    with Broker(users={"shoal": "right word"}) as guarded:
        create_topics(guarded.client, ["people"])

        def chosen():
            return KafkaSettings(
                guarded.address,
                "people",
                settings={
                    "security.protocol": "SASL_PLAINTEXT",
                    "sasl.mechanism": "PLAIN",
                    "sasl.username": "shoal",
                    "sasl.password": "env:KAFKA_WORD",
                },
            )

        monkeypatch.setenv("KAFKA_WORD", "wrong word")
        for opening in (
            lambda: KafkaSource(chosen(), ["n"]),
            lambda: KafkaSink(chosen(), SCHEMA, None, job="people"),
        ):
            with pytest.raises(
                ResourceError, match="doesn't accept the user or the password"
            ) as caught:
                opening()
            assert "wrong word" not in str(caught.value)
        monkeypatch.setenv("KAFKA_WORD", "right word")
        sink = KafkaSink(chosen(), SCHEMA, None, job="people")
        sink.write(rows(0, 3))
        sink.close()
        source = KafkaSource(chosen(), ["n"])
        assert read(source, 3)[0].batch["n"].to_pylist() == [0, 1, 2]
        source.close()
