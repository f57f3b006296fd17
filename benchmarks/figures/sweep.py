"""Many runs of CASTLE, on two processes, and what they lost."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from benchmarks.figures.streams import Adult, PowerLaw, Transactions, stream_of
from shoal.algorithms.castle import Castle
from shoal.engine.base import Outcome
from shoal.spec.policy import Delay, KAnonymity, Policy

__all__ = ["KEPT", "Cell", "Lost", "Task", "run", "sweep"]

#: How many groups CASTLE keeps for reuse in the figures.
KEPT = 1_000


@dataclass(frozen=True)
class Task:
    """One run: a stream, a promise, knobs and a seed."""

    stream: Adult | PowerLaw | Transactions
    k: int
    delay: int
    clusters: int = 50
    recent: int = 100
    seed: int = 0

    def seeds(self, n: int) -> list[Task]:
        """The same with n seeds; generated streams are then others, too."""
        return [
            replace(
                self,
                seed=seed,
                stream=self.stream
                if isinstance(self.stream, Adult)
                else replace(self.stream, seed=seed),
            )
            for seed in range(n)
        ]


class Lost(NamedTuple):
    """The mean loss (thesis §2.3) of published rows, the same with suppressed rows as 1, and how
    large a share of the rows was suppressed.
    """

    published: float
    with_suppressed: float
    suppressed: float


class Cell(NamedTuple):
    """What runs lost that differ in their seed alone."""

    runs: tuple[Lost, ...]

    @property
    def mean(self) -> float:
        return float(np.mean([run.published for run in self.runs]))

    @property
    def spread(self) -> float:
        """Half of the distance between the least and the largest."""
        return (self.most - self.least) / 2

    @property
    def least(self) -> float:
        return min(run.published for run in self.runs)

    @property
    def most(self) -> float:
        return max(run.published for run in self.runs)

    @property
    def with_suppressed(self) -> float:
        return float(np.mean([run.with_suppressed for run in self.runs]))

    @property
    def suppressed(self) -> float:
        return float(np.mean([run.suppressed for run in self.runs]))

    def tell(self, value: float) -> str:
        """A value of this kind in figures."""
        return f"{value:.3f}"

    def __str__(self) -> str:
        return f"{self.tell(self.mean)} ± {self.tell(self.spread)}"


def run(task: Task) -> Lost:
    """Run the engine over the whole stream and average over its rows."""
    stream = stream_of(task.stream)
    policy = Policy(KAnonymity(task.k), delay=Delay(rows=task.delay))
    # As in the thesis, each row reuses a group at its deadline, alone.
    anonymizer = Castle(clusters=task.clusters, recent=task.recent, kept=KEPT, joins="alone")
    engine = anonymizer.start(stream.schema, policy, seed=f"figure {task.seed}".encode())
    total, n_published, n_rows = 0.0, 0, 0
    for decided in (engine.push(stream.codes), engine.flush()):
        published = decided.outcomes != Outcome.suppressed
        total += float(decided.loss[decided.boxes[published]].sum())
        n_published += int(published.sum())
        n_rows += len(published)
    n_suppressed = n_rows - n_published
    return Lost(
        total / n_published if n_published else float("nan"),
        (total + n_suppressed) / n_rows,
        n_suppressed / n_rows,
    )


def sweep(tasks: Sequence[Task], *, seeds: int, jobs: int) -> list[Cell]:
    """Run every task with every seed; a cell for each task, in the order of the tasks.

    Runs of one stream follow each other, so that a process encodes it once.
    """
    wanted = [one for task in tasks for one in task.seeds(seeds)]
    order = sorted(range(len(wanted)), key=lambda i: repr(wanted[i].stream))
    ordered = [wanted[i] for i in order]
    if jobs == 1:
        found = [run(task) for task in ordered]
    else:
        context = multiprocessing.get_context("spawn")
        chunk = max(1, min(8, len(ordered) // (2 * jobs)))
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            found = list(pool.map(run, ordered, chunksize=chunk))
    lost = [found[0]] * len(wanted)
    for i, one in zip(order, found, strict=True):
        lost[i] = one
    return [Cell(tuple(lost[i : i + seeds])) for i in range(0, len(lost), seeds)]
