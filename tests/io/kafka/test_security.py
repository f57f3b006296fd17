"""Brokers that ask for TLS, certificates and passwords: from topic to topic, and what is said."""

from __future__ import annotations

import shutil
import signal
import socket
import ssl
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from shoal.errors import JobError, ResourceError
from shoal.io.kafka import client, reader
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.sink import KafkaSink
from shoal.io.kafka.source import KafkaSource
from shoal.testing.broker import Broker, NoBrokerError, create_topics
from shoal.testing.certificates import Authority
from tests.crashes.world import n_taken_in, started, wait_until, wait_until_it_listens
from tests.docs.test_kafka_walk import run, walk
from tests.io.kafka.world import SCHEMA, read, rows
from tests.world import COMMAND

pytest.importorskip("cryptography")

WORD, WRONG = "a right word", "a wrong word"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """An authority that nobody trusts."""
    return Authority(tmp_path_factory.mktemp("strangers"))


@pytest.fixture(scope="module")
def own_broker(authority):
    """A broker that asks for all of it: TLS, a certificate of the client, and a password."""
    users = {"shoal": WORD}
    try:
        with Broker(tls=authority, mutual=True, users=users, mechanism="SCRAM-SHA-512") as own:
            create_topics(own.client, ["people"])
            yield own
    except NoBrokerError as error:
        pytest.skip(str(error))


@pytest.fixture
def good(own_broker, monkeypatch):
    """Settings of a job with which the broker is content."""
    monkeypatch.setenv("KAFKA_WORD", WORD)
    monkeypatch.setenv("KAFKA_WRONG", WRONG)
    # A broker that says nothing isn't waited for as long.
    monkeypatch.setattr(client.Connection.partitions, "__defaults__", (2.0,))
    monkeypatch.setattr(reader.PartitionReader.partitions, "__defaults__", (2.0,))
    settings = {**own_broker.client, "sasl.password": "env:KAFKA_WORD"}
    del settings["bootstrap.servers"]
    return settings


def refusals(address, settings, kind=ResourceError):
    """What is said when the topic is opened as an input and as an output."""
    said = []
    for opening in (
        lambda made: KafkaSource(made, ["n"]),
        lambda made: KafkaSink(made, SCHEMA, None, job="people"),
    ):
        with pytest.raises(kind) as caught:
            opening(KafkaSettings(address, "people", settings=settings))
        said.append(str(caught.value))
    assert WORD not in str(said)
    assert WRONG not in str(said)
    assert "KAFKA_W" not in str(said)
    return said


def without(settings, *names):
    return {name: value for name, value in settings.items() if name not in names}


def test_with_the_right_settings_rows_go_out_and_come_back(own_broker, good):
    chosen = KafkaSettings(own_broker.address, "people", settings=good)
    sink = KafkaSink(chosen, SCHEMA, None, job="right")
    sink.write(rows(0, 3))
    sink.close()
    source = KafkaSource(chosen, ["n"])
    assert read(source, 3)[0].batch["n"].to_pylist() == [0, 1, 2]
    source.close()


def test_a_wrong_password_is_one_error(own_broker, good, caplog):
    for said in refusals(own_broker.address, {**good, "sasl.password": "env:KAFKA_WRONG"}):
        assert "it doesn't accept the user or the password. Check sasl.username" in said
    assert "no broker answers" not in caplog.text


def test_another_mechanism_is_named(own_broker, good):
    for said in refusals(own_broker.address, {**good, "sasl.mechanism": "PLAIN"}):
        assert "doesn't offer sasl.mechanism PLAIN; it offers SCRAM-SHA-512" in said


def test_a_broker_of_another_authority_isnt_trusted(own_broker, good, strangers):
    for settings in (
        without(good, "ssl.ca.location"),
        {**good, "ssl.ca.location": str(strangers.ca)},
    ):
        for said in refusals(own_broker.address, settings):
            assert "its certificate can't be verified. Set ssl.ca.location" in said


def test_a_broker_of_another_name_isnt_trusted(own_broker, good):
    port = own_broker.address.rpartition(":")[2]
    for said in refusals(f"localhost:{port}", good):
        assert "its certificate isn't for localhost. Write a name" in said


def test_a_broker_may_ask_for_a_certificate(own_broker, good, authority, strangers):
    names = ("ssl.certificate.location", "ssl.key.location")
    for said in refusals(own_broker.address, without(good, *names)):
        assert "it asks for a certificate of the job" in said
    for issued in (authority.issue("expired", days=-1), strangers.issue("stranger")):
        files = dict(zip(names, map(str, (issued.certificate, issued.key)), strict=True))
        for said in refusals(own_broker.address, good | files):
            assert "doesn't accept the certificate of the job. Has it expired" in said


def test_a_key_may_have_a_password(own_broker, good, authority):
    issued = authority.issue("locked", password=WORD)
    locked = {
        **good,
        "ssl.certificate.location": str(issued.certificate),
        "ssl.key.location": str(issued.key),
    }
    word = {"ssl.key.password": "env:KAFKA_WORD"}
    KafkaSource(KafkaSettings(own_broker.address, "people", settings=locked | word), ["n"]).close()
    for wrong in ({}, {"ssl.key.password": "env:KAFKA_WRONG"}):
        for said in refusals(own_broker.address, locked | wrong, JobError):
            assert "settings.ssl.key.location: can't be opened" in said
            assert "is ssl.key.password its password?" in said


def test_a_key_belongs_to_its_certificate(own_broker, good, strangers):
    other = {**good, "ssl.key.location": str(strangers.issue("other").key)}
    for said in refusals(own_broker.address, other, JobError):
        assert "settings.ssl.key.location: isn't the key of the certificate" in said


def test_a_broker_that_expects_another_protocol_is_no_riddle(own_broker, good):
    for said in refusals(own_broker.address, {}):
        assert "it closes each one at once" in said
        assert "another security.protocol than PLAINTEXT" in said


def test_a_broker_without_a_log_in_says_so(own_broker, authority, monkeypatch):
    monkeypatch.setenv("KAFKA_WORD", WORD)
    with Broker(tls=authority) as open_broker:
        settings = {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(authority.ca),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "shoal",
            "sasl.password": "env:KAFKA_WORD",
        }
        for said in refusals(open_broker.address, settings):
            assert "it has no authentication at this address" in said


@contextmanager
def tls_server(issued):
    """The address of a server that does nothing but shake hands."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.certificate, issued.key)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with suppress(OSError), context.wrap_socket(connection, server_side=True):
                        pass

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def test_a_certificate_that_has_expired_is_named(authority):
    """No broker is asked: a real one wouldn't start with such a certificate."""
    settings = {"security.protocol": "SSL", "ssl.ca.location": str(authority.ca)}
    with tls_server(authority.issue("old", hosts=["127.0.0.1"], days=-1)) as address:
        for said in refusals(address, settings):
            assert "its certificate has expired. Have it renewed" in said


# -- from topic to topic ---------------------------------------------------------------------------


def secured(folder, broker):
    """The example of docs/kafka.md, with the security of a broker."""
    here = walk(folder, broker.address, "people", "public")
    tls = here / "tls"
    tls.mkdir()
    settings = without(broker.client, "bootstrap.servers")
    for name, value in settings.items():
        if name.endswith(".location"):
            # Seen from the job, as a user writes it.
            settings[name] = f"tls/{Path(shutil.copy(value, tls)).name}"
    if "sasl.password" in settings:
        (here / "word").write_text(WORD + "\n")
        settings["sasl.password"] = "file:word"
    lines = "".join(f'"{name}" = "{value}"\n' for name, value in settings.items())
    with (here / "job.toml").open("a") as job:
        job.write(f"[input.settings]\n{lines}[output.settings]\n{lines}")
    return here


SECURITY = {
    "TLS": {},
    "mutual TLS": {"mutual": True},
    "SCRAM": {"users": {"shoal": WORD}, "mechanism": "SCRAM-SHA-512"},
}


@pytest.mark.parametrize("name", SECURITY)
def test_from_topic_to_topic_with_a_kill_of_each(own_broker, authority, tmp_path, name):
    """The run is killed, then the broker, and the audit finds every row once."""
    people = "../anonymize_a_csv/people.csv"
    with Broker(tls=authority, **SECURITY[name]) as broker:
        create_topics(broker.client, ["people", "public"])
        here = secured(tmp_path, broker)
        ends = [broker.address, *(f"{k}={v}" for k, v in broker.client.items())]
        run(here, sys.executable, "send.py", people, "people", *ends)
        words = ["run", str(here / "job.toml"), "--trace", f"{here}/trace/", "--log", "json"]
        with started(words) as process:
            wait_until(lambda: n_taken_in(here) > 0)
            process.kill()
        with started([*words, "--drain"]) as process:
            wait_until_it_listens(process)
            broker.kill()
            broker.start()
            run(here, sys.executable, "send.py", people, "people", *ends)
            wait_until(lambda: n_taken_in(here) == 1000)
            process.send_signal(signal.SIGTERM)
            said = process.stderr.read().decode()
            assert process.wait(600) == 0, said
        assert WORD not in said
        received = run(here, sys.executable, "receive.py", "public", "published.jsonl", *ends)
        assert int(received.split()[0]) > 800
    header, *lines = (here / people).read_text().splitlines()
    (here / "all.csv").write_text("\n".join([header, *lines, *lines, ""]))
    verdict = run(
        here, *COMMAND, "audit", "job.toml", "published.jsonl",
        "--original", "all.csv", "--trace", "trace/",
    )  # fmt: skip
    assert verdict.startswith("kept: 12 of 12")
    state = b"".join(path.read_bytes() for path in (here / "state").rglob("*") if path.is_file())
    assert WORD.encode() not in state
