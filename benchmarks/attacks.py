"""What attackers achieve: ``python -m benchmarks.attacks [--quick] [--write PAGE]``.

Every stream algorithm publishes two data sets, with its default knobs, and those that can reuse
groups also with reuse. All attacks are made on each release. The table has the success of each
attack in the grade of knowledge that comes nearest to its bound, or that succeeds most where the
promise gives none. All numbers are the same on any machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.markdown import replace_section, table
from benchmarks.measure import say
from benchmarks.workloads import ADULT
from shoal.algorithms import find, names
from shoal.attacks import AttackReport, AttackResult, Run, Setting, attack
from shoal.attacks import names as attack_names
from shoal.datasets import Dataset, adult, census
from shoal.engine.base import Anonymizer
from shoal.run.frame import anonymize
from shoal.spec.criteria import BetaLikeness, TCloseness
from shoal.spec.policy import (
    Delay,
    DistinctLDiversity,
    EnhancedLikeness,
    KAnonymity,
    Policy,
    Window,
)

__all__ = ["Sizes", "cell", "main", "policy_of", "setting_of"]

#: The quasi attributes of Adult that an outsider may know.
KNOWN = ("age", "workclass", "education", "marital_status", "race", "sex", "native_country")
#: How many quasi attributes of the census are taken, as many as of Adult.
N_QUASI = len(KNOWN)
#: Algorithms that are also measured with reuse: one that reuses little, and one that does much.
REUSING = ("castle", "fads")
#: How many attacks a table has beside each other.
WIDTH = 6
SEED = 2026


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 10_000
    k: int = 10
    l: int = 3  # noqa: E741 - the letter of the papers
    t: float = 0.3
    beta: float = 2.0
    delay: int = 1_000
    window: int = 4_000
    kept: int = 1_000
    targets: int = 1_000

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(rows=400, k=3, l=2, delay=60, window=120, kept=20, targets=50)


def streams(rows: int) -> Iterator[Dataset]:
    """The data sets that are there: Adult, and a made-up census whose people come again."""
    if ADULT.exists():
        data = adult(ADULT, quasi=KNOWN, sensitive="occupation")
        yield Dataset.from_table(data.table().slice(0, rows), data.schema, name=data.name)
    made_up = census(rows, seed=SEED)
    schema = replace(made_up.schema, quasi=made_up.schema.quasi[:N_QUASI])
    yield Dataset.from_table(made_up.table(), schema, name=made_up.name)


def ways(algorithms: Sequence[str], sizes: Sizes) -> Iterator[tuple[str, Anonymizer]]:
    """Each algorithm by its name, and some with reuse."""
    for name in algorithms:
        yield f"`{name}`", find(name)()
        if name in REUSING:
            yield f"`{name}`, reuse", find(name)(kept=sizes.kept)


def policy_of(anonymizer: Anonymizer, sizes: Sizes) -> Policy:
    """k and l; and for the algorithms that publish window by window, what they are made for."""
    both = KAnonymity(sizes.k), DistinctLDiversity(sizes.l)
    if anonymizer.publishes != "windows":
        return Policy(*both, delay=Delay(rows=sizes.delay))
    window = Window(rows=sizes.window, advance=sizes.window // 4)
    kinds = anonymizer.enforces
    if any(issubclass(kind, TCloseness) for kind in kinds):
        return Policy(*both, TCloseness(sizes.t), window=window)
    assert any(issubclass(kind, BetaLikeness) for kind in kinds)
    return Policy(*both, EnhancedLikeness(sizes.beta), window=window)


def setting_of(data: Dataset, anonymizer: Anonymizer, sizes: Sizes) -> Setting:
    """Publish a data set, and make the setting of the attacks on it."""
    policy = policy_of(anonymizer, sizes)
    rows = data.table()

    def rerun(given: pa.Table, seed: int) -> Run:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = anonymize(
                given, data.schema, policy, anonymizer, seed=seed, bad_rows="drop", trace=True
            )
        assert result.trace is not None
        return Run(result.frame, result.trace)

    run = rerun(rows, SEED)
    return Setting(
        data.schema, policy, run.published, rows, run.trace, algorithm=anonymizer.name,
        knobs=dataclasses.asdict(anonymizer), n_targets=sizes.targets, seed=SEED, rerun=rerun,
        order="released",
    )  # fmt: skip


def measure(
    sizes: Sizes,
    algorithms: Sequence[str],
    attacks: Sequence[str],
    control: float | None = None,
) -> dict[str, Any]:
    """All results, by data set and algorithm."""
    results: dict[str, Any] = {"sizes": asdict(sizes), "data": {}}
    for data in streams(sizes.rows):
        found = results["data"][data.name] = {}
        for way, anonymizer in ways(algorithms, sizes):
            say(f"attacks: {data.name}, {way}")
            report = attack(setting_of(data, anonymizer, sizes), attacks, control=control)
            found[way] = dict(strongest(report))
    return results


def strongest(report: AttackReport) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each attack with the grade of knowledge that comes nearest to its bound.

    Grades that the promise gives no bound for are another column.
    """
    for name in attack_names():
        found = report.of(name)
        bounded = [result for result in found if result.bound is not None]
        free = [result for result in found if result.bound is None]
        if bounded:
            yield name, max(bounded, key=_strength).as_dict()
        if free:
            column = f"{name}, no bound" if bounded else name
            yield column, max(free, key=_strength).as_dict()


def _strength(result: AttackResult) -> tuple[bool, float]:
    rate = (result.success.rate if result.success is not None else None) or 0.0
    return result.verdict == "exceeded", rate - (result.bound or 0.0)


# -- telling ---------------------------------------------------------------------------------------


def report_text(results: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    sizes = results["sizes"]
    parts = [
        f"The first {sizes['rows']:,} rows of each data set, k = {sizes['k']}, l = {sizes['l']} "
        f"(distinct), a delay of {sizes['delay']:,} rows; window by window t = {sizes['t']:g} or "
        f"beta = {sizes['beta']:g}, in windows of {sizes['window']:,} rows. *reuse*: `kept = "
        f"{sizes['kept']:,}`. Up to {sizes['targets']:,} people are attacked. Success in percent, "
        '"of" the bound where the promise gives one, **bold** where it is exceeded:'
    ]
    for data, found in results["data"].items():
        # An attack that no release of the data allows has no column.
        names_of = list(
            dict.fromkeys(
                name for line in found.values() for name, each in line.items() if cell(each) != "-"
            )
        )
        for begin in range(0, len(names_of), WIDTH):
            chosen = names_of[begin : begin + WIDTH]
            lines = [
                [way, *(cell(line.get(name)) for name in chosen)] for way, line in found.items()
            ]
            parts.append(table([data, *chosen], lines))
    return "\n\n".join(parts)


def cell(result: Mapping[str, Any] | None) -> str:
    """A success and its bound, in percent.

    >>> cell({"verdict": "exceeded", "success": {"attempts": 9, "rate": 0.5}, "bound": 0.1})
    '**50.0** of 10.0'
    """
    if result is None or result["success"] is None or not result["success"]["attempts"]:
        return "-" if result is None or result["verdict"] != "unverifiable" else "?"
    text = f"{100 * result['success']['rate']:.1f}"
    if result["verdict"] == "exceeded":
        text = f"**{text}**"
    return text if result["bound"] is None else f"{text} of {100 * result['bound']:.1f}"


def main() -> None:
    """Measure, and put the results where they are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    known = [name for name in names() if find(name).publishes in ("rows", "windows")]
    parser.add_argument("--algorithms", default=",".join(known), help="which, between commas")
    parser.add_argument("--rows", type=int, help="rows of each data set")
    parser.add_argument("--delay", type=int, help="rows that a row may wait for")
    parser.add_argument("--attacks", default=",".join(attack_names()), help="which attacks")
    parser.add_argument("--control", type=float, help="share of people for the control")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it work at all?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values here")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the results in this page")
    options = parser.parse_args()
    sizes = Sizes.quick() if options.quick else Sizes()
    if options.rows is not None:
        sizes = replace(sizes, rows=options.rows)
    if options.delay is not None:
        sizes = replace(sizes, delay=options.delay)
    chosen = options.algorithms.split(","), options.attacks.split(",")
    results = measure(sizes, *chosen, options.control)
    text = report_text(results)
    print(text)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if options.write is not None:
        replace_section(options.write, "attacks", text)


if __name__ == "__main__":
    main()
