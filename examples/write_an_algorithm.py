"""An anonymizer of your own: first come, first served.

When a row is due, it is published with as few of the rows that came next as make up a group. It
doesn't look at how near the rows are to each other, so it loses a lot; but it keeps the whole
contract. `docs/testing.md` explains it step by step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.engine.base import Anonymizer, BoxEngine, Engine, Out, Outcome, decide, write_box
from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import Box, hull, mean_loss
from shoal.engine.kernels.predicate import count_subjects, meets
from shoal.engine.space import Codes, Space
from shoal.spec.policy import Criterion, KAnonymity, LDiversity


@dataclass(frozen=True, kw_only=True)
class FirstCome(Anonymizer):
    """First come, first served.

    Parameters
    ----------
    least
        How many rows a group has at least, in addition to what the policy asks.
    """

    name: ClassVar[str] = "first-come"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity)
    reference: ClassVar[str] = "an example of this documentation"

    least: int = 1

    def __post_init__(self) -> None:
        self._at_least(1, "least")

    def _start(self, space: Space, seed: bytes) -> Engine:
        return FirstComeEngine(self, space, seed)


class State(NamedTuple):
    """The whole state of a run: the held rows, oldest first, and its counters."""

    lo: Floats
    hi: Floats
    subjects: Ints
    sensitive: Ints
    times: Floats
    gaps: Ints
    marks: Records


MARKS = np.dtype(
    [("upcoming", "i8"), ("groups", "i8"), ("instants", "i8"), ("now", "f8"), ("arrived", "f8")]
)


class FirstComeEngine(BoxEngine):
    """One run of `FirstCome`."""

    state: State

    def __init__(self, anonymizer: FirstCome, space: Space, seed: bytes) -> None:
        nothing = Codes.empty(space.n_quasi, space.n_sensitive)
        marks = np.zeros(1, MARKS)
        marks["now"] = marks["arrived"] = -np.inf
        self._least = anonymizer.least
        rows = (nothing.values, nothing.values, nothing.subjects, nothing.sensitive, nothing.times)
        super().__init__(space, State(*rows, nothing.subjects, marks), seed)

    @property
    def n_held(self) -> int:
        return len(self.state.subjects)

    @property
    def next_deadline(self) -> float | None:
        if not self.n_held or not self.space.deadlines.seconds:
            return None
        return float(self.state.times[0]) + self.space.deadlines.seconds

    def _reserve(self, n: int) -> None:
        """Do nothing: the arrays are made again for each row."""

    def _push(self, codes: Codes, out: Out) -> None:
        marks, delay = self.state.marks, self.space.deadlines.rows
        lo, hi = self.space.points(codes.values)
        gaps = self.space.gaps(codes.values)
        for i in range(len(codes.subjects)):
            self._advance(codes.times[i], out)
            # A tick may be later than the row: the row has waited since its own time.
            marks["arrived"][0] = np.fmax(marks["arrived"][0], codes.times[i])
            time = np.nan if np.isnan(codes.times[i]) else marks["arrived"][0]
            row = (lo[i], hi[i], codes.subjects[i], codes.sensitive[i], time, gaps[i])
            held = [
                np.concatenate((column, [value]))
                for column, value in zip(self.state, row, strict=False)
            ]
            self.state = State(*held, marks)
            marks["upcoming"][0] += 1
            if delay and self.n_held > delay:
                self._expire(marks["upcoming"][0] - 1, time, out)
            self._fire(marks["upcoming"][0] - 1, out)

    def _advance(self, now: float, out: Out) -> None:
        marks = self.state.marks
        if now > marks["now"][0]:
            marks["now"][0] = now
        self._fire(marks["upcoming"][0], out)

    def _fire(self, published: int, out: Out) -> None:
        while (due := self.next_deadline) is not None and due <= self.state.marks["now"][0]:
            self._expire(published, due, out)

    def _flush(self, out: Out) -> None:
        marks = self.state.marks
        time = marks["now"][0] if marks["now"][0] > -np.inf else np.nan
        while self.n_held:
            self._expire(marks["upcoming"][0], time, out)

    def _expire(self, published: int, published_s: float, out: Out) -> None:
        """Publish the oldest row, which is due, with those that came next, or suppress it."""
        out.progress["published"][0] = published
        out.progress["published_s"][0] = published_s
        state, space = self.state, self.space
        oldest, instant = state.marks["upcoming"][0] - self.n_held, state.marks["instants"][0]
        n = self._least
        while n <= self.n_held and not self._may_leave(n):
            n += 1
        if n > self.n_held:
            n = 1
            decide(out, oldest, Outcome.suppressed.value, -1, instant, state.gaps[0])
        else:
            lo, hi = hull(space.sides, state.lo[:n].T.copy(), state.hi[:n].T.copy(), np.arange(n))
            loss, n_subjects = mean_loss(space.sides, lo, hi), count_subjects(state.subjects[:n])
            gaps = np.bitwise_or.reduce(state.gaps[:n])
            shown = Box(loss, state.marks["groups"][0], n, n_subjects, gaps)
            box = write_box(out, lo, hi, shown)
            for i in range(n):
                decide(out, oldest + i, Outcome.group.value, box, instant, state.gaps[i])
            state.marks["groups"][0] += 1
        state.marks["instants"][0] += 1
        self.state = State(*(column[n:].copy() for column in state[:-1]), state.marks)

    def _may_leave(self, n: int) -> bool:
        """Return whether the oldest n rows may be published as one group."""
        state = self.state
        return bool(meets(self.space.limits, state.subjects[:n], state.sensitive[:n]))
