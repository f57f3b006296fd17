"""One run of any algorithm over a stream of the figures, and all that is measured of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from benchmarks.figures.fast.data import Repeated
from benchmarks.figures.idea.data import Incomplete
from benchmarks.figures.streams import Stream
from benchmarks.figures.sweep import Cell, Lost
from benchmarks.incomplete import gap_masks
from shoal.algorithms import find
from shoal.engine.base import Decisions, Outcome
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.metrics.pollution import Pollution
from shoal.spec.policy import Delay, KAnonymity, Missing, Policy

__all__ = ["WINDOWS", "Found", "Ran", "Trial", "WindowKind", "bounds", "found", "ran", "warm"]

#: When a row is due: when delta rows are held, as in the papers, or when that many have arrived
#: after it, which bounds how long it waits.
WindowKind: TypeAlias = Literal["held", "arrived"]
WINDOWS: dict[WindowKind, str] = {"held": "by rows held", "arrived": "by rows arrived"}

#: This many rows are enough to have every kernel compiled before anything is timed.
WARM_ROWS = 400


@dataclass(frozen=True)
class Trial:
    """A stream, an algorithm with its knobs, and a promise; its delay is in rows."""

    stream: Incomplete | Repeated
    algorithm: str
    k: int
    delay: int | None
    knobs: tuple[tuple[str, object], ...] = ()
    missing: Missing = "quarantine"

    def with_seed(self, seed: int) -> Trial:
        """The same with other gaps, or other people who come again."""
        return replace(self, stream=replace(self.stream, seed=seed))

    def seed(self) -> bytes:
        return f"figure {self.stream.seed}".encode()


class Ran(NamedTuple):
    """What became of each row, in the order of decisions; what each new group lost; the time.

    ``groups`` are -1 for suppressed rows. Wall and processor time are those of the engine alone.
    """

    rows: Ints
    outcomes: Ints
    published: Ints
    losses: Floats
    groups: Ints
    new_groups: Floats
    pollution: float
    wall: float
    processor: float

    @property
    def is_published(self) -> Bools:
        return self.outcomes != Outcome.suppressed

    @property
    def waited(self) -> Ints:
        return self.published - self.rows

    def in_rounds(self) -> Ran:
        """The same, with the number of the round in place of the row count."""
        return self._replace(published=np.unique(self.published, return_inverse=True)[1])

    @property
    def lost(self) -> Lost:
        """The mean loss, without and with suppressed rows, and their share."""
        published = self.is_published
        total, n, n_all = self.losses[published].sum(), published.sum(), len(published)
        n_suppressed = n_all - n
        return Lost(
            float(total / n) if n else float("nan"),
            float((total + n_suppressed) / n_all),
            float(n_suppressed / n_all),
        )


def bounds(window: WindowKind, delta: int) -> tuple[int | None, dict[str, object]]:
    """The delay of the policy and the capacity with which delta rows are in the window.

    By rows held, delta rows are there when one of them is decided.
    """
    return (delta, {}) if window == "arrived" else (None, {"capacity": delta - 1})


@dataclass(frozen=True)
class Found:
    """What runs came to that differ in their seed alone."""

    runs: tuple[Ran, ...]

    @property
    def loss(self) -> Cell:
        return Cell(tuple(run.lost for run in self.runs))


@cache
def found(trial: Trial, seeds: int, attempt: int = 0) -> Found:
    """Run a trial with this many seeds; what was run before in this process isn't run again.

    Another attempt is run again, and comes to the same but for its time.
    """
    return Found(tuple(_once(trial.with_seed(seed), attempt) for seed in range(seeds)))


@cache
def _once(trial: Trial, attempt: int) -> Ran:
    """Run a trial; figures with more seeds share the runs of those with fewer."""
    return ran(trial)


@cache
def warm(algorithm: str, missing: Missing, stream: type[Incomplete | Repeated]) -> None:
    """Have an algorithm compiled for such streams."""
    small = Repeated(WARM_ROWS) if stream is Repeated else Incomplete("adult", WARM_ROWS, 0)
    ran(Trial(small, algorithm, 5, 50, missing=missing))


def ran(trial: Trial) -> Ran:
    """Run the engine over the whole stream."""
    stream = trial.stream.stream()
    delay = None if trial.delay is None else Delay(rows=trial.delay)
    policy = Policy(KAnonymity(trial.k), delay=delay, missing=trial.missing)
    anonymizer = find(trial.algorithm)(**dict(trial.knobs))
    engine = anonymizer.start(stream.schema, policy, seed=trial.seed())
    wall, processor = time.perf_counter(), time.process_time()
    decided = [engine.push(stream.codes), engine.flush()]
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return Ran(
        rows=_joined(decided, "rows"),
        outcomes=_joined(decided, "outcomes"),
        published=_joined(decided, "published"),
        losses=_joined(decided, "losses"),
        groups=np.concatenate([_groups(some) for some in decided]),
        new_groups=np.concatenate([some.loss[some.n_rows > 0] for some in decided]),
        pollution=_pollution(stream, trial.missing, decided),
        wall=wall,
        processor=processor,
    )


def _joined(decided: list[Decisions], name: str) -> np.ndarray:
    return np.concatenate([getattr(some, name) for some in decided])


def _groups(decided: Decisions) -> Ints:
    groups = np.full(len(decided.rows), -1)
    has_box = decided.boxes >= 0
    groups[has_box] = decided.groups[decided.boxes[has_box]]
    return groups


def _pollution(stream: Stream, missing: Missing, decided: list[Decisions]) -> float:
    """The missing pollution rate, by the rows that went in and the boxes that came out."""
    pollution = Pollution(len(stream.schema.quasi))
    gaps = gap_masks(stream.codes.values)
    for some in decided:
        has_box = some.boxes >= 0
        boxes, before = some.boxes[has_box], gaps[some.rows[has_box]]
        lacking = some.box_gaps if missing == "extended" else gap_masks(_empty_as_nan(some))
        pollution.add(before, before | lacking[boxes])
    return pollution.rate or 0.0


def _empty_as_nan(decided: Decisions) -> Floats:
    """The lower ends of all boxes; an empty side, which is published as a null, as NaN."""
    return np.where(decided.lo > decided.hi, np.nan, decided.lo)
