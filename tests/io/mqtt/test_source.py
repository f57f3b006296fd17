"""Read from a real broker: nothing is lost, and what is delivered again is recognized."""

from __future__ import annotations

import json
import logging
import threading
import time

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from shoal.cli.checkpoint import _plain
from shoal.errors import ResourceError
from shoal.io.base import JournaledSource
from shoal.io.mqtt import client, source
from shoal.io.mqtt.settings import MqttSettings
from shoal.io.mqtt.source import MqttSource
from tests.mosquitto import Mosquitto, publish


def opened(broker, position=None, topic="ward/{ward}/pulse", name="shoal-test", **more):
    found = MqttSource(MqttSettings(broker.address, topic, **more), name, ["n", "ward"])
    assert isinstance(found, JournaledSource)
    if position is not None:
        found.seek(position)
    return found


def numbered(begin, end):
    return [(f"ward/{n % 3}/pulse", json.dumps({"n": n}).encode()) for n in range(begin, end)]


def read(found, n_rows, *, store=True, seconds=30.0):
    """Read chunks until there are this many rows; ``store``: acknowledge them."""
    timer = threading.Timer(seconds, found.stop)
    timer.start()
    chunks, n = [], 0
    for chunk in found:
        chunks.append(chunk)
        n += len(chunk.rows) + len(chunk.bad)
        if store:
            found.acknowledge(chunk.position)
        if n >= n_rows:
            break
    timer.cancel()
    return chunks


def values(chunks, name="n"):
    return [value for chunk in chunks for value in chunk.batch.column(name).to_pylist()]


def begun(broker, **more):
    """Let the broker begin the session, as the first start of a job does."""
    found = opened(broker, **more)
    read(found, 1, seconds=1.0)
    found.close()
    return found.position


def test_what_comes_between_two_runs_is_read_by_the_next_one(mosquitto):
    position = begun(mosquitto)
    publish(mosquitto.port, numbered(0, 700))
    found = opened(mosquitto, position)
    chunks = read(found, 700)
    found.close()
    assert values(chunks) == list(range(700))
    assert values(chunks, "ward") == [str(n % 3) for n in range(700)]
    again = opened(mosquitto, chunks[-1].position)
    assert values(read(again, 1, seconds=1.0)) == []
    again.close()


def test_what_isnt_acknowledged_comes_again_and_what_is_stored_is_dropped(mosquitto):
    position = begun(mosquitto)
    publish(mosquitto.port, numbered(0, 50))
    found = opened(mosquitto, position)
    chunks = read(found, 50, store=False)
    assert values(chunks) == list(range(50))
    found.close()
    # Killed before the journal had it: all comes again.
    found = opened(mosquitto, position)
    chunks = read(found, 50, store=False)
    assert values(chunks) == list(range(50))
    found.close()
    # Killed between the journal and the acknowledgement: it comes again, and is recognized.
    found = opened(mosquitto, position)
    for chunk in chunks:
        same = found.replay_data(chunk.data)
        assert same.batch.equals(chunk.batch)
        assert (same.spans, same.position) == (chunk.spans, chunk.position)
    publish(mosquitto.port, numbered(50, 60))
    assert values(read(found, 10)) == list(range(50, 60))
    found.close()
    # Now the broker knows.
    found = opened(mosquitto, found.position)
    assert values(read(found, 1, seconds=1.0)) == []
    found.close()


def test_equal_messages_are_as_many_rows(mosquitto):
    """Devices repeat themselves; only a delivery again is dropped."""
    position = begun(mosquitto)
    publish(mosquitto.port, [("ward/1/pulse", b'{"n": 7}')] * 1200)
    found = opened(mosquitto, position)
    assert values(read(found, 1200)) == [7] * 1200
    found.close()


def test_a_broker_that_goes_away_is_waited_for(mosquitto, caplog):
    caplog.set_level(logging.WARNING, "shoal.mqtt")
    position = begun(mosquitto)
    found = opened(mosquitto, position)
    chunks = []
    thread = threading.Thread(target=lambda: chunks.extend(read(found, 40, seconds=60)))
    thread.start()
    publish(mosquitto.port, numbered(0, 20))
    wait_for(lambda: len(values(chunks)) or found.position["rows"] == 20)
    mosquitto.stop()
    wait_for(lambda: found.is_away)
    mosquitto.start()
    publish(mosquitto.port, numbered(20, 40))
    thread.join(60)
    assert values(chunks) == list(range(40))
    assert not found.is_away
    found.close()
    said = [record.getMessage() for record in caplog.records]
    assert any(line.endswith("no broker answers; waiting for it to come back") for line in said)
    assert any(line.endswith("the broker is back") for line in said)


def wait_for(is_so, seconds=30.0):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_connections_that_break_while_messages_wait_for_the_journal(mosquitto):
    """What was received and not stored comes again, and isn't taken in twice."""
    position = begun(mosquitto)
    publish(mosquitto.port, numbered(0, 30))
    found = opened(mosquitto, position)
    rows, late = [], []
    timer = threading.Timer(30, found.stop)
    timer.start()
    for chunk in found:
        rows += values([chunk])
        late.append(chunk.position)
        if len(rows) >= 30 and len(late) < 100:
            # The connection breaks before anything is acknowledged.
            epoch = found._link.epoch
            found._link.client.socket().shutdown(2)
            wait_for(lambda epoch=epoch: found._link.epoch > epoch and found._link.is_up)
            break
    found.acknowledge(late[-1])
    publish(mosquitto.port, numbered(30, 40))
    rows += values(read(found, 10))
    timer.cancel()
    found.close()
    assert rows == list(range(40))
    again = opened(mosquitto, found.position)
    assert values(read(again, 1, seconds=1.0)) == []
    again.close()


def test_an_iteration_that_is_begun_again_remembers_what_has_arrived(mosquitto):
    position = begun(mosquitto)
    found = opened(mosquitto, position)
    timer = threading.Timer(60, found.stop)
    timer.start()
    publish(mosquitto.port, numbered(0, 5))
    rows = values(read(found, 5, seconds=60))
    publish(mosquitto.port, numbered(5, 8))
    wait_for(lambda: len(found._arrived) == 3)
    chunks = iter(found)
    rows += values([next(chunks)])
    # What isn't acknowledged comes again.
    epoch = found._link.epoch
    found._link.client.socket().shutdown(2)
    wait_for(lambda: found._link.epoch > epoch and found._link.is_up)
    publish(mosquitto.port, numbered(8, 9))
    rows += values([next(chunks)])
    assert rows == list(range(9))
    timer.cancel()
    found.close()


def test_bad_payloads_are_bad_rows_one_each(mosquitto):
    position = begun(mosquitto)
    hostile = [
        b"", b"   ", b"{", b"[1]", b"\xff\xfe", b'{"n": {"x": 1}}', b'{"n": 1}\n{"n": 2}',
        b"\x00" * 9, b"[" * 100_000, b'{"n": ' + b"9" * 5000 + b"}", b'"' + b"x" * 3_000_000,
    ]  # fmt: skip
    publish(mosquitto.port, [("ward/1/pulse", payload) for payload in hostile] + numbered(0, 3))
    found = opened(mosquitto, position)
    chunks = read(found, len(hostile) + 3)
    found.close()
    bad = [row for chunk in chunks for row in chunk.bad]
    assert values(chunks) == [0, 1, 2]
    assert sorted(row.raw for row in bad) == sorted(hostile)
    assert [row.row for row in bad] == list(range(len(hostile)))


def test_messages_at_qos_0_are_read_and_warned_of(mosquitto, caplog):
    found = opened(mosquitto)
    timer = threading.Timer(1.0, lambda: publish(mosquitto.port, numbered(0, 3), qos=0))
    timer.start()
    assert values(read(found, 3)) == [0, 1, 2]
    found.close()
    timer.join()
    assert "messages are published at QoS 0" in caplog.text


def test_what_was_retained_before_isnt_a_row(mosquitto):
    import paho.mqtt.publish as once

    once.single("ward/1/pulse", b'{"n": 99}', 1, True, "127.0.0.1", mosquitto.port)
    position = begun(mosquitto)
    assert position["rows"] == 0
    publish(mosquitto.port, numbered(0, 3))
    for _ in range(2):
        found = opened(mosquitto, position)
        read(found, 3, seconds=2.0)
        found.close()
        position = found.position
    assert position["rows"] == 3
    once.single("ward/1/pulse", b"", 1, True, "127.0.0.1", mosquitto.port)


def test_a_broker_that_tells_of_another_process_ends_this_one():
    """Mosquitto 2.0 closes the connection without a word, so the reason is given here."""
    found = MqttSource(MqttSettings("127.0.0.1:9", "ward"), "shoal-test", ["n"])
    reason = ReasonCode(PacketTypes.DISCONNECT, "Session taken over")
    found._link._on_disconnect(None, None, None, reason, None)
    with pytest.raises(ResourceError, match="another client has connected as shoal-test"):
        found._link.check()


def test_a_session_that_the_broker_has_forgotten_is_warned_of(mosquitto, caplog):
    position = begun(mosquitto)
    publish(mosquitto.port, numbered(0, 5))
    found = opened(mosquitto, position)
    read(found, 5)
    found.close()
    other = opened(mosquitto, found.position, name="shoal-nobody")
    read(other, 1, seconds=1.0)
    other.close()
    assert "the broker has forgotten the session of shoal-nobody" in caplog.text


def test_no_broker_at_the_start_is_an_error(monkeypatch):
    monkeypatch.setattr(client, "OPEN_SECONDS", 1.0)
    found = MqttSource(MqttSettings("127.0.0.1:9", "ward"), "shoal-test", ["n"])
    with pytest.raises(ResourceError, match=r"no broker answers \(Connection refused\)"):
        read(found, 1)
    found.close()


def test_user_and_password_from_a_file_and_rights(tmp_path, monkeypatch):
    import subprocess

    (tmp_path / "users").touch(0o600)
    subprocess.run(
        ["mosquitto_passwd", "-b", tmp_path / "users", "shoal", "opensesame"], check=True
    )
    more = f"allow_anonymous false\npassword_file {tmp_path}/users"
    (tmp_path / "password").write_text("opensesame\n")
    with Mosquitto(tmp_path / "broker", more) as broker:
        settings = {"username": "shoal", "password": f"file:{tmp_path}/password"}
        found = opened(broker, settings=settings)
        read(found, 1, seconds=1.0)
        assert found._link.is_up
        found.close()
        monkeypatch.setenv("WRONG", "hunter2")
        found = opened(broker, settings=settings | {"password": "env:WRONG"})
        with pytest.raises(ResourceError, match="refuses the connection: Not authorized") as wrong:
            read(found, 1)
        found.close()
        assert "hunter2" not in str(wrong.value)


# The client leaves a socket open after a failed handshake.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_tls_with_a_certificate_of_ones_own(tmp_path):
    import subprocess

    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
         tmp_path / "key.pem", "-out", tmp_path / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    files = f"certfile {tmp_path}/cert.pem\nkeyfile {tmp_path}/key.pem"
    with Mosquitto(tmp_path / "broker", f"{files}\nallow_anonymous true") as broker:
        found = opened(broker, settings={"ca": f"{tmp_path}/cert.pem"})
        read(found, 1, seconds=1.5)
        assert found._link.is_up
        found.close()
        found = opened(broker, settings={"tls": True})
        with pytest.raises(ResourceError, match=r"isn't trusted: self.signed certificate"):
            read(found, 1)
        found.close()


def test_the_window_is_what_the_broker_keeps_to(mosquitto):
    position = begun(mosquitto)
    publish(mosquitto.port, numbered(0, source.WINDOW + 100))
    found = opened(mosquitto, position)
    chunks = read(found, 10**9, store=False, seconds=3.0)
    assert values(chunks) == list(range(source.WINDOW))
    found.close()


def test_a_position_that_is_shown_tells_nothing_of_a_message():
    found = MqttSource(MqttSettings("127.0.0.1:9", "ward/{ward}"), "shoal-test", ["n", "ward"])
    message = source._Message(7, "ward/1", b'{"n": 1}')
    message.digest = found._digest(message)
    chunk = found._chunk([message])
    assert chunk.position["salt"] not in str(dict(_plain(chunk.position)))
    assert message.digest in chunk.position["recent"]
    assert "ward/1" not in repr(message)
    assert "n" not in repr(chunk).replace("Chunk(n_rows=1, n_bad=0)", "")
