"""One run of an algorithm for tables over the salaries, and all that is measured of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

import numpy as np

from benchmarks.figures.burel.judge import judged, largest_delta
from benchmarks.figures.model import Reading
from benchmarks.figures.salaries import Sample, salaries
from benchmarks.figures.sweep import Cell, Lost
from benchmarks.figures.variants import Knobs
from shoal.algorithms import find
from shoal.engine.base import Decisions, Outcome
from shoal.engine.space import Codes
from shoal.metrics.closeness import Exposure
from shoal.spec.policy import (
    DeltaDisclosure,
    EnhancedLikeness,
    Measured,
    Policy,
    RangeLikeness,
    TCloseness,
)
from shoal.spec.schema import Schema

__all__ = ["ALGORITHMS", "LABELS", "Found", "Ran", "Setting", "Trials", "decided", "table"]

#: What is compared for beta-likeness; the others are for t-closeness.
ALGORITHMS = ("burel", "l-mondrian", "d-mondrian")
LABELS = {
    "burel": "BUREL", "l-mondrian": "LMondrian", "d-mondrian": "DMondrian",
    "sabre-ak": "SABRE-AK", "t-mondrian": "tMondrian",
}  # fmt: skip
WARM_ROWS = 500
#: A run is timed so often, and the least time counts.
TRIES = 2


@dataclass(frozen=True)
class Setting:
    """One point of an experiment: the table, and what is promised.

    For algorithms for likeness that is ``beta``, range-based if there is an ``epsilon``; for those
    for closeness it is ``t``. ``knobs`` are those of the algorithm that aren't its defaults.
    """

    rows: int
    n_quasi: int
    beta: float = 4.0
    epsilon: float | None = None
    t: float | None = None
    sample: Sample = "equal"
    knobs: Knobs = ()
    seed: int = 0


@dataclass(frozen=True)
class Ran:
    """What a run lost, the processor time of its engine, and what its groups tell."""

    lost: Lost
    seconds: float
    exposure: Exposure

    @property
    def likeness(self) -> float:
        """The largest gain of a value in a group: the beta that is kept really."""
        return self.exposure.likeness

    @property
    def closeness(self) -> float:
        """The distance of the farthest group: the t that is kept really."""
        assert self.exposure.closeness is not None
        return self.exposure.closeness


@dataclass(frozen=True)
class Found:
    """The same with several seeds, which are other samples and other choices."""

    runs: tuple[Ran, ...]

    @property
    def loss(self) -> Cell:
        return Cell(tuple(ran.lost for ran in self.runs))

    @property
    def seconds(self) -> Reading:
        return Reading(tuple(ran.seconds for ran in self.runs))

    @property
    def likeness(self) -> Reading:
        return Reading(tuple(ran.likeness for ran in self.runs), digits=2)


@dataclass
class Trials:
    """The runs of one figure, and how many groups of them were judged."""

    seeds: int
    judged: set[tuple[Setting, str]] = field(default_factory=set)
    n_groups: int = 0

    def run(self, setting: Setting, algorithm: str) -> Ran:
        """Run with one seed; a broken promise ends everything."""
        found = _ran(setting, algorithm)
        if (setting, algorithm) not in self.judged:
            self.judged.add((setting, algorithm))
            self.n_groups += found.exposure.n_groups
        return found

    def found(self, setting: Setting, algorithm: str) -> Found:
        """Run with all seeds."""
        settings = (replace(setting, seed=seed) for seed in range(self.seeds))
        return Found(tuple(self.run(one, algorithm) for one in settings))

    def __str__(self) -> str:
        groups = f"{len(self.judged)} runs with {self.n_groups:,} groups"
        return f"Judged: {groups}; none breaks its promise."


@lru_cache(maxsize=6)
def table(rows: int, n_quasi: int, seed: int, sample: Sample = "equal") -> tuple[Schema, Codes]:
    """The sample of a seed."""
    return salaries(rows, n_quasi, seed, sample)


def promise_of(setting: Setting, algorithm: str) -> Measured:
    """What an algorithm is asked for."""
    if setting.t is not None:
        return TCloseness(setting.t)
    if algorithm == "d-mondrian":
        codes = table(setting.rows, setting.n_quasi, setting.seed, setting.sample)[1].sensitive[
            :, 0
        ]
        return DeltaDisclosure(largest_delta(codes, setting.beta, setting.epsilon or 0.0))
    if setting.epsilon is not None:
        return RangeLikeness(setting.beta, epsilon=setting.epsilon)
    return EnhancedLikeness(setting.beta)


def decided(setting: Setting, algorithm: str) -> Decisions:
    """What an algorithm decides about every row of the table."""
    return _decided(setting, algorithm)[0]


@lru_cache(maxsize=3)
def _decided(setting: Setting, algorithm: str) -> tuple[Decisions, float]:
    """The same, and the processor time of the engine."""
    schema, codes = table(setting.rows, setting.n_quasi, setting.seed, setting.sample)
    policy = Policy(promise_of(setting, algorithm), window="all")
    seconds = []
    for _ in range(TRIES):
        engine = find(algorithm)(**dict(setting.knobs)).start(
            schema, policy, seed=f"figure {setting.seed}".encode()
        )
        begin = time.process_time()
        engine.push(codes)
        decisions = engine.flush()
        seconds.append(time.process_time() - begin)
    return decisions, min(seconds)


@cache
def _warm(algorithm: str) -> None:
    """Have an algorithm compiled before it is timed."""
    closeness = algorithm in ("sabre-ak", "t-mondrian")
    _decided(Setting(WARM_ROWS, 2, t=0.3 if closeness else None), algorithm)


@cache
def _ran(setting: Setting, algorithm: str) -> Ran:
    _warm(algorithm)
    schema, codes = table(setting.rows, setting.n_quasi, setting.seed, setting.sample)
    decisions, seconds = _decided(setting, algorithm)
    out = decisions.outcomes != Outcome.suppressed
    groups = decisions.groups[decisions.boxes[out]]
    secrets = codes.sensitive[:, 0]
    published, domain = secrets[decisions.rows[out]], schema.sensitive[0].domain
    promises = [promise_of(setting, algorithm)]
    if isinstance(promises[0], DeltaDisclosure):
        # It is asked for since it keeps the likeness that the others promise.
        promises.append(promise_of(setting, "burel"))
    for promise in promises:
        verdict = judged(groups, published, secrets, domain, promise)
        if verdict.n_broken:
            raise SystemExit(
                f"{algorithm}: {verdict.n_broken:,} of {verdict.exposure.n_groups:,} groups break "
                f"{promise.name} at {setting}"
            )
    n_out, n = int(np.count_nonzero(out)), len(out)
    total = float(decisions.losses[out].sum())
    lost = Lost(total / n_out if n_out else float("nan"), (total + n - n_out) / n, 1 - n_out / n)
    return Ran(lost, seconds, verdict.exposure)
