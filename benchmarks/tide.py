"""What TIDE loses beside the others: ``python -m benchmarks.tide [--quick] [--write PAGE]``.

Four questions: what is lost on streams, what under further promises and with missing values, what
on whole tables, and how far COUNT queries are from the truth. Losses are the same on any machine;
rows per second are of one CPU second of the engine alone. A suppressed row has lost everything.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks.figures.streams import Stream
from benchmarks.measure import say
from benchmarks.options import add_options, sizes_of, tell
from benchmarks.tide_data import names, stream, with_gaps
from benchmarks.tide_text import text
from shoal.algorithms import find
from shoal.engine.base import Anonymizer, Decisions, Outcome
from shoal.engine.space import Codes
from shoal.errors import UnsupportedError
from shoal.metrics import Compared, cube_divergence, query_error
from shoal.spec.policy import Delay, DistinctLDiversity, KAnonymity, Policy, TCloseness, Window

__all__ = ["Sizes", "main"]

#: Rows come in batches of this many.
BATCH = 8_192
#: How many groups each of the others keeps for reuse, where it reuses any.
KEPT = {"castle": 1_000, "fads": 50, "idea": 200, "k-varp": 200}
REUSE: dict[str, dict[str, Any]] = {
    "none": {"kept": 0},
    "random": {"reuse": "random", "joins": "alone"},
    "best": {"reuse": "best", "joins": "alone"},
}
TABLES = ("mondrian", "t-mondrian", "sabre-ak", "burel", "t-incognito", "dynamic-group")
OWN: dict[str, dict[str, Any]] = {"batch": {}, "rolling": {"release": "rolling"}}


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 60_000
    #: The number of orders of the rows.
    repeats: int = 3
    ks: tuple[int, ...] = (10, 50, 100)
    delays: tuple[int, ...] = (2_000, 10_000)
    #: Where more is promised.
    k: int = 50
    delay: int = 2_000
    l: int = 3  # noqa: E741
    t: float = 0.2
    gaps: int = 3

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(rows=200, repeats=1, ks=(3, 5), delays=(40,), k=4, delay=40, l=2, t=0.6, gaps=1)


class Ran(NamedTuple):
    """The mean loss of a run, the share of suppressed rows, its rows per CPU second, and all."""

    loss: float
    suppressed: float
    rate: float
    decisions: list[Decisions]


def ran(anonymizer: Anonymizer, rows: Stream, policy: Policy) -> Ran:
    """Run an engine over a stream, or a table."""
    engine = anonymizer.start(rows.schema, policy, seed=b"tide")
    n, begun = len(rows.codes.subjects), time.process_time()
    parts = [
        Codes(*(column[i : i + BATCH] for column in rows.codes[:4])) for i in range(0, n, BATCH)
    ]
    decisions = [*(engine.push(part) for part in parts), engine.flush()]
    seconds = time.process_time() - begun
    losses = sum(float(decided.losses.sum()) for decided in decisions)
    n_suppressed = sum(
        int(np.count_nonzero(decided.outcomes == Outcome.suppressed)) for decided in decisions
    )
    return Ran(losses / n, n_suppressed / n, n / seconds, decisions)


def others(*, tables: bool) -> dict[str, Anonymizer]:
    """The methods that TIDE is compared with, by name and reuse."""
    if tables:
        return {name: find(name)() for name in TABLES}
    return {
        f"{name}, {reuse}": find(name)(**{"kept": kept, **knobs})
        for name, kept in KEPT.items()
        for reuse, knobs in REUSE.items()
    }


def own(*, tables: bool) -> dict[str, Anonymizer]:
    """The forms of TIDE."""
    if tables:
        return {"table": find("tide-table")()}
    return {release: find("tide")(**knobs) for release, knobs in OWN.items()}


def compared(rows: Sequence[Stream], policy: Policy) -> dict[str, Any]:
    """What each method loses, on each order of the rows; those that can't keep a policy are out."""
    tables, found = policy.window == "all", {}
    for name, anonymizer in {**own(tables=tables), **others(tables=tables)}.items():
        try:
            anonymizer.start(rows[0].schema, policy)
        except UnsupportedError:
            continue
        runs = [ran(anonymizer, each, policy) for each in rows]
        found[name] = {
            field: [getattr(run, field) for run in runs] for field in ("loss", "suppressed", "rate")
        }
    return {"methods": found, **_ratios(found, list(own(tables=tables)))}


def _ratios(found: Mapping[str, Any], ours: Sequence[str]) -> dict[str, Any]:
    """The best of the others, and what each form of TIDE loses of what it loses."""
    rivals = {name: float(np.mean(one["loss"])) for name, one in found.items() if name not in ours}
    best = min(rivals, key=lambda name: rivals[name])
    ratios = {
        name: [a / b for a, b in zip(found[name]["loss"], found[best]["loss"], strict=True)]
        for name in ours
    }
    return {"best": best, "ratios": ratios}


def of_streams(sizes: Sizes, name: str) -> list[dict[str, Any]]:
    """Streams under k-anonymity, by delay and k."""
    rows = [stream(name, sizes.rows, seed) for seed in range(sizes.repeats)]
    found = []
    for delay in sizes.delays:
        for k in sizes.ks:
            say(f"tide: {name}, k = {k}, delay = {delay:,}")
            policy = Policy(KAnonymity(k), delay=Delay(rows=delay))
            found.append({"data": name, "k": k, "delay": delay, **compared(rows, policy)})
    return found


def of_promises(sizes: Sizes, name: str) -> list[dict[str, Any]]:
    """Streams under further promises, and with missing values."""
    rows = [stream(name, sizes.rows, seed) for seed in range(sizes.repeats)]
    delay, window = Delay(rows=sizes.delay), Window(rows=2 * sizes.delay)
    k = KAnonymity(sizes.k)
    gappy = [with_gaps(each, sizes.gaps, seed) for seed, each in enumerate(rows)]
    asked = {
        f"l = {sizes.l}": (rows, Policy(k, DistinctLDiversity(sizes.l), delay=delay)),
        f"t = {sizes.t:g}": (rows, Policy(k, TCloseness(sizes.t), delay=delay, window=window)),
        "gaps, maybe": (gappy, Policy(k, delay=delay, missing="maybe")),
    }
    found = []
    for what, (streams, policy) in asked.items():
        say(f"tide: {name}, {what}")
        found.append({"data": name, "promise": what, **compared(streams, policy)})
    return found


def of_tables(sizes: Sizes, name: str) -> list[dict[str, Any]]:
    """Whole tables."""
    rows = [stream(name, sizes.rows, seed) for seed in range(sizes.repeats)]
    found = []
    asked = {f"k = {k}": Policy(KAnonymity(k), window="all") for k in sizes.ks}
    asked[f"k = {sizes.ks[0]}, t = {sizes.t:g}"] = Policy(
        KAnonymity(sizes.ks[0]), TCloseness(sizes.t), window="all"
    )
    for what, policy in asked.items():
        say(f"tide: {name} as a table, {what}")
        found.append({"data": name, "promise": what, **compared(rows, policy)})
    return found


def of_utility(sizes: Sizes, name: str) -> list[dict[str, Any]]:
    """How far COUNT queries and cubes are from the truth, without reuse."""
    rows = stream(name, sizes.rows, 0)
    policy = Policy(KAnonymity(sizes.k), delay=Delay(rows=sizes.delay))
    methods = own(tables=False) | {
        each: one for each, one in others(tables=False).items() if each.endswith("none")
    }
    found = []
    for method, anonymizer in methods.items():
        say(f"tide: queries on {name}, {method}")
        run = ran(anonymizer, rows, policy)
        both = Compared.from_decisions(rows.schema, rows.codes, run.decisions)
        median, divergence = query_error(both).median, cube_divergence(both).mean
        found.append(
            {"data": name, "method": method, "loss": run.loss, "query": median, "kl": divergence}
        )
    return found


PARTS = {"streams": of_streams, "promises": of_promises, "tables": of_tables, "utility": of_utility}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tide", description=__doc__)
    add_options(parser, rows="a stream (default 60,000)", repeats=3)
    parser.add_argument("--part", choices=[*PARTS], action="append", help="only this (default all)")
    parser.add_argument("--data-set", action="append", help="only this (default all there are)")
    options = parser.parse_args(arguments)
    sizes = sizes_of(Sizes, parser, options)
    results: dict[str, Any] = {"rows": sizes.rows, "orders": sizes.repeats}
    for part in options.part or PARTS:
        chosen = options.data_set or names()
        results[part] = [line for name in chosen for line in PARTS[part](sizes, name)]
    tell(options, "tide", results, text(results))


if __name__ == "__main__":
    main()
