"""What the live page and the live audit cost: ``python -m benchmarks.observed [ROWS [REPEATS]]``.

The same job, from file to file, run in turn: as it is, with a page that a client polls every second
(five times as often as the page itself does), and with audits of a hundredth and of all groups.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.csv as csv

from benchmarks.measure import Sample, interleaved, machine
from shoal.cli.run import monitor
from shoal.cli.run.command import RunOptions, run
from shoal.cli.run.page import PageOptions
from shoal.datasets import census
from shoal.run.observe import PageServer

ROWS, REPEATS = 200_000, 5
JOB = """
[schema]
subject = "person_id"
[schema.quasi]
age = {{ range = [0, 120], step = 1 }}
sex = {{ values = ["Female", "Male"] }}
[schema.sensitive]
diagnosis = {{}}
[policy]
k = 20
l = 3
delay = {{ rows = 4000 }}
[algorithm]
name = "tide"
[audit]
sample = {sample}
"""


def main(n_rows: int = ROWS, repeats: int = REPEATS) -> None:
    """Measure, and print a table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = census(n_rows, subjects=n_rows // 2, seed=1).table()
        columns = ["person_id", "age", "sex", "diagnosis"]
        csv.write_csv(table.select(columns), folder / "in.csv")
        kinds: dict[str, Callable[[], object]] = {
            "as it is": partial(_run, folder, 0.0),
            "`--page`, polled every second": partial(_polled, folder),
            "`sample = 0.01`": partial(_run, folder, 0.01),
            "`sample = 1`": partial(_run, folder, 1.0),
        }
        used: dict[str, list[float]] = {kind: [] for kind in kinds}
        samples = interleaved(
            repeats, *(partial(_counted, action, used[kind]) for kind, action in kinds.items())
        )
    # The first round isn't counted.
    processor = [Sample(tuple(values[1:])) for values in used.values()]
    where = machine()
    print(f"{n_rows:,} rows from CSV to CSV, `tide`, k = 20, l = 3, a delay of 4,000 rows; "
          f"{where['processor']}, {where['cores']} cores; medians of {repeats}, with least and "
          "most.\n")  # fmt: skip
    print("| run | 1000 rows/s | speed, to as it is | processor time, to as it is |")
    print("|---|---:|---:|---:|")
    for kind, sample, busy in zip(kinds, samples, processor, strict=True):
        speed, cost = samples[0].per(sample), busy.per(processor[0])
        cells = [_words(sample.rate(n_rows), 1e-3, 0), _words(speed, 1.0, 2), _words(cost, 1.0, 2)]
        print(f"| {kind} | {' | '.join(cells)} |")


def _counted(action: Callable[[], object], used: list[float]) -> None:
    """Do something, and take note of the processor time that all threads used."""
    begin = time.process_time()
    action()
    used.append(time.process_time() - begin)


def _words(sample: Sample, factor: float, places: int) -> str:
    low, mid, high = (
        f"{factor * value:.{places}f}" for value in (sample.least, sample.median, sample.most)
    )
    return f"{mid} ({low} to {high})"


def _run(folder: Path, share: float, page: PageOptions | None = None) -> None:
    job = folder / "job.toml"
    job.write_text(JOB.format(sample=share))
    code = run(
        job,
        RunOptions(
            source=str(folder / "in.csv"), sink=str(folder / "out.csv"), force=True, quiet=True,
            page=page,
        ),
    )  # fmt: skip
    assert code == 0


def _polled(folder: Path) -> None:
    done = threading.Event()
    opened: list[PageServer] = []

    def open_page(*given: object, **more: object) -> PageServer:
        opened.append(before(*given, **more))  # type: ignore[arg-type]
        return opened[-1]

    def poll() -> None:
        while not done.wait(1.0):
            if opened:
                # A run that has just ended doesn't answer any more.
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"{opened[-1].url}recent.json", timeout=5).read()

    before, monitor.open_page = monitor.open_page, open_page
    client = threading.Thread(target=poll, daemon=True)
    client.start()
    try:
        _run(folder, 0.0, PageOptions(address="127.0.0.1:0"))
    finally:
        done.set()
        monitor.open_page = before
        client.join()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
