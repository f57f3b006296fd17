"""The search for neighbours: ``python -m benchmarks.search [--quick] [--write PAGE]``.

FADS as it is, which has an index of the held rows where that is worth it, and FADS that looks at
all of them at each search. Timed is the engine alone, while as many rows are held as the delay
allows.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.markdown import spread, table
from benchmarks.measure import Sample, machine, say
from benchmarks.options import add_options, sizes_of, tell
from benchmarks.workers import encoded
from benchmarks.workloads import ADULT, adult_file
from shoal.algorithms.fads import Fads, FadsEngine
from shoal.engine.base import Decisions, Out
from shoal.engine.deadlines import InputBatch
from shoal.engine.jit import kernel
from shoal.engine.on_deadline import OnDeadlineRules, OnDeadlineState, neighbours, next_row, settle
from shoal.engine.space import Codes, Space
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.spec.schema import Schema

__all__ = ["LookingAtAll", "Sizes", "main"]

SEED = b"search"


@dataclass(frozen=True)
class Sizes:
    """How much is measured: for each setting, rows that come while the delay is used up."""

    rows: int = 50_000
    repeats: int = 3
    #: Delay in rows, and k.
    settings: tuple[tuple[int, int], ...] = (
        (2_000, 50), (20_000, 5), (40_000, 5), (100_000, 5), (100_000, 15), (200_000, 15),
        (200_000, 50),
    )  # fmt: skip

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(rows=60, repeats=2, settings=((40, 3), (60, 4)))


class LookingAtAll(FadsEngine):
    """A run that never uses an index."""

    def _run(self, batch: InputBatch, out: Out) -> None:
        _run(self._rules_now, self.state, batch, out)


@kernel
def _run(rules: OnDeadlineRules, state: OnDeadlineState, batch: InputBatch, out: Out) -> None:
    due = next_row(rules, state, batch, out)
    while due >= 0:
        settle(rules, state, due, neighbours(rules, state, due), out)
        due = next_row(rules, state, batch, out)


# -- measuring -------------------------------------------------------------------------------------


def part(codes: Codes, begin: int, end: int) -> Codes:
    """Some rows of a stream."""
    return Codes(*(array[begin:end] for array in codes))


def timed(
    kind: type[FadsEngine], schema: Schema, codes: Codes, k: int, delay: int, rows: int
) -> tuple[float, Decisions]:
    """Hold as many rows as the delay allows; time and return the decisions about the next ones."""
    policy = Policy(KAnonymity(k), delay=Delay(rows=delay))
    anonymizer = Fads(kept=50, joins="alone")
    space = Space(schema, policy, anonymizer.loss)
    engine = kind(anonymizer, space, SEED)
    engine.push(part(codes, 0, delay))
    coming = part(codes, delay, delay + rows)
    gc.collect()
    begin = time.perf_counter()
    decided = engine.push(coming)
    return time.perf_counter() - begin, decided


def compare(
    schema: Schema, codes: Codes, *, k: int, delay: int, rows: int, repeats: int
) -> dict[str, Any]:
    """Both in turn, every other time in the other order."""
    kinds: dict[str, type[FadsEngine]] = {"all rows": LookingAtAll, "as it is": FadsEngine}
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    alike = True
    for repeat in range(repeats):
        found = {}
        for name in list(kinds) if repeat % 2 == 0 else reversed(kinds):
            took, found[name] = timed(kinds[name], schema, codes, k, delay, rows)
            seconds[name].append(took)
        both = zip(found["all rows"], found["as it is"], strict=True)
        alike = alike and all(np.array_equal(*arrays, equal_nan=True) for arrays in both)
    looking, as_it_is = (Sample(tuple(values)) for values in seconds.values())
    return {
        "k": k,
        "delay": delay,
        "n_rows": rows,
        "seconds": {"all rows": looking.as_dict(), "as it is": as_it_is.as_dict()},
        "microseconds": {
            name: Sample(tuple(1e6 * value / rows for value in values)).as_dict()
            for name, values in seconds.items()
        },
        "gain": looking.per(as_it_is).as_dict(),
        "alike": alike,
    }


def measure(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """All settings, one after the other."""
    longest = max(delay for delay, _ in sizes.settings)
    workload = adult_file(longest + sizes.rows, folder)
    codes = Codes(*(np.concatenate(arrays) for arrays in zip(*encoded(workload), strict=True)))
    say("the search for neighbours: compiling")
    compare(workload.schema, codes, k=2, delay=20, rows=20, repeats=1)
    found = []
    for delay, k in sizes.settings:
        say(f"the search for neighbours: k = {k}, delay {delay:,}")
        found.append(
            compare(
                workload.schema, codes, k=k, delay=delay, rows=sizes.rows, repeats=sizes.repeats
            )
        )
    return {"machine": machine(), "search": found}


# -- telling ---------------------------------------------------------------------------------------


def text(results: dict[str, Any]) -> str:
    """All results as Markdown."""
    found = results["search"]
    lines = [
        [
            f"{one['delay']:,}",
            one["k"],
            *(spread(one["microseconds"][name], 1) for name in ("all rows", "as it is")),
            spread(one["gain"]),
        ]
        for one in found
    ]
    alike = "the same" if all(one["alike"] for one in found) else "**not the same**"
    return (
        "Measured on {processor}, {cores} cores, with other work on the machine.".format(
            **results["machine"]
        )
        + f" Microseconds per row, the engine alone, for {found[0]['n_rows']:,} rows of Adult that "
        "come while as many rows are held as the delay allows; medians, with minimum and maximum "
        f"in brackets. Both decide {alike}.\n\n"
        + table(["delay, rows", "k", "all rows", "`fads` as it is", "times as fast"], lines)
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    rows = f"Adult, repeated, that are timed (default {Sizes.rows:,})"
    add_options(parser, rows=rows, repeats=Sizes.repeats)
    options = parser.parse_args(arguments)
    sizes = sizes_of(Sizes, parser, options)
    if not ADULT.exists():
        say("../shared/data/adult.csv isn't there: the search for neighbours is left out")
        return
    results = measure(sizes, options.data)
    tell(options, "search", results, text(results))


if __name__ == "__main__":
    main()
