"""One run of an algorithm over a stream, and all that is measured of it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache

from benchmarks.figures.model import Reading
from benchmarks.figures.trees.data import Data, stream
from benchmarks.figures.trees.judge import Judged, Promise, judge
from shoal.algorithms import find
from shoal.engine import Anonymizer
from shoal.policy import KAnonymity, Policy

__all__ = ["ALGORITHMS", "LABELS", "TABLE", "Found", "Ran", "Setting", "Trials", "ran"]

ALGORITHMS = ("min-delay", "tree-basic", "tree-density", "tree-full")
#: Those that look at samples of the stream.
SAMPLING = ("tree-density", "tree-full")
TABLE = "mondrian"
LABELS = {
    "min-delay": "Min-delay",
    "tree-basic": "Basic",
    "tree-density": "Den-aware",
    "tree-full": "Full",
    TABLE: "Mondrian",
}
#: Definition 2.
LOSS = "uncertainty"
#: So many rows are enough to have every kernel compiled before anything is timed.
WARM_ROWS = 500


@dataclass(frozen=True)
class Setting:
    """One point of an experiment."""

    data: Data
    rows: int
    n_quasi: int
    k: int
    alpha: float
    samples: int
    sampled: int
    capacity: int
    seed: int = 0

    def recipe(self, algorithm: str) -> Anonymizer:
        """An algorithm with the knobs that it has."""
        knobs: dict[str, object] = {"loss": LOSS}
        if algorithm != TABLE:
            knobs["capacity"] = self.capacity
        if algorithm in SAMPLING:
            knobs |= {"alpha": self.alpha, "samples": self.samples, "sampled": self.sampled}
        return find(algorithm)(**knobs)


@dataclass(frozen=True)
class Ran:
    """What came of a run, and the processor time of its engine."""

    judged: Judged
    seconds: float


@dataclass(frozen=True)
class Found:
    """The same with several seeds, which are other rows, in another order, and other coins."""

    runs: tuple[Ran, ...]

    @property
    def cost(self) -> Reading:
        return Reading(tuple(ran.judged.cost for ran in self.runs))

    @property
    def penalty(self) -> Reading:
        return Reading(tuple(ran.judged.penalty for ran in self.runs))

    @property
    def delay(self) -> Reading:
        return Reading(tuple(ran.judged.delay for ran in self.runs), digits=1)

    @property
    def seconds(self) -> Reading:
        return Reading(tuple(ran.seconds for ran in self.runs))


@dataclass
class Trials:
    """The runs of one figure."""

    seeds: int
    runs: dict[tuple[Setting, str], Ran] = field(default_factory=dict)

    def found(self, setting: Setting, algorithm: str) -> Found:
        """Run with all seeds; a broken promise ends everything."""
        wanted = [replace(setting, seed=seed) for seed in range(self.seeds)]
        return Found(tuple(self._run(one, algorithm) for one in wanted))

    def along(self, settings: Iterable[Setting], algorithm: str) -> list[Found]:
        """Run at every point of an experiment."""
        return [self.found(setting, algorithm) for setting in settings]

    def _run(self, setting: Setting, algorithm: str) -> Ran:
        found = ran(setting, algorithm)
        self.runs[setting, algorithm] = found
        return found

    def __str__(self) -> str:
        """How much was judged, and how often the bound mattered."""
        judged = [one.judged for one in self.runs.values()]
        n_groups = sum(one.n_groups for one in judged)
        suppressed = max(one.n_suppressed / one.n_rows for one in judged)
        held = {
            algorithm: [
                one.judged for (_, name), one in self.runs.items() if name == algorithm
            ]
            for algorithm in dict.fromkeys(name for _, name in self.runs)
            if algorithm != TABLE
        }  # fmt: skip
        shares = {
            algorithm: sum(one.n_full for one in some) / sum(one.n_rows for one in some)
            for algorithm, some in held.items()
        }
        reached = [f"{LABELS[name]} {100 * share:.1f} %" for name, share in shares.items() if share]
        return (
            f"{self.seeds} seeds. Judged: {len(judged)} runs with {n_groups:,} groups; none is "
            f"broken. At most {100 * suppressed:.2f} % of the rows of a run were suppressed. "
            + (
                f"The capacity was used up when a row came: {', '.join(reached)} of the rows."
                if reached
                else "The capacity was never used up."
            )
        )


@cache
def ran(setting: Setting, algorithm: str) -> Ran:
    """Run and judge; what was run before in this process isn't run again."""
    _warm(algorithm)
    return _ran(setting, algorithm)


@cache
def _warm(algorithm: str) -> None:
    """Have an algorithm compiled before it is timed."""
    _ran(Setting("uniform", WARM_ROWS, 3, 5, 0.001, 100, 200, 60), algorithm)


def _ran(setting: Setting, algorithm: str) -> Ran:
    schema, codes = stream(setting.data, setting.rows, setting.n_quasi, setting.seed)
    is_table = algorithm == TABLE
    policy = Policy(KAnonymity(setting.k), window="all" if is_table else None)
    engine = setting.recipe(algorithm).start(schema, policy, seed=f"figure {setting.seed}".encode())
    begin = time.process_time()
    decisions = engine.push(codes), engine.flush()
    seconds = time.process_time() - begin
    promise = Promise(setting.k, None if is_table else setting.capacity, setting.alpha)
    return Ran(judge(schema, codes, promise, decisions), seconds)
