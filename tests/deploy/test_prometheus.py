"""Alert rules and the dashboard: judged by promtool, and by a Prometheus that watches runs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crashes.world import wait_until
from tests.deploy.prometheus import (
    ALERTS,
    DASHBOARD,
    MISSING,
    PROMTOOL,
    ROOT,
    dashboard_queries,
    free_port,
    metrics_in,
    scraping,
)
from tests.world import people, write, write_job

needs_prometheus = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
CASES = Path(__file__).with_name("alerts_test.yml")
EXPRESSION = re.compile(r"^ +expr: (.*)$", re.M)
#: The program with an interval of a second, so that the tests don't take minutes.
PROGRAM = "from shoal.cli.run import page; page.INTERVAL = 1.0; from shoal.cli import main; main()"
#: The same with an engine that forgets most of k.
BROKEN = "from tests.job.test_live_audit import Castle, FewPeople; Castle.start = FewPeople.start\n"


def exposed() -> set[str]:
    """The metrics of the page about them, by the names that queries use."""
    page = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| `(shoal_\w+)` \| (\w+) \|", page, re.M)
    return {f"{name}_bucket" if kind == "histogram" else name for name, kind in found}


def test_queries_name_only_metrics_that_exist() -> None:
    """The page is compared with the code by the tests of the exposition."""
    asked = [query for queries in dashboard_queries().values() for query in queries]
    asked += EXPRESSION.findall(ALERTS.read_text())
    assert len(asked) > 30
    assert set().union(*map(metrics_in, asked)) <= exposed()


def test_every_metric_is_on_the_dashboard() -> None:
    asked = [query for queries in dashboard_queries().values() for query in queries]
    assert set().union(*map(metrics_in, asked)) == exposed()


def test_panels_have_places_and_words_of_their_own() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["title"] and panel["description"] for panel in panels)
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) == 23
    assert {each["name"] for each in dashboard["templating"]["list"]} == {
        "source", "job", "instance"
    }  # fmt: skip


def test_each_alert_is_tested_when_it_fires_and_when_it_does_not() -> None:
    alerts = set(re.findall(r"- alert: (\w+)", ALERTS.read_text()))
    cases = CASES.read_text()
    silent = set(re.findall(r"alertname: (\w+), exp_alerts: \[\]", cases))
    fires = set(re.findall(r"alertname: (\w+)\n +exp_alerts:\n", cases))
    assert alerts == silent == fires


@needs_prometheus
def test_promtool_finds_no_fault_with_the_rules() -> None:
    done = subprocess.run([str(PROMTOOL), "check", "rules", ALERTS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "SUCCESS: 10 rules found" in done.stdout


@needs_prometheus
def test_each_alert_fires_when_it_must() -> None:
    done = subprocess.run(
        [str(PROMTOOL), "test", "rules", CASES.name],
        cwd=CASES.parent, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@needs_prometheus
def test_the_settings_of_the_walk_are_settings(tmp_path: Path) -> None:
    text = (ROOT / "deploy" / "walk" / "prometheus.yml").read_text()
    (tmp_path / "token").write_text("0123456789abcdef")
    path = tmp_path / "prometheus.yml"
    path.write_text(text.replace("/run/secrets/page_token", str(tmp_path / "token")))
    (tmp_path / "alerts.yml").write_text(ALERTS.read_text())
    done = subprocess.run([str(PROMTOOL), "check", "config", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# -- a Prometheus that watches runs ----------------------------------------------------------------


@contextlib.contextmanager
def running(
    folder: Path, job: Path, *words: str, program: str = PROGRAM
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A run in a process of its own, and where its metrics are."""
    address = f"127.0.0.1:{free_port()}"
    command = [
        "run", str(job), "-i", str(folder / "in.csv"), "-o", str(folder / "out.csv"), "--follow",
        "-q", "--page", address, "--metrics", address, *words,
    ]  # fmt: skip
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path_of_tests()}
    process = subprocess.Popen([sys.executable, "-c", program, *command], env=environment)
    try:
        yield address, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def path_of_tests() -> str:
    return os.pathsep.join([str(ROOT), *sys.path])


def grow(path: Path, lines: list[str], n: int) -> None:
    with path.open("a") as file:
        file.writelines(lines[:n])
    del lines[:n]


def lines_of(folder: Path, n: int) -> list[str]:
    table = people(n, n_people=n // 2)
    return write(table, folder / "all.csv").read_text().splitlines(keepends=True)


@needs_prometheus
@pytest.mark.nightly
def test_every_query_is_answered_for_runs_that_are_well(tmp_path: Path) -> None:
    folder, other = tmp_path / "groups", tmp_path / "values"
    folder.mkdir()
    other.mkdir()
    job = write_job(
        folder, policy="k = 3\nl = 2\ndelay = { rows = 20, seconds = 5 }",
        run=f"checkpoint = {{ folder = '{folder / 'state'}', every = 1 }}",
    )  # fmt: skip
    job.write_text(job.read_text() + "\n[audit]\nsample = 1\n")
    schema = 'subject = "person"\ntime = "at"\n[schema.quasi]\ntown = { hierarchy = "town.csv" }\n'
    values = write_job(
        other, schema=schema, policy="z = 2\nwindow = { seconds = 20 }",
        publish="pseudonym = { rotate = 10 }", run="",
    )  # fmt: skip
    values.write_text(values.read_text().replace("'castle'", "'z-anonymity'"))
    feeds = {each: lines_of(each, 10_000) for each in (folder, other)}
    for each, lines in feeds.items():
        grow(each / "in.csv", lines, 100)
    with (
        running(folder, job) as (one, _),
        running(other, values) as (two, _),
        scraping(tmp_path / "prometheus", one, two) as prometheus,
    ):
        queries = {query for some in dashboard_queries().values() for query in some} | exposed()
        end = time.monotonic() + 180
        while queries and time.monotonic() < end:
            time.sleep(1)
            for each, lines in feeds.items():
                grow(each / "in.csv", lines, 50)
            queries = {query for query in queries if not prometheus.ask(query)}
        assert queries == set()
        assert prometheus.ask("sum(shoal_up)") == [2]
        # Each rule can be judged, and nothing fires.
        for expression in EXPRESSION.findall(ALERTS.read_text()):
            prometheus.ask(expression)
        (group,) = prometheus.get("rules")["groups"]
        assert {rule["health"] for rule in group["rules"]} == {"ok"}
        assert prometheus.firing() == set()


@needs_prometheus
@pytest.mark.nightly
def test_a_broken_promise_is_an_alert_though_the_run_is_gone(tmp_path: Path) -> None:
    job = write_job(tmp_path, policy="k = 5\ndelay = { rows = 30 }", run="seed = 7")
    job.write_text(job.read_text() + "\n[audit]\nsample = 1\n")
    lines = lines_of(tmp_path, 400)
    grow(tmp_path / "in.csv", lines, 1)
    with (
        running(tmp_path, job, program=BROKEN + PROGRAM) as (address, process),
        scraping(tmp_path / "prometheus", address) as prometheus,
    ):
        wait_until(lambda: prometheus.ask("shoal_promise_broken") == [0])
        grow(tmp_path / "in.csv", lines, 300)
        assert process.wait(60) == 1
        wait_until(lambda: "ShoalBreaksItsPromise" in prometheus.firing())
        assert prometheus.ask("max_over_time(shoal_promise_broken[1d])") == [1]
