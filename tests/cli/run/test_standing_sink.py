"""An output that stands still: intake stops, memory is bounded, and metrics and page tell."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from shoal.cli.run.monitor import WAITING
from tests.browser import MISSING, Browser
from tests.cli.run.test_pipes import PATIENCE, Feeder, wait_for
from tests.world import beside, write_job

#: More than what 12 seconds at full speed bring in.
MANY = 200_000


def ask(url: str) -> tuple[int, str]:
    """The answer to a request, whatever it is."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def metric(url: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", ask(f"{url}metrics")[1], re.M)
    return float(found[1]) if found else 0.0


def megabytes_of(process: subprocess.Popen[bytes]) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)
    assert found is not None
    return int(found[1]) / 1024


def check_tile(url: str) -> None:
    """The page says for how long the run has waited, and marks it while that grows."""
    tile = (
        "return [...document.querySelectorAll('#tiles > div.bad')].map(e => e.textContent)"
        ".find(text => text.startsWith('Blocked')) ?? ''"
    )
    with Browser() as browser:
        browser.show(width=390, dark=False)
        browser.open(url)
        wait_for("the tile", lambda: browser.run(tile))
        assert re.fullmatch(r"Blocked\d+ swaited for the output, and waits", browser.run(tile))


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
def test_a_pipe_that_nobody_reads(tmp_path: Path) -> None:
    """Figures change every 10 s, and /health waits for 30 s: the test takes more than a minute."""
    fifo, job = tmp_path / "out.csv", write_job(tmp_path)
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    words = ("run", job, "-o", fifo, "--page", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
    with beside(*words, stdin=subprocess.PIPE) as process:
        feeder = Feeder(process.stdin, most_rows=MANY)
        feeder.start()
        assert process.stderr is not None
        url = next(
            line.split()[1].decode() for line in process.stderr if line.startswith(b"page: ")
        )
        blocked = "shoal_sink_blocked_seconds_total"
        wait_for("a sink that is known to stand still", lambda: metric(url, blocked) > 0)
        # Intake has stopped, and stays so.
        n_rows, n_in, before = (
            feeder.n_rows, metric(url, "shoal_rows_in_total"), megabytes_of(process),
        )  # fmt: skip
        first = metric(url, blocked)
        wait_for("more of it", lambda: metric(url, blocked) >= first + 10)
        assert feeder.n_rows == n_rows < MANY
        assert metric(url, "shoal_rows_in_total") == n_in
        # Not more than the delay says, and what one batch adds.
        assert metric(url, "shoal_rows_held") <= 21
        assert megabytes_of(process) - before < 16
        page = json.loads(ask(f"{url}recent.json")[1])
        assert page["figures"]["blocked_seconds"] >= 10
        wait_for("the verdict", lambda: ask(f"{url}health")[0] == 503)
        (reason,) = json.loads(ask(f"{url}health")[1])["reasons"]
        assert re.fullmatch(r"nothing was written for \d+ s, although rows are waiting", reason)
        assert json.loads(ask(f"{url}recent.json")[1])["state"]["name"] == "unhealthy"
        if MISSING is None:
            check_tile(url)
        # Somebody reads again: everything goes on, and no row is lost.
        feeder.enough.set()
        os.set_blocking(reader, True)
        with os.fdopen(reader, "rb") as output:
            n_out = sum(1 for _ in output) - 1
        assert process.wait(PATIENCE) == 0
        feeder.join(PATIENCE)
        assert n_out == feeder.n_rows


@pytest.mark.nightly
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_pipe_that_nobody_reads_after_the_end_of_the_input(
    tmp_path: Path, interrupted: bool
) -> None:
    """All rows are decided, and what is left to do is to write the last ones."""
    fifo, job = tmp_path / "out.csv", write_job(tmp_path)
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    words = ("run", job, "-o", fifo, "--page", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
    with beside(*words, stdin=subprocess.PIPE) as process:
        feeder = Feeder(process.stdin, most_rows=40)
        feeder.start()
        assert process.stderr is not None
        url = next(
            line.split()[1].decode() for line in process.stderr if line.startswith(b"page: ")
        )
        feeder.join(PATIENCE)
        blocked = "shoal_sink_blocked_seconds_total"
        wait_for("a sink that is known to stand still", lambda: metric(url, blocked) > 0)
        assert metric(url, "shoal_rows_in_total") == 40
        figures = json.loads(ask(f"{url}recent.json")[1])["figures"]
        assert (figures["n_published"], figures["n_held"]) == (40, 0)
        wait_for("the verdict", lambda: ask(f"{url}health")[0] == 503)
        health = json.loads(ask(f"{url}health")[1])
        (reason,) = health["reasons"]
        assert re.fullmatch(r"nothing was written for \d+ s, although rows are waiting", reason)
        assert health["loop_age_seconds"] < 5
        first = metric(url, blocked)
        wait_for("more of it", lambda: metric(url, blocked) >= first + 10)
        if MISSING is None:
            check_tile(url)
        if interrupted:
            process.send_signal(signal.SIGINT)
            assert any(line.decode().strip() == WAITING for line in process.stderr)
        os.set_blocking(reader, True)
        with os.fdopen(reader, "rb") as output:
            assert sum(1 for _ in output) == 1 + 40
        # Every row is there, so that the run has ended as if nobody had stopped it.
        assert process.wait(PATIENCE) == 0


def test_a_pipe_that_nobody_has_opened(tmp_path: Path) -> None:
    """It counts as an output that stands still, and the loop of the run goes on."""
    fifo, job = tmp_path / "out.csv", write_job(tmp_path)
    os.mkfifo(fifo)
    with beside("run", job, "-o", fifo, stdin=subprocess.PIPE) as process:
        feeder = Feeder(process.stdin, most_rows=MANY)
        feeder.start()
        assert process.stderr is not None
        # More than a pipe takes while nobody reads: it is the run, and not its start, that stops.
        wait_for("a run that reads", lambda: feeder.n_rows > 10)
        feeder.wait_until_stuck()
        feeder.enough.set()
        process.send_signal(signal.SIGINT)
        assert any(line.decode().strip() == WAITING for line in process.stderr)
        assert process.poll() is None
        # Somebody opens it: all that was decided is there.
        with fifo.open("rb") as output:
            n_out = sum(1 for _ in output) - 1
        assert process.wait(PATIENCE) == 130
        feeder.join(PATIENCE)
        err = process.stderr.read().decode()
        assert f"interrupted: {n_out:,} rows were published; " in err


def test_a_second_signal_ends_a_run_whose_pipe_nobody_opens(tmp_path: Path) -> None:
    fifo, job = tmp_path / "out.csv", write_job(tmp_path)
    os.mkfifo(fifo)
    with beside("run", job, "-o", fifo, stdin=subprocess.PIPE) as process:
        feeder = Feeder(process.stdin, most_rows=MANY)
        feeder.start()
        # More than a pipe takes while nobody reads: it is the run, and not its start, that stops.
        wait_for("a run that reads", lambda: feeder.n_rows > 10)
        feeder.wait_until_stuck()
        feeder.enough.set()
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert any(line.decode().strip() == WAITING for line in process.stderr)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) in (130, -signal.SIGINT)
        feeder.join(PATIENCE)
