"""Runs of CASTLE over UCI Adult whose loss and workload error are measured (5.9, 5.12, 5.13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from benchmarks.figures.model import Reading
from benchmarks.figures.streams import ADULT, Stream, encoded
from benchmarks.figures.sweep import KEPT, Cell, Lost
from shoal.algorithms.castle import Castle
from shoal.datasets import Dataset, adult
from shoal.engine.base import Decisions, Outcome
from shoal.metrics import Compared
from shoal.metrics.queries import windowed_query_error
from shoal.spec.policy import Delay, DistinctLDiversity, KAnonymity, Policy

__all__ = ["EVEN", "Asked", "Run", "attributes", "error", "errors", "loss"]

#: Table 5.4 in its order, without capital gain and loss, which are nearly always 0 (§5.7.2).
EVEN = (
    "age", "final_weight", "education_num", "hours_per_week", "education", "marital_status",
    "occupation", "native_country",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run: the attributes, and what is promised; without an ``l`` no diversity."""

    rows: int
    quasi: tuple[str, ...]
    sensitive: str
    k: int
    delay: int
    l: int | None = None  # noqa: E741 - the letter of the papers
    seed: int = 0

    @property
    def policy(self) -> Policy:
        diverse = [] if self.l is None else [DistinctLDiversity(self.l)]
        return Policy(KAnonymity(self.k), *diverse, delay=Delay(rows=self.delay))


@dataclass(frozen=True)
class Asked:
    """A workload: of how many queries, with which selectivity, on how many quasi attributes."""

    n_queries: int
    selectivity: float
    n_asked: int


def attributes(sensitive: str, n: int) -> tuple[str, ...]:
    """The first quasi attributes beside a sensitive one."""
    return tuple(name for name in EVEN if name != sensitive)[:n]


@lru_cache(maxsize=4)
def _stream(rows: int, quasi: tuple[str, ...], sensitive: str) -> Stream:
    data = adult(ADULT, quasi=quasi, sensitive=sensitive)
    return encoded(Dataset.from_table(data.table().slice(0, rows), data.schema, name=data.name))


@lru_cache(maxsize=2)
def _decided(run: Run) -> tuple[Decisions, ...]:
    """All that is decided; a group that breaks its promise ends everything."""
    stream = _stream(run.rows, run.quasi, run.sensitive)
    # As in the thesis, each row reuses a group at its deadline, alone.
    anonymizer = Castle(kept=KEPT, joins="alone")
    engine = anonymizer.start(stream.schema, run.policy, seed=f"figure {run.seed}".encode())
    found = engine.push(stream.codes), engine.flush()
    _judge(run, stream, found)
    return found


def _judge(run: Run, stream: Stream, found: Sequence[Decisions]) -> None:
    """Count rows and different values of each group, apart from the engine.

    Each row of Adult is another person: l people with l values are l values.
    """
    outs = [some.outcomes != Outcome.suppressed for some in found]
    rows = np.concatenate([some.rows[out] for some, out in zip(found, outs, strict=True)])
    groups = np.concatenate(
        [some.groups[some.boxes[out]] for some, out in zip(found, outs, strict=True)]
    )
    n_people = np.unique(groups, return_counts=True)[1]
    pairs = np.unique(np.stack([groups, stream.codes.sensitive[rows, 0]], axis=1), axis=0)
    n_values = np.unique(pairs[:, 0], return_counts=True)[1]
    if len(n_people) and (n_people.min() < run.k or n_values.min() < (run.l or 1)):
        raise SystemExit(f"{run}: a group has {n_people.min()} people, {n_values.min()} values")


@lru_cache(maxsize=512)
def _lost(run: Run) -> Lost:
    losses = np.concatenate([some.losses for some in _decided(run)])
    out = np.concatenate([some.outcomes for some in _decided(run)]) != Outcome.suppressed
    n, n_out, total = len(out), int(out.sum()), float(losses[out].sum())
    return Lost(total / n_out if n_out else float("nan"), (total + n - n_out) / n, 1 - n_out / n)


def loss(run: Run, seeds: int) -> Cell:
    """What a run loses, with several seeds."""
    return Cell(tuple(_lost(replace(run, seed=seed)) for seed in range(seeds)))


def error(run: Run, asked: Asked, seeds: int) -> Reading:
    """The workload error in percent, with several seeds."""
    return errors(run, [asked], seeds)[0]


def errors(run: Run, workloads: Sequence[Asked], seeds: int) -> list[Reading]:
    """The same for several workloads: the mean over windows of the median error (§5.7.2)."""
    found = [
        [_error(replace(run, seed=seed), asked) for asked in workloads] for seed in range(seeds)
    ]
    return [Reading(values, digits=1) for values in zip(*found, strict=True)]


@lru_cache(maxsize=512)
def _error(run: Run, asked: Asked) -> float:
    stream = _stream(run.rows, run.quasi, run.sensitive)
    compared = Compared.from_decisions(stream.schema, stream.codes, _decided(run))
    mean = windowed_query_error(
        compared, rows=run.delay, n_queries=asked.n_queries, selectivity=asked.selectivity,
        n_quasi=asked.n_asked, seed=run.seed,
    ).mean  # fmt: skip
    return float("nan") if mean is None else 100 * mean
