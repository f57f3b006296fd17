"""How fast SABRE is: ``python -m benchmarks.tables [--quick] [--json FILE] [--write PAGE]``.

Three questions: how fast is a table cut into groups beside the rivals, how much slower is a stream
in windows than a run that decides nothing, and does twice the rows cost twice the time. Targets are
reported as met or not, and never enforced: a busy machine isn't a bug.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import runs
from benchmarks.figures.salaries import NEEDS, QUASI, salaries
from benchmarks.growth import LINEAR
from benchmarks.machine_use import Use
from benchmarks.markdown import met, spread, table
from benchmarks.measure import Sample, interleaved, machine, say
from benchmarks.options import add_options, sizes_of, tell
from benchmarks.workloads import ROW_GROUP_ROWS, Workload, acs_income
from shoal.algorithms import find
from shoal.spec.policy import KAnonymity, Policy, TCloseness, Window

__all__ = ["Sizes", "main"]

#: The least speed against the rivals, and the most time against the pass-through.
RIVALS = {"t-mondrian": 1.0, "sabre-knn": 20.0}
MOST_TIMES = 6.0
#: The shorter inputs, as parts of the longest.
PARTS = (4, 2, 1)
SEED = b"benchmark"


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 200_000
    repeats: int = 5
    #: ``sabre-knn`` compares every row with every other.
    slow_repeats: int = 1
    stream_repeats: int = 3
    warm_rows: int = 2_000
    k: int = 6
    t: float = 0.35
    window: int = 20_000
    advance: int = 5_000
    #: None: all that there are.
    stream_rows: int | None = None

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=120, repeats=2, slow_repeats=1, stream_repeats=1, warm_rows=40, k=3, t=0.5,
            window=60, advance=20, stream_rows=120,
        )  # fmt: skip

    def policy(self, *, stream: bool) -> Policy:
        """What is promised."""
        window: Any = Window(rows=self.window, advance=self.advance) if stream else "all"
        return Policy(KAnonymity(self.k), TCloseness(self.t), window=window)


# -- measuring -------------------------------------------------------------------------------------


def of_tables(sizes: Sizes) -> dict[str, Any]:
    """SABRE-AK and its rivals on encoded rows, in turn, and SABRE-AK on fewer rows."""
    for name in ("sabre-ak", *RIVALS):
        _deciding(sizes, name, sizes.warm_rows)()
    lengths = [sizes.rows // part for part in PARTS]
    *growing, ours, quick = interleaved(
        sizes.repeats,
        *(_deciding(sizes, "sabre-ak", rows) for rows in lengths),
        _deciding(sizes, "t-mondrian", sizes.rows),
        warm=True,
    )
    again, slow = interleaved(
        sizes.slow_repeats,
        *(_deciding(sizes, name, sizes.rows) for name in ("sabre-ak", "sabre-knn")),
        warm=True,
    )
    seconds = {"sabre-ak": ours, "t-mondrian": quick, "sabre-knn": slow}
    gains = {"t-mondrian": quick.per(ours), "sabre-knn": slow.per(again)}
    return {
        "n_rows": sizes.rows,
        "n_quasi": len(QUASI),
        "seconds": {name: sample.as_dict() for name, sample in seconds.items()},
        "gains": {
            name: gain.as_dict() | {"target": RIVALS[name], "met": gain.median >= RIVALS[name]}
            for name, gain in gains.items()
        },
        "growth": _growth(lengths, [*growing, ours]),
    }


def _deciding(sizes: Sizes, name: str, rows: int) -> Callable[[], None]:
    """A run of an engine alone, from codes to decisions."""
    schema, codes = salaries(rows, len(QUASI), seed=0)

    def decide() -> None:
        engine = find(name)().start(schema, sizes.policy(stream=False), seed=SEED)
        engine.push(codes)
        engine.flush()

    return decide


def of_streams(workload: Workload, sizes: Sizes, folder: Path) -> dict[str, Any]:
    """SABRE_W and the pass-through from file to file, in turn, and SABRE_W on shorter streams."""
    longest = sizes.stream_rows or workload.n_rows
    output = folder / "published-windows.parquet"
    parts = [prefix(workload, longest // part, folder) for part in PARTS]
    policy = sizes.policy(stream=True)
    summaries: dict[str, Any] = {}

    def publish(part: Workload) -> None:
        summaries["sabre-w"] = runs.run(part, find("sabre-w")(), policy, output).as_dict()

    # Even the shortest has all that is to be compiled.
    publish(parts[0])
    passing, *growing = interleaved(
        sizes.stream_repeats,
        partial(runs.pass_through, parts[-1], output),
        *(partial(publish, part) for part in parts),
        warm=True,
    )
    publish(parts[-1])
    output.unlink()
    ratio = growing[-1].per(passing)
    return {
        "workload": workload.name,
        "n_rows": longest,
        "n_quasi": len(workload.schema.quasi),
        "seconds": {"pass-through": passing.as_dict(), "sabre-w": growing[-1].as_dict()},
        "rows_per_second": {
            "pass-through": passing.rate(longest).as_dict(),
            "sabre-w": growing[-1].rate(longest).as_dict(),
        },
        "ratio": ratio.as_dict(),
        "target": MOST_TIMES,
        "met": ratio.median <= MOST_TIMES,
        "loss": summaries["sabre-w"]["loss"],
        "growth": _growth([part.n_rows for part in parts], growing),
    }


def prefix(workload: Workload, rows: int, folder: Path) -> Workload:
    """The first rows of a file, as a file."""
    if rows == workload.n_rows:
        return workload
    path = folder / f"{workload.name}-{rows}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        head = pq.read_table(workload.path).slice(0, rows)
        pq.write_table(head, unfinished, row_group_size=ROW_GROUP_ROWS)
        unfinished.replace(path)
    return Workload(workload.name, path, workload.schema, rows, workload.missing)


def _growth(lengths: Sequence[int], samples: Sequence[Sample]) -> dict[str, Any]:
    times = samples[-1].per(samples[0])
    most = lengths[-1] / lengths[0]
    return {
        "n_rows": list(lengths),
        "seconds": [sample.as_dict() for sample in samples],
        "rows": most,
        "time": times.as_dict(),
        "linear": times.median <= most * LINEAR,
    }


# -- telling ---------------------------------------------------------------------------------------


def text(results: dict[str, Any], sizes: Sizes) -> str:
    """All results as Markdown."""
    where = results["machine"]
    parts = [
        "Measured on {processor}, {cores} cores, with Python {python}, NumPy {numpy}, "
        "Numba {numba}, PyArrow {pyarrow}, while other programs used {others:.0%} of the machine. "
        "Medians, with minimum and maximum in brackets; ratios are per repeat. ".format(
            **where, others=results["others"]
        )
        + f"k = {sizes.k}, t = {sizes.t:g}."
    ]
    if "tables" in results:
        parts += ["### Tables", _tables_text(results["tables"])]
    if "streams" in results:
        parts += ["### Windows of a stream", _streams_text(results["streams"], sizes)]
    growing = [(name, results[key]) for name, key in _GROWING if key in results]
    if growing:
        parts += ["### More rows", *(_growth_text(name, one["growth"]) for name, one in growing)]
    return "\n\n".join(parts)


_GROWING = (("sabre-ak", "tables"), ("sabre-w", "streams"))


def _tables_text(found: dict[str, Any]) -> str:
    rows = [["`sabre-ak`", spread(found["seconds"]["sabre-ak"]), "", "", ""]]
    rows += [
        [
            f"`{name}`", spread(found["seconds"][name]), spread(gain),
            f"{gain['target']:g}", met(gain["met"]),
        ]
        for name, gain in found["gains"].items()
    ]  # fmt: skip
    return (
        f"{found['n_rows']:,} encoded rows of `acs-gov-employees-2018`, {found['n_quasi']} quasi "
        "attributes, the salary in 50 classes; the engine alone.\n\n"
        + table(["", "s", "times that of `sabre-ak`", "at least", "target"], rows)
    )


def _streams_text(found: dict[str, Any], sizes: Sizes) -> str:
    rows = [
        [name, spread(found["seconds"][key]), f"{found['rows_per_second'][key]['median']:,.0f}"]
        for name, key in (("pass-through", "pass-through"), ("`sabre-w`", "sabre-w"))
    ]
    return (
        f"{found['n_rows']:,} rows of `{found['workload']}` from file to file, {found['n_quasi']} "
        f"quasi attributes, the occupation (529 codes in a tree) sensitive; windows of "
        f"{sizes.window:,} rows that advance by {sizes.advance:,}.\n\n"
        + table(["", "s", "rows/s"], rows)
        + f"\n\nRatio: {spread(found['ratio'])}; target, at most {found['target']:g}: "
        f"{met(found['met'])}. Mean loss of `sabre-w`: {found['loss']['published']:.3f}."
    )


def _growth_text(name: str, found: dict[str, Any]) -> str:
    rows = [
        [f"{n:,}", spread(seconds), f"{1e6 * seconds['median'] / n:.2f}"]
        for n, seconds in zip(found["n_rows"], found["seconds"], strict=True)
    ]
    return (
        table([f"rows, `{name}`", "s", "µs for a row"], rows)
        + f"\n\n{found['rows']:.1f} times the rows took {spread(found['time'])} times as long: "
        + ("linear." if found["linear"] else "**not linear**.")
    )


def measure(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Everything for which there are data, with a word on standard error before each part."""
    results: dict[str, Any] = {"machine": machine()}
    use = Use.now()
    if all(path.exists() for path in NEEDS):
        say(f"tables of {sizes.rows:,} rows")
        results["tables"] = of_tables(sizes)
    else:
        say("../shared/data has no acs_gov_employees_2018: tables are left out")
    workload = acs_income()
    if workload is not None:
        say(f"windows of {workload.name}")
        results["streams"] = of_streams(workload, sizes, folder)
    else:
        say("../shared/data/acs_income_2018.parquet isn't there: streams are left out")
    results["others"] = use.since().others
    return results


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    add_options(parser, rows="a table (default 200,000)")
    options = parser.parse_args(arguments)
    sizes = sizes_of(Sizes, parser, options)
    results = measure(sizes, options.data)
    tell(options, "tables", results, text(results, sizes))


if __name__ == "__main__":
    main()
