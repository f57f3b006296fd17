"""``shoal spark --page`` in a real browser: the figures of all shards together, and of each."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.browser import MISSING, Browser
from tests.cli.run.test_page import CANARY, PROGRAM, STATE, WHOLE, check_readable, n_in, tile
from tests.crashes.world import wait_until
from tests.deploy.prometheus import free_port
from tests.world import people, write, write_job

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
    pytest.mark.xdist_group("spark"),
]

#: How long a busy machine may take for a batch of Spark.
PATIENCE = 240
SHARDS = (
    "return [...document.querySelectorAll('#shards-table tbody tr')]"
    ".map(e => [...e.querySelectorAll('td')].map(d => Number(d.textContent.replaceAll(',', ''))))"
)


NOTE = "return document.getElementById('shards-note').textContent"
TROUBLE = "return document.getElementById('trouble').hidden"


class OnSpark:
    """A folder that fills with files, and a job for two shards with a page."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self._n_files = folder, free_port(), 0
        (folder / "in").mkdir()
        self.job = write_job(folder, run="checkpoint = { folder = 'state' }")
        table = people(9000)
        for name in ("person", "illness", "ward"):
            values = [f"{CANARY}-{each}" for each in table.column(name).to_pylist()]
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
        self._table = table

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def add(self) -> None:
        """Put a file with the next 3,000 rows into the folder: enough for a map of two shards."""
        rows = self._table.slice(self._n_files * 3000, 3000)
        write(rows, self.folder / "in" / f"{self._n_files}.csv")
        self._n_files += 1

    @contextlib.contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        words = [
            "spark", str(self.job), "-i", f"{self.folder / 'in'}/", "--from", "csv", "-o",
            f"{self.folder / 'out'}/", "--to", "csv", "--shards", "2", "--master", "local[2]",
            "--follow", "-q", "--page", f"127.0.0.1:{self.port}",
        ]  # fmt: skip
        environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, *words], env=environment)
        try:
            wait_until(self._answers)
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(120)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(self.data())
        return False

    def data(self) -> Any:
        with urllib.request.urlopen(f"{self.url}recent.json", timeout=10) as answer:
            return json.load(answer)

    @property
    def history(self) -> list[Path]:
        return list((self.folder / "state").glob("history-*"))


def test_a_page_shows_the_shards_of_a_job_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    served = OnSpark(tmp_path)
    served.add()
    with Browser() as browser, served.running() as process:
        browser.open(served.url)
        # Spark takes its time to start; the page is there before.
        wait_until(lambda: browser.run(STATE) == "starting", 30)
        wait_until(lambda: n_in(browser) == 3000, PATIENCE)
        wait_until(lambda: browser.run(STATE) == "running")
        served.add()
        wait_until(lambda: n_in(browser) == 6000, PATIENCE)
        shards = browser.run(SHARDS)
        assert len(shards) == 2
        assert all(0 < rows_in < 6000 for rows_in, *_ in shards)
        assert sum(rows_in for rows_in, *_ in shards) == 6000
        assert sum(share for _, share, *_ in shards) == pytest.approx(100, abs=0.2)
        held = int(tile(browser, "Held").partition("rows")[0].replace(",", ""))
        assert held == sum(held for _, _, held, *_ in shards)
        assert "times as many as the average one" in browser.run(NOTE)
        assert "committed" in tile(browser, "Last batch")
        text = browser.run(WHOLE)
        for said in (
            "k-anonymity",
            "castle",
            "shard 1",
            "with each batch",
            "at most 40 rows in 2 shards",
        ):
            assert said in text
        assert CANARY not in text
        assert CANARY not in json.dumps(served.data())
        check_readable(browser)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
        wait_until(lambda: browser.run(STATE) in ("no answer", "stopped"))
        assert n_in(browser) == 6000
        stopped = time.time()
        (history,) = served.history
        assert stat.S_IMODE(history.stat().st_mode) == 0o600
        with served.running() as process:
            # Before a batch: figures, shards and charts are those of the run before.
            wait_until(lambda: browser.run(TROUBLE), PATIENCE)
            wait_until(lambda: served.data()["figures"] is not None, PATIENCE)
            times = served.data()["series"]["t"]
            assert times[0] < stopped < times[-1]
            wait_until(lambda: n_in(browser) == 6000)
            assert browser.run(SHARDS) == shards
            assert "committed" in tile(browser, "Last batch")
            assert served.data()["figures"]["batch_age"] > 0
            served.add()
            wait_until(lambda: n_in(browser) == 9000, PATIENCE)
            assert sum(rows_in for rows_in, *_ in browser.run(SHARDS)) == 9000
            assert served.data()["series"]["t"][0] == times[0]
            assert times == sorted(times)
            assert CANARY not in browser.run(WHOLE)
            check_readable(browser)
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0
        assert len(served.history) == 1
        assert CANARY.encode() not in served.history[0].read_bytes()
