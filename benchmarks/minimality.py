"""What an algorithm gives away: ``python -m benchmarks.minimality [--quick] [--write PAGE]``.

The attacker knows the algorithm and sees a whole output with its instants. On streams of a few rows
over a few values, all inputs are run, each under several seeds. Those that lead to the output that
was seen are the ones that are possible; before, all were equally likely. So the attacker has a
posterior for which row is the victim's, and for the victim's sensitive value, and names the
likeliest. That is the best that anybody can do with this knowledge; no other attack does better.

Two grades: the attacker knows arrival and quasi value of the victim; or of everybody. With few
seeds some outputs look more telling than they are: posteriors are upper bounds.
All numbers are the same on any machine.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.markdown import table
from benchmarks.measure import say
from benchmarks.options import add_common, sizes_of, tell
from shoal.algorithms import find
from shoal.engine import Codes, Decisions
from shoal.engine.base import Anonymizer
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.spec.hierarchy import Range
from shoal.spec.policy import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = ["Learnt", "Runs", "Sizes", "all_runs", "learnt", "main"]

#: What is measured: a name, the algorithm, its knobs.
SETTINGS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "tide": ("tide", {}),
    "tide, rolling": ("tide", {"release": "rolling"}),
    "castle": ("castle", {}),
    "fads": ("fads", {}),
    "idea": ("idea", {}),
    "fads, reuse alone": ("fads", {"kept": 100, "joins": "alone"}),
    "fads, reuse best": ("fads", {"kept": 100, "joins": "alone", "reuse": "best"}),
}
#: Posteriors are sums of fractions.
SLACK = 1e-9


@dataclass(frozen=True)
class Sizes:
    """How large the streams are: rows and seeds, where k is promised, and where l is as well."""

    k_values: int = 3
    l_values: int = 2
    k: int = 2
    l: int = 2  # noqa: E741 - the letter of the papers
    delay: int = 3
    k_rows: int = 6
    k_seeds: int = 4
    l_rows: int = 5
    l_seeds: int = 4

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(k_values=2, delay=2, k_rows=4, k_seeds=1, l_rows=4, l_seeds=1)


class Runs(NamedTuple):
    """All inputs under all seeds, one line for each run; rows of the input along the second axis.

    ``output`` is a number for what was seen. ``seen_as`` is for each row which kind of published
    row it became: rows of one kind (instant, box and sensitive value) can't be told apart; -1:
    suppressed. ``n_alike`` is how many of that kind there are, ``n_group`` how many left in that
    box at that instant, and ``n_value`` how many of these have the most frequent value.
    """

    values: Ints
    sensitive: Ints
    output: Ints
    seen_as: Ints
    n_alike: Ints
    n_group: Ints
    n_value: Ints


class Learnt(NamedTuple):
    """What the best attacker achieves, in shares of all runs and victims.

    ``success`` is how often the likeliest guess is right, ``above`` how often its posterior is
    above the bound, ``beyond`` how often it is also above what the victim's group shows by itself,
    ``worst`` the largest posterior. ``plain`` is the success of the attacker who looks at the
    victim's group alone.
    """

    success: float
    above: float
    beyond: float
    worst: float
    plain: float


# -- running ---------------------------------------------------------------------------------------


def all_runs(
    anonymizer: Anonymizer,
    policy: Policy,
    *,
    n_rows: int,
    n_values: int,
    n_sensitive: int,
    n_seeds: int,
) -> Runs:
    """Run all inputs of a size, each row another person, under all seeds."""
    schema = Schema(
        "person", [Quasi("x", Range(0, max(1, n_values - 1), step=1))], [Sensitive("s")]
    )
    numbers: dict[tuple[Any, ...], int] = {}
    lines = []
    kinds = list(itertools.product(range(n_values), range(n_sensitive)))
    for rows in itertools.product(kinds, repeat=n_rows):
        values, sensitive = np.array(rows, np.int64).T
        codes = Codes(
            values[:, None].astype(np.float64),
            np.arange(n_rows),
            sensitive[:, None].copy(),
            np.full(n_rows, np.nan),
        )
        for seed in range(n_seeds):
            engine = anonymizer.start(schema, policy, seed=b"minimality %d" % seed)
            shown = [*_shown(engine.push(codes), sensitive), *_shown(engine.flush(), sensitive)]
            lines.append((values, sensitive, *_line(shown, n_rows, numbers)))
    return Runs(*(np.array(column, np.int64) for column in zip(*lines, strict=True)))


#: A published row: which it is, and what is seen of it: instant, box and sensitive value.
_Shown = tuple[int, tuple[Any, ...]]


def _shown(decided: Decisions, sensitive: Ints) -> Iterator[_Shown]:
    for row, box, instant in zip(decided.rows, decided.boxes, decided.published, strict=True):
        if box >= 0:
            sides = (*decided.lo[box].tolist(), *decided.hi[box].tolist())
            yield int(row), (int(instant), sides, int(sensitive[row]))


def _line(
    shown: Sequence[_Shown], n_rows: int, numbers: dict[tuple[Any, ...], int]
) -> tuple[int, Ints, Ints, Ints, Ints]:
    """Return the number of an output, and how each row of the input is seen in it."""
    output = tuple(sorted(seen for _, seen in shown))
    number = numbers.setdefault(output, len(numbers))
    kinds = {seen: kind for kind, seen in enumerate(dict.fromkeys(output))}
    alike = Counter(output)
    group = Counter(seen[:2] for seen in output)
    largest: dict[Any, int] = {}
    for seen, n in alike.items():
        largest[seen[:2]] = max(n, largest.get(seen[:2], 0))
    found = np.full((4, n_rows), -1, np.int64)
    for row, seen in shown:
        found[:, row] = kinds[seen], alike[seen], group[seen[:2]], largest[seen[:2]]
    return number, found[0], found[1], found[2], found[3]


# -- learning --------------------------------------------------------------------------------------


def learnt(runs: Runs, bound: float, *, about: str, knows_all: bool) -> Learnt:
    """Return what the best attacker learns about which row is the victim's, or their value.

    Parameters
    ----------
    runs
        All runs.
    bound
        What the promise allows.
    about
        ``"row"`` or ``"value"``.
    knows_all
        Whether the values of everybody are known, or the victim's only.
    """
    best, plain = [], []
    for victim in range(runs.values.shape[1]):
        known = runs.values if knows_all else runs.values[:, [victim]]
        _, seen = np.unique(np.column_stack([runs.output, known]), axis=0, return_inverse=True)
        seen = seen.reshape(-1)
        total = np.bincount(seen)
        there = runs.seen_as[:, victim] >= 0
        if about == "row":
            answer = runs.seen_as[:, victim]
            share = 1 / np.where(there, runs.n_alike[:, victim], np.inf)
            of_group = 1 / np.where(there, runs.n_group[:, victim], np.inf)
        else:
            answer, share = runs.sensitive[:, victim], np.ones(len(seen))
            of_group = np.where(there, runs.n_value[:, victim] / runs.n_group[:, victim], 0.5)
        width = int(answer.max()) + 2
        weight = np.bincount(seen * width + answer + 1, share, minlength=len(total) * width)
        highest = weight.reshape(len(total), width).max(axis=1) / total
        best.append(highest[seen])
        plain.append(of_group)
    posterior: Floats = np.concatenate(best)
    shown: Floats = np.concatenate(plain)
    return Learnt(
        float(posterior.mean()),
        float((posterior > bound + SLACK).mean()),
        float((posterior > np.maximum(bound, shown) + SLACK).mean()),
        float(posterior.max()),
        float(shown.mean()),
    )


def measured(name: str, sizes: Sizes) -> dict[str, Any]:
    """Measure one setting under both promises."""
    algorithm, knobs = SETTINGS[name]
    anonymizer = find(algorithm)(**knobs)
    delay = Delay(rows=sizes.delay)
    line: dict[str, Any] = {"algorithm": name}
    say(f"minimality: {name}, k")
    by_k = all_runs(
        anonymizer,
        Policy(KAnonymity(sizes.k), delay=delay),
        n_rows=sizes.k_rows, n_values=sizes.k_values, n_sensitive=1, n_seeds=sizes.k_seeds,
    )  # fmt: skip
    say(f"minimality: {name}, k and l")
    by_l = all_runs(
        anonymizer,
        Policy(KAnonymity(sizes.k), DistinctLDiversity(sizes.l), delay=delay),
        n_rows=sizes.l_rows, n_values=sizes.l_values, n_sensitive=2, n_seeds=sizes.l_seeds,
    )  # fmt: skip
    for promise, runs in (("k", by_k), ("k, l", by_l)):
        line[promise] = {
            "runs": len(runs.output),
            "outputs": int(runs.output.max()) + 1,
            "suppressed": float((runs.seen_as < 0).mean()),
        }
        for about in ("row",) if promise == "k" else ("row", "value"):
            for knows_all in (False, True):
                bound = 1 / sizes.k if about == "row" else 1 / sizes.l
                found = learnt(runs, bound, about=about, knows_all=knows_all)
                line[promise][f"{about}, {'all' if knows_all else 'own'}"] = found._asdict()
    return line


# -- telling ---------------------------------------------------------------------------------------

COLUMNS = ("plain", "success", "above", "beyond", "worst")
KNOWS = {"own": "the victim", "all": "everybody"}


def report(results: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    sizes = results["sizes"]
    parts = []
    for promise, about, what in (
        ("k", "row", "Which row is the victim's, where k is promised"),
        ("k, l", "row", "Which row is the victim's, where k and l are promised"),
        ("k, l", "value", "Which sensitive value the victim has, where k and l are promised"),
    ):
        n_rows, n_seeds, n_values = (
            sizes[f"{promise[-1]}_{each}"] for each in ("rows", "seeds", "values")
        )
        lines = [
            [
                f"`{line['algorithm']}`", KNOWS[grade],
                *(_percent(found[each]) for each in COLUMNS),
                _percent(line[promise]["suppressed"]),
            ]
            for line in results["algorithms"]
            for grade in KNOWS
            for found in [line[promise][f"{about}, {grade}"]]
        ]  # fmt: skip
        letter = "l" if about == "value" else "k"
        head = ["algorithm", "knows values of", "group alone", "best guess", f"above 1/{letter}",
                "and the group", "worst", "suppressed"]  # fmt: skip
        n_inputs = (n_values * (1 if promise == "k" else 2)) ** n_rows
        parts.append(
            f"**{what}**: all {n_inputs:,} inputs of {n_rows} people over {n_values} values"
            f"{'' if promise == 'k' else ' and two sensitive ones'}, {n_seeds} seeds each, "
            f"k = {sizes['k']}{'' if promise == 'k' else ', l = ' + str(sizes['l'])}, a delay of "
            f"{sizes['delay']} rows."
        )
        parts.append(table(head, lines))
    return "\n\n".join(parts)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def main() -> None:
    """Measure, and put the results where they are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_common(parser)
    parser.add_argument("--settings", help="which, between semicolons; default: all")
    parser.add_argument("--seeds", type=int, help="seeds of each input")
    options = parser.parse_args()
    sizes = sizes_of(Sizes, parser, options)
    if options.seeds is not None:
        sizes = replace(sizes, k_seeds=options.seeds, l_seeds=options.seeds)
    chosen = list(SETTINGS) if options.settings is None else options.settings.split(";")
    if options.write is not None and options.settings is not None:
        parser.error("--write puts the whole table in a page: leave --settings out")
    results = {"sizes": asdict(sizes), "algorithms": [measured(name, sizes) for name in chosen]}
    tell(options, "minimality", results, report(results))


if __name__ == "__main__":
    main()
