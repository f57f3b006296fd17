"""A registry behind TLS and a password: read, written, drafted from, and what is said."""

from __future__ import annotations

import base64
import threading
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.errors import ResourceError
from shoal.io.kafka.schemas import client
from shoal.io.kafka.schemas.client import Registry
from shoal.io.kafka.schemas.settings import RegistrySettings
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.sink import KafkaSink
from shoal.io.kafka.source import KafkaSource
from shoal.testing.certificates import Authority
from tests.io.kafka.schemas.tls_proxy import TlsProxy
from tests.io.kafka.world import as_tuples, read
from tests.world import shoal

pytest.importorskip("cryptography")

WORD = "a right word"
BASIC = "Basic " + base64.b64encode(f"ann:{WORD}".encode()).decode()
USER = {"username": "ann", "password": "env:REGISTRY_WORD"}
TABLE = pa.table({"age": ["[30, 40]", None, "x"], "sex": ["f", "m", "f"], "n": [1, 2, 3]})


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(autouse=True)
def word(monkeypatch) -> None:
    monkeypatch.setenv("REGISTRY_WORD", WORD)
    monkeypatch.setattr(client, "OPEN_SECONDS", 2.0)


def asked(url: str, **settings: object) -> None:
    """Ask a registry for a schema that isn't there."""
    given = {name: str(value) for name, value in settings.items()}
    registry = Registry(RegistrySettings(url, given), threading.Event())
    try:
        registry.check()
        assert registry.schema(10**9) is None
    finally:
        registry.close()


def test_from_topic_to_topic_by_tls_and_with_a_password(
    kafka, topic, schema_registry, authority, tmp_path, monkeypatch, capfd
):
    name = topic()
    server = authority.issue("registry", hosts=["127.0.0.1"])
    with TlsProxy(schema_registry, server, BASIC) as proxy:
        registry = RegistrySettings(proxy.address, USER | {"ca": str(authority.ca)})
        made = KafkaSettings(kafka, name, "avro", rows=1, registry=registry)
        sink = KafkaSink(made, TABLE.schema, None, job=name)
        for batch in TABLE.to_batches():
            sink.write(batch)
        sink.close()
        source = KafkaSource(made, TABLE.schema.names)
        rows, bad = as_tuples(read(source, 3))
        source.close()
        assert not bad
        assert [row for _, row in rows] == TABLE.to_pylist()
        assert (proxy.n_passed > 3, proxy.n_refused) == (True, 0)
        # The path of the authority is relative to the job.
        (tmp_path / "ca.pem").write_bytes(authority.ca.read_bytes())
        job = tmp_path / "job.toml"
        words = ["init", f"kafka://{kafka}/{name}", "--registry", proxy.address, "-o", job,
                 "--quasi", "sex", "--measure", 0]  # fmt: skip
        for setting in ("username=ann", "password=env:REGISTRY_WORD", "ca=ca.pem"):
            words += ["--set", f"registry_settings.{setting}"]
        monkeypatch.chdir(Path("/"))
        assert shoal(monkeypatch, *words) == 0, capfd.readouterr().err
        text = job.read_text()
        assert WORD not in text + capfd.readouterr().err
        assert tomllib.loads(text)["input"]["registry_settings"] == USER | {"ca": "ca.pem"}


def test_what_isnt_trusted_or_accepted_is_said_at_once(
    schema_registry, authority, tmp_path, monkeypatch
):
    server = authority.issue("registry", hosts=["127.0.0.1"])
    ca = authority.ca
    with TlsProxy(schema_registry, server, BASIC) as proxy:
        asked(proxy.address, ca=ca, **USER)
        untrusted = "its certificate can't be verified"
        with pytest.raises(ResourceError, match=untrusted):
            asked(proxy.address, **USER)
        with pytest.raises(ResourceError, match=untrusted):
            asked(proxy.address, ca=Authority(tmp_path / "strangers").ca, **USER)
        refused = "doesn't accept the user or the password. Check registry_settings"
        monkeypatch.setenv("REGISTRY_WORD", "a wrong word")
        for user in (USER, {}, {"token": "env:REGISTRY_WORD"}):
            with pytest.raises(ResourceError, match=refused) as found:
                asked(proxy.address, ca=ca, **user)
            assert "wrong word" not in str(found.value)
        plain = proxy.address.replace("https://", "http://")
        with pytest.raises(ResourceError, match="no registry answers"):
            asked(plain)
    for hosts, days in ((["127.0.0.2"], 1), (["127.0.0.1"], -1)):
        wrong = authority.issue("wrong", hosts=hosts, days=days)
        with TlsProxy(schema_registry, wrong) as proxy:
            with pytest.raises(ResourceError, match=untrusted):
                asked(proxy.address, ca=ca)
            assert proxy.n_passed == 0


def test_a_token_and_a_certificate_of_the_job(schema_registry, authority, tmp_path, monkeypatch):
    server = authority.issue("registry", hosts=["127.0.0.1"])
    mine = authority.issue("job")
    (tmp_path / "token").write_text("abc\n")
    token = {"token": f"file:{tmp_path}/token"}
    with TlsProxy(schema_registry, server, "Bearer abc", authority) as proxy:
        asked(proxy.address, ca=authority.ca, cert=mine.certificate, key=mine.key, **token)
        assert proxy.n_passed == 2
        stranger = Authority(tmp_path / "strangers").issue("job")
        for settings in ({}, {"cert": stranger.certificate, "key": stranger.key}):
            with pytest.raises(ResourceError, match="it doesn't accept the one of the job"):
                asked(proxy.address, ca=authority.ca, **token, **settings)
        assert proxy.n_passed == 2
