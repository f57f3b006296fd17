"""Rows by POST and published rows by GET, over real HTTP on loopback."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shoal.io.http import source as source_module
from shoal.io.http.releases import Releases
from shoal.io.http.source import HttpSource
from shoal.run.observe import PageServer
from shoal.run.observe.rows import routes_of
from tests.io.http.running import running

TOKEN, READER = "a-token-of-sixteen-or-more", "another-token-of-sixteen"
NDJSON = "application/x-ndjson"


class Answered(NamedTuple):
    status: int
    headers: Any
    body: str

    @property
    def error(self) -> str:
        return str(json.loads(self.body)["error"])


class World:
    """A server whose rows a thread takes in, and its output."""

    def __init__(self, folder: Path, token: str | None = None, reader: str | None = None) -> None:
        self.source = HttpSource(["age"])
        self.output = folder / "out.jsonl"
        routes = routes_of(self.source, Releases(str(self.output)), reader)
        self.page = PageServer("127.0.0.1:0", job={}, token=token, routes=routes)
        self.where = self.page.url.split("/")[2]

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answered:
        connection = http.client.HTTPConnection(self.where, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Answered(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()

    def post(self, body: bytes, key: str | None = None, **headers: str) -> Answered:
        more = {} if key is None else {"Idempotency-Key": key}
        return self.ask("POST", "/rows", body, **{"Content-Type": NDJSON} | more | headers)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    with world.page:
        yield world


def test_rows_are_counted_and_a_repeated_post_is_recognized(world):
    with running(world.source) as chunks:
        first = world.post(b'{"age": 1}\n{"age": 2}\n', "a")
        assert (first.status, json.loads(first.body)) == (200, {"rows": 2, "repeated": False})
        again = world.post(b'{"age": 1}\n{"age": 2}\n', "a")
        assert (again.status, json.loads(again.body)) == (200, {"rows": 2, "repeated": True})
        other = world.post(b'{"age": 1}\n', "a")
        assert other.status == 422
        assert "already used with other rows" in other.error
    assert [chunk.batch["age"].to_pylist() for chunk in chunks] == [[1, 2]]


@pytest.mark.parametrize(
    ("body", "headers", "status", "said"),
    [
        (b"CANARY", {}, 400, "line 1: not a JSON object"),
        (b'{"age": 1}\nCANARY', {}, 400, "line 2: not a JSON object"),
        (b"", {}, 400, "no rows"),
        (b'{"a": "' + b"x" * (1 << 20) + b'"}', {}, 400, "line 1: more than 1,048,576 bytes"),
        (b"x" * ((8 << 20) + 1), {}, 413, "8,388,609 bytes, more than the maximum of 8,388,608"),
        (b"{}", {"Content-Type": "text/plain"}, 415, "the Content-Type must be"),
        (b"{}", {"Content-Type": "application/json"}, 415, "the Content-Type must be"),
        (b"{}", {"Content-Type": ""}, 415, "the Content-Type must be"),
        (b"{}", {"Content-Encoding": "gzip"}, 415, "must not be compressed"),
        (b"{}", {"Content-Length": "x"}, 411, "Content-Length"),
        (b"{}", {"Content-Length": "-2"}, 411, "Content-Length"),
        (b"{}", {"Idempotency-Key": "x" * 201}, 400, "Idempotency-Key"),
        (b"{}", {"Idempotency-Key": ""}, 400, "Idempotency-Key"),
        (b"{}", {"Idempotency-Key": "caf\xe9"}, 400, "Idempotency-Key"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_taken_in(world, body, headers, status, said):
    with running(world.source) as chunks:
        answer = world.post(body, **headers)
        assert answer.status == status
        assert said in answer.error
        assert "CANARY" not in answer.body
    assert chunks == []


def test_chunked_bodies_are_refused(world):
    with running(world.source) as chunks:
        # So much that it isn't sent before the answer: it is read, so that the client sees that.
        for n in (1, 200_000):
            body = iter([b'{"age": 1}\n' * n, b'{"age": 2}\n'])
            answer = world.ask("POST", "/rows", body, **{"Content-Type": NDJSON})
            assert answer.status == 411
    assert chunks == []


@pytest.mark.parametrize(
    ("twice", "status"),
    [
        ("Content-Length: 10\r\nContent-Length: 21", 400),
        ("Content-Length: 21\r\nContent-Length: 10", 400),
        ("Content-Length: 21\r\nIdempotency-Key: a\r\nIdempotency-Key: b", 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 21", 411),
        ("Content-Length: 21\r\nTransfer-Encoding: identity", 411),
    ],
)
def test_headers_that_two_servers_could_read_otherwise_are_refused(world, twice, status):
    """With the first of two lengths half of the rows would be answered as all of them."""
    with running(world.source) as chunks:
        host, port = world.where.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as client:
            client.sendall(
                f"POST /rows HTTP/1.1\r\nHost: {world.where}\r\nContent-Type: {NDJSON}\r\n"
                f'{twice}\r\n\r\n{{"age": 1}}\n{{"age": 2}}'.encode()
            )
            assert client.recv(1000).startswith(f"HTTP/1.1 {status} ".encode())
    assert chunks == []


def test_a_client_that_goes_away_leaves_nothing(world):
    with running(world.source) as chunks:
        host, port = world.where.split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(
                f"POST /rows HTTP/1.1\r\nHost: {world.where}\r\nContent-Type: {NDJSON}\r\n"
                'Content-Length: 100\r\n\r\n{"age": 1}\n'.encode()
            )
        assert world.post(b'{"age": 2}').status == 200
    assert [chunk.batch["age"].to_pylist() for chunk in chunks] == [[2]]


def test_a_client_that_asks_first_is_told_to_go_on(world):
    with running(world.source):
        host, port = world.where.split(":")
        for name, first in ((world.where, b"100"), ("evil.example", b"403")):
            with socket.create_connection((host, int(port)), timeout=60) as client:
                client.sendall(
                    f"POST /rows HTTP/1.1\r\nHost: {name}\r\nContent-Type: {NDJSON}\r\n"
                    "Content-Length: 10\r\nExpect: 100-continue\r\n\r\n".encode()
                )
                assert client.recv(1000).startswith(b"HTTP/1.1 " + first)
                if first == b"100":
                    client.sendall(b'{"age": 1}')
                    assert client.recv(1000).startswith(b"HTTP/1.1 200 OK")


def test_when_too_much_waits_clients_are_told_to_come_later(world, monkeypatch):
    monkeypatch.setattr(source_module, "MOST_WAITING", 15)
    gate = threading.Event()
    answers: list[Answered] = []
    with running(world.source, lambda chunk: gate.wait(60) and None) as chunks:
        first = threading.Thread(target=lambda: answers.append(world.post(b'{"age": 1}')))
        first.start()
        while not world.source._n_waiting:
            pass
        refused = world.post(b'{"age": 2}')
        assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
        assert "too many rows wait" in refused.error
        gate.set()
        first.join(60)
        assert answers[0].status == 200
        assert world.post(b'{"age": 3}').status == 200
    assert [age for chunk in chunks for age in chunk.batch["age"].to_pylist()] == [1, 3]


def test_before_and_after_the_run_clients_are_told_to_come_later(world):
    for path in ("/releases", "/rows"):
        answer = world.ask("GET", path) if path == "/releases" else world.post(b"{}")
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert "the run is starting" in answer.error
    with running(world.source):
        assert world.ask("GET", "/releases").status == 200
    answer = world.post(b"{}")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert "the run is stopping" in answer.error
    # What was published can be read until the end.
    assert world.ask("GET", "/releases").status == 200


def test_published_rows_are_read_by_their_number(world):
    world.output.write_text("".join(f'{{"row": {i}}}\n' for i in range(2500)) + '{"row": 2')
    with running(world.source):
        page = world.ask("GET", "/releases")
        assert (page.status, page.headers["Content-Type"]) == (200, NDJSON)
        assert len(page.body.splitlines()) == 1000
        assert page.headers["Shoal-Next"] == "1000"
        page = world.ask("GET", "/releases?from=2498&limit=10")
        assert page.body == '{"row": 2498}\n{"row": 2499}\n'
        assert page.headers["Shoal-Next"] == "2500"
        page = world.ask("GET", "/releases?from=2500")
        assert (page.status, page.body, page.headers["Shoal-Next"]) == (200, "", "2500")


@pytest.mark.parametrize(
    "query",
    ["from=-1", "from=x", "from=", "limit=0", "limit=10001", "from=1&from=2", "since=3", "x",
     "from=99999999999999999999"],
)  # fmt: skip
def test_what_cant_be_asked_is_refused(world, query):
    with running(world.source):
        assert world.ask("GET", f"/releases?{query}").status == 400


def test_an_output_that_cant_be_read_by_row(tmp_path):
    source = HttpSource(["age"])
    with PageServer("127.0.0.1:0", job={}, routes=routes_of(source, None)) as page:
        connection = http.client.HTTPConnection(page.url.split("/")[2], timeout=60)
        connection.request("GET", "/releases")
        answer = connection.getresponse()
        assert (answer.status, b"isn't a file or folder" in answer.read()) == (404, True)
        connection.close()


def test_the_page_is_at_the_same_address_and_methods_arent_mixed_up(world):
    assert world.ask("GET", "/").status == 200
    assert world.ask("GET", "/health").status in (200, 503)
    assert world.ask("GET", "/rows").status == 405
    assert world.ask("POST", "/releases", b"{}").headers["Allow"] == "GET"
    assert world.ask("POST", "/", b"{}").status == 405
    assert world.ask("OPTIONS", "/rows").status == 501


def test_only_names_of_loopback_are_answered_to(world):
    with running(world.source) as chunks:
        assert world.post(b'{"age": 1}', Host="evil.example").status == 403
        assert world.ask("GET", "/releases", Host="evil.example").status == 403
        assert world.post(b'{"age": 1}', Host="localhost").status == 200
    assert len(chunks) == 1


def test_with_a_token_nobody_else_posts_and_readers_only_read(tmp_path):
    world = World(tmp_path, TOKEN, READER)
    with world.page, running(world.source) as chunks:
        for given in ("", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {READER}"):
            answer = world.post(b'{"age": 1}', Authorization=given)
            assert answer.status == 401
            assert TOKEN not in answer.body
            assert world.ask("GET", "/", Authorization=given).status == 401
        assert chunks == []
        assert world.ask("GET", "/releases").status == 401
        assert world.ask("GET", "/releases", Authorization="Bearer wrong").status == 401
        for token in (TOKEN, READER):
            ask = world.ask("GET", "/releases", Authorization=f"Bearer {token}")
            assert ask.status == 200
        assert world.post(b'{"age": 1}', Authorization=f"Bearer {TOKEN}").status == 200
    assert len(chunks) == 1


def test_a_large_body_that_is_refused_is_read_so_that_the_answer_arrives(world):
    with running(world.source):
        answer = world.post(b"x" * (20 << 20), Authorization="", Host="evil.example")
        assert answer.status == 403
        assert world.post(b"{}").status == 200


def test_many_clients_at_once_lose_and_double_nothing(world):
    answers: list[int] = []

    def client(number: int) -> None:
        for i in range(20):
            body = b"".join(b'{"age": %d}\n' % (1000 * number + 10 * i + j) for j in range(10))
            answers.append(world.post(body, f"{number}-{i}").status)
            answers.append(world.post(body, f"{number}-{i}").status)

    with running(world.source) as chunks:
        threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert answers == [200] * 320
    ages = sorted(age for chunk in chunks for age in chunk.batch["age"].to_pylist())
    assert ages == sorted(1000 * n + i for n in range(8) for i in range(200))
    assert len(chunks) <= 160
