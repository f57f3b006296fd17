"""What is learnt by knowing arrivals: ``python -m benchmarks.arrivals [--quick] [--write PAGE]``.

The attacker knows the job, and when somebody came. They are even given the instant at which that
person's row left, which they would mostly have to infer. How many of the rows that left then can be
the one they look for: all of them, or, if they also know the person's quasi values, those whose box
covers these. Every stream algorithm is run without reuse, and those that can reuse groups also with
rows that join in company, and with rows that join alone as in the papers. All numbers are the same
on any machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.figures.streams import Stream, encoded
from benchmarks.markdown import table
from benchmarks.measure import say
from benchmarks.options import add_common, sizes_of, tell
from benchmarks.workloads import ADULT, SHARED, acs_income
from shoal.algorithms import find, names
from shoal.datasets import Dataset, adult
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema

__all__ = ["Ran", "Sizes", "candidates", "main", "online_retail", "ran"]

#: The ways in which rows reuse groups, for algorithms that can.
WAYS: Mapping[str, Mapping[str, object]] = {
    "none": {},
    "together": {"joins": "together"},
    "alone": {"joins": "alone"},
}
#: The bounds of what a basket row of the shop may be; the few beyond are left out.
MOST_ITEMS, HIGHEST_PRICE = 1_000, 100


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 20_000
    k: int = 20
    delay: int = 1_000
    kept: int = 1_000

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(rows=400, k=4, delay=40, kept=20)


class Ran(NamedTuple):
    """The published rows of a run: positions, instants, boxes, outcomes; and all losses."""

    rows: Ints
    instants: Ints
    lo: Floats
    hi: Floats
    reused: Bools
    losses: Floats
    n_suppressed: int


# -- the streams -----------------------------------------------------------------------------------


def streams(rows: int) -> Iterator[tuple[str, Stream]]:
    """The data sets that are there, with this many rows of each."""
    if ADULT.exists():
        yield "adult", _first(adult(ADULT), rows)
    if (income := acs_income()) is not None:
        whole = pq.read_table(income.path)
        yield income.name, _first(Dataset.from_table(whole, income.schema, name=income.name), rows)
    if (shop := online_retail()) is not None:
        yield "online-retail", _first(shop, rows)


def _first(data: Dataset, rows: int) -> Stream:
    return encoded(Dataset.from_table(data.table().slice(0, rows), data.schema, name=data.name))


@lru_cache(maxsize=1)
def online_retail() -> Dataset | None:
    """Baskets of known customers who come again, in the order of their time."""
    path, trees = SHARED / "online_retail.parquet", SHARED / "hierarchies" / "online_retail"
    if not path.exists() or not trees.exists():
        return None
    lines = (trees / "country.csv").read_text(encoding="utf-8").splitlines()
    schema = Schema(
        subject="customer_id",
        quasi=[
            Quasi("country", Hierarchy.from_rows(line.split(";") for line in lines)),
            Quasi("quantity", Range(1, MOST_ITEMS, step=1)),
            Quasi("unit_price", Range(0, HIGHEST_PRICE)),
        ],
    )
    whole: Any = pq.read_table(path, columns=["customer_id", "country", "quantity", "unit_price"])
    is_in = pc.and_(
        pc.and_(
            pc.is_valid(whole["customer_id"]), pc.less_equal(whole["unit_price"], HIGHEST_PRICE)
        ),
        pc.and_(pc.greater(whole["quantity"], 0), pc.less_equal(whole["quantity"], MOST_ITEMS)),
    )
    return Dataset.from_table(whole.filter(is_in), schema, name="online-retail")


# -- measuring -------------------------------------------------------------------------------------


def ran(stream: Stream, algorithm: str, sizes: Sizes, **knobs: object) -> Ran:
    """Run an algorithm over a stream."""
    policy = Policy(KAnonymity(sizes.k), delay=Delay(rows=sizes.delay))
    engine = find(algorithm)(**knobs).start(stream.schema, policy, seed=b"arrivals")
    parts = []
    n_suppressed = 0
    for decided in (engine.push(stream.codes), engine.flush()):
        out = decided.boxes >= 0
        boxes = decided.boxes[out]
        n_suppressed += int(np.count_nonzero(~out))
        parts.append(
            (decided.rows[out], decided.instants[out], decided.lo[boxes], decided.hi[boxes],
             decided.outcomes[out] == 1, decided.losses[out])
        )  # fmt: skip
    return Ran(*(np.concatenate(each) for each in zip(*parts, strict=True)), n_suppressed)


def candidates(found: Ran, values: Floats, subjects: Ints, *, by_values: bool) -> tuple[Ints, Ints]:
    """Return for each published row how many rows, and people, may be the one that is looked for.

    These are the rows of its instant; with ``by_values`` those whose box covers its values.
    """
    n_rows, n_people = np.zeros((2, len(found.rows)), np.int64)
    order = np.argsort(found.instants, kind="stable")
    cuts = np.flatnonzero(np.diff(found.instants[order])) + 1
    for at in np.split(order, cuts):
        people = subjects[found.rows[at]]
        if not by_values:
            n_rows[at], n_people[at] = len(at), len(np.unique(people))
            continue
        boxes = np.concatenate([found.lo[at], found.hi[at]], axis=1)
        kinds, kind = np.unique(boxes, axis=0, return_inverse=True)
        lo, hi = np.split(kinds, 2, axis=1)
        for i in at:
            value = values[found.rows[i]]
            covers = ((lo <= value) & (value <= hi)).all(axis=1)[kind.ravel()]
            n_rows[i], n_people[i] = covers.sum(), len(np.unique(people[covers]))
    return n_rows, n_people


def measured(stream: Stream, algorithm: str, sizes: Sizes, way: str) -> dict[str, Any]:
    """Run an algorithm in one of the ways of reuse; return shares of published rows, and losses."""
    knobs = dict(WAYS[way]) | ({} if way == "none" else {"kept": sizes.kept})
    found = ran(stream, algorithm, sizes, **knobs)
    n = len(found.rows)
    line: dict[str, Any] = {
        "algorithm": algorithm,
        "reuse": way,
        "reused": float(found.reused.mean()) if n else 0.0,
        "loss": float(found.losses.mean()) if n else 1.0,
        "suppressed": found.n_suppressed / (n + found.n_suppressed),
    }
    for who, by_values in (("when", False), ("values", True)):
        n_rows, n_people = candidates(
            found, stream.codes.values, stream.codes.subjects, by_values=by_values
        )
        line[f"{who}_one"] = float((n_rows == 1).mean()) if n else 0.0
        line[f"{who}_few"] = float((n_people < sizes.k).mean()) if n else 0.0
    return line


def ways(algorithm: str) -> Sequence[str]:
    """The ways of reuse that an algorithm has."""
    knobs = {field.name for field in fields(find(algorithm))}
    return tuple(WAYS) if {"kept", "joins"} <= knobs else ("none",)


def measure(sizes: Sizes, algorithms: Sequence[str]) -> dict[str, Any]:
    """All results, by data set."""
    results: dict[str, Any] = {"sizes": asdict(sizes), "data": {}}
    for data, stream in streams(sizes.rows):
        lines = results["data"][data] = []
        for algorithm in algorithms:
            for way in ways(algorithm):
                say(f"arrivals: {data}, {algorithm}, {way}")
                lines.append(measured(stream, algorithm, sizes, way))
    return results


# -- telling ---------------------------------------------------------------------------------------


def report(results: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    sizes = results["sizes"]
    head = ["data", "algorithm", "joins", "reused", "one row", "fewer than k", "one row, by values",
            "fewer than k, by values", "loss", "suppressed"]  # fmt: skip
    lines = [
        [
            data, f"`{line['algorithm']}`", _joins(line["reuse"]),
            *(_percent(line[name]) for name in ("reused", "when_one", "when_few", "values_one",
                                                "values_few")),
            f"{line['loss']:.3f}", _percent(line["suppressed"]),
        ]
        for data, found in results["data"].items()
        for line in found
    ]  # fmt: skip
    return "\n\n".join(
        [
            f"The first {sizes['rows']:,} rows of each data set, k = {sizes['k']}, a delay of "
            f"{sizes['delay']:,} rows, `kept = {sizes['kept']}` where groups are reused, else 0. "
            "Shares of published rows for which the attacker is left with one row, or with rows of "
            "fewer than k people, knowing when the person came, and knowing their values too:",
            table(head, lines),
        ]
    )


def _joins(way: str) -> str:
    return "no reuse" if way == "none" else f"`{way}`"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share else "0"


def main() -> None:
    """Measure, and put the results where they are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    known = [name for name in names() if find(name).publishes == "rows"]
    add_common(parser, rows="each data set")
    parser.add_argument("--algorithms", default=",".join(known), help="which, between commas")
    options = parser.parse_args()
    results = measure(sizes_of(Sizes, parser, options), options.algorithms.split(","))
    if not results["data"]:
        raise SystemExit(f"{SHARED}: has none of the data sets that this command measures on.")
    tell(options, "arrivals", results, report(results))


if __name__ == "__main__":
    main()
