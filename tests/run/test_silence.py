"""A source that stops: what it has given comes out by the clock alone, within the delay."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.run.clock import LEAD_MOST
from shoal.run.reader import POLL
from tests.world import beside, people, read, write, write_job

DELAY = 2.0
#: What a machine that does something else meanwhile may add; without it, it is far less than this.
STALL = 20.0
POLICY = f"k = 3\nl = 2\ndelay = {{ rows = 100000, seconds = {DELAY} }}"


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + DELAY + 3 * STALL
    while not is_so():
        assert time.monotonic() < end, "nothing came out, and nothing more will come in"
        time.sleep(0.02)


def n_lines(path: Path) -> int:
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def put(folder: Path, table: pa.Table, source: str) -> None:
    """Let some rows appear, at the end of the file or as a file of the folder."""
    if source == "folder":
        name = f"{len(list(folder.glob('incoming/*')))}.jsonl"
        aside = write(table, folder / f".{name}", "jsonl")
        aside.rename(folder / "incoming" / name)
        return
    rows = write(table, folder / ".more.jsonl").read_bytes()
    with (folder / "incoming.jsonl").open("ab") as file:
        file.write(rows)


@pytest.mark.parametrize("source", ["file", "folder"])
def test_when_nothing_comes_the_clock_alone_releases(tmp_path, source):
    n_times, n_rows = 3, 30
    table = people(n_times * n_rows, n_people=n_times * n_rows)
    incoming = tmp_path / ("incoming" if source == "folder" else "incoming.jsonl")
    incoming.mkdir() if source == "folder" else incoming.touch()
    job = write_job(tmp_path, policy=POLICY, publish="suppressed = 'root'")
    out, trace = tmp_path / "out.csv", tmp_path / "trace.parquet"
    words = ["run", job, "-i", incoming, "--follow", "-o", out, "--trace", trace, "-q"]
    with beside(*words) as process:
        borders = range(0, len(table), n_rows)
        for begin in borders:
            put(tmp_path, table.slice(begin, n_rows), source)
            wait_until(lambda end=begin + n_rows: n_lines(out) == 1 + end)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=600)
        # Nothing of it is kept: there are no checkpoints.
        assert process.returncode == 128 + signal.SIGTERM, said.decode()
    lines = read(trace)
    assert lines.num_rows == len(table)
    assert set(lines["outcome"].to_pylist()) <= {"group", "reuse", "suppressed"}
    # No arrival has caused it: whatever left, left when all rows so far had arrived.
    assert set(lines["published"].to_pylist()) == {begin + n_rows for begin in borders}
    row, arrived, published = (
        lines[name].to_numpy() for name in ("row", "arrived_s", "published_s")
    )
    longest = [(published - arrived)[row // n_rows == i].max() for i in range(n_times)]
    # The clock ticks a little before the deadline, and not when it likes.
    assert min(longest) >= DELAY - LEAD_MOST - POLL
    # A machine that stands still for a moment can make rows late once, and not each time.
    assert min(longest) <= DELAY
    assert max(longest) <= DELAY + POLL + STALL
