"""What streams give away: ``python -m benchmarks.stream_attacks [--quick] [--write PAGE]``.

`benchmarks.attacks` makes all attacks on every algorithm as it is by default. This command makes
the attacks that only streams have, in all ways of reuse, on people who come once and on customers
who come again; and those on z-anonymity. All numbers are the same on any machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.arrivals import online_retail
from benchmarks.attacks import cell, setting_of
from benchmarks.markdown import table
from benchmarks.measure import say
from benchmarks.options import add_common, sizes_of, tell
from benchmarks.workloads import ADULT, SHARED
from shoal.algorithms import find
from shoal.attacks import AttackReport, attack
from shoal.datasets import Dataset, adult
from shoal.job.attacking import rerun_of
from shoal.job.attacking import setting_of as job_setting
from shoal.job.file import Job
from shoal.spec.policy import Delay, KAnonymity, Policy

__all__ = ["Sizes", "main", "measured"]

#: What is measured: the algorithm and its knobs; ``kept`` is one of the sizes.
WAYS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "`tide`": ("tide", {}),
    "`castle`": ("castle", {}),
    "`fads`": ("fads", {}),
    "`idea`": ("idea", {}),
    "`castle`, alone": ("castle", {"joins": "alone"}),
    "`fads`, together": ("fads", {"joins": "together"}),
    "`fads`, alone": ("fads", {"joins": "alone"}),
    "`fads`, alone, best": ("fads", {"joins": "alone", "reuse": "best"}),
}
ATTACKS = ("arrival", "instants", "reuse", "negative", "intersection", "restart")
#: The columns of the table: a title, the attack, how its knowledge begins, and whether the baseline
#: is shown beside it.
COLUMNS = (
    ("arrival and values", "arrival", "arrival, all", False),
    ("instant", "instants", "instant of release", False),
    ("instant and values", "instants", "instant of release, all", False),
    ("who is due", "instants", "arrival, and who is due", False),
    ("order", "instants", "who came before whom", False),
    ("reuse", "reuse", "instant of release, all", False),
    ("reuse, by the choice", "reuse", "values of everybody", True),
    ("negative", "negative", "people of a group", True),
    ("1 box", "intersection", "1 box", False),
    ("2 boxes", "intersection", "2 boxes", False),
    ("4 boxes", "intersection", "4 boxes", False),
    ("8 boxes", "intersection", "8 boxes", False),
    ("restart", "restart", "two releases", True),
)
#: How many attacks a table has beside each other.
WIDTH = 8
SEED, DAY = 2026, 86_400


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 20_000
    k: int = 20
    z: int = 5
    delay: int = 1_000
    kept: int = 1_000
    targets: int = 1_000

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(rows=400, k=4, z=2, delay=40, kept=20, targets=50)


def streams(rows: int) -> Iterator[Dataset]:
    """The data sets that are there: people who come once, and customers who come again."""
    found = [adult(ADULT) if ADULT.exists() else None, online_retail()]
    for data in found:
        if data is not None:
            yield Dataset.from_table(data.table().slice(0, rows), data.schema, name=data.name)


def measured(data: Dataset, way: str, sizes: Sizes) -> list[dict[str, object]]:
    """Publish a data set in one way, and make all attacks on it."""
    name, knobs = WAYS[way]
    given: dict[str, Any] = {"kept": sizes.kept, **knobs} if knobs else {}
    policy = Policy(KAnonymity(sizes.k), delay=Delay(rows=sizes.delay))
    setting = setting_of(data, find(name)(**given), policy, sizes.targets)
    return _plain(attack(setting, ATTACKS))


def events(sizes: Sizes) -> list[dict[str, object]]:
    """Publish purchases by z-anonymity with pseudonyms of a day, and attack them."""
    path = SHARED / "online_retail.parquet"
    if not path.exists():
        return []
    job = Job.from_dict(
        {
            "schema": {
                "subject": "customer_id", "quasi": {"stock_code": {}}, "time": "invoice_date"
            },
            "policy": {"z": sizes.z, "window": {"seconds": DAY}},
            "algorithm": {"name": "z-anonymity"},
            "publish": {"pseudonym": {"rotate": DAY}},
        }
    )  # fmt: skip
    whole: Any = pq.read_table(path, columns=list(job.schema.columns))
    rows = whole.filter(pc.is_valid(whole["customer_id"])).slice(0, sizes.rows)
    run = rerun_of(job)(rows, SEED)
    setting = job_setting(job, run.published, original=rows, trace=run.trace)
    setting = replace(setting, n_targets=sizes.targets, seed=SEED)
    return _plain(attack(setting, ("oracle", "pseudonyms")))


def _plain(report: AttackReport) -> list[dict[str, object]]:
    return [result.as_dict() for result in report.results]


def measure(sizes: Sizes, ways: Sequence[str]) -> dict[str, Any]:
    """All results, by data set and way."""
    results: dict[str, Any] = {"sizes": asdict(sizes), "data": {}}
    for data in streams(sizes.rows):
        found = results["data"][data.name] = {}
        for way in ways:
            say(f"stream attacks: {data.name}, {way}")
            found[way] = measured(data, way, sizes)
    say("stream attacks: z")
    results["z"] = events(sizes)
    return results


# -- telling ---------------------------------------------------------------------------------------


def report_text(results: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    sizes = results["sizes"]
    parts = [
        f"The first {sizes['rows']:,} rows of each data set, k = {sizes['k']}, a delay of "
        f"{sizes['delay']:,} rows, `kept = {sizes['kept']}` where rows join *alone* or *together*, "
        'else 0. Success in percent of the people attacked, "of" the bound where there is one, '
        "**bold** where it is exceeded; in brackets the baseline:"
    ]
    for data, found in results["data"].items():
        for begin in range(0, len(COLUMNS), WIDTH):
            chosen = COLUMNS[begin : begin + WIDTH]
            lines = [
                [way, *(_cell(line, *column[1:]) for column in chosen)]
                for way, line in found.items()
            ]
            parts.append(table([data, *(column[0] for column in chosen)], lines))
    if results["z"]:
        lines = [
            [line["attack"], f"{line['success']['attempts']:,}", cell(line),
             f"{100 * line['baseline']:.1f}"]
            for line in results["z"] if line["success"] is not None
        ]  # fmt: skip
        parts.append(
            f"Purchases of the shop under z-anonymity, z = {sizes['z']}, window and pseudonyms of "
            "a day:"
        )
        parts.append(table(["attack", "people", "success", "baseline"], lines))
    return "\n\n".join(parts)


def _cell(line: Sequence[Mapping[str, Any]], name: str, knows: str, with_baseline: bool) -> str:
    """A success; of several grades the first whose knowledge begins so."""
    for result in line:
        if result["attack"] == name and result["knowledge"].startswith(knows):
            text = cell(result)
            if with_baseline and result["baseline"] is not None:
                text += f" ({100 * result['baseline']:.1f})"
            return text
    return "-"


def main() -> None:
    """Measure, and put the results where they are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_common(parser, rows="each data set")
    options = parser.parse_args()
    results = measure(sizes_of(Sizes, parser, options), tuple(WAYS))
    if not results["data"]:
        raise SystemExit(f"{SHARED}: has none of the data sets that this command measures on.")
    tell(options, "streams", results, report_text(results))


if __name__ == "__main__":
    main()
