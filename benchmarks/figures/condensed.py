"""Runs of CASTLE and of dynamicGroup over the numbers of UCI Adult, for Figures 5.10 and 5.11."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.figures.streams import ADULT, Stream, encoded
from benchmarks.figures.sweep import KEPT, Lost
from shoal.algorithms import find
from shoal.datasets import Dataset, adult
from shoal.engine.base import Decisions, Outcome
from shoal.spec.policy import Delay, KAnonymity, Policy

__all__ = ["ALL_NUMBERS", "EVEN_NUMBERS", "LABELS", "Against", "decided", "lost", "numbers"]

#: The quasi attributes of Figure 5.10, and those of 5.11: all but the two that are nearly always 0.
ALL_NUMBERS = (
    "age", "final_weight", "education_num", "capital_gain", "capital_loss", "hours_per_week",
)  # fmt: skip
EVEN_NUMBERS = ("age", "final_weight", "education_num", "hours_per_week")
#: What queries ask for beside the quasi attributes.
SENSITIVE = "occupation"
LABELS = {"castle": "CASTLE", "dynamic-group": "dynamicGroup"}
#: As in the thesis, each row reuses a group at its deadline, alone.
KNOBS: dict[str, dict[str, Any]] = {"castle": {"kept": KEPT, "joins": "alone"}}


@dataclass(frozen=True)
class Against:
    """One run. A delay is CASTLE's alone: dynamicGroup publishes when all rows have come."""

    algorithm: str
    rows: int
    quasi: tuple[str, ...]
    k: int
    delay: int | None = None
    seed: int = 0

    @property
    def policy(self) -> Policy:
        if self.delay is None:
            return Policy(KAnonymity(self.k), window="all")
        return Policy(KAnonymity(self.k), delay=Delay(rows=self.delay))


@lru_cache(maxsize=2)
def numbers(rows: int, quasi: tuple[str, ...]) -> Stream:
    """The first rows of UCI Adult with some numbers as quasi attributes."""
    data = adult(ADULT, quasi=quasi, sensitive=SENSITIVE)
    return encoded(Dataset.from_table(data.table().slice(0, rows), data.schema, name=data.name))


@lru_cache(maxsize=1)
def decided(run: Against) -> list[Decisions]:
    """All that is decided about every row; fewer than k people behind a group end everything."""
    stream = numbers(run.rows, run.quasi)
    engine = find(run.algorithm)(**KNOBS.get(run.algorithm, {})).start(
        stream.schema, run.policy, seed=f"figure {run.seed}".encode()
    )
    found = [engine.push(stream.codes), engine.flush()]
    _judge(run, stream, found)
    return found


def _judge(run: Against, stream: Stream, found: list[Decisions]) -> None:
    """Count who is behind each group, by rows and subjects, apart from the engine."""
    rows, groups = [], []
    for some in found:
        out = some.outcomes != Outcome.suppressed
        rows.append(some.rows[out])
        groups.append(some.groups[some.boxes[out]])
    pairs = np.stack([np.concatenate(groups), stream.codes.subjects[np.concatenate(rows)]], axis=1)
    _, n_people = np.unique(np.unique(pairs, axis=0)[:, 0], return_counts=True)
    if len(n_people) and n_people.min() < run.k:
        n_broken = np.count_nonzero(n_people < run.k)
        raise SystemExit(f"{run.algorithm}: {n_broken:,} groups have fewer than {run.k} people")


@lru_cache(maxsize=512)
def lost(run: Against) -> Lost:
    """What a run lost, on average over its rows."""
    found = decided(run)
    losses = np.concatenate([some.losses for some in found])
    published = np.concatenate([some.outcomes for some in found]) != Outcome.suppressed
    n, n_published = len(published), int(published.sum())
    total, n_suppressed = float(losses[published].sum()), n - n_published
    return Lost(
        total / n_published if n_published else float("nan"),
        (total + n_suppressed) / n,
        n_suppressed / n,
    )
