"""One run of an algorithm over a stream, and all that is measured of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, TypeAlias

from benchmarks.figures.model import Reading
from benchmarks.figures.trees.data import Data, stream
from benchmarks.figures.trees.judge import Judged, Promise, judge
from shoal.algorithms import find
from shoal.engine.base import Anonymizer
from shoal.spec.policy import Delay, KAnonymity, Policy

__all__ = [
    "ALGORITHMS", "LABELS", "SAMPLING", "TABLE", "TREES", "CostReading", "Due", "Found", "Ran",
    "Setting", "Trials", "ran",
]  # fmt: skip

#: When the due times of leaves are drawn.
Due: TypeAlias = Literal["current", "drawn"]

ALGORITHMS = ("min-delay", "tree-basic", "tree-density", "tree-full")
#: Those that have leaves.
TREES = ALGORITHMS[1:]
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
#: This many rows are enough to have every kernel compiled before anything is timed.
WARM_ROWS = 150
#: From here on a cost is printed as a power of ten.
HUGE = 1e6


@dataclass(frozen=True)
class Setting:
    """One point of an experiment. What is held is bounded by a capacity or by a delay in rows.

    ``due`` says when the due times of leaves are drawn.
    """

    data: Data
    rows: int
    n_quasi: int
    k: int
    alpha: float
    samples: int
    sampled: int
    capacity: int = 0
    delay: int = 0
    due: Due = "current"
    seed: int = 0

    def anonymizer(self, algorithm: str) -> Anonymizer:
        """An algorithm with the knobs that it has."""
        knobs: dict[str, object] = {"loss": LOSS}
        if algorithm != TABLE:
            knobs["capacity"] = self.capacity
        if algorithm in TREES:
            knobs["due"] = self.due
        if algorithm in SAMPLING:
            knobs |= {"alpha": self.alpha, "samples": self.samples, "sampled": self.sampled}
        return find(algorithm)(**knobs)

    def policy(self, algorithm: str) -> Policy:
        """k-anonymity, and the delay."""
        if algorithm == TABLE:
            return Policy(KAnonymity(self.k), window="all")
        return Policy(KAnonymity(self.k), delay=Delay(rows=self.delay) if self.delay else None)

    def promise(self, algorithm: str) -> Promise:
        """What is judged; a table may hold everything."""
        if algorithm == TABLE:
            return Promise(self.k, 0, 0, self.alpha)
        return Promise(self.k, self.capacity, self.delay, self.alpha)


@dataclass(frozen=True)
class Ran:
    """What came of a run, and the processor time of its engine."""

    judged: Judged
    seconds: float


class CostReading(Reading):
    """A cost; beyond a million only its order of magnitude says something.

    >>> str(CostReading((1.0, 2.0))), str(CostReading((1e9, 3e9)))
    ('1.500 ± 0.500', '2.0e+09 ± 1.0e+09')
    """

    def tell(self, value: float) -> str:
        """A cost in figures."""
        return f"{value:.1e}" if self.mean >= HUGE else super().tell(value)


@dataclass(frozen=True)
class Found:
    """The same with several seeds, which are other rows, in another order, and other coins."""

    runs: tuple[Ran, ...]

    @property
    def cost(self) -> CostReading:
        return CostReading(tuple(ran.judged.cost for ran in self.runs))

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

    def along(
        self, settings: Iterable[Setting], algorithms: Sequence[str]
    ) -> dict[str, list[Found]]:
        """Run some algorithms at every point of an experiment."""
        points = list(settings)
        return {one: [self.found(setting, one) for setting in points] for one in algorithms}

    def _run(self, setting: Setting, algorithm: str) -> Ran:
        found = ran(setting, algorithm)
        self.runs[setting, algorithm] = found
        return found

    def __str__(self) -> str:
        """How much was judged, and how often the bounds mattered."""
        judged = [one.judged for one in self.runs.values()]
        suppressed = max(one.n_suppressed / one.n_rows for one in judged)
        parts = [
            f"{self.seeds} seed{'s' * (self.seeds > 1)}. Judged: {len(judged)} runs with "
            f"{sum(one.n_groups for one in judged):,} groups; none breaks its promise.",
            f"At most {100 * suppressed:.2f} % of the rows of a run were suppressed.",
        ]
        if full := self._shares("capacity", "n_full", "n_rows"):
            parts.append(f"The capacity was used up when a row came: {full} of the rows.")
        if due := self._shares("delay", "n_due", "n_groups"):
            parts.append(f"Groups left for the delay of a row: {due} of the groups.")
        return " ".join(parts)

    def _shares(self, bound: str, part: str, whole: str) -> str:
        """How often each algorithm came to a bound, of those runs that have it."""
        reported = []
        for name in dict.fromkeys(name for _, name in self.runs):
            some = [
                one.judged
                for (setting, algorithm), one in self.runs.items()
                if algorithm == name != TABLE and getattr(setting, bound)
            ]
            if some:
                share = sum(getattr(one, part) for one in some)
                share /= sum(getattr(one, whole) for one in some)
                reported.append(f"{LABELS[name]} {100 * share:.1f} %")
        return ", ".join(reported)


@cache
def ran(setting: Setting, algorithm: str) -> Ran:
    """Run and judge; what was run before in this process isn't run again."""
    _warm(algorithm)
    return _ran(setting, algorithm)


@cache
def _warm(algorithm: str) -> None:
    """Have an algorithm compiled before it is timed."""
    dues: tuple[Due, ...] = ("current", "drawn")
    for capacity, delay in ((60, 0), (0, 60)):
        for due in dues:
            warm = Setting("uniform", WARM_ROWS, 3, 5, 0.001, 100, 200, capacity, delay, due)
            _ran(warm, algorithm)


def _ran(setting: Setting, algorithm: str) -> Ran:
    schema, codes = stream(setting.data, setting.rows, setting.n_quasi, setting.seed)
    engine = setting.anonymizer(algorithm).start(
        schema, setting.policy(algorithm), seed=f"figure {setting.seed}".encode()
    )
    begin = time.process_time()
    decisions = engine.push(codes), engine.flush()
    seconds = time.process_time() - begin
    return Ran(judge(schema, codes, setting.promise(algorithm), decisions), seconds)
