"""What gaps cost under maybe-match: ``python -m benchmarks.gaps [--quick] [--write DOCS]``.

Three questions, asked of every algorithm: what is lost where rows lack values (``loss``), how many
rows are told apart by whoever knows the gaps (``apart``), and who hides those that lack nothing
(``complete``). All numbers are means over a few seeds, and the same on any machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.figures.model import Reading
from benchmarks.figures.streams import Stream, encoded
from benchmarks.incomplete import gap_masks, insert_gaps
from benchmarks.markdown import replace_section, table
from benchmarks.measure import say
from shoal.algorithms import find
from shoal.datasets import census
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.space import Codes
from shoal.spec.hierarchy import Range
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema

__all__ = ["Sizes", "main", "told_apart"]

#: Whose loss is measured, with this many groups kept for reuse and without it.
REUSE = {"idea": 200, "fads": 50, "fast": 50, "castle": 1_000, "k-varp": 200, "iot": 200}
NO_REUSE = ("idea", "fads", "castle")
#: Who is asked how well it hides.
HIDING = ("idea", "fads", "fast", "castle", "tide")


@dataclass(frozen=True)
class Sizes:
    """How much is measured: a census, and rows of three numbers."""

    rows: int = 4_000
    k: int = 10
    delay: int = 500
    gaps: tuple[int, ...] = (0, 1, 3)
    number_rows: int = 3_000
    number_k: int = 5
    number_delay: int = 500
    #: How large a share of the rows lacks everything, and of the values where they lack some.
    empty: float = 0.8
    lost: float = 0.3
    seeds: int = 5

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=120, k=4, delay=40, gaps=(0, 1), number_rows=120, number_k=3, number_delay=40,
            seeds=2,
        )  # fmt: skip


class Ran(NamedTuple):
    """What became of each row: its group (-1: suppressed), its loss, and whether its box has but
    one value on each side.
    """

    groups: Ints
    losses: Floats
    exact: Bools


# -- measuring -------------------------------------------------------------------------------------


def ran(stream: Stream, algorithm: str, seed: int, *, k: int, delay: int, **knobs: object) -> Ran:
    """Run an algorithm over a stream in which missing values maybe match."""
    policy = Policy(KAnonymity(k), delay=Delay(rows=delay), missing="maybe")
    engine = find(algorithm)(**knobs).start(stream.schema, policy, seed=f"gaps {seed}".encode())
    n = len(stream.codes.subjects)
    found = Ran(np.full(n, -1), np.ones(n), np.zeros(n, bool))
    for decided in (engine.push(stream.codes), engine.flush()):
        has_box = decided.boxes >= 0
        rows, boxes = decided.rows[has_box], decided.boxes[has_box]
        found.groups[rows] = decided.groups[boxes]
        found.losses[rows] = decided.losses[has_box]
        found.exact[rows] = (decided.lo == decided.hi).all(axis=1)[boxes]
    return found


@lru_cache(maxsize=1)
def _census(rows: int, seed: int) -> Stream:
    return encoded(census(rows, seed=seed))


def with_gaps(rows: int, most: int, seed: int) -> Stream:
    """A census of which as many rows lack 0, 1, …, ``most`` values."""
    whole = _census(rows, seed)
    return Stream(
        whole.schema, whole.codes._replace(values=insert_gaps(whole.codes.values, most, seed))
    )


def numbers(rows: int, missing: Callable[[np.random.Generator], Bools], seed: int) -> Stream:
    """Three numbers from 0 to 100, each as likely as any other; each row is a person."""
    draw = np.random.default_rng(seed)
    values = np.where(missing(draw), np.nan, draw.uniform(0, 100, (rows, 3)))
    schema = Schema(None, [Quasi(name, Range(0, 100)) for name in ("a", "b", "c")])
    nothing = np.empty((rows, 0), np.int64)
    return Stream(schema, Codes(values, np.arange(rows), nothing, np.full(rows, np.nan)))


def told_apart(groups: Ints, gaps: Ints) -> float:
    """How large a share of the published rows is alone in its group with what it lacks.

    >>> told_apart(np.array([0, 0, 0, 1, 1, -1]), np.array([1, 1, 2, 1, 1, 1]))
    0.2
    """
    published = groups >= 0
    kinds = np.stack([groups[published], gaps[published]])
    _, n_alike = np.unique(kinds, axis=1, return_counts=True)
    return float((n_alike == 1).sum() / published.sum())


def n_complete_around(groups: Ints, complete: Bools) -> float:
    """With how many complete rows a complete row shares its group, itself included, on average.

    >>> n_complete_around(np.array([0, 0, 0, 1, 1, -1]), np.array([1, 1, 0, 1, 0, 1], bool))
    1.6666666666666667
    """
    _, n_in = np.unique(groups[complete & (groups >= 0)], return_counts=True)
    return float((n_in**2).sum() / n_in.sum())


def _readings(seeds: int, measure: Callable[[int], float], digits: int = 3) -> Reading:
    return Reading(tuple(measure(seed) for seed in range(seeds)), digits)


def loss(sizes: Sizes, most: int, algorithm: str, **knobs: object) -> Reading:
    """What published rows lose."""

    def one(seed: int) -> float:
        stream = with_gaps(sizes.rows, most, seed)
        found = ran(stream, algorithm, seed, k=sizes.k, delay=sizes.delay, **knobs)
        return float(found.losses[found.groups >= 0].mean())

    return _readings(sizes.seeds, one)


def _no_reuse(algorithm: str) -> dict[str, int]:
    """The knobs of an algorithm that reuses nothing; `tide` never does."""
    return {"kept": 0} if algorithm in REUSE else {}


def apart(sizes: Sizes, most: int, algorithm: str) -> Reading:
    """How many rows in a hundred are told apart by their gaps, without reuse."""

    def one(seed: int) -> float:
        stream = with_gaps(sizes.rows, most, seed)
        knobs = _no_reuse(algorithm)
        found = ran(stream, algorithm, seed, k=sizes.k, delay=sizes.delay, **knobs)
        return 100 * told_apart(found.groups, gap_masks(stream.codes.values))

    return _readings(sizes.seeds, one, 0)


def complete(sizes: Sizes, algorithm: str) -> dict[str, Reading]:
    """Who hides the rows that lack nothing: where most lack everything, and where any may lack any.

    Without reuse, so that all rows of a group leave at once.
    """
    rows = sizes.number_rows

    def run(stream: Stream, seed: int) -> tuple[Ran, Bools]:
        known = {"k": sizes.number_k, "delay": sizes.number_delay}
        found = ran(stream, algorithm, seed, **known, **_no_reuse(algorithm))
        return found, gap_masks(stream.codes.values) == 0

    def exact(seed: int) -> float:
        stream = numbers(rows, lambda draw: draw.random((rows, 1)) < sizes.empty, seed)
        found, whole = run(stream, seed)
        return 100 * float(found.exact[whole].mean())

    def around(seed: int) -> float:
        stream = numbers(rows, lambda draw: draw.random((rows, 3)) < sizes.lost, seed)
        found, whole = run(stream, seed)
        return n_complete_around(found.groups, whole)

    return {
        "exact": _readings(sizes.seeds, exact, 0),
        "around": _readings(sizes.seeds, around, 1),
    }


def measure(sizes: Sizes) -> dict[str, Any]:
    """All results, by the number of gaps and by algorithm."""
    say("gaps: what is lost")
    losses = {
        most: {
            **{name: loss(sizes, most, name, kept=n, joins="alone") for name, n in REUSE.items()},
            **{f"{name}, kept = 0": loss(sizes, most, name, kept=0) for name in NO_REUSE},
        }
        for most in sizes.gaps
    }
    say("gaps: who is told apart")
    some = [most for most in sizes.gaps if most > 0]
    shares = {most: {name: apart(sizes, most, name) for name in HIDING} for most in some}
    say("gaps: who hides complete rows")
    return {
        "sizes": asdict(sizes),
        "loss": losses,
        "apart": shares,
        "complete": {name: complete(sizes, name) for name in HIDING},
    }


# -- telling ---------------------------------------------------------------------------------------


def _table(head: str, found: Mapping[int, Mapping[str, Reading]], unit: str = "") -> str:
    """A line for each number of gaps, a column for each algorithm."""
    names = list(next(iter(found.values())))
    lines = [
        [most or "none", *(f"{one.tell(one.mean)}{unit}" for one in by_name.values())]
        for most, by_name in found.items()
    ]
    return table([head, *(_code(name) for name in names)], lines)


def _code(name: str) -> str:
    return ", ".join(f"`{word}`" for word in name.split(", "))


def _spread(found: Mapping[int, Mapping[str, Reading]]) -> str:
    """The largest spread of all."""
    readings = [reading for by_name in found.values() for reading in by_name.values()]
    widest = max(readings, key=lambda reading: reading.spread)
    return widest.tell(widest.spread)


def told_text(results: Mapping[str, Any]) -> str:
    """Losses, and rows that are told apart."""
    sizes = results["sizes"]
    return "\n\n".join(
        [
            f"The made-up census of `shoal.datasets`, {sizes['rows']:,} rows, k = {sizes['k']}, a "
            f'delay of {sizes["delay"]:,} rows, `missing = "maybe"`. Loss of published rows, the '
            f"mean of {sizes['seeds']} seeds, which differ by at most ± "
            f"{_spread(results['loss'])}:",
            _table("gaps in a row, at most", results["loss"]),
            "Rows that are the only ones in their group which lack what they lack, with "
            f"`kept = 0` (± {_spread(results['apart'])} %):",
            _table("gaps in a row, at most", results["apart"], " %"),
        ]
    )


def complete_text(results: Mapping[str, Any]) -> str:
    """Who hides those that lack nothing."""
    sizes, found = results["sizes"], results["complete"]
    lines = [
        [_code(name), f"{one['exact'].mean:.0f} %", f"{one['around'].mean:.1f}"]
        for name, one in found.items()
    ]
    return (
        f"Rows of three numbers, {sizes['number_rows']:,} of them, k = {sizes['number_k']}, a "
        f"delay of {sizes['number_delay']:,} rows, `kept = 0`, the mean of {sizes['seeds']} seeds. "
        f"First, {100 * sizes['empty']:.0f} % of the rows lack everything: how many of the "
        "complete ones are published with their exact values? Then, "
        f"{100 * sizes['lost']:.0f} % of the values are missing at random: how many rows of the "
        "group of a complete one are complete, itself included?\n\n"
        + table(["", "with exact values", "complete in its group"], lines)
    )


#: The pages, and what is written into each.
PAGES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "algorithms/idea.md": told_text, "missing.md": complete_text,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaps", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it work at all?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values here")
    parser.add_argument(
        "--write", type=Path, metavar="DOCS", help=f"put the results in {' and '.join(PAGES)} there"
    )
    options = parser.parse_args(arguments)
    results = measure(Sizes.quick() if options.quick else Sizes())
    if options.json is not None:
        text = json.dumps(results, indent=2, default=lambda reading: reading.values)
        options.json.write_text(text + "\n", encoding="utf-8")
    for page, text_of in PAGES.items():
        report = text_of(results)
        print(report, end="\n\n")
        if options.write is not None:
            replace_section(options.write / page, "gaps", report)


if __name__ == "__main__":
    main()
