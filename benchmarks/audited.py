"""Whoever promises something about sensitive values, run from table to table and audited.

``python -m benchmarks.audited``: every algorithm in the registry, on UCI Adult and on the salaries,
over the grids of the figures: t, beta in all its forms, and disclosure, together with k. Each run
goes through the whole pipeline and is judged by the audit from its output, its trace and its input.
A promise that is broken, or that can't be judged, makes the command fail.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import shoal
from benchmarks.figures.idea.data import TREES
from benchmarks.figures.salaries import NEEDS, salaries
from benchmarks.markdown import table
from benchmarks.measure import say
from benchmarks.options import tell
from benchmarks.workloads import ADULT
from shoal.algorithms import find, names
from shoal.audit import audit
from shoal.errors import UnsupportedError
from shoal.spec.hierarchy import Hierarchy
from shoal.spec.policy import (
    BasicLikeness,
    Delay,
    DeltaDisclosure,
    EnhancedLikeness,
    KAnonymity,
    Measured,
    Policy,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
    Window,
)
from shoal.spec.schema import Schema, Sensitive

__all__ = ["Case", "Sizes", "cases", "judge", "main"]

SEED = 2010
#: The files that each data set needs.
DATA: dict[str, tuple[Path, ...]] = {"adult": (ADULT, TREES), "salaries": NEEDS}
TITLES = {"adult": "UCI Adult", "salaries": "salaries of government employees"}


@dataclass(frozen=True)
class Sizes:
    """How much is run, and over which grids."""

    adult_rows: int = 30_162
    salary_rows: int = 20_000
    n_quasi: int = 5
    #: For who looks at every combination of levels.
    lattice_n_quasi: int = 4
    k: int = 5
    ts: tuple[float, ...] = (0.15, 0.25, 0.35, 0.45, 0.55)
    betas: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)
    epsilon: float = 6.0
    level: int = 1
    window_rows: int = 5_000
    advance: int = 1_000
    delay: int = 2_000

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            adult_rows=160, salary_rows=160, n_quasi=2, lattice_n_quasi=2, k=2, ts=(0.4,),
            betas=(2.0,), window_rows=60, advance=30, delay=30,
        )  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An algorithm on a data set, with one promise and a bound of it after the other."""

    data: str
    algorithm: str
    promise: str
    policies: tuple[Policy, ...]


@dataclass(frozen=True)
class Verdicts:
    """What the audit says of the runs of a case, one after the other."""

    case: Case
    n_groups: int
    suppressed: tuple[float, ...]
    kept: int
    #: What isn't kept, in the words of the audit.
    others: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "data": self.case.data,
            "algorithm": self.case.algorithm,
            "promise": self.case.promise,
            "runs": len(self.suppressed),
            "groups": self.n_groups,
            "suppressed": list(self.suppressed),
            "kept": self.kept,
            "others": list(self.others),
        }


def promises(data: str, sizes: Sizes) -> dict[str, list[Measured]]:
    """All that is promised about the sensitive attribute of a data set, along the grids."""
    found: dict[str, list[Measured]] = {
        "t-closeness": [TCloseness(t) for t in sizes.ts],
        "basic likeness": [BasicLikeness(beta) for beta in sizes.betas],
        "enhanced likeness": [EnhancedLikeness(beta) for beta in sizes.betas],
    }
    if data == "adult":
        found["semantic likeness"] = [
            SemanticLikeness(beta, level=sizes.level) for beta in sizes.betas
        ]
    else:
        found["range-based likeness"] = [
            RangeLikeness(beta, epsilon=sizes.epsilon) for beta in sizes.betas
        ]
    found["disclosure"] = [DeltaDisclosure(math.log1p(beta)) for beta in sizes.betas]
    return found


def cases(data: str, sizes: Sizes) -> Iterator[Case]:
    """Every algorithm with every promise that it doesn't refuse."""
    for name in names():
        anonymizer = find(name)()
        for promise, grid in promises(data, sizes).items():
            policies = tuple(_policy(anonymizer.publishes, criterion, sizes) for criterion in grid)
            try:
                anonymizer.check(policies[0])
            except UnsupportedError:
                continue
            yield Case(data, name, promise, policies)


def _policy(publishes: str, criterion: Measured, sizes: Sizes) -> Policy:
    k = KAnonymity(sizes.k)
    if publishes == "table":
        return Policy(k, criterion, window="all")
    if publishes == "windows":
        return Policy(k, criterion, window=Window(sizes.window_rows, sizes.advance))
    delay = Delay(rows=sizes.delay)
    return Policy(k, criterion, window=Window(sizes.window_rows), delay=delay)


def judge(case: Case, sizes: Sizes) -> Verdicts:
    """Publish with each policy of a case, and have it audited."""
    schema, original = _data(case.data, sizes, n_quasi=_n_quasi(case, sizes))
    n_groups, kept = 0, 0
    suppressed, others = [], []
    for policy in case.policies:
        result = shoal.anonymize(original, schema, policy, case.algorithm, seed=SEED, trace=True)
        report = audit(schema, policy, result.frame, trace=result.trace, original=original)
        n_groups += pc.count_distinct(result.trace.column("group")).as_py()
        suppressed.append(1 - len(result) / original.num_rows)
        kept += sum(verdict.verdict == "kept" for verdict in report.verdicts)
        others += [
            f"{case.algorithm}, {policy.measured[0]}: {verdict.line()}"
            for verdict in report.verdicts
            if verdict.verdict != "kept"
        ]
    return Verdicts(case, n_groups, tuple(suppressed), kept, tuple(others))


def _n_quasi(case: Case, sizes: Sizes) -> int | None:
    """How many of the quasi attributes an algorithm gets; None: all."""
    return sizes.lattice_n_quasi if hasattr(find(case.algorithm), "levels") else None


@lru_cache(maxsize=4)
def _data(data: str, sizes: Sizes, n_quasi: int | None = None) -> tuple[Schema, pa.Table]:
    schema, rows = _adult(sizes) if data == "adult" else _salaries(sizes)
    schema = Schema(None, schema.quasi[:n_quasi], schema.sensitive)
    return schema, rows.select(schema.columns)


def _adult(sizes: Sizes) -> tuple[Schema, pa.Table]:
    """UCI Adult with occupation as what is sensitive.

    The quasi attributes are the other nine of the thesis' Table 5.4.
    """
    whole = shoal.datasets.adult(ADULT, sensitive="occupation")
    tree = Hierarchy.from_csv(TREES / "adult_arx" / "occupation.csv")
    schema = Schema(None, whole.schema.quasi, [Sensitive("occupation", tree)])
    return schema, whole.table().slice(0, sizes.adult_rows)


def _salaries(sizes: Sizes) -> tuple[Schema, pa.Table]:
    """A sample of the salaries, as the table that its codes were made of."""
    schema, codes = salaries(sizes.salary_rows, sizes.n_quasi, SEED)
    columns = {}
    for d, quasi in enumerate(schema.quasi):
        values = codes.values[:, d].astype(np.int64)
        if isinstance(quasi.domain, Hierarchy):
            leaves = [quasi.domain.label(code, code) for code in range(len(quasi.domain))]
            columns[quasi.name] = pa.array(leaves).take(pa.array(values))
        else:
            columns[quasi.name] = pa.array(values)
    # The code of a number that isn't negative is its bits.
    columns["salary"] = pa.array(codes.sensitive[:, 0].view(np.float64).astype(np.int64))
    return schema, pa.table(columns)


def report_of(found: Sequence[Verdicts], sizes: Sizes) -> str:
    """The section of the page."""
    n_runs = sum(len(one.suppressed) for one in found)
    n_groups = sum(one.n_groups for one in found)
    n_kept = sum(one.kept for one in found)
    others = [line for one in found for line in one.others]
    parts = [
        f"{n_runs} runs with {n_groups:,} groups. Of {n_kept + len(others):,} verdicts of the "
        f"audit {n_kept:,} are *kept*, and {len(others) or 'none'} *broken* or *unverifiable*.",
        f"k = {sizes.k}; t from {sizes.ts[0]:g} to {sizes.ts[-1]:g} and β from {sizes.betas[0]:g} "
        f"to {sizes.betas[-1]:g}, {len(sizes.ts)} values each; δ = ln(1 + β); semantic likeness "
        f"from level {sizes.level} on, ranges of {sizes.epsilon:g} classes. Algorithms for tables "
        f"are measured against the whole table, those for streams against {sizes.window_rows:,} "
        f"rows, which advance by {sizes.advance:,}; where rows leave one by one, the delay is "
        f"{sizes.delay:,} rows. Algorithms that examine every combination of levels get the first "
        f"{sizes.lattice_n_quasi} quasi attributes. Suppressed rows are reported for the strictest "
        "bound and for the weakest.",
    ]
    for data in dict.fromkeys(one.case.data for one in found):
        n_rows = _data(data, sizes)[1].num_rows
        n_quasi = len(_data(data, sizes)[0].quasi)
        lines = [
            [
                one.case.algorithm,
                one.case.promise,
                len(one.suppressed),
                f"{one.n_groups:,}",
                f"{100 * one.suppressed[0]:.1f} %",
                f"{100 * one.suppressed[-1]:.1f} %",
                len(one.others),
            ]
            for one in found
            if one.case.data == data
        ]
        head = [
            "algorithm",
            "promise",
            "runs",
            "groups",
            "suppressed, strictest",
            "weakest",
            "not kept",
        ]
        parts += [
            f"On {TITLES[data]}, {n_rows:,} rows with {n_quasi} quasi attributes:",
            table(head, lines),
        ]
    return "\n\n".join([*parts, *(f"- {line}" for line in others)])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audited", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it work at all?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values here")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the results in this page")
    options = parser.parse_args(arguments)
    sizes = Sizes.quick() if options.quick else Sizes()
    found = []
    for data, needed in DATA.items():
        if missing := [path.name for path in needed if not path.exists()]:
            say(f"{TITLES[data]}: left out, for ../shared/data has no {', '.join(missing)}")
            continue
        for case in cases(data, sizes):
            verdicts = judge(case, sizes)
            found.append(verdicts)
            say(f"{data}, {case.algorithm}, {case.promise}: {len(verdicts.others)} not kept")
    results = {"audited": [one.as_dict() for one in found]}
    tell(options, "audited", results, report_of(found, sizes))
    if any(one.others for one in found):
        sys.exit("a promise is broken, or can't be judged")


if __name__ == "__main__":
    main()
