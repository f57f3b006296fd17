"""What was found about Spark, as Markdown; and what large streams need by it, on paper."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.markdown import met, spread, table
from benchmarks.spark_runs import BARE, PASSED

__all__ = ["scale_text", "text"]

#: The streams that `docs/scale.md` speaks of, in rows a second.
STREAMS = {"a billion rows a day": 1e9 / 86_400, "a million rows a second": 1e6}
#: No core is planned to be busier than this: for bursts, and to catch up after a failure.
LOAD = 0.6
#: This many seconds a row is held there, and this many lie between two batches.
HELD_SECONDS, INTERVAL = 10, 5
MIB = 2**20


def text(results: dict[str, Any]) -> str:
    """All results."""
    where, rates = results["machine"], results["rates"]
    head = (
        "Measured on {processor}, {cores} cores, with Python {python}, NumPy {numpy}, "
        "Numba {numba}, PyArrow {pyarrow}, Spark {spark} as `{master}`, while other programs used "
        "{others:.0%} of the machine. Medians, with minimum and maximum in brackets; shares are "
        "per repeat.".format(**where, **{n: results[n] for n in ("spark", "master", "others")})
    )
    about = (
        f"{results['n_rows']:,} rows of `{results['workload']}` as Parquet files, "
        f"{results['batch_rows']:,} rows per batch, {results['shards']} shards; k = {results['k']} "
        f"and a delay of {results['delay']:,} rows. Core time is that of all processes together: "
        "driver, executors, Python workers."
    )
    return "\n\n".join([head, about, _rates(rates), _shares(rates), _costs(results)])


def _rates(rates: dict[str, Any]) -> str:
    def line(name: str, one: dict[str, Any]) -> list[str]:
        speed = {n: one["rows_per_second"][n] / 1000 for n in ("median", "least", "most")}
        return [name, spread(one["seconds"]), spread(speed, 0), spread(one["core_us_per_row"])]

    rows = [
        line("Spark, without any Python", rates[BARE]),
        line("Spark, with no anonymizer", rates[PASSED]),
        *(line(f"Spark, {one['name']}", one["spark"]) for one in rates["algorithms"]),
        *(line(f"embedded, {one['name']}", one["embedded"]) for one in rates["algorithms"]),
    ]
    return table(["", "s", "1000 rows/s", "core time, µs a row"], rows)


def _shares(rates: dict[str, Any]) -> str:
    rows = [
        [one["name"], spread(one["share"]), met(one["met"]), spread(one["share_of_bare"])]
        for one in rates["algorithms"]
    ]
    head = [
        "", "share of the rate with no anonymizer", f"at least {rates['target']:g}",
        "share of the rate without any Python",
    ]  # fmt: skip
    return table(head, rows)


def _costs(results: dict[str, Any]) -> str:
    rates = results["rates"]
    rows = [
        [
            one["name"], f"{one['state_bytes_per_shard'] / MIB:,.1f}",
            f"{rates['in_bytes_per_row']:,.0f}", f"{one['shuffled_bytes_per_row']:,.0f}",
            f"{one['out_bytes_per_row']:,.0f}",
        ]
        for one in rates["algorithms"]
    ]  # fmt: skip
    head = [
        "", "state of a shard, MiB", "read, bytes a row", "shuffled, bytes a row",
        "written, bytes a row",
    ]  # fmt: skip
    return (
        table(head, rows)
        + f"\n\nA batch without rows takes {spread(results['floor']['seconds'])} s: the floor."
    )


# -- on paper --------------------------------------------------------------------------------------


def scale_text(results: dict[str, Any]) -> str:
    """What streams need: every number from a measured one, with the way to it."""
    rates = results["rates"]
    one = rates["algorithms"][0]
    spark, alone = (one[n]["core_us_per_row"]["median"] for n in ("spark", "embedded"))
    rate = one["embedded"]["rows_per_second"]["median"]
    per_held = one["state_bytes_per_shard"] / results["delay"]
    sent, moved = (
        one["shuffled_bytes_per_row"],
        rates["in_bytes_per_row"] + one["out_bytes_per_row"],
    )
    measured = table(
        ["measured", "", "value"],
        [
            [f"core time of a row, embedded ({one['name']})", "*e*", f"{alone:,.2f} µs"],
            ["core time of a row, on Spark", "*s*", f"{spark:,.2f} µs"],
            ["rate of the embedded runner on two cores", "*r*", f"{rate:,.0f} rows/s"],
            ["shuffled", "*x*", f"{sent:,.0f} bytes a row"],
            ["read and written", "*y*", f"{moved:,.0f} bytes a row"],
            ["state, for each row that a shard may hold", "*h*", f"{per_held:,.0f} bytes"],
            ["a batch without rows", "*f*", f"{results['floor']['seconds']['median']:,.2f} s"],
        ],
        numbers=False,
    )
    most = LOAD * rate
    crossover = (
        f"**The crossover.** Two cores with the embedded runner carry {LOAD:.0%} of *r*: "
        f"{most:,.0f} rows a second, {most * 86_400 / 1e9:,.1f} billion a day. A row costs *s/e* = "
        f"{spark / alone:,.1f} times as much on Spark: a cluster of fewer than "
        f"{math.ceil(2 * spark / alone)} cores carries less than these two."
    )
    lines = {
        "rows a second, *n*": lambda n: f"{n:,.0f}",
        f"cores, embedded: *n·e* / {LOAD:g}": lambda n: f"{math.ceil(n * alone / 1e6 / LOAD):,}",
        f"cores, on Spark: *c* = *n·s* / {LOAD:g}": lambda n: f"{_cores(n, spark):,}",
        "shards, one for each core": lambda n: f"{_cores(n, spark):,}",
        "rows a second of a shard: *n/c*": lambda n: f"{n / _cores(n, spark):,.0f}",
        f"rows held, with a delay of {HELD_SECONDS} s: *m* = {HELD_SECONDS}*n*": (
            lambda n: f"{n * HELD_SECONDS:,.0f}"
        ),
        "state of all shards: *m·h*": lambda n: _mib(n * HELD_SECONDS * per_held),
        "state of one shard": lambda n: _mib(n * HELD_SECONDS * per_held / _cores(n, spark)),
        f"state written, a batch every {INTERVAL} s: *m·h* / {INTERVAL}": (
            lambda n: _mib(n * HELD_SECONDS * per_held / INTERVAL) + "/s"
        ),
        "from machine to machine: *n·x*": lambda n: _mib(n * sent) + "/s",
        "from and to storage: *n·y*": lambda n: _mib(n * moved) + "/s",
    }
    rows = [[name, *(tell(n) for n in STREAMS.values())] for name, tell in lines.items()]
    return "\n\n".join([measured, crossover, table(["", *STREAMS], rows)])


def _cores(rows: float, core_us: float) -> int:
    return math.ceil(rows * core_us / 1e6 / LOAD)


def _mib(n_bytes: float) -> str:
    return (
        f"{n_bytes / MIB:,.1f} MiB" if n_bytes < 1024 * MIB else f"{n_bytes / MIB / 1024:,.1f} GiB"
    )
