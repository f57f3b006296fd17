"""The page on Python: its examples are typed, and its web service answers real requests."""

from __future__ import annotations

import asyncio
import doctest
import importlib.util
import json
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "python.md"
#: The examples that are meant to be read as typed Python.
TYPED = ("serve_events.py", "from_python.py", "write_a_metric.py")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = ROOT / "examples" / "serve_events.py"
    spec = importlib.util.spec_from_file_location("serve_events", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def service(example: ModuleType, tmp_path: Path) -> Iterator[Any]:
    found = example.Service(tmp_path / "published.jsonl", port=0)
    thread = threading.Thread(target=lambda: asyncio.run(found.run()))
    thread.start()
    while found.loop is None:
        time.sleep(0.01)
    yield found
    found.stop()
    thread.join(600)
    assert not thread.is_alive()


def ask(service: Any, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """Send a real request over loopback."""
    address = f"http://127.0.0.1:{service.port}{path}"
    try:
        with urllib.request.urlopen(address, body, timeout=600) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def event(number: int) -> dict[str, Any]:
    return {"rider": f"rider-{number}", "age": 20 + number, "zone": f"10{number % 20:02}",
            "bike": "cargo"}  # fmt: skip


def test_the_service_publishes_events_in_groups_when_their_deadline_comes(service: Any) -> None:
    assert ask(service, "/events", json.dumps([event(n) for n in range(19)]).encode())[0] == 202
    assert ask(service, "/events", json.dumps(event(19)).encode())[0] == 202
    # No further event: the deadline fires by itself.
    until = time.monotonic() + 30
    while (figures := json.loads(ask(service, "/figures")[1]))["held"]:
        assert time.monotonic() < until
        time.sleep(0.05)
    rows = [json.loads(line) for line in ask(service, "/published")[1].splitlines()]
    while len(rows) < figures["published"] and time.monotonic() < until:
        rows = [json.loads(line) for line in ask(service, "/published")[1].splitlines()]
    # A machine that is too busy may miss the last one.
    assert 19 <= len(rows) == figures["published"] == 20 - figures["suppressed"]
    assert {tuple(row) for row in rows} == {("age", "zone", "bike")}
    assert min(Counter((row["age"], row["zone"]) for row in rows).values()) >= 5


def test_the_service_tells_the_sender_what_is_wrong_without_the_value(service: Any) -> None:
    status, body = ask(service, "/events", json.dumps(event(1) | {"age": "CANARY"}).encode())
    assert status == 422
    assert "age isn't a number" in json.loads(body)["error"]
    assert b"CANARY" not in body
    assert ask(service, "/events", b"{CANARY")[0] == 400
    assert ask(service, "/events", b"7")[0] == 422
    assert ask(service, "/elsewhere")[0] == 404
    assert json.loads(ask(service, "/figures")[1])["in"] == 0


def test_the_service_publishes_what_it_holds_when_it_is_stopped(
    example: ModuleType, tmp_path: Path
) -> None:
    service = example.Service(tmp_path / "published.jsonl", port=0)
    thread = threading.Thread(target=lambda: asyncio.run(service.run()))
    thread.start()
    while service.loop is None:
        time.sleep(0.01)
    ask(service, "/events", json.dumps([event(number) for number in range(6)]).encode())
    service.stop()
    thread.join(600)
    assert service.published.read_text().count("\n") == 6


def test_the_page_and_the_typed_examples_pass_mypy(tmp_path: Path) -> None:
    """In strict mode, as for the package; the cache of `make types` makes it quick."""
    text = PAGE.read_text(encoding="utf-8")
    parser = doctest.DocTestParser()
    source = "".join(
        example.source
        for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
        for example in parser.get_examples(block)
        # What is shown to be wrong is wrong for mypy, too.
        if example.exc_msg is None
    )
    page = tmp_path / "page.py"
    page.write_text(source)
    files = [str(ROOT / "examples" / name) for name in TYPED]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", str(page), *files],
        cwd=ROOT, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
