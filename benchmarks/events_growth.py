"""Does the memory of z-anonymity follow the window and not the stream, and the time the rows?

``python -m benchmarks.events_growth ROWS SUBJECTS VALUES FOLDER`` publishes ROWS made-up events
in a process of its own, and prints what it took as JSON. `grown` calls it for streams of several
lengths and for windows of several lengths.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.child import peak, resident
from benchmarks.events_data import Case, Stream, plain, stream_file
from benchmarks.events_runs import publish
from benchmarks.growth import BOUNDED, LINEAR
from benchmarks.measure import Sample
from benchmarks.workloads import ROOT
from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.engine.base import Engine
from shoal.engine.space import Space
from shoal.spec.policy import Window

__all__ = ["LENGTHS", "WINDOWS", "grown"]

#: How many times the rows, with one window; and how many times the window's length, over
#: the stream of middle length.
LENGTHS, WINDOWS = (1, 4, 10), (1, 4, 16)
#: Tables grow by doubling: so much more than in proportion to the window may still be rounding.
DOUBLING = 2.0


def grown(
    stream: Stream, folder: Path, *, z: int, window: float, repeats: int, warm: int
) -> dict[str, Any]:
    """Each run in processes of its own, in turn."""
    for rows in (warm, *(times * stream.n_rows for times in LENGTHS)):
        # The child must only find the file: making it would count as its memory.
        stream_file(replace(stream, n_rows=rows), folder)
    middle = LENGTHS[len(LENGTHS) // 2]
    runs = dict.fromkeys(
        [*((times, WINDOWS[0]) for times in LENGTHS), *((middle, times) for times in WINDOWS)]
    )
    reports: dict[tuple[int, int], list[dict[str, Any]]] = {run: [] for run in runs}
    for _ in range(repeats):
        for rows, times in runs:
            length = replace(stream, n_rows=rows * stream.n_rows)
            report = _call(length, folder, z=z, window=times * window, warm=warm)
            reports[rows, times].append(report)

    def sample(run: tuple[int, int], name: str) -> Sample:
        return Sample(tuple(float(report[name]) for report in reports[run]))

    def figures_of(run: tuple[int, int]) -> dict[str, Any]:
        names = ("seconds", "peak", "growth", "steady", "tables")
        rows, times = run
        return {
            "n_rows": rows * stream.n_rows,
            "window": times * window,
            **{name: sample(run, name).as_dict() for name in names},
        }

    short, long = (LENGTHS[0], WINDOWS[0]), (LENGTHS[-1], WINDOWS[0])
    narrow, wide = (middle, WINDOWS[0]), (middle, WINDOWS[-1])
    ratios = {
        "time": sample(long, "seconds").per(sample(short, "seconds")),
        "peak": sample(long, "peak").per(sample(short, "peak")),
        "tables": sample(long, "tables").per(sample(short, "tables")),
        "tables_of_windows": sample(wide, "tables").per(sample(narrow, "tables")),
    }
    more_rows, more_window = LENGTHS[-1] / LENGTHS[0], WINDOWS[-1] / WINDOWS[0]
    return {
        "lengths": [figures_of((times, WINDOWS[0])) for times in LENGTHS],
        "windows": [figures_of((middle, times)) for times in WINDOWS],
        "ratios": {name: ratio.as_dict() for name, ratio in ratios.items()},
        "rows": more_rows,
        "times_window": more_window,
        "linear": ratios["time"].median <= more_rows * LINEAR,
        "bounded": max(ratios["peak"].median, ratios["tables"].median) <= BOUNDED,
        "follows": ratios["tables_of_windows"].median <= more_window * DOUBLING,
    }


def _call(stream: Stream, folder: Path, *, z: int, window: float, warm: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.events_growth"]
    command += [str(stream.n_rows), str(stream.n_subjects), str(stream.n_values), str(folder)]
    command += ["--z", str(z), "--window", str(window), "--warm", str(warm)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"a run of {stream.n_rows} rows failed:\n{done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


# -- in a process of its own -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Watched(ZAnonymizer):
    """z-anonymity whose engine can be looked at while it runs."""

    engines: list[Engine] = field(default_factory=list, repr=False, compare=False)

    def _start(self, space: Space, seed: bytes) -> Engine:
        engine = super()._start(space, seed)
        self.engines.append(engine)
        return engine

    def table_bytes(self) -> int:
        """How large the tables are of who has exposed what."""
        return sum(array.nbytes for array in self.engines[-1].state.table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events_growth", description=__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("subjects", type=int)
    parser.add_argument("values", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--z", type=int, required=True)
    parser.add_argument("--window", type=float, required=True, metavar="SECONDS")
    parser.add_argument("--warm", type=int, required=True, metavar="ROWS")
    options = parser.parse_args(arguments)

    stream = Stream(options.rows, options.subjects, options.values)
    output = options.folder / f"published-child-{options.rows}.parquet"
    window = Window(seconds=options.window)

    def case(rows: int) -> Case:
        return Case("events", plain(replace(stream, n_rows=rows), options.folder), window)

    publish(case(options.warm), options.z, output)
    whole, anonymizer = case(options.rows), Watched()
    residents: list[int] = []
    tables: list[int] = []

    def watch(_: object) -> None:
        residents.append(resident())
        tables.append(anonymizer.table_bytes())

    before = peak()
    begin = time.perf_counter()
    publish(whole, options.z, output, anonymizer=anonymizer, watch=watch)
    seconds = time.perf_counter() - begin
    output.unlink()
    after = peak()
    report = {
        "seconds": seconds,
        "peak": after,
        "growth": after - before,
        "steady": statistics.median(residents[len(residents) // 2 :]),
        "tables": max(tables),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
