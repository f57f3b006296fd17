"""What attackers achieve: ``python -m benchmarks.attacks [--quick] [--write PAGE]``.

Every algorithm publishes two data sets, with its default knobs, and those that can reuse groups
also with reuse. All attacks are made on each release. The table has the success of each
attack in the grade of knowledge that comes nearest to its bound, or that succeeds most where the
promise gives none. All numbers are the same on any machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.markdown import table
from benchmarks.measure import say
from benchmarks.options import add_common, sizes_of, tell
from benchmarks.workloads import ADULT
from shoal.algorithms import find, names
from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.release import Publish
from shoal.attacks import AttackReport, AttackResult, Setting, attack
from shoal.attacks import names as attack_names
from shoal.datasets import Dataset, adult, census
from shoal.engine.base import Anonymizer
from shoal.job.attacking import rerun_with
from shoal.spec.criteria import BetaLikeness, TCloseness
from shoal.spec.policy import (
    Delay,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    KAnonymity,
    Policy,
    Window,
    ZAnonymity,
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
    delta: float = 1.5
    z: int = 10
    delay: int = 1_000
    window: int = 4_000
    kept: int = 1_000
    targets: int = 1_000

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(rows=400, k=3, l=2, z=3, delay=60, window=120, kept=20, targets=50)


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
    """k and l; for algorithms that publish windows or tables also what they are made for; or z."""
    rows = Window(rows=sizes.window, advance=sizes.window // 4)
    if anonymizer.publishes == "values":
        return Policy(ZAnonymity(sizes.z), window=Window(rows=sizes.window))
    both = KAnonymity(sizes.k), DistinctLDiversity(sizes.l)
    kinds = anonymizer.enforces
    # One that keeps all of these is measured without.
    special = [
        criterion
        for kind, criterion in (
            (TCloseness, TCloseness(sizes.t)),
            (BetaLikeness, EnhancedLikeness(sizes.beta)),
            (DeltaDisclosure, DeltaDisclosure(sizes.delta)),
        )
        if any(issubclass(each, kind) for each in kinds)
    ]
    made_for = special if len(special) == 1 else []
    if anonymizer.publishes == "table":
        return Policy(*both, *made_for, window="all")
    if anonymizer.publishes == "windows":
        return Policy(*both, *made_for, window=rows)
    return Policy(*both, delay=Delay(rows=sizes.delay))


def setting_of(
    data: Dataset, anonymizer: Anonymizer, policy: Policy, targets: int, rotate: int = 0
) -> Setting:
    """Publish a data set, and make the setting of the attacks on it.

    Under z pseudonyms are published, which change after so many rows.
    """
    publish = Publish(pseudonym=Pseudonym(rotate)) if policy.per_value else Publish()
    rows = data.table()
    rerun = rerun_with(data.schema, policy, anonymizer, publish)
    run = rerun(rows, SEED)
    return Setting(
        data.schema, policy, run.published, rows, run.trace, algorithm=anonymizer.name,
        knobs=asdict(anonymizer), n_targets=targets, seed=SEED, rerun=rerun, order="released",
        pseudonym=policy.per_value, rotate=rotate if policy.per_value else None,
    )  # fmt: skip


def data_for(anonymizer: Anonymizer, data: Dataset) -> Dataset | None:
    """The data as an algorithm takes them; None if it can't.

    z-anonymity has no sensitive columns, and counts people.
    """
    if anonymizer.publishes != "values":
        return data
    if data.schema.each_row:
        return None
    return Dataset.from_table(data.table(), replace(data.schema, sensitive=()), name=data.name)


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
            if (given := data_for(anonymizer, data)) is None:
                continue
            say(f"attacks: {data.name}, {way}")
            policy = policy_of(anonymizer, sizes)
            setting = setting_of(given, anonymizer, policy, sizes.targets, sizes.window)
            report = attack(setting, attacks, control=control)
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
        f"(distinct), a delay of {sizes['delay']:,} rows. Algorithms that are made for it also "
        f"keep t = {sizes['t']:g}, beta = {sizes['beta']:g} or disclosure = {sizes['delta']:g}: "
        f"those for streams in windows of {sizes['window']:,} rows, those for tables against "
        f"the table. `z-anonymity`: z = {sizes['z']}, window and pseudonyms of {sizes['window']:,} "
        f"rows. *reuse*: `kept = {sizes['kept']:,}`. Up to {sizes['targets']:,} people are "
        "attacked, by the oracle up to 200. Success in percent, "
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
    add_common(parser, rows="each data set")
    parser.add_argument("--algorithms", default=",".join(names()), help="which, between commas")
    parser.add_argument("--delay", type=int, help="rows that a row may wait for")
    parser.add_argument("--attacks", default=",".join(attack_names()), help="which attacks")
    parser.add_argument("--control", type=float, help="share of people for the control")
    options = parser.parse_args()
    sizes = sizes_of(Sizes, parser, options)
    chosen = options.algorithms.split(","), options.attacks.split(",")
    results = measure(sizes, *chosen, options.control)
    tell(options, "attacks", results, report_text(results))


if __name__ == "__main__":
    main()
