"""A client of ``shoal serve`` that sends again until it is answered, as a real one should."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Sequence
from typing import Any


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(
    port: int, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, Any, bytes]:
    """Ask once; status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def post(port: int, rows: Sequence[object], key: str, seconds: float = 300) -> dict[str, Any]:
    """Send rows until they are taken in; the answer."""
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            status, _, text = ask(port, "POST", "/rows", body, **headers)
        except (OSError, http.client.HTTPException):
            # Nobody knows whether they were taken in.
            status = 503
        if status == 200:
            found: dict[str, Any] = json.loads(text)
            return found
        assert status in (429, 503), text
        time.sleep(0.05)
    raise AssertionError("the rows weren't taken in in time")


def wait_until_it_serves(port: int, seconds: float = 300) -> None:
    """Wait until a server is at work."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if ask(port, "GET", "/releases?limit=1")[0] != 503:
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.05)
    raise AssertionError("it didn't serve in time")


def releases(port: int, first: int, limit: int = 1000) -> list[bytes]:
    """Published rows from a number on, as lines; none while nobody answers."""
    try:
        status, headers, body = ask(port, "GET", f"/releases?from={first}&limit={limit}")
    except (OSError, http.client.HTTPException):
        return []
    if status == 503:
        return []
    assert status == 200, body
    lines = body.splitlines(keepends=True)
    assert int(headers["Shoal-Next"]) == first + len(lines)
    return lines
