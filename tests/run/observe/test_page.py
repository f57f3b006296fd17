"""The server of the live page: what it answers to whom, and when its figures change."""

from __future__ import annotations

import dataclasses
import http.client
import json
import logging
import shutil
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from shoal.events import event, sentence
from shoal.run.observe import Health, PageServer
from shoal.testing.clocks import ManualClock
from tests.run.observe.figures import some_figures

TOKEN = "a-token-of-sixteen-or-more"
LOG = logging.getLogger("shoal.test_page")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1003.0)


@pytest.fixture
def page(clock: ManualClock) -> Iterator[PageServer]:
    logging.getLogger("shoal").setLevel(logging.INFO)
    with PageServer("127.0.0.1:0", job={"name": "mine"}, clock=clock) as page:
        yield page


def ask(page: PageServer, path: str, **headers: str) -> tuple[int, Any, str]:
    where = page.url.split("/")[2]
    connection = http.client.HTTPConnection(where, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def found(page: PageServer, name: str = "recent") -> Any:
    status, headers, text = ask(page, f"/{name}.json")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    return json.loads(text)


def test_figures_and_history_change_once_an_interval(page, clock):
    page.offer(some_figures(10))
    assert found(page)["figures"] is None
    assert found(page)["series"]["t"] == []
    clock.set(1010.0)
    assert found(page)["figures"]["n_in"] == 15
    page.offer(some_figures(20))
    page.offer(some_figures(30))
    assert found(page)["figures"]["n_in"] == 15
    assert len(found(page)["series"]["t"]) == 1
    clock.set(1020.0)
    assert found(page)["figures"]["n_in"] == 35
    assert found(page)["series"]["in"] == [None, 2.0]
    times = found(page)["series"]["t"]
    assert times[1] - times[0] == pytest.approx(10)


def batch_ages(clock: ManualClock, batch_at: float, instants: list[float]) -> list[Any]:
    """What a page shows at some instants, each with the figures of its own moment."""
    ages = []
    with PageServer("127.0.0.1:0", job={}, clock=clock, wall=clock) as page:
        for now in instants:
            clock.set(now)
            page.offer(dataclasses.replace(some_figures(), batch_at=batch_at))
            ages.append((found(page)["figures"] or {}).get("batch_age"))
    return ages


# Batches that began at any two moments of one interval can't be told apart.
@pytest.mark.parametrize("batch_at", [1000.1, 1003.0, 1009.9])
def test_the_age_of_a_batch_is_in_whole_intervals_and_changes_once_in_one(clock, batch_at):
    instants = [1009.95, 1010.0, 1014.0, 1019.9, 1020.0, 1031.0]
    assert batch_ages(clock, batch_at, instants) == [None, 0, 0, 0, 10, 20]


def test_a_batch_of_a_driver_whose_clock_was_ahead_has_no_age_below_zero(clock):
    assert batch_ages(clock, 2000.0, [1009.0, 1010.0]) == [None, 0]


def test_a_run_without_batches_has_no_age_of_one(page, clock):
    page.offer(some_figures(10))
    clock.set(1010.0)
    assert found(page)["figures"]["batch_age"] is None


def test_events_are_shown_when_their_interval_is_over(page, clock):
    event(LOG, logging.INFO, "checkpoint saved", number=3)
    LOG.warning("CANARY %s", "Ada")
    assert found(page)["events"] == []
    clock.set(1010.0)
    events = found(page)["events"]
    assert [each["event"] for each in events] == ["(withheld)", "checkpoint saved", "starting"]
    assert "CANARY" not in str(events)


def events_after(clock: ManualClock, *moments: float) -> Any:
    """What a page shows of checkpoints and epochs at these moments of one interval, afterwards."""
    clock.set(1000.0)
    with PageServer("127.0.0.1:0", job={}, clock=clock, wall=clock) as page:
        for number, moment in enumerate(moments, 1):
            clock.set(moment)
            event(LOG, logging.INFO, "checkpoint saved", number=number, bytes=int(moment))
            event(LOG, logging.INFO, "epoch committed", number=number, rows_in=number)
        clock.set(1010.0)
        return found(page)["events"]


def test_events_dont_tell_when_rows_came_nor_how_many(clock):
    shown = [
        {"time": 1000, "level": "info", "event": name}
        for name in ("epoch committed", "checkpoint saved", "starting")
    ]
    assert events_after(clock, 1001.5) == shown
    assert events_after(clock, 1000.0, 1004.5, 1009.9) == shown


def test_what_is_shown_of_events_changes_once_an_interval(page, clock):
    names = [f"event {a}{b}" for a in "abcdefgh" for b in "abcdefgh"]
    for name in (*names, "checkpoint saved"):
        event(LOG, logging.INFO, name)
        clock.advance(10)
    clock.set(clock() // 10 * 10)
    before = found(page)["events"]
    assert [each["event"] for each in before] == ["checkpoint saved", *names[:14:-1]]
    # Neither what comes, nor what it replaces, nor what there is no more room for.
    for name in ("checkpoint saved", "broker away", "checkpoint saved", "broker back"):
        clock.advance(2)
        event(LOG, logging.INFO, name)
        assert found(page)["events"] == before
    clock.advance(2)
    after = found(page)["events"]
    assert [each["event"] for each in after[:4]] == [
        "broker back", "checkpoint saved", "broker away", names[-1],
    ]  # fmt: skip
    assert len(after) == 50


def test_of_equal_events_in_a_row_the_newest_is_kept(page, clock):
    event(LOG, logging.INFO, "broker back")
    for _ in range(200):
        event(LOG, logging.INFO, "checkpoint saved")
        clock.advance(10)
    shown = found(page)["events"]
    assert [each["event"] for each in shown] == ["checkpoint saved", "broker back", "starting"]
    assert shown[0]["time"] - shown[1]["time"] == 1990


def test_an_event_is_shown_without_names_that_are_not_of_shoal(page, clock):
    sentence(LOG, logging.WARNING, "file removed", "/in/AnnCANARY.csv: was removed")
    event(LOG, logging.WARNING, "checkpoint failed", error=OSError("CANARY"), why="canary")
    LOG.warning("broker away", extra={"fields": {"error": "canary", "topic": "canary"}})
    page.note("warning", "policy.k = 1 doesn't hide whose row it is", "warning")
    page.note("warning", "policy.t promises nothing", "warning")
    clock.advance(10)
    events = found(page)["events"]
    assert [{key: each[key] for key in each if key != "time"} for each in events[:-1]] == [
        {"level": "warning", "event": "warning", "text": "policy.t promises nothing"},
        {
            "level": "warning", "event": "warning",
            "text": "policy.k = 1 doesn't hide whose row it is",
        },
        {"level": "warning", "event": "broker away"},
        {"level": "warning", "event": "checkpoint failed", "error": "OSError"},
        {"level": "warning", "event": "file removed"},
    ]  # fmt: skip
    assert "canary" not in json.dumps(found(page)).lower()


def test_the_state_of_a_run(clock):
    doing: list[str | None] = [None]
    with PageServer("127.0.0.1:0", job={}, clock=clock, activity=lambda: doing[0]) as page:
        assert found(page)["state"]["name"] == "starting"
        doing[0] = "compiling"
        clock.advance(100)
        assert found(page)["state"] == {"name": "compiling", "reasons": [], "checkpoint_age": None}
        doing[0] = None
        page.health(Health(checkpoint_age=4.2, checkpoint_every=10.0))
        assert found(page)["state"] == {"name": "running", "reasons": [], "checkpoint_age": 4}
        page.health(Health(connected=False))
        assert found(page)["state"]["name"] == "broker away"
        page.health(Health(checkpoint_age=90.0, checkpoint_every=10.0))
        assert found(page)["state"]["name"] == "unhealthy"
        assert "checkpoint is 90 s old" in found(page)["state"]["reasons"][0]
        doing[0] = "draining"
        assert found(page)["state"]["name"] == "draining"
        doing[0] = None
        page.fail(KeyError("CANARY"))
        assert found(page)["state"]["name"] == "failed"
        clock.advance(10)
        names = [each["event"] for each in found(page)["events"]]
        assert names == [
            "failed", "draining", "unhealthy", "broker away", "running", "compiling", "starting",
        ]  # fmt: skip
        assert "CANARY" not in json.dumps(found(page))


def test_every_answer_forbids_what_a_page_could_be_misused_for(page):
    for path in ("/", "/page.js", "/charts.js", "/page.css", "/recent.json", "/health", "/nothing"):
        _, headers, _ = ask(page, path)
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert headers["Set-Cookie"] is None


def test_nothing_in_the_page_comes_from_elsewhere(page):
    for path in ("/", "/page.js", "/charts.js", "/page.css"):
        status, _, text = ask(page, path)
        assert status == 200
        assert "//" not in text.replace("http://www.w3.org/2000/svg", "").replace("// ", "")
        assert "innerHTML" not in text


def test_there_is_nothing_else_and_no_other_name(page):
    assert ask(page, "/metrics")[0] == 404
    assert ask(page, "/../page.py")[0] == 404
    assert ask(page, "/recent.json", Host="evil.example")[0] == 403


def test_metrics_are_served_there_where_asked_for(clock):
    with PageServer("127.0.0.1:0", job={}, clock=clock, with_metrics=True) as page:
        page.offer(some_figures(10))
        clock.set(1010.0)
        assert "shoal_rows_in_total 15.0" in ask(page, "/metrics")[2]


def test_a_token_guards_every_path(clock):
    with PageServer("0.0.0.0:0", job={}, clock=clock, token=TOKEN) as page:
        port = page.url.rstrip("/").rpartition(":")[2]
        for path in ("/", "/page.js", "/recent.json", "/health", "/nothing"):
            status, headers, text = ask(page, path, Host=f"127.0.0.1:{port}")
            assert status == 401
            assert headers["WWW-Authenticate"].startswith("Basic realm=")
            assert "figures" not in text
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert ask(page, "/recent.json", **right)[0] == 200
        assert ask(page, "/recent.json", **right, Host="evil.example")[0] == 403


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_tls_by_certificate_files(tmp_path, clock):
    files = tmp_path / "page.crt", tmp_path / "page.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-out", files[0], "-keyout", files[1]],
        check=True, capture_output=True,
    )  # fmt: skip
    with PageServer("127.0.0.1:0", job={}, clock=clock, certificate=files[0], key=files[1]) as page:
        assert page.url.startswith("https://127.0.0.1:")
        trust = ssl.create_default_context(cafile=str(files[0]))
        with urllib.request.urlopen(page.url, context=trust, timeout=60) as answer:
            assert b"<!DOCTYPE html>" in answer.read()
        # A client that doesn't speak TLS, or goes away, ends nothing.
        with pytest.raises((OSError, http.client.HTTPException)):
            urllib.request.urlopen(page.url.replace("https", "http"), timeout=60)
        with urllib.request.urlopen(page.url, context=trust, timeout=60) as answer:
            assert answer.status == 200


def test_closing_twice_and_the_logger(page):
    before = len(logging.getLogger("shoal").handlers)
    page.close()
    page.close()
    assert len(logging.getLogger("shoal").handlers) == before - 1
