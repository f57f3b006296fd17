"""A registry that is away, refuses, or answers nonsense."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from shoal.errors import JobError, ResourceError
from shoal.io.kafka.schemas import client
from shoal.io.kafka.schemas.client import AwayError, Registry
from shoal.io.kafka.schemas.settings import RegistrySettings
from shoal.io.kafka.settings import KafkaSettings
from shoal.testing.certificates import Authority

SCHEMA = {"schema": '{"type": "record", "name": "A", "fields": []}'}


class Fake:
    """A server that answers each request with the next of what it is given."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, object]] = []
        self.asked: list[tuple[str, str, str | None]] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self.rfile.read(length)
                fake.asked.append((self.command, self.path, self.headers.get("Authorization")))
                status, body = fake.answers.pop(0)
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def registry(self, **settings: str) -> Registry:
        return Registry(RegistrySettings(self.url, settings), threading.Event())


@pytest.fixture
def fake(monkeypatch) -> Iterator[Fake]:
    monkeypatch.setattr(client, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(client, "OPEN_SECONDS", 0.3)
    fake = Fake()
    yield fake
    fake.server.shutdown()
    fake.server.server_close()


def test_it_waits_for_a_registry_that_has_answered_before(fake, caplog):
    registry = fake.registry()
    fake.answers += [(200, []), (503, {}), (500, b"<html>"), (200, b"no JSON"), (200, SCHEMA)]
    registry.check()
    schema = registry.schema(7)
    assert schema is not None
    assert schema.text == SCHEMA["schema"]
    assert not registry.is_away
    words = [record.getMessage() for record in caplog.records]
    assert [word.rpartition(": ")[2] for word in words] == [
        "no registry answers; waiting for it to come back", "the registry is back"
    ]  # fmt: skip


def test_it_doesnt_wait_long_for_one_that_never_answered(fake):
    fake.server.server_close()
    with pytest.raises(AwayError, match=r"no registry answers \(.*\)\. Is it running"):
        fake.registry().check()


def test_a_stop_ends_the_waiting(fake):
    stopped = threading.Event()
    registry = Registry(RegistrySettings(fake.url), stopped)
    fake.answers += [(200, [])]
    registry.check()
    fake.answers += [(503, {})] * 1000

    def stop_when_away() -> None:
        while not registry.is_away:
            time.sleep(0.01)
        stopped.set()

    threading.Thread(target=stop_when_away).start()
    with pytest.raises(AwayError):
        registry.schema(1)


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "doesn't accept the user or the password"), (403, "doesn't allow this")],
)
def test_a_refusal_ends_it_at_once_and_shows_no_secret(fake, monkeypatch, status, words):
    monkeypatch.setenv("REGISTRY_PASSWORD", "hunter2")
    fake.answers += [(status, {"error_code": status, "message": "hunter2"})]
    registry = fake.registry(username="ann", password="env:REGISTRY_PASSWORD")
    with pytest.raises(ResourceError, match=words) as found:
        registry.schema(1)
    assert "hunter2" not in str(found.value)
    assert fake.asked[0][2] == "Basic YW5uOmh1bnRlcjI="


def test_a_token(fake, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("abc\n")
    fake.answers += [(200, [])]
    fake.registry(token=f"file:{tmp_path}/token").check()
    assert fake.asked[0][2] == "Bearer abc"


def test_what_isnt_there(fake):
    fake.answers += [(404, {"error_code": 40403, "message": "not found"})]
    assert fake.registry().schema(99) is None


def test_an_output_is_registered_once_and_only_if_it_is_compatible(fake):
    registry = fake.registry()
    missing = (404, {"error_code": 40401, "message": "Subject not found"})
    known = {"subject": "s", "id": 5, "version": 1, **SCHEMA}
    fake.answers += [missing, (200, {"is_compatible": True}), (200, {"id": 5})]
    assert registry.register("s", "AVRO", SCHEMA["schema"]) == 5
    paths = [path.partition("?")[0] for _, path, _ in fake.asked]
    assert paths == ["/subjects/s", "/compatibility/subjects/s/versions/latest",
                     "/subjects/s/versions"]  # fmt: skip
    other = fake.registry()
    fake.answers += [(200, known)]
    assert other.register("s", "AVRO", SCHEMA["schema"]) == 5
    for answers in (
        [missing, (200, {"is_compatible": False})],
        [missing, (200, {"is_compatible": True}), (409, {"error_code": 409, "message": "no"})],
    ):
        fake.answers += answers
        with pytest.raises(
            ResourceError, match=r"aren't compatible with the schema that subject s"
        ):
            fake.registry().register("s", "AVRO", SCHEMA["schema"])
    assert not fake.answers


def test_a_registry_that_isnt_trusted(fake, tmp_path):
    Authority(tmp_path / "one")
    fake.server.socket.close()
    settings = RegistrySettings("https://127.0.0.1:1", {"ca": str(tmp_path / "none.pem")})
    with pytest.raises(ResourceError, match="the certificates can't be used"):
        Registry(settings, threading.Event())


@pytest.mark.parametrize(
    ("url", "settings", "words"),
    [
        ("localhost:8081", {}, "isn't an address of a registry; got 'localhost:8081'"),
        ("http://ann:hunter2@h", {}, "has a user in its address"),
        ("http://[h", {}, "isn't an address of a registry"),
        ("http://h", {"password": "hunter2", "username": "a"}, "secret in plain text"),
        ("http://h", {"username": "a"}, "password: is missing"),
        ("http://h", {"token": "env:T", "username": "a", "password": "env:P"}, "and so is a user"),
        ("http://h", {"cq": "x"}, "isn't a known setting"),
        ("http://h", {"ca": "x"}, "isn't encrypted"),
        ("https://h", {"key": "x"}, "which is missing"),
    ],
)
def test_wrong_settings(url, settings, words):
    with pytest.raises(JobError, match=words) as found:
        RegistrySettings(url, settings)
    assert "hunter2" not in str(found.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"format": "avro"}, "registry: is missing, and the format is avro"),
        ({"registry": RegistrySettings("http://h")}, "is for avro and protobuf"),
        ({"fields": {"x": "y"}}, "is for avro and protobuf"),
        ({"subject": "x"}, "is for avro and protobuf"),
        ({"format": "avro", "registry": RegistrySettings("http://h"), "fields": {"x": "a[0]"}},
         r"fields.x: isn't a path; got 'a\[0\]'"),
    ],
)  # fmt: skip
def test_keys_that_dont_go_together(keys, words):
    with pytest.raises(JobError, match=words):
        KafkaSettings("h:1", "people", **keys)
