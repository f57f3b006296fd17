"""A real Prometheus that scrapes a run, and what dashboards and alerts ask it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from tests.crashes.world import wait_until

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "deploy" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "dashboard.json"
PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
#: Why there is none; None if there is one.
MISSING = None if PROMETHEUS and PROMTOOL else "needs Prometheus and promtool (apt: prometheus)"
#: What Grafana puts in the place of its variables.
VARIABLES = {"$job": ".+", "$instance": ".+", "$__rate_interval": "20s"}


def dashboard_queries() -> dict[str, list[str]]:
    """The queries of each panel of the dashboard, by title, without Grafana's variables."""
    found: dict[str, list[str]] = {}
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            query = target["expr"]
            for name, value in VARIABLES.items():
                query = query.replace(name, value)
            assert "$" not in query
            found.setdefault(panel["title"], []).append(query)
    return found


def metrics_in(query: str) -> set[str]:
    """The metrics of Shoal that a query names."""
    return set(re.findall(r"\bshoal_\w+", query))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


class Prometheus:
    """A Prometheus on loopback with its data in a folder; it ends with the block."""

    def __init__(self, folder: Path, settings: str) -> None:
        self._folder, self._port = folder, free_port()
        folder.mkdir(parents=True)
        (folder / "prometheus.yml").write_text(settings)

    def __enter__(self) -> Self:
        assert PROMETHEUS is not None
        self._process = subprocess.Popen(
            [
                PROMETHEUS, f"--config.file={self._folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self._port}",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wait_until(self._is_ready)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, "Prometheus has ended"
        with contextlib.suppress(OSError):
            url = f"http://127.0.0.1:{self._port}/-/ready"
            return bool(urllib.request.urlopen(url, timeout=5).status == 200)
        return False

    def get(self, path: str, **parameters: str) -> Any:
        """What the API answers; an error fails."""
        words = urllib.parse.urlencode(parameters)
        url = f"http://127.0.0.1:{self._port}/api/v1/{path}?{words}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            found = json.load(answer)
        assert found["status"] == "success"
        return found["data"]

    def ask(self, query: str) -> list[float]:
        """The values of a query."""
        return [float(each["value"][1]) for each in self.get("query", query=query)["result"]]

    def firing(self) -> set[str]:
        """The alerts that fire."""
        alerts = self.get("alerts")["alerts"]
        return {each["labels"]["alertname"] for each in alerts if each["state"] == "firing"}


def settings(*targets: str) -> str:
    """Settings of a Prometheus that looks every second, and uses the alerts of the project."""
    listed = ", ".join(f'"{each}"' for each in targets)
    return (
        "global: { scrape_interval: 1s, evaluation_interval: 1s }\n"
        f"rule_files: ['{ALERTS}']\n"
        "scrape_configs:\n"
        "  - job_name: shoal\n"
        f"    static_configs: [{{ targets: [{listed}] }}]\n"
    )


@contextlib.contextmanager
def scraping(folder: Path, *targets: str) -> Iterator[Prometheus]:
    """A Prometheus that scrapes these addresses."""
    with Prometheus(folder, settings(*targets)) as prometheus:
        yield prometheus
