"""Measure the on-deadline family: ``python -m benchmarks.on_deadline [--quick] [--only PART ...]``.

The family forms a group around each row at its deadline: FADS, FAST, IDEA, K-VARP and IoT. Five
parts: ``files``, how much slower than a run that decides nothing; ``workers``, what a second worker
of FAST brings; ``twins``, how much faster than the naive twins; ``gaps``, the same on rows that
lack values; ``growth``, does ten times the
stream cost ten times the time and no more memory. Targets are reported as met or not, and never
enforced: a busy machine isn't a bug.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import growth, runs
from benchmarks.machine_use import Use
from benchmarks.markdown import parts
from benchmarks.measure import interleaved, machine, say
from benchmarks.on_deadline_text import SECTIONS
from benchmarks.options import add_options, add_parts, sizes_of, tell_parts
from benchmarks.twin import compare
from benchmarks.workers import encoded, two_workers
from benchmarks.workloads import ADULT, Workload, adult_file

__all__ = ["PARTS", "Sizes", "main"]

#: At most this many times the time of the pass-through; at least this many times the twin's speed.
MOST_TIMES, LEAST_TIMES = 4.0, 100.0
#: Who is measured from file to file, and for whom there is a target.
RUNNERS = ("fads", "idea", "fast", "k-varp", "iot", "castle")
#: How many groups FAST keeps where one worker is compared with two.
KEPT = (50, 0)
#: Those of them that are measured on rows with gaps as well.
WITH_GAPS = ("idea",)
TARGETED = ("fads", "idea")
#: Who is set beside a twin, on complete rows and on rows with gaps. (Where none is missing, K-VARP
#: and IoT are IDEA.)
PAIRS = ("fads", "fast", "idea")
PAIRS_WITH_GAPS = ("idea", "k-varp", "iot")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 300_000
    repeats: int = 5
    k: int = 50
    delay: int = 2_000
    gaps: int = 3
    worker_delays: tuple[int, ...] = (2_000, 20_000)
    #: Rows, k and delay. What a twin takes depends on them a lot, so there are several.
    twin_settings: tuple[tuple[int, int, int], ...] = (
        (3_000, 5, 1_000), (3_000, 20, 1_000), (6_000, 50, 2_000),
    )  # fmt: skip
    twin_repeats: int = 2
    grown_rows: int = 100_000
    grown_repeats: int = 2
    small_rows: int = 5_000

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=150, repeats=2, k=5, delay=50, worker_delays=(50,), twin_settings=((80, 5, 50),),
            twin_repeats=1, grown_rows=40, grown_repeats=1, small_rows=60,
        )  # fmt: skip


# -- measuring -------------------------------------------------------------------------------------


def files(sizes: Sizes, folder: Path) -> list[dict[str, Any]]:
    """Every algorithm and the pass-through from file to file, in turn."""
    complete = adult_file(sizes.rows, folder)
    incomplete = adult_file(sizes.rows, folder, gaps=sizes.gaps)
    return [
        from_file_to_file(complete, RUNNERS, sizes, folder),
        from_file_to_file(incomplete, WITH_GAPS, sizes, folder),
    ]


def from_file_to_file(
    workload: Workload, names: Sequence[str], sizes: Sizes, folder: Path
) -> dict[str, Any]:
    """Some algorithms and the pass-through, all on the same file."""
    output = folder / f"published-{workload.name}.parquet"
    losses: dict[str, Any] = {}

    def publish(name: str) -> None:
        summary = runs.publish(name, workload, output, k=sizes.k, delay=sizes.delay)
        losses[name] = summary.as_dict()["loss"]

    passing, *deciding = interleaved(
        sizes.repeats,
        partial(runs.pass_through, workload, output),
        *(partial(publish, name) for name in names),
    )
    output.unlink()
    lines = []
    for name, seconds in zip(names, deciding, strict=True):
        ratio = seconds.per(passing)
        target = MOST_TIMES if name in TARGETED else None
        lines.append(
            {
                "algorithm": name,
                "seconds": seconds.as_dict(),
                "rows_per_second": seconds.rate(workload.n_rows).as_dict(),
                "ratio": ratio.as_dict(),
                "target": target,
                "met": None if target is None else ratio.median <= target,
                "loss": losses[name],
            }
        )
    return {
        "workload": workload.name,
        "n_rows": workload.n_rows,
        "n_quasi": len(workload.schema.quasi),
        "k": sizes.k,
        "delay": sizes.delay,
        "seconds": passing.as_dict(),
        "rows_per_second": passing.rate(workload.n_rows).as_dict(),
        "algorithms": lines,
    }


def workers(sizes: Sizes, folder: Path) -> list[dict[str, Any]]:
    """FAST by one and by two workers, with and without reuse."""
    workload = adult_file(sizes.rows, folder)
    batches = encoded(workload)
    return [
        two_workers(
            workload.schema, batches, k=sizes.k, delay=delay, kept=kept, repeats=sizes.repeats
        )
        for delay in sizes.worker_delays
        for kept in KEPT
    ]


def twins(sizes: Sizes, _: Path) -> list[dict[str, Any]]:
    """Kernels alone, on encoded batches, and their naive twins."""
    return _beside_twins(sizes, PAIRS, 0)


def with_gaps(sizes: Sizes, _: Path) -> list[dict[str, Any]]:
    """The same on rows that lack values."""
    return _beside_twins(sizes, PAIRS_WITH_GAPS, sizes.gaps)


def _beside_twins(sizes: Sizes, names: Sequence[str], gaps: int) -> list[dict[str, Any]]:
    lines = []
    for rows, k, delay in sizes.twin_settings:
        for name in names:
            say(f"{name} and its twin: k = {k}, delay {delay:,}, gaps {gaps}")
            found = compare(name, rows, k=k, delay=delay, repeats=sizes.twin_repeats, gaps=gaps)
            ratio = found.twin.per(found.kernel)
            lines.append(
                {
                    "algorithm": name,
                    "n_rows": rows,
                    "k": k,
                    "delay": delay,
                    "gaps": gaps,
                    "seconds": {"twin": found.twin.as_dict(), "kernel": found.kernel.as_dict()},
                    "rows_per_second": {
                        "twin": found.twin.rate(rows).as_dict(),
                        "kernel": found.kernel.rate(rows).as_dict(),
                    },
                    "ratio": ratio.as_dict(),
                    "target": LEAST_TIMES,
                    "met": ratio.median >= LEAST_TIMES,
                    "alike": found.alike,
                }
            )
    return lines


def grown(sizes: Sizes, folder: Path) -> list[dict[str, Any]]:
    """A stream and one of ten times its length."""
    return [
        growth.tenfold(
            name, "adult", sizes.grown_rows, folder, k=sizes.k, delay=sizes.delay,
            repeats=sizes.grown_repeats, warm=sizes.small_rows,
        )
        for name in TARGETED
    ]  # fmt: skip


#: What can be measured by itself.
PARTS: dict[str, Callable[[Sizes, Path], list[dict[str, Any]]]] = {
    "files": files, "workers": workers, "twins": twins, "gaps": with_gaps, "growth": grown,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_deadline", description=__doc__)
    add_options(parser, rows="Adult, repeated (default 300,000)")
    add_parts(parser, PARTS)
    parser.add_argument("--twin-repeats", type=int, help="counted repeats of a twin (default 2)")
    options = parser.parse_args(arguments)
    sizes = sizes_of(Sizes, parser, options)
    if not ADULT.exists():
        say("../shared/data/adult.csv isn't there: the on-deadline family is left out")
        return
    results: dict[str, Any] = {"machine": machine(), "others": {}}
    for part in options.only or PARTS:
        say(f"the on-deadline family: {part}")
        use = Use.now()
        results[part] = PARTS[part](sizes, options.data)
        results["others"][part] = use.since().others
    tell_parts(options, "on-deadline", results, parts(results, SECTIONS))


if __name__ == "__main__":
    main()
