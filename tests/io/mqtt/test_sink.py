"""Publish to a real broker: nothing is lost, and doubles have the numbers that they had."""

from __future__ import annotations

import json
import threading
import time

import pyarrow as pa
import pytest

from shoal.errors import ResourceError
from shoal.io.base import DurableSink
from shoal.io.mqtt.settings import MqttSettings
from shoal.io.mqtt.sink import MqttSink
from tests.mosquitto import Mosquitto, Subscriber

SCHEMA = pa.schema([("n", pa.int64()), ("word", pa.string())])


def rows(begin, end):
    numbers = range(begin, end)
    words = [f'a "{number}"\n' for number in numbers]
    return pa.record_batch([pa.array(numbers), pa.array(words)], schema=SCHEMA)


def opened(broker, mark=None):
    return MqttSink(MqttSettings(broker.address, "public/rows"), "shoal-test-out", SCHEMA, mark)


@pytest.fixture
def reader(mosquitto):
    subscriber = Subscriber(mosquitto.port, "public/#")
    yield subscriber
    subscriber.close()


def wait_for(is_so, seconds=30.0):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_rows_are_numbered_messages_and_doubles_have_their_numbers(mosquitto, reader):
    sink = opened(mosquitto)
    assert isinstance(sink, DurableSink)
    sink.write(rows(0, 1500))
    mark = sink.commit()
    assert mark == {"rows": 1500}
    sink.write(rows(1500, 1510))
    sink.commit()
    sink.abandon()
    # A checkpoint that knows of the first rows only: the others are published again.
    sink = opened(mosquitto, mark)
    sink.write(rows(1500, 1520))
    sink.close()
    sink.close()
    wait_for(lambda: len(reader.messages) >= 1530)
    found = [(int(more["row"]), json.loads(payload)) for _, payload, more in reader.messages]
    assert [number for number, _ in found] == [*range(1510), *range(1500, 1520)]
    assert all(row == {"n": number, "word": f'a "{number}"\n'} for number, row in found)


def test_a_broker_that_goes_away_is_waited_for(mosquitto, reader):
    sink = opened(mosquitto)
    sink.write(rows(0, 10))
    sink.commit()
    mosquitto.stop()
    wait_for(lambda: sink.is_away)
    sink.write(rows(10, 20))
    timer = threading.Timer(1.0, mosquitto.start)
    timer.start()
    assert sink.commit() == {"rows": 20}
    sink.close()
    timer.join()
    wait_for(lambda: {int(more["row"]) for *_, more in reader.messages} == set(range(20)))


def test_a_stop_ends_the_waiting(mosquitto):
    sink = opened(mosquitto)
    mosquitto.stop()
    sink.write(rows(0, 3))
    threading.Timer(0.5, sink.stop).start()
    with pytest.raises(ResourceError, match="stopped while no broker answers"):
        sink.commit()
    sink.abandon()


def test_a_right_that_is_missing_is_an_error(tmp_path):
    (tmp_path / "acl").write_text("topic read #\n")
    (tmp_path / "acl").chmod(0o600)
    with Mosquitto(tmp_path / "broker", f"allow_anonymous true\nacl_file {tmp_path}/acl") as broker:
        sink = opened(broker)
        sink.write(rows(0, 1))
        with pytest.raises(ResourceError, match="refuses a message: Not authorized"):
            sink.commit()
        sink.abandon()
