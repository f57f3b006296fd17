import sys

import pytest

from shoal.errors import JobError, ResourceError
from shoal.io.kafka import CONNECTOR
from shoal.io.kafka.client import Connection
from shoal.io.kafka.settings import KafkaSettings

SECRET = "correct horse battery"
SASL = {"security.protocol": "SASL_SSL"}


def made(**keys):
    return KafkaSettings("localhost:9092", "people", **keys)


def test_all_errors_are_reported_at_once():
    with pytest.raises(JobError) as caught:
        KafkaSettings(
            " ",
            "no topic!",
            format="jsn",
            start="yesterday",
            rows=0,
            partitions=(1, 1),
            columns=("a", "a"),
            settings={"group.id": "mine", "ssl.key.password": SECRET, "linger.ms": [5]},
        )
    keys = [problem.key for problem in caught.value.problems]
    assert keys == [
        "kafka", "topic", "format", "start", "rows", "partitions", "columns", "columns",
        "settings.group.id", "settings.ssl.key.password", "settings.linger.ms",
    ]  # fmt: skip
    assert "Did you mean 'json'" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_no_partitions_are_not_all_partitions():
    with pytest.raises(JobError, match="Leave it out to own all"):
        made(partitions=())


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.key.pem",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
    ],
)
def test_a_secret_in_clear_is_refused(name):
    with pytest.raises(JobError, match="secret in plain text") as caught:
        made(settings={name: SECRET})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable.auto.commit", True),
        ("auto.offset.reset", "latest"),
        ("transactional.id", "mine"),
        ("enable.idempotence", False),
        ("isolation.level", "read_uncommitted"),
        ("acks", 1),
        ("bootstrap.servers", "elsewhere:9092"),
        ("plugin.library.paths", "x.so"),
        ("ssl.engine.location", "x.so"),
        ("enable.ssl.certificate.verification", False),
    ],
)
def test_what_would_break_the_promise_is_refused(name, value):
    with pytest.raises(JobError, match=rf"settings\.{name}: (can't be set|must be)"):
        made(settings={name: value})


def test_what_keeps_the_promise_may_be_said():
    given = {
        "isolation.level": "read_committed",
        "acks": "all",
        "enable.ssl.certificate.verification": True,
    }
    values = made(settings=given).resolved().values
    assert values["enable.ssl.certificate.verification"] == "true"
    assert values["acks"] == "all"


def test_secrets_are_looked_up_late_and_never_shown(monkeypatch, tmp_path):
    (tmp_path / "key").write_text(SECRET + " in a file\n")
    settings = made(
        settings={
            "security.protocol": "SASL_SSL",
            "sasl.password": "env:KAFKA_WORD",
            "ssl.key.password": f"file:{tmp_path}/key",
        }
    )
    monkeypatch.setenv("KAFKA_WORD", SECRET)
    resolved = settings.resolved()
    assert resolved.values["sasl.password"] == SECRET
    assert resolved.values["ssl.key.password"] == SECRET + " in a file"
    assert SECRET not in repr(settings) + repr(resolved) + str(settings)
    assert resolved.hide(f"bad password {SECRET}!") == "bad password ***!"


def test_a_secret_that_isnt_there(monkeypatch, tmp_path):
    monkeypatch.delenv("KAFKA_WORD", raising=False)
    with pytest.raises(JobError, match="environment variable KAFKA_WORD isn't set"):
        made(settings=SASL | {"sasl.password": "env:KAFKA_WORD"}).resolved()
    with pytest.raises(ResourceError, match="it doesn't exist"):
        made(settings=SASL | {"sasl.password": f"file:{tmp_path}/none"}).resolved()
    (tmp_path / "key").write_bytes(b"\xff")
    with pytest.raises(ResourceError, match="isn't UTF-8"):
        made(settings=SASL | {"sasl.password": f"file:{tmp_path}/key"}).resolved()


def test_settings_cant_be_changed_later():
    given = {"linger.ms": 5}
    settings = made(settings=given)
    given["group.id"] = "mine"
    assert dict(settings.settings) == {"linger.ms": 5}


@pytest.mark.parametrize(
    ("name", "value"),
    [("no.such.setting", "1"), ("fetch.min.bytes", "many"), ("queue.buffering.max.ms", -5)],
)
def test_what_the_client_refuses_is_an_error_of_the_job(name, value):
    with pytest.raises(JobError, match=rf"settings\.{name}: is rejected by the client"):
        Connection(made(settings={name: value})).consumer(group_id="x")


def test_a_secret_that_the_client_refuses_isnt_shown(monkeypatch):
    monkeypatch.setenv("KAFKA_WORD", SECRET)
    connection = Connection(
        made(
            settings={
                "ssl.key.pem": "env:KAFKA_WORD",
                "ssl.certificate.pem": "env:KAFKA_WORD",
                "security.protocol": "SSL",
            }
        )
    )
    with pytest.raises(JobError) as caught:
        connection.consumer(group_id="x")
    assert SECRET not in str(caught.value)


def test_without_the_client_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(JobError, match=r"pip install '\.\[kafka\]'"):
        Connection(made())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ssl.ca.location": "ca.pem"}, "protocol: doesn't ask for SSL, so that ssl.ca.location"),
        (
            {"security.protocol": "SSL", "sasl.username": "me"},
            "protocol: doesn't ask for SASL, so that sasl.username has no effect. Write SASL_SSL",
        ),
        (
            {"security.protocol": "ssl", "ssl.certificate.location": "me.pem"},
            "ssl.key.location: is missing: a certificate and its key go together",
        ),
        (
            {"security.protocol": "ssl", "ssl.key.location": "me.key"},
            "ssl.certificate.location: is missing",
        ),
        (
            {"security.protocol": "ssl", "ssl.ca.location": "file:ca.pem"},
            "ssl.ca.location: is the path of a file. Write the path alone",
        ),
    ],
)
def test_what_would_connect_in_clear_or_not_at_all_is_refused(settings, said):
    with pytest.raises(JobError) as caught:
        made(settings=settings)
    assert said in str(caught.value)


def test_a_file_that_cant_be_read_is_named(tmp_path):
    settings = made(
        settings={"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "ca.pem")}
    )
    with pytest.raises(ResourceError, match=r"settings\.ssl\.ca\.location: .*it doesn't exist"):
        Connection(settings)


def test_files_are_relative_to_the_job(tmp_path):
    given = {
        "kafka": "localhost:9092",
        "topic": "people",
        "settings": {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": "tls/ca.pem",
            "ssl.crl.location": "/etc/crl.pem",
            "sasl.password": "file:word",
        },
    }
    found = CONNECTOR.make_input(given, tmp_path).kafka.settings
    assert found["ssl.ca.location"] == f"{tmp_path}/tls/ca.pem"
    assert found["ssl.crl.location"] == "/etc/crl.pem"
    assert found["sasl.password"] == f"file:{tmp_path}/word"
    given["settings"]["ssl.ca.location"] = "probe"
    assert CONNECTOR.make_input(given, tmp_path).kafka.settings["ssl.ca.location"] == "probe"
