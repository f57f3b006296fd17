"""``shoal run --page`` in a real browser: its figures, a restart, and what it never shows."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.browser import CONTRAST, CUT_OFF, MISSING, OVERFLOW, SMALL, UNNAMED, Browser
from tests.crashes.world import wait_until
from tests.world import people, write, write_job

pytestmark = [
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
    # One browser for all of them.
    pytest.mark.xdist_group("browser"),
]

CANARY = "CANARY"
#: The same program with a shorter interval, so that the tests don't take minutes.
PROGRAM = "from shoal.cli.run import page; page.INTERVAL = 1.0; from shoal.cli import main; main()"
#: Everything that a browser shows or keeps of a page.
WHOLE = "return document.documentElement.outerHTML + document.title"
STATE = "return document.getElementById('state').textContent"
TILES = (
    "return Object.fromEntries([...document.querySelectorAll('#tiles > div')]"
    ".map(e => [e.querySelector('dt').textContent, e.querySelector('dd').textContent]))"
)


class Served:
    """A job whose input grows, run with a page on a port of its own."""

    def __init__(self, folder: Path) -> None:
        table = people(400, n_people=150)
        for name in ("person", "illness", "ward"):
            values = [f"{CANARY}-{each}" for each in table.column(name).to_pylist()]
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
        self._lines = write(table, folder / "all.csv").read_text().splitlines(keepends=True)
        # A row that can't be used, with a canary in each column.
        self._lines.insert(20, f"{CANARY},{CANARY},{CANARY},{CANARY},{CANARY},{CANARY}\n")
        self._folder, self._at = folder, 0
        # Whoever sends a file names it, perhaps as a person.
        self.input = folder / f"{CANARY}-in.csv"
        self.input.write_text("")
        self.job = write_job(
            folder, policy="k = 3\nl = 2\ndelay = { rows = 30 }",
            run="name = 'towns'\nseed = 7\ncheckpoint = { folder = 'state', every = 3 }",
        )  # fmt: skip
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}/"

    def grow(self, n: int) -> None:
        """Append rows to the input."""
        with self.input.open("a") as file:
            file.write("".join(self._lines[self._at : self._at + n]))
        self._at += n

    @contextlib.contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        words = [
            "run", str(self.job), "-i", str(self.input), "-o", str(self._folder / "out.csv"),
            "--follow", "-q", "--page", f"127.0.0.1:{self._port}",
        ]  # fmt: skip
        environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, *words], env=environment)
        try:
            wait_until(self._answers)
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(600)

    def copy_state(self) -> None:
        """Put a copy of the state folder into its place."""
        state, copy = self._folder / "state", self._folder / "copy"
        shutil.copytree(state, copy)
        shutil.rmtree(state)
        copy.rename(state)

    def _answers(self) -> bool:
        try:
            self.data()
        except OSError:
            return False
        return True

    def data(self, name: str = "recent") -> Any:
        with urllib.request.urlopen(f"{self.url}{name}.json", timeout=60) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("page") / CANARY
    folder.mkdir()
    made = Served(folder)
    made.grow(150)
    return made


def tile(browser: Browser, name: str) -> str:
    return str(browser.run(TILES).get(name, ""))


def n_in(browser: Browser) -> int:
    """How many rows the page says came in; -1 if it doesn't say."""
    _, _, rest = tile(browser, "Rows in").partition("; ")
    return int(rest.partition(" ")[0].replace(",", "")) if rest else -1


def test_a_page_lives_as_long_as_its_job(browser: Browser, served: Served) -> None:
    browser.log("browser")
    browser.log("performance")
    with served.running() as process:
        browser.open(served.url)
        # The header is a line of the file, and no row.
        wait_until(lambda: n_in(browser) == 149)
        since = time.monotonic()
        served.grow(100)
        wait_until(lambda: n_in(browser) == 249)
        # An interval, and the pauses of the run and of the page.
        assert time.monotonic() - since < 15
        wait_until(lambda: browser.run(STATE) == "running")
        wait_until(lambda: "0.4" in tile(browser, "Quarantined"))
        assert browser.run("return document.title") == "running · towns · Shoal"
        text = browser.run(WHOLE)
        for said in ("k-anonymity", "k = 3", "illness", "sensitive", "castle", "checkpoint saved"):
            assert said in text
        reasons = "return document.getElementById('reasons-tables').textContent"
        assert "age isn't a number" in browser.run(reasons)
        _check_secret(browser, served)
        check_readable(browser)
        _check_keyboard(browser)
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 0
    # Without a run the page says so, and keeps what it knew.
    wait_until(
        lambda: (
            browser.run("return document.getElementById('state').textContent")
            in ("no answer", "stopped")
        )
    )
    assert browser.run("return document.getElementById('trouble').hidden") is False
    assert n_in(browser) == 249
    stopped = time.time()
    served.copy_state()
    with served.running():
        # It finds the new run by itself, and the figures and the history go on.
        wait_until(lambda: browser.run("return document.getElementById('trouble').hidden"))
        # How long its checkpoint took is known to the run before only.
        wait_until(lambda: "kBwritten by the run before" in tile(browser, "Checkpoint size"))
        served.grow(50)
        wait_until(lambda: n_in(browser) == 299)
        series = served.data()["series"]
        times = series["t"]
        assert None in series["held"]
        assert times[0] < stopped < times[-1]
        assert times == sorted(times)
        assert served.data("long")["series"]["t"][0] == times[0]
        assert "resumed from a checkpoint" in browser.run(WHOLE)
        assert "folder copied" in browser.run(WHOLE)
        _check_secret(browser, served)
    _check_fetched(browser, served)


def _check_secret(browser: Browser, served: Served) -> None:
    assert CANARY not in browser.run(WHOLE)
    for name in ("recent", "long"):
        assert CANARY not in json.dumps(served.data(name))
    # Nor the values of the domain, or where anything is.
    for word in ("dresden", "berlin", str(served.input), str(served.job)):
        assert word not in browser.run(WHOLE)


def check_readable(browser: Browser) -> None:
    """Light and dark, on a desk and on a phone."""
    assert browser.run(UNNAMED) == []
    for width in (1200, 390):
        for dark in (False, True):
            browser.show(width=width, dark=dark)
            assert browser.run(CONTRAST) == []
            assert browser.run(CUT_OFF) == []
            assert browser.run(SMALL) == []
            assert browser.run(OVERFLOW) <= 0
    assert browser.run("return document.querySelectorAll('svg path.line').length") >= 6


def test_a_line_goes_on_where_the_run_was_not_down(browser: Browser, served: Served) -> None:
    """Loss is unknown while nothing leaves, and while the run is down: only that is a gap."""
    paths = """
        const [values, over] = arguments;
        return import("/charts.js").then(({ figure, drawLines }) => {
          const chart = figure("loss", "");
          document.body.append(chart.root);
          const times = values.map((_, i) => i);
          drawLines(chart, times, [{ name: "loss", values }], { from: 0, to: times.length, over });
          const path = chart.svg.querySelector("path.line").getAttribute("d");
          chart.root.remove();
          return path.replace(/[^ML]/g, "");
        });
    """
    with served.running():
        browser.open(served.url)
        loss = [None, 0.1, None, 0.2, None, 0.3, 0.4]
        for held, lines in (
            ([1, 1, 1, 1, 1, 1, 1], "MLLL"),
            ([1, 1, 1, 1, None, 1, 1], "MLML"),
            (None, "MMML"),
        ):
            assert browser.run(paths, loss, held) == lines


def _check_keyboard(browser: Browser) -> None:
    """All that a pointer can do, keys can."""
    browser.run("document.querySelector('#charts svg').focus()")
    browser.press("\ue012")  # ArrowLeft
    told = browser.run("return document.querySelector('#charts output').textContent")
    assert "in " in told
    assert "out " in told
    browser.run("document.querySelector('[data-range=long]').focus()")
    browser.press("\ue007")  # Enter
    pressed = "return document.querySelector('[data-range=long]').getAttribute('aria-pressed')"
    assert browser.run(pressed) == "true"
    browser.run("document.querySelector('[data-range=recent]').click()")


def _check_fetched(browser: Browser, served: Served) -> None:
    messages = [json.loads(each["message"])["message"] for each in browser.log("performance")]
    fetched = {
        each["params"]["request"]["url"]
        for each in messages
        if each["method"] == "Network.requestWillBeSent"
    }
    assert {url for url in fetched if not url.startswith((served.url, "data:"))} == set()
    # Requests to a run that had ended are the only errors: no script failed, no policy was broken.
    errors = [each["message"] for each in browser.log("browser") if each["level"] == "SEVERE"]
    assert [each for each in errors if "ERR_CONNECTION" not in each] == []
