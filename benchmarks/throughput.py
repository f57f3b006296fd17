"""How fast CASTLE is: ``python -m benchmarks.throughput [--quick] [--only PART …] [--write PAGE]``.

Four questions: how much slower than a run that decides nothing, how much faster than the naive
twin, does ten times the stream cost ten times the time and no more memory, and how long does the
first start take. Targets are reported as met or not, and never enforced: a busy machine isn't a
bug.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import child, growth, runs
from benchmarks.machine_use import Use
from benchmarks.markdown import met, parts, spread, table
from benchmarks.measure import interleaved, machine, say
from benchmarks.options import add_options, add_parts, sizes_of, tell_parts
from benchmarks.twin import Twins, compare
from benchmarks.workloads import Workload, acs_income, census_file

__all__ = ["Sizes", "main"]

#: At most this many times the time of the pass-through; at least this many times the twin's speed.
MOST_TIMES, LEAST_TIMES = 2.5, 100.0


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 1_000_000
    repeats: int = 5
    k: int = runs.K
    delay: int = runs.DELAY_ROWS
    real_data: bool = True
    twin_rows: int = 1_500
    twin_k: int = 20
    twin_delay: int = 300
    twin_repeats: int = 3
    #: More than it takes until every queue and pool of memory has been full once.
    linear_rows: int = 1_500_000
    small_rows: int = 2_000

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=150, repeats=2, k=5, delay=50, real_data=False, twin_rows=80, twin_k=5,
            twin_delay=50, twin_repeats=1, linear_rows=40, small_rows=60,
        )  # fmt: skip


# -- measuring -------------------------------------------------------------------------------------


def end_to_end(workload: Workload, sizes: Sizes, folder: Path) -> dict[str, Any]:
    """CASTLE and the pass-through from file to file, in turn."""
    output = folder / f"published-{workload.name}.parquet"
    summaries: dict[str, Any] = {}

    def castle() -> None:
        summary = runs.publish("castle", workload, output, k=sizes.k, delay=sizes.delay)
        summaries["castle"] = summary.as_dict()

    passing, deciding = interleaved(
        sizes.repeats, partial(runs.pass_through, workload, output), castle
    )
    output.unlink()
    ratio = deciding.per(passing)
    return {
        "workload": workload.name,
        "n_rows": workload.n_rows,
        "n_quasi": len(workload.schema.quasi),
        "k": sizes.k,
        "delay": sizes.delay,
        "seconds": {"pass-through": passing.as_dict(), "castle": deciding.as_dict()},
        "rows_per_second": {
            name: sample.rate(workload.n_rows).as_dict()
            for name, sample in (("pass-through", passing), ("castle", deciding))
        },
        "ratio": ratio.as_dict(),
        "target": MOST_TIMES,
        "met": ratio.median <= MOST_TIMES,
        "loss": summaries["castle"]["loss"],
    }


def against_twin(sizes: Sizes) -> dict[str, Any]:
    """The kernel alone, on encoded batches, and its naive twin."""
    found: Twins = compare(
        "castle",
        sizes.twin_rows,
        k=sizes.twin_k,
        delay=sizes.twin_delay,
        repeats=sizes.twin_repeats,
    )
    ratio = found.twin.per(found.kernel)
    return {
        "n_rows": found.n_rows,
        "k": found.k,
        "delay": found.delay,
        "seconds": {"twin": found.twin.as_dict(), "kernel": found.kernel.as_dict()},
        "rows_per_second": {
            "twin": found.twin.rate(found.n_rows).as_dict(),
            "kernel": found.kernel.rate(found.n_rows).as_dict(),
        },
        "ratio": ratio.as_dict(),
        "target": LEAST_TIMES,
        "met": ratio.median >= LEAST_TIMES,
        "alike": found.alike,
    }


def starts(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """The whole wall time of a small run: with no compiled kernels there, and then again."""
    census_file(sizes.small_rows, folder)
    with tempfile.TemporaryDirectory(prefix="shoal-cache-") as cache:
        first, second = (
            child.call(
                "castle",
                "census",
                sizes.small_rows,
                folder,
                k=sizes.k,
                delay=sizes.delay,
                cache=cache,
            )
            for _ in range(2)
        )
    return {"n_rows": sizes.small_rows, "first": first["wall"], "second": second["wall"]}


# -- telling ---------------------------------------------------------------------------------------


def _end_to_end_text(found: Sequence[dict[str, Any]]) -> str:
    rows = [
        [
            f"{one['workload']}, {one['n_rows']:,} rows",
            spread(one["seconds"]["pass-through"]),
            spread(one["seconds"]["castle"]),
            f"{one['rows_per_second']['pass-through']['median']:,.0f}",
            f"{one['rows_per_second']['castle']['median']:,.0f}",
            spread(one["ratio"]),
            met(one["met"]),
        ]
        for one in found
    ]
    first = found[0]
    return (
        f"CASTLE with k = {first['k']} and a delay of {first['delay']:,} rows, on "
        f"{first['n_quasi']} quasi attributes; the target is a ratio of at most "
        f"{first['target']:g}.\n\n"
        + table(
            ["workload", "pass-through, s", "CASTLE, s", "pass-through, rows/s", "CASTLE, rows/s",
             "ratio", "target"],
            rows,
        )
    )  # fmt: skip


def _twin_text(found: dict[str, Any]) -> str:
    return (
        f"{found['n_rows']:,} encoded rows, k = {found['k']}, delay {found['delay']:,} rows; the "
        f"target is a ratio of at least {found['target']:g}. Both decided "
        f"{'alike' if found['alike'] else '**differently**'}.\n\n"
        + table(
            ["", "s", "rows/s"],
            [
                [
                    name,
                    spread(found["seconds"][key], 4),
                    f"{found['rows_per_second'][key]['median']:,.0f}",
                ]
                for name, key in (("naive twin", "twin"), ("kernel", "kernel"))
            ],
        )
        + f"\n\nRatio: {spread(found['ratio'], 0)}; target {met(found['met'])}."
    )


def _starts_text(found: dict[str, Any]) -> str:
    return (
        f"A run of {found['n_rows']:,} rows from the start of the process to its end: "
        f"{found['first']:.1f} s when the kernels must be compiled, {found['second']:.1f} s from "
        "then on."
    )


def files(sizes: Sizes, folder: Path) -> list[dict[str, Any]]:
    """CASTLE from file to file, on all workloads that are there."""
    workloads = [census_file(sizes.rows, folder)]
    real = acs_income() if sizes.real_data else None
    if real is not None:
        workloads.append(real)
    elif sizes.real_data:
        say("../shared/data/acs_income_2018.parquet isn't there: that workload is left out")
    return [end_to_end(workload, sizes, folder) for workload in workloads]


def linearity(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """A stream and one of ten times its length."""
    return growth.tenfold(
        "castle", "census", sizes.linear_rows, folder, k=sizes.k, delay=sizes.delay,
        repeats=min(2, sizes.repeats), warm=sizes.small_rows,
    )  # fmt: skip


#: What can be measured by itself: its title, what measures it, and what tells it.
PARTS: dict[str, tuple[str, Callable[[Sizes, Path], Any], Callable[[Any], str]]] = {
    "end_to_end": ("From file to file", files, _end_to_end_text),
    "twin": ("The kernel alone", lambda sizes, _: against_twin(sizes), _twin_text),
    "linearity": ("Ten times the rows", linearity, growth.text),
    "starts": ("The first start", starts, _starts_text),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__)
    add_options(parser, rows="the census (default 1,000,000)")
    add_parts(parser, PARTS)
    options = parser.parse_args(arguments)
    sizes = sizes_of(Sizes, parser, options)
    results: dict[str, Any] = {"machine": machine(), "others": {}}
    for part in options.only or PARTS:
        title, measure, _ = PARTS[part]
        say(title)
        use = Use.now()
        results[part] = measure(sizes, options.data)
        results["others"][part] = use.since().others
    sections = {part: (title, tell) for part, (title, _, tell) in PARTS.items()}
    tell_parts(options, "results", results, parts(results, sections))


if __name__ == "__main__":
    main()
