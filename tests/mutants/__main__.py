"""``python -m tests.mutants``: change the code in one place at a time, and see who notices.

Survivors are printed with their place. The exit code is 1 if one of them isn't in
``explained.toml``, if something in it is noticed after all, or if what runs the tests broke.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutants.changes import Mutant, mutants_of
from tests.mutants.collected import FailsUnchangedError, run_module
from tests.mutants.modules import TESTS
from tests.mutants.running import End, Job, Result

__all__ = ["explanations", "main"]

ROOT = Path(__file__).parents[2]
EXPLAINED = Path(__file__).with_name("explained.toml")


class Name(NamedTuple):
    """What names a mutant: unlike the number of a line, it stays when lines are added above."""

    module: str
    within: str
    before: str
    after: str
    nth: int = 1


class Changed(NamedTuple):
    """A mutant of a module, the n-th of those with the same lines in the same function."""

    module: str
    mutant: Mutant
    nth: int = 1

    @property
    def name(self) -> Name:
        """The name of this mutant."""
        mutant = self.mutant
        return Name(self.module, mutant.within, mutant.before, mutant.after, self.nth)

    @property
    def function(self) -> str:
        """The module and the function that were changed, such as ``arrow/hold.py::Hold.take``."""
        return f"{self.module}::{self.mutant.within}"

    @property
    def place(self) -> str:
        """Where the module was changed."""
        within = self.mutant.within or "the module"
        return f"src/shoal/{self.module}:{self.mutant.line} in {within}"

    def __str__(self) -> str:
        return f"{self.place}\n  - {self.mutant.before}\n  + {self.mutant.after}"


def explanations(path: Path = EXPLAINED) -> dict[Name, str]:
    """Return why mutants make no difference."""
    with path.open("rb") as file:
        found = tomllib.load(file).get("mutant", [])
    return {
        Name(**{key: value for key, value in one.items() if key != "reason"}): one["reason"]
        for one in found
    }


def all_mutants(sources: Path, modules: Sequence[str]) -> list[Changed]:
    """Return all mutants of modules."""
    found = []
    for module in modules:
        seen: Counter[tuple[str, ...]] = Counter()
        for mutant in mutants_of((sources / "shoal" / module).read_text(encoding="utf-8")):
            lines = (mutant.within, mutant.before, mutant.after)
            seen[lines] += 1
            found.append(Changed(module, mutant, seen[lines]))
    return found


def main(
    arguments: Sequence[str] | None = None,
    *,
    sources: Path = ROOT / "src",
    tests: dict[str, tuple[str, ...]] = TESTS,
    explained: Path = EXPLAINED,
) -> int:
    """Run the tests on mutants; return the exit code."""
    chosen = _chosen(arguments)
    # What was started ends with this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    words = chosen.words or [""]
    named = [name for name in tests if any(word.partition("::")[0] in name for word in words)]
    mutants = [
        one for one in all_mutants(sources, named) if any(word in one.function for word in words)
    ]
    n_all = len(mutants)
    if chosen.count and chosen.count < n_all:
        mutants = random.Random(chosen.seed).sample(mutants, chosen.count)
    modules = sorted({one.module for one in mutants})
    print(f"{len(mutants):,} of {n_all:,} mutants, in {len(modules)} modules", flush=True)
    jobs = {
        Job(one.module, tests[one.module], one.mutant.source, within=one.mutant.within): one
        for one in mutants
    }
    with tempfile.TemporaryDirectory(prefix="mutants") as name:
        results = _results(list(jobs), modules, sources, Path(name), chosen.workers)
        try:
            return _judged(results, jobs, explanations(explained))
        except FailsUnchangedError as error:
            print(f"without a change, tests fail:\n{error}", file=sys.stderr)
            return 2


def _chosen(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="only modules and functions with this word, such as arrow/hold.py::Hold.take",
    )
    parser.add_argument("--count", type=int, default=0, help="how many; 0, the default: all")
    parser.add_argument("--seed", type=int, default=0, help="which ones, if not all")
    parser.add_argument("--workers", type=int, default=2, help="how many at a time")
    return parser.parse_args(arguments)


def _results(
    jobs: Sequence[Job], modules: Sequence[str], sources: Path, folder: Path, workers: int
) -> Iterator[Result]:
    """Run the tests of all jobs, module by module."""
    for i, module in enumerate(modules):
        of_module = [job for job in jobs if job.module == module]
        yield from run_module(of_module, sources, folder / str(i), workers)


def _judged(results: Iterator[Result], jobs: dict[Job, Changed], reasons: dict[Name, str]) -> int:
    """Print what became of all mutants, survivors and counts; return the exit code."""
    counts: Counter[tuple[str, str]] = Counter()
    try:
        for job, end in results:
            one = jobs[job._replace(seconds=float("inf"))]
            fate = _fate(end, is_explained=one.name in reasons)
            counts[one.module, fate] += 1
            print(f"{counts.total():5,} {fate}: {one if fate.isupper() else one.place}", flush=True)
    finally:
        # Also of a run that is interrupted: what was tried so far.
        _print_counts(counts)
    return int(any(fate.isupper() for _, fate in counts))


def _fate(end: End, *, is_explained: bool) -> str:
    """Return what became of a mutant, in capitals if somebody has to do something."""
    if end == "broke":
        return "BROKE"
    if is_explained:
        return "explained" if end == "passed" else "EXPLAINED, BUT NOTICED"
    return {"passed": "SURVIVED", "failed": "killed", "timed out": "never ended"}[end]


def _print_counts(counts: Counter[tuple[str, str]]) -> None:
    fates = ("killed", "never ended", "explained")
    print(f"mutants = {' + '.join(fates)} + what is to be done")
    for module in [*sorted({module for module, _ in counts}), ""]:
        n = _total(counts, module, None)
        parts = [_total(counts, module, fate) for fate in fates]
        sums = " + ".join(f"{part:,}" for part in [*parts, n - sum(parts)])
        print(f"{n:6,} = {sums}  {module or 'all'}", flush=True)


def _total(counts: Counter[tuple[str, str]], module: str, fate: str | None) -> int:
    return sum(
        n for (of, how), n in counts.items() if module in ("", of) and (fate is None or how == fate)
    )


if __name__ == "__main__":
    sys.exit(main())
