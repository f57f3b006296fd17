"""``deploy/health.py``, which containers and probes call, against the servers of a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.run.observe import Health, MetricsServer, PageServer
from shoal.testing.clocks import ManualClock

SCRIPT = Path(__file__).parents[2] / "deploy" / "health.py"


def ask(url: str | None, *words: str, **environment: str) -> tuple[int, str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}
    given |= {} if url is None else {"SHOAL_HEALTH_URL": url}
    done = subprocess.run(
        [sys.executable, "-I", SCRIPT, *words], env=given | environment, timeout=30,
        capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_a_run_is_well_or_says_why_not():
    clock = ManualClock(1000.0)
    with MetricsServer("127.0.0.1:0", clock=clock) as server:
        url = f"http://{server.address}/health"
        assert ask(url) == (1, "the run has not begun to read\n")
        assert ask(url, "--hangs", "300") == (0, "")
        server.health(Health())
        assert ask(url) == (0, "")
        server.health(Health(connected=False))
        assert ask(url) == (1, "the source or the sink is unreachable\n")
        # A broker that is away is no reason to restart.
        assert ask(url, "--hangs", "300") == (0, "")
        clock.advance(301)
        what = "the main loop of the run has not advanced for 301 s\n"
        assert ask(url, "--hangs", "300") == (1, what)
    assert ask(url) == (1, "no answer: URLError\n")
    assert ask(url, "--hangs", "300")[0] == 1


def test_a_token_is_read_from_its_file(tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    with PageServer("127.0.0.1:0", job={}, token="0123456789abcdef") as page:
        page.health(Health())
        url = f"{page.url}health"
        assert ask(url) == (1, "answered with 401\n")
        assert ask(url, SHOAL_HEALTH_TOKEN=str(token)) == (0, "")


@pytest.mark.parametrize(
    "url", ["http://example.org/health", "file:///etc/passwd", "ftp://127.0.0.1/"]
)
def test_only_this_machine_is_asked(url):
    code, said = ask(url)
    assert code == 1
    assert "must be http or https on 127.0.0.1" in said


def test_wrong_words_are_told_how_it_is_called():
    for words in (["--help"], ["--hangs"], ["--hangs", "soon"]):
        code, said = ask("http://127.0.0.1:1/", *words)
        assert code == 1
        assert "SHOAL_HEALTH_TOKEN" in said
