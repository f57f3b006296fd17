"""What Spark costs: ``python -m benchmarks.spark [--quick] [--json FILE] [--write PAGE]``.

One stream of files through a cluster of two executors, anonymized; beside it the same job with no
anonymizer, the same without any Python, and the embedded runner on the same files. Rates, core time
for each row, the floor of a batch, state and what goes from machine to machine; and, with
``--scale PAGE``, what large streams need by that. Targets are reported as met or not, and never
enforced: a busy machine isn't a bug.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks import runs
from benchmarks.machine_use import Use
from benchmarks.markdown import replace_section
from benchmarks.measure import Sample, interleaved, machine, say
from benchmarks.options import add_options, sizes_of, tell
from benchmarks.spark_cluster import a_session, seconds_of_tree, shuffled
from benchmarks.spark_runs import BARE, OURS, PASSED, Files, Ran, cut, job_of, run
from benchmarks.spark_text import scale_text, text
from benchmarks.workloads import Workload, acs_income, census_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Sizes", "main", "measure"]

#: At least so much of the rate of the same job with no anonymizer.
LEAST_SHARE = 0.6


@dataclass(frozen=True)
class Sizes:
    """How much is measured, and on what."""

    rows: int = 1_402_639
    #: The rows of a file, and the files of a batch.
    file_rows: int = 100_000
    per_batch: int = 4
    repeats: int = 3
    k: int = runs.K
    delay: int = runs.DELAY_ROWS
    shards: int = 2
    master: str = "local-cluster[2,1,2048]"
    algorithms: tuple[str, ...] = ("castle", "fads")
    #: Batches without rows.
    empty: int = 20
    real_data: bool = True

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=120, file_rows=40, per_batch=2, repeats=1, k=5, delay=30, master="local[1]",
            algorithms=("fads",), empty=2, real_data=False,
        )  # fmt: skip


class Meter:
    """Runs something, and keeps what it took beside the time: once for each call."""

    def __init__(self, action: Callable[[], Any], counters: dict[str, Callable[[], float]]) -> None:
        self._action, self._counters = action, counters
        self.found: dict[str, list[float]] = {name: [] for name in counters}
        self.results: list[Any] = []

    def __call__(self) -> None:
        """Run it once."""
        before = {name: counter() for name, counter in self._counters.items()}
        self.results.append(self._action())
        for name, counter in self._counters.items():
            self.found[name].append(counter() - before[name])

    def sample(self, name: str) -> Sample:
        """What was counted, but for the first round, which isn't."""
        return Sample(tuple(self.found[name][1:]))


# -- measuring -------------------------------------------------------------------------------------


def of_rates(session: SparkSession, files: Files, sizes: Sizes, folder: Path) -> dict[str, Any]:
    """All rivals in turn."""
    counters = {"core": seconds_of_tree, "shuffled": lambda: float(shuffled(session))}

    def on_spark(name: str, kind: str) -> Meter:
        job = job_of(name, files, folder, k=sizes.k, delay=sizes.delay, shards=sizes.shards)
        return Meter(lambda: run(session, job, files, kind), counters)

    def embedded(name: str) -> Meter:
        workload = dataclasses.replace(files.workload, path=files.whole)
        output = folder / "embedded.parquet"

        def publish() -> None:
            runs.publish(name, workload, output, k=sizes.k, delay=sizes.delay)

        return Meter(publish, {"core": time.process_time})

    first = sizes.algorithms[0]
    meters = {PASSED: on_spark(first, PASSED), BARE: on_spark(first, BARE)}
    meters |= {f"{OURS} {name}": on_spark(name, OURS) for name in sizes.algorithms}
    meters |= {f"embedded {name}": embedded(name) for name in sizes.algorithms}
    seconds = dict(zip(meters, interleaved(sizes.repeats, *meters.values()), strict=True))
    n = files.n_rows

    def figures_of(name: str) -> dict[str, Any]:
        core = Sample(tuple(1e6 * each / n for each in meters[name].sample("core").values))
        return {
            "seconds": seconds[name].as_dict(),
            "rows_per_second": seconds[name].rate(n).as_dict(),
            "core_us_per_row": core.as_dict(),
        }

    return {
        PASSED: figures_of(PASSED),
        BARE: figures_of(BARE),
        "algorithms": [
            {
                "name": name,
                "spark": figures_of(f"{OURS} {name}"),
                "embedded": figures_of(f"embedded {name}"),
                "share": (share := seconds[PASSED].per(seconds[f"{OURS} {name}"])).as_dict(),
                "share_of_bare": seconds[BARE].per(seconds[f"{OURS} {name}"]).as_dict(),
                "met": share.median >= LEAST_SHARE,
                **_bytes_of(meters[f"{OURS} {name}"], n, sizes.shards),
            }
            for name in sizes.algorithms
        ],
        "target": LEAST_SHARE,
        "in_bytes_per_row": sum(path.stat().st_size for path in files.folder.iterdir()) / n,
    }


def _bytes_of(meter: Meter, n_rows: int, n_shards: int) -> dict[str, float]:
    ran: Ran = meter.results[-1]
    return {
        "state_bytes_per_shard": max(ran.n_bytes, default=0) / n_shards,
        "out_bytes_per_row": ran.n_out_bytes / n_rows,
        "shuffled_bytes_per_row": meter.sample("shuffled").median / n_rows,
    }


def of_floor(session: SparkSession, files: Files, sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Batches without rows, after one with rows."""
    inside = folder / "floor"
    shutil.rmtree(inside, ignore_errors=True)
    inside.mkdir(parents=True)
    first = min(files.folder.iterdir())
    shutil.copy(first, inside / "00000.parquet")
    nothing = pq.read_schema(first).empty_table()
    for i in range(sizes.empty):
        pq.write_table(nothing, inside / f"{i + 1:05}.parquet")
    empty = dataclasses.replace(files, folder=inside, per_batch=1)
    job = job_of(
        sizes.algorithms[0], empty, folder / "run-of-floor", k=sizes.k, delay=sizes.delay,
        shards=sizes.shards,
    )  # fmt: skip
    ran = run(session, job, empty, OURS)
    return {"seconds": Sample(ran.seconds[1:]).as_dict()}


def measure(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Everything, with a word on standard error before each part."""
    workload = _workload(sizes, folder)
    files = cut(workload, folder, sizes.rows, sizes.file_rows, sizes.per_batch)
    results: dict[str, Any] = {
        "machine": machine(), "workload": workload.name, "n_rows": files.n_rows,
        "batch_rows": sizes.file_rows * sizes.per_batch, "k": sizes.k, "delay": sizes.delay,
        "shards": sizes.shards, "master": sizes.master,
    }  # fmt: skip
    use, tree = Use.now(), seconds_of_tree()
    with a_session(sizes.master) as session:
        say(f"{files.n_rows:,} rows of {workload.name} on {sizes.master}")
        results["spark"] = session.version
        results["rates"] = of_rates(session, files, sizes, folder / "on-spark")
        say("batches without rows")
        results["floor"] = of_floor(session, files, sizes, folder / "on-spark")
        spent, whole = use.since(), (os.cpu_count() or 1) * (time.perf_counter() - use.at)
        # What works for us isn't one of the others.
        ours = seconds_of_tree() - tree - spent.own
        results["others"] = max(0.0, spent.others - ours / whole)
    return results


def _workload(sizes: Sizes, folder: Path) -> Workload:
    real = acs_income() if sizes.real_data else None
    if real is None and sizes.real_data:
        say("../shared/data/acs_income_2018.parquet isn't there: the census is measured instead")
    return real or census_file(sizes.rows, folder)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    add_options(parser, rows="the stream (default: all, 1,402,639)", repeats=Sizes.repeats)
    parser.add_argument("--master", help=f"Spark's master (default {Sizes.master})")
    parser.add_argument("--scale", type=Path, metavar="PAGE", help="put what streams need here")
    options = parser.parse_args(arguments)
    sizes = sizes_of(Sizes, parser, options)
    if options.master is not None:
        sizes = dataclasses.replace(sizes, master=options.master)
    results = measure(sizes, options.data)
    tell(options, "spark", results, text(results))
    if options.scale is not None:
        replace_section(options.scale, "scale", scale_text(results))


if __name__ == "__main__":
    main()
