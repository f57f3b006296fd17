"""How fast TIDE is: the engine alone, from file to file, by two threads, and on longer streams."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import growth, runs
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading
from benchmarks.machine_use import Use
from benchmarks.markdown import spread, table
from benchmarks.measure import Sample, interleaved, machine, say
from benchmarks.tide.data import title_of
from benchmarks.tide.runs import BATCH, KEPT, OWN, Case, anonymizer_of, decide, measured
from benchmarks.tide.settings import Bench
from benchmarks.workloads import ADULT, Workload, adult_file, census_file
from shoal.engine.base import Decisions
from shoal.engine.space import Codes
from shoal.io.base import BATCH_ROWS
from shoal.spec.policy import Delay, KAnonymity, Policy

__all__ = ["engine", "engine_claims", "whole", "whole_claims"]

#: The targets: rows per second of the engine from this k on; times the pass-through; two threads
#: against one.
LEAST_RATE, FROM_K, MOST_TIMES, LEAST_GAIN = 100_000, 20, 4.0, 1.5
METHODS = (*OWN, *(f"{name}, none" for name in KEPT))


# -- the engine alone ------------------------------------------------------------------------------


def _rates(bench: Bench, case: Case, method: str) -> Reading:
    """Rows per CPU second of one core, in the runs whose losses are told, but for the first one.

    That one may have to load kernels.
    """
    seen = measured(bench.store, case, method, bench.sizes.repeats)
    assert seen is not None
    return Reading(seen.rate[1:] or seen.rate, digits=0)


def engine(bench: Bench) -> Figure:
    """Rows per second over k."""
    sizes = bench.sizes
    panels = [
        Panel(
            f"{title_of(data)}, delay {delay:,}", "k", sizes.ks,
            tuple(
                Curve(
                    method.removesuffix(", none"),
                    [_rates(bench, Case(data, sizes.rows, k, delay), method) for k in sizes.ks],
                )
                for method in METHODS
            ),
            what="Rows per second", axis="rows per CPU second", log=True, log_y=True,
        )
        for data in bench.data for delay in sizes.delays
    ]  # fmt: skip
    return Figure(
        "speed", "the engine alone",
        f"{sizes.rows:,} rows, from codes to decisions, per second of processor time of one core, "
        "in the runs whose losses are shown above; the others without reuse. "
        + _measured_on(),
        tuple(panels), tuple(engine_claims(bench)), page="tide", source="target", one_axis=False,
        heading="Speed",
    )  # fmt: skip


def _measured_on() -> str:
    where = machine()
    return (
        f"Measured on {where['processor']}, {where['cores']} cores, Python {where['python']}, "
        f"Numba {where['numba']}."
    )


def engine_claims(bench: Bench) -> list[Claim]:
    """The targets of the engine."""
    sizes, claims = bench.sizes, []
    ks = [k for k in sizes.ks if k >= FROM_K] or sizes.ks[-1:]
    asked = [
        (f"k ≥ {FROM_K}", "tide", ks, sizes.delays),
        (f"k = {sizes.ks[0]}, delay {sizes.delays[-1]:,}", "tide", sizes.ks[:1], sizes.delays[-1:]),
        (
            f"k = {sizes.ks[0]}, delay {sizes.delays[-1]:,}, `tide rolling`", "tide rolling",
            sizes.ks[:1], sizes.delays[-1:],
        ),
    ]  # fmt: skip
    for words, method, some_ks, delays in asked:
        rates = {
            f"{title_of(data)}, k = {k}, delay {delay:,}":
                _rates(bench, Case(data, sizes.rows, k, delay), method).mean
            for data in bench.data for delay in delays for k in some_ks
        }  # fmt: skip
        missed = [where for where, rate in rates.items() if rate < LEAST_RATE]
        evidence = f"{min(rates.values()):,.0f} to {max(rates.values()):,.0f}"
        if missed:
            worst = min(rates, key=lambda where: rates[where])
            evidence += f"; less in {len(missed)} of {len(rates)}, least on {worst}"
        verdict: Any = "missed" if missed else "met"
        claims.append(
            Claim(f"at least {LEAST_RATE:,} rows/s of one core at {words}", verdict, evidence)
        )
    return claims


# -- from file to file, by two threads, ten times the rows -----------------------------------------


def _in_folder(bench: Bench, measure: Callable[[Path], Any]) -> Any:
    """Measure with the folder of files, or with one that is removed afterwards."""
    if bench.folder is not None:
        return measure(bench.folder)
    with tempfile.TemporaryDirectory(prefix="shoal-tide-") as folder:
        return measure(Path(folder))


def _files(folder: Path, rows: int) -> list[Workload]:
    made = [census_file(rows, folder)]
    return [*made, adult_file(rows, folder)] if ADULT.exists() else made


def _file_to_file(bench: Bench, folder: Path) -> list[dict[str, Any]]:
    sizes, found = bench.sizes, []
    for workload in _files(folder, sizes.file_rows):
        say(f"tide: from file to file: {workload.name}")
        output = folder / f"tide-{workload.name}.parquet"
        publish = partial(
            runs.publish, "tide", workload, output, k=sizes.file_k, delay=sizes.file_delay
        )
        before = Use.now()
        passing, deciding = interleaved(
            sizes.repeats, partial(runs.pass_through, workload, output), publish
        )
        output.unlink()
        found.append(
            {
                "workload": workload.name,
                "pass-through": passing.as_dict(),
                "tide": deciding.as_dict(),
                "ratio": deciding.per(passing).as_dict(),
                "others": before.since().others,
            }
        )
    return found


def _two_threads(bench: Bench) -> list[dict[str, Any]]:
    """The engine with one thread and with two, by the wall clock; rows come as from a file."""
    sizes, found = bench.sizes, []
    for data, delay in ((data, delay) for data in bench.data for delay in sizes.thread_delays):
        say(f"tide: two threads: {data}, delay {delay:,}")
        case = Case(data, sizes.thread_rows, sizes.file_k, delay)
        rows, policy = case.stream(0), Policy(
            KAnonymity(case.k), delay=Delay(rows=case.delay)
        )  # fmt: skip
        decided: dict[int, list[Decisions]] = {}

        def run(workers: int) -> None:
            anonymizer = anonymizer_of(f"tide workers {workers}")
            ran = decide(anonymizer, rows, policy, pushed=BATCH_ROWS)  # noqa: B023
            decided[workers] = ran.decisions  # noqa: B023

        before = Use.now()
        one, two = interleaved(sizes.thread_repeats, partial(run, 1), partial(run, 2))
        alike = all(
            (a.rows == b.rows).all() and (a.lo == b.lo).all()
            for a, b in zip(decided[1], decided[2], strict=True)
        )
        found.append(
            {
                "data": data, "delay": delay, "one": one.as_dict(), "two": two.as_dict(),
                "gain": one.per(two).as_dict(), "alike": alike, "others": before.since().others,
            }
        )  # fmt: skip
    return found


def _n_bytes(state: Any) -> int:
    """The bytes of all arrays of a state."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    return sum(_n_bytes(part) for part in state)


def _longer_engine(bench: Bench) -> list[dict[str, Any]]:
    """The engine alone on a stream and on one of ten times its length: time and largest state."""
    sizes, found = bench.sizes, []
    say("tide: ten times the rows, the engine alone")
    for rows in (sizes.short_rows, 10 * sizes.short_rows):
        case = Case(bench.data[0], rows, sizes.file_k, sizes.file_delay)
        codes = case.stream(0).codes
        engine = anonymizer_of("tide").start(case.stream(0).schema, case.policy, seed=b"tide")
        largest, begun = 0, time.process_time()
        for i in range(0, rows, BATCH):
            engine.push(Codes(*(column[i : i + BATCH] for column in codes[:4])))
            largest = max(largest, _n_bytes(engine.state))
        engine.flush()
        found.append(
            {"rows": rows, "seconds": time.process_time() - begun, "state": largest}
        )  # fmt: skip
    return found


def _kept(bench: Bench) -> tuple[Any, Any, Any, Any]:
    """All of it, as it was measured before or now."""
    sizes, get = bench.sizes, bench.store.get
    files = get(
        f"file to file; {sizes.file_rows:,} rows", "tide",
        lambda: _in_folder(bench, partial(_file_to_file, bench)),
    )  # fmt: skip
    threads = get(f"threads; {sizes.thread_rows:,} rows", "tide", lambda: _two_threads(bench))

    def ten(folder: Path) -> Any:
        say("tide: ten times the rows")
        return growth.tenfold(
            "tide", "census", sizes.short_rows, folder, k=sizes.file_k, delay=sizes.file_delay,
            repeats=min(2, sizes.repeats), warm=max(30, sizes.short_rows // 100),
        )  # fmt: skip

    tenfold = get(
        f"ten times {sizes.short_rows:,} rows", "tide", lambda: _in_folder(bench, ten)
    )  # fmt: skip
    longer = get(
        f"the engine on ten times {sizes.short_rows:,} rows", "tide", lambda: _longer_engine(bench)
    )  # fmt: skip
    return files, threads, tenfold, longer


def whole(bench: Bench) -> str:
    """From file to file, by two threads, and ten times the rows."""
    sizes = bench.sizes
    files, threads, tenfold, longer = _kept(bench)
    by_file = table(
        ["file", "pass-through, s", "`tide`, s", "ratio", "others' share of the machine"],
        [
            [
                one["workload"], spread(one["pass-through"]), spread(one["tide"]),
                spread(one["ratio"]), f"{100 * one['others']:.0f} %",
            ]
            for one in files
        ],
    )  # fmt: skip
    by_threads = table(
        [
            "data", "delay", "one thread, s", "two threads, s", "gain",
            "others' share of the machine",
        ],
        [
            [
                title_of(one["data"]), f"{one['delay']:,}", spread(one["one"]),
                spread(one["two"]), spread(one["gain"]),
                f"{100 * one['others']:.0f} %",
            ]
            for one in threads
        ],
    )  # fmt: skip
    claims = [
        [claim.paper, f"**{claim.verdict}**", claim.evidence] for claim in whole_claims(bench)
    ]
    alike = all(one["alike"] for one in threads)
    return "\n\n".join(
        [
            "## Speed: from file to file, two threads, ten times the rows",
            f"Parquet to Parquet, {sizes.file_rows:,} rows, k = {sizes.file_k}, delay "
            f"{sizes.file_delay:,}; the pass-through reads, encodes and writes the same, and "
            "decides nothing. Wall time, medians with minimum and maximum; ratios are per "
            "repeat. If other programs use much of the machine, a run waits for them. "
            + _measured_on(),
            by_file,
            f"The engine alone, {sizes.thread_rows:,} rows, k = {sizes.file_k}, {BATCH_ROWS:,} "
            "at a time as they come from a file, by one thread and by two: they decide "
            f"{'alike' if alike else '**differently**'}.",
            by_threads,
            f"A made-up census from file to file, k = {sizes.file_k}, delay {sizes.file_delay:,}:",
            growth.text(tenfold),
            f"The engine alone on {title_of(bench.data[0])}, again and again, with the same k and "
            "delay:",
            table(
                ["rows", "CPU seconds", "largest state, MiB"],
                [
                    [f"{one['rows']:,}", f"{one['seconds']:.2f}", f"{one['state'] / 2**20:.1f}"]
                    for one in longer
                ],
            ),
            table(["target", "here", "numbers"], claims, numbers=False),
        ]
    )


def whole_claims(bench: Bench) -> list[Claim]:
    """The targets of whole runs."""
    files, threads, tenfold, (short, long) = _kept(bench)

    def claim(words: str, met: bool, evidence: str) -> Claim:
        return Claim(words, "met" if met else "missed", evidence)

    times = [one["ratio"]["median"] for one in files]
    gains = [one["gain"]["median"] for one in threads]
    grown = (Sample(tuple(tenfold[name]["values"])).median for name in ("time_ratio", "peak_ratio"))
    longer, larger = grown
    return [
        claim(
            f"at most {MOST_TIMES:g} times the pass-through, from file to file",
            max(times) <= MOST_TIMES, ", ".join(f"{one:.2f}" for one in times),
        ),
        claim(
            f"two threads at least {LEAST_GAIN:g} times as fast as one",
            min(gains) >= LEAST_GAIN, ", ".join(f"{one:.2f}" for one in gains),
        ),
        claim(
            "ten times the rows in ten times the time, with the same memory, the engine alone",
            long["seconds"] <= 10 * growth.LINEAR * short["seconds"]
            and long["state"] <= growth.BOUNDED * short["state"],
            f"{long['seconds'] / short['seconds']:.1f} times the time, "
            f"{long['state'] / short['state']:.2f} times the memory",
        ),
        claim(
            "the same from file to file",
            tenfold["linear"] and tenfold["bounded"],
            f"{longer:.1f} times the time, {larger:.2f} times the memory",
        ),
    ]  # fmt: skip
