"""The walk of compose.yaml without containers: its job, its generator, its settings, its probe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crashes.world import wait_until
from tests.deploy.prometheus import ALERTS, MISSING, Prometheus, free_port
from tests.deploy.test_health import ask
from tests.world import COMMAND

DEPLOY = Path(__file__).parents[2] / "deploy"
TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
def test_people_are_published_and_prometheus_watches(tmp_path, kafka, topic):
    source, sink = topic(), topic()
    job = (DEPLOY / "walk" / "job.toml").read_text()
    for theirs, mine in [
        ("kafka:9092", kafka), ('"people"', f'"{source}"'), ('"public"', f'"{sink}"'),
        ('"walk"', f'"{sink}"'), ("/var/lib/shoal", str(tmp_path)), ("every = 10", "every = 1"),
        ("rows = 4000", "rows = 200"), ('"tide"', '"castle"'),
    ]:  # fmt: skip
        assert theirs in job
        job = job.replace(theirs, mine)
    (tmp_path / "job.toml").write_text(job)
    (tmp_path / "token").write_text(TOKEN)
    generator = [sys.executable, str(DEPLOY / "walk" / "people.py"), kafka]
    # Topics that are there stay as they are.
    subprocess.run([*generator, "--create", source, sink], check=True, timeout=60)
    address = f"127.0.0.1:{free_port()}"
    settings = (DEPLOY / "walk" / "prometheus.yml").read_text()
    for theirs, mine in [
        ("/run/secrets/page_token", str(tmp_path / "token")), ("shoal:8800", address),
        ("alerts.yml", str(ALERTS)), ("scrape_interval: 10s", "scrape_interval: 1s"),
    ]:  # fmt: skip
        assert theirs in settings
        settings = settings.replace(theirs, mine)
    words = [
        "run", tmp_path / "job.toml", "--log=json", f"--page={address}", f"--metrics={address}",
        f"--page-token=file:{tmp_path / 'token'}",
    ]  # fmt: skip
    # In plain Python, which is slower: fewer rows, and a quicker algorithm.
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    run = subprocess.Popen([*COMMAND, *map(str, words)], env=environment, stderr=subprocess.DEVNULL)
    people = subprocess.Popen([*generator, source, "50"])
    try:
        with Prometheus(tmp_path / "prometheus", settings) as prometheus:
            url = f"http://{address}/health"
            wait_until(lambda: ask(url, SHOAL_HEALTH_TOKEN=str(tmp_path / "token")) == (0, ""), 120)
            assert ask(url)[1] == "answered with 401\n"
            wait_until(lambda: prometheus.ask("shoal_rows_published_total > 100") != [], 120)
            assert prometheus.ask('up{job="shoal"}') == [1]
            assert prometheus.ask("shoal_groups_audited_total") != []
            assert prometheus.ask("shoal_promise_broken") == [0]
    finally:
        people.terminate()
        people.wait(30)
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 0
