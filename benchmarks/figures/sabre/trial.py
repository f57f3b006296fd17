"""One run of an algorithm for t-closeness over salaries, and a judgement on what came of it.

Every run is judged by itself: the groups are counted and measured again from the rows and from who
was put together, with nothing of the engine. A run that breaks its promise ends everything.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from benchmarks.figures.salaries import N_CLASSES, Sample, salaries
from benchmarks.figures.sweep import Cell, Lost
from benchmarks.figures.variants import Knobs
from shoal.algorithms import find
from shoal.engine.base import Decisions, Outcome
from shoal.engine.kernels.arrays import Ints
from shoal.engine.space import Codes
from shoal.metrics.closeness import group_exposure
from shoal.metrics.compared import Compared
from shoal.spec.hierarchy import Hierarchy
from shoal.spec.policy import KAnonymity, Policy, TCloseness, Window
from shoal.spec.schema import Schema, Sensitive

__all__ = ["Found", "Judged", "Ran", "Trial", "briefly", "found", "judge", "ran", "simulated"]

#: This many rows are enough to have every kernel compiled before anything is timed.
WARM_ROWS = 400
#: The measure is in floating point, the promise isn't.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Trial:
    """A table or a stream, an algorithm, and a promise.

    Without a ``window`` it is a table. With a ``fanout`` the classes of the salary are the leaves
    of a tree in which every node has this many children. ``shuffled`` gives each row the salary of
    another, so that it has nothing to do with the quasi attributes. ``knobs`` are those of the
    algorithm that aren't its defaults.
    """

    algorithm: str
    rows: int
    n_quasi: int
    k: int
    t: float
    window: Window | None = None
    fanout: int | None = None
    shuffled: bool = False
    sample: Sample = "equal"
    knobs: Knobs = ()
    seed: int = 0

    def data(self) -> tuple[Schema, Codes]:
        """The rows, which differ with the seed."""
        schema, codes = salaries(self.rows, self.n_quasi, self.seed, self.sample)
        if self.shuffled:
            mixed = np.random.default_rng(self.seed).permutation(codes.sensitive)
            codes = codes._replace(sensitive=mixed)
        if self.fanout is None:
            return schema, codes
        tree = simulated(N_CLASSES, self.fanout)
        schema = Schema(None, schema.quasi, [Sensitive("salary", tree)])
        # The code of a class is the float's bits: leaves are numbered as classes are.
        leaves = codes.sensitive.view(np.float64).astype(np.int64)
        return schema, codes._replace(sensitive=leaves)


def simulated(n_leaves: int, fanout: int) -> Hierarchy:
    """A tree over numbers in their order, in which every node has this many children, or what is
    left.

    >>> simulated(5, 2).labels
    ('*', '0 to 3', '0 to 1', '0', '1', '2 to 3', '2', '3', '4')
    """
    spans = []
    span = fanout
    while span < n_leaves:
        spans.append(span)
        span *= fanout
    return Hierarchy.from_rows(
        [str(leaf), *(_label(leaf, span, n_leaves) for span in spans), "*"]
        for leaf in range(n_leaves)
    )


def _label(leaf: int, span: int, n_leaves: int) -> str:
    first = leaf - leaf % span
    last = min(first + span, n_leaves) - 1
    return f"{first} to {last}" if first < last else str(first)


class Judged(NamedTuple):
    """How many groups there are, and the closeness of the worst of them."""

    n_groups: int
    closeness: float


@dataclass(frozen=True)
class Ran:
    """What a run lost, how close its groups really are, and the processor time of its engine."""

    trial: Trial
    decisions: tuple[Decisions, ...]
    lost: Lost
    judged: Judged
    seconds: float

    def compared(self) -> Compared:
        """What went in beside what came out."""
        return Compared.from_decisions(*self.trial.data(), self.decisions)


@dataclass(frozen=True)
class Found:
    """What runs came to that differ in their seed alone."""

    runs: tuple[Ran, ...]

    @property
    def loss(self) -> Cell:
        return Cell(tuple(run.lost for run in self.runs))


@cache
def found(trial: Trial, seeds: int) -> Found:
    """Run a trial with this many seeds; what was run before in this process isn't run again."""
    _warm(trial.algorithm)
    return Found(tuple(ran(replace(trial, seed=seed)) for seed in range(seeds)))


def briefly(trial: Trial, seeds: int) -> Found:
    """The same without what was decided, and nothing is kept: for runs that no other needs."""
    _warm(trial.algorithm)
    runs = (ran(replace(trial, seed=seed)) for seed in range(seeds))
    return Found(tuple(replace(one, decisions=()) for one in runs))


@cache
def _warm(algorithm: str) -> None:
    """Have an algorithm compiled, for the numbers of a sensitive attribute and for a tree."""
    window = Window(rows=200, advance=100) if algorithm.endswith("-w") else None
    for fanout in (None, 5):
        ran(Trial(algorithm, WARM_ROWS, 3, 5, 0.5, window, fanout))


def ran(trial: Trial) -> Ran:
    """Run the engine over all rows, and judge what it decided."""
    schema, codes = trial.data()
    policy = Policy(KAnonymity(trial.k), TCloseness(trial.t), window=trial.window or "all")
    anonymizer = find(trial.algorithm)(**dict(trial.knobs))
    engine = anonymizer.start(schema, policy, seed=f"figure {trial.seed}".encode())
    begin = time.process_time()
    decisions = engine.push(codes), engine.flush()
    seconds = time.process_time() - begin
    return Ran(trial, decisions, _lost(decisions), judge(trial, schema, codes, decisions), seconds)


def _lost(decisions: tuple[Decisions, ...]) -> Lost:
    losses = np.concatenate([some.losses for some in decisions])
    suppressed = np.concatenate([some.outcomes == Outcome.suppressed for some in decisions])
    published = losses[~suppressed]
    return Lost(
        float(published.mean()) if len(published) else float("nan"),
        float(losses.mean()),
        float(suppressed.mean()),
    )


def judge(trial: Trial, schema: Schema, codes: Codes, decisions: tuple[Decisions, ...]) -> Judged:
    """Count and measure every group against its window.

    Raises
    ------
    RuntimeError
        If a row is missing or decided twice, or a group has too few rows or isn't close enough.
    """
    rows, groups, windows = _members(decisions)
    decided = np.concatenate([some.rows for some in decisions])
    if not np.array_equal(np.sort(decided), np.arange(trial.rows)):
        raise RuntimeError(f"{trial}: not every row was decided once")
    secrets, worst, n_groups = codes.sensitive[:, 0], 0.0, 0
    for end in np.unique(windows):
        begin = 0 if trial.window is None else max(0, int(end) - trial.window.rows)
        here = windows == end
        # Each row is a subject: to count rows is to count people.
        counts = np.unique(groups[here], return_counts=True)[1]
        if counts.min() < trial.k:
            raise RuntimeError(f"{trial}: a group has {counts.min()} subjects")
        measured = group_exposure(
            groups[here], secrets[rows[here]], secrets[begin:end], schema.sensitive[0].domain
        )
        worst = max(worst, float(measured.closeness.max()))
        n_groups += len(counts)
    if not worst <= trial.t + TOLERANCE:
        raise RuntimeError(f"{trial}: a group is at a distance of {worst:.6f}")
    return Judged(n_groups, worst)


def _members(decisions: tuple[Decisions, ...]) -> tuple[Ints, Ints, Ints]:
    """The published rows, and the group and the window of each."""
    parts = []
    for some in decisions:
        out = some.boxes >= 0
        boxes = some.boxes[out]
        parts.append((some.rows[out], some.groups[boxes], some.windows[boxes]))
    rows, groups, windows = (np.concatenate(column) for column in zip(*parts, strict=True))
    return rows, groups, windows
