"""The event loop of engines that hold rows: rows that arrive, and deadlines between them.

Every algorithm that holds rows calls `next_event` in one loop for all three verbs. Numba optimizes
a callee again in each of its callers, so that every further entry point would compile the whole
algorithm once more.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shoal.engine.base import Anonymizer, BoxEngine, Out
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter, held, recent_rows
from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.held import Arrival, Held, due_at
from shoal.engine.kernels.predicate import Limits
from shoal.engine.kernels.ring import wrap
from shoal.engine.space import Codes, Deadlines, Space
from shoal.errors import ParameterError, UnsupportedError
from shoal.spec.policy import Criterion, KAnonymity, LDiversity, Measured, Policy, Window

__all__ = [
    "COMES",
    "DONE",
    "SPAN",
    "DueRowAnonymizer",
    "HoldingAnonymizer",
    "HoldingEngine",
    "InputBatch",
    "arrival",
    "check_bound",
    "next_event",
    "overfull",
    "with_capacity",
]

#: The input is used up.
DONE = -1
#: A row arrives.
COMES = -2

#: Where only a capacity bounds the held rows, a row waits for at most this many times the capacity:
#: otherwise the ring would grow with every row that arrives after one that never leaves.
SPAN = 16

#: More rows than are ever held.
NO_BOUND = 1 << 62

#: The progress in a batch: the next row; whether the row before it has just been put, and whether
#: deadlines that its time has passed are still being decided.
CURSOR = np.dtype([("upcoming", "i8"), ("just_put", "?"), ("has_come", "?")])


@dataclass(frozen=True, kw_only=True)
class HoldingAnonymizer(Anonymizer):
    """An anonymizer that holds rows and decides each by its deadline.

    Criteria that are measured against a window are measured against the latest rows at the moment
    of the decision, decided or not; the window's advance isn't used.
    """

    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, Measured)

    def _check_window(self, policy: Policy) -> None:
        super()._check_window(policy)
        window, delay = policy.window, policy.delay
        if not isinstance(window, Window):
            return
        if delay is None or delay.rows is None:
            raise UnsupportedError(
                f"'{self.name}' measures a row against the window of the moment at which it "
                f"leaves: without a delay in rows, more than {window.rows:,} rows may arrive "
                "before that, and it would be older than the window",
                fix=f"Set policy.delay.rows as well, to at most {window.rows - 1}",
            )
        if window.rows <= delay.rows:
            raise UnsupportedError(
                f"'{self.name}' measures a row against the window of the moment at which it "
                f"leaves: with a window of {window.rows:,} rows and a delay of {delay.rows:,} it "
                "could be older than that; the window must be larger than the delay",
                fix=f"Set policy.window.rows to at least {delay.rows + 1}, or shorten the delay",
            )


@dataclass(frozen=True, kw_only=True)
class DueRowAnonymizer(HoldingAnonymizer):
    """An anonymizer that decides one row when it is due, by its deadline or by a capacity.

    Parameters
    ----------
    capacity
        The maximum number of held rows; 0: the policy's delay is the only bound. When one more
        arrives, the oldest row is due.
    """

    needs_delay: ClassVar[bool] = False

    capacity: int = 0

    def __post_init__(self) -> None:
        self._at_least(0, "capacity")

    def check(self, policy: Policy) -> None:
        """Refuse a policy that this anonymizer can't keep, or under which rows have no bound."""
        super().check(policy)
        check_bound(
            self.name,
            policy,
            self.capacity,
            "holds rows, and neither the policy nor a capacity bounds that",
        )


def check_bound(name: str, policy: Policy, capacity: int, unbounded: str) -> None:
    """Refuse a policy without a delay where there is no capacity, and a capacity below a group.

    Parameters
    ----------
    name
        The name of the anonymizer.
    policy
        What is promised.
    capacity
        The maximum number of held rows; 0: there is none.
    unbounded
        What is wrong if there is neither, as the rest of a sentence that begins with the name.
    """
    if policy.delay is None and not capacity:
        raise UnsupportedError(
            f"'{name}' {unbounded}",
            fix="Set policy.delay, for example { rows = 10000 }, or algorithm.capacity",
        )
    fewest = max([policy.k, *(criterion.needed for criterion in policy.diversity)])
    if capacity and capacity + 1 < fewest:
        raise UnsupportedError(
            f"'{name}' with a capacity of {capacity:,} rows never has the "
            f"{fewest:,} people that a group needs",
            fix=f"Set algorithm.capacity to at least {fewest - 1}, better to many times that",
        )


def with_capacity(deadlines: Deadlines, capacity: int) -> Deadlines:
    """Return how long a row may wait: by the policy or, if that doesn't say, by the capacity."""
    if deadlines.rows or deadlines.seconds:
        return deadlines
    return Deadlines(rows=SPAN * capacity, seconds=0.0)


class InputBatch(NamedTuple):
    """The input of a verb: rows with their boxes, the time of a tick (NaN: none), the end."""

    codes: Codes
    lo: Floats
    hi: Floats
    gaps: Ints
    now: float
    at_end: bool
    cursor: Records


class HoldingEngine(BoxEngine):
    """One run of an algorithm that holds rows; its ``state`` must have a field ``held``.

    One that counts rows where each row is of another subject, instead of subjects in its
    ``counter``, sets ``_counts_rows``.
    """

    _counts_rows = False

    def __init__(self, space: Space, state: Any, seed: bytes) -> None:
        super().__init__(space, state, seed)
        # The boxes of the rows of a batch: fresh memory costs more than writing to it.
        self._points = np.empty((2, 0, space.n_quasi))
        self._nothing = Codes.empty(space.n_quasi, space.n_sensitive)
        self._most_held = space.deadlines.rows + 1 if space.deadlines.rows else NO_BOUND

    def _bound_rows(self, capacity: int) -> None:
        """Note that at most so many rows are held, and one more while it arrives; 0: any number."""
        if capacity:
            self._most_held = min(self._most_held, capacity + 1)

    def _check_subjects(self, subjects: Ints) -> None:
        """Refuse a subject that may have come before, where rows are counted instead of people."""
        rows: Held = self.state.held
        before = np.int64(-1)
        if self.n_held:
            before = rows.rows["subject"][(rows.marks["upcoming"][0] - 1) % len(rows.rows)]
        if (np.diff(subjects, prepend=before) <= 0).any():
            raise ParameterError(
                "Codes.subjects",
                "must be ascending, since the schema says that each row is of another subject",
                got="an earlier or equal one after another",
                fix="Number the rows as the codec does, or name the column of the subjects",
            )

    @property
    def n_held(self) -> int:
        """The number of rows that have arrived and aren't decided."""
        return int(self.state.held.marks["n_rows"][0])

    @property
    def next_deadline(self) -> float | None:
        """The time at which the oldest held row is due, if the delay is in seconds."""
        seconds = self.space.deadlines.seconds
        if not seconds or not self.n_held:
            return None
        return float(due_at(self.state.held, seconds))

    def _reserve(self, n: int) -> None:
        rows = self.state.held
        latest = recent_rows.with_room_for(rows.recent, int(rows.marks["upcoming"][0]), n)
        if latest is not rows.recent:
            rows = rows._replace(recent=latest)
            self.state = self.state._replace(held=rows)
        span = int(rows.marks["upcoming"][0] - rows.marks["oldest"][0]) + n + 1
        if self.space.deadlines.rows:
            span = min(span, self.space.deadlines.rows + 2)
        if span > len(rows.rows):
            self._grow(held.grown(rows, span))

    def _grow(self, larger: Held) -> None:
        """Switch to a larger ring. (A row has two counter entries: in its place, and overall.)"""
        self.state = self.state._replace(held=larger)
        if not self._counts_rows:
            # A table that is larger than it need be is hit at random where no cache reaches.
            n_rows = min(len(larger.rows), self._most_held)
            roomier = counter.grown(self.state.counter, 2 * n_rows)
            self.state = self.state._replace(counter=roomier)

    def _push(self, codes: Codes, out: Out) -> None:
        if self._counts_rows:
            self._check_subjects(codes.subjects)
        self._run(self._batch(codes, np.nan, at_end=False), out)

    def _advance(self, now: float, out: Out) -> None:
        self._run(self._batch(self._nothing, now, at_end=False), out)

    def _flush(self, out: Out) -> None:
        self._run(self._batch(self._nothing, np.nan, at_end=True), out)

    def _batch(self, codes: Codes, now: float, *, at_end: bool) -> InputBatch:
        if self._points.shape[1] < len(codes.values):
            self._points = np.empty((2, *codes.values.shape))
        lo, hi = self.space.points(codes.values, self._points)
        gaps = self.space.gaps(codes.values)
        return InputBatch(codes, lo, hi, gaps, now, at_end, np.zeros(1, CURSOR))

    def _of_now(self, limits: Limits) -> Limits:
        """Return the limits with the current window counts.

        Kernels update these counts in place; they are replaced when the state grows or is restored.
        """
        return limits._replace(window=self.state.held.recent.window)

    @abstractmethod
    def _run(self, batch: InputBatch, out: Out) -> None: ...


@kernel
def next_event(rows: Held, deadlines: Deadlines, batch: InputBatch, out: Out) -> int:
    """Return what happens next: `COMES`, the position of a row that is due, or `DONE`.

    After `COMES` the caller must put the row (see `arrival`) before calling again.
    """
    marks, cursor, times = rows.marks, batch.cursor, batch.codes.times
    if cursor["just_put"][0]:
        cursor["just_put"][0] = False
        cursor["has_come"][0] = deadlines.seconds > 0.0
        if deadlines.rows > 0 and marks["oldest"][0] == marks["upcoming"][0] - 1 - deadlines.rows:
            # The row that came is still the last one in the row count.
            timed = not np.isnan(times[cursor["upcoming"][0] - 1])
            out.progress["published_s"][0] = marks["now"][0] if timed else np.nan
            return marks["oldest"][0]
    if batch.now > marks["now"][0]:
        marks["now"][0] = batch.now
    while True:
        i = cursor["upcoming"][0]
        if i < len(times) and not cursor["has_come"][0] and times[i] > marks["now"][0]:
            marks["now"][0] = times[i]
        deadline = due_at(rows, deadlines.seconds)
        out.progress["published"][0] = marks["upcoming"][0] - cursor["has_come"][0]
        if deadlines.seconds > 0.0 and deadline <= marks["now"][0]:
            out.progress["published_s"][0] = deadline
            return marks["oldest"][0]
        if not cursor["has_come"][0]:
            break
        # No further row is due at the time of the row that arrived: go to the next one.
        cursor["has_come"][0] = False
    if batch.at_end and marks["n_rows"][0] > 0:
        timed = marks["now"][0] > -np.inf
        out.progress["published_s"][0] = marks["now"][0] if timed else np.nan
        return marks["oldest"][0]
    if i == len(times):
        return DONE
    # A tick may be later than the time of this row. The row has waited since its own time, and may
    # be due at once.
    if times[i] > marks["arrived"][0]:
        marks["arrived"][0] = times[i]
    cursor["upcoming"][0] += 1
    cursor["just_put"][0] = True
    return COMES


@kernel
def overfull(rows: Held, capacity: int, out: Out) -> bool:
    """Return whether more rows are held than ``capacity`` (0: any number), since one has arrived.

    If so, decisions are as of the arrival of that row, which is the last one in the row count. The
    caller must decide one at least.
    """
    marks = rows.marks
    if capacity == 0 or marks["n_rows"][0] <= capacity:
        return False
    time = rows.rows["time"][wrap(marks["upcoming"][0] - 1, len(rows.rows))]
    out.progress["published_s"][0] = np.nan if np.isnan(time) else marks["now"][0]
    return True


@kernel
def arrival(rows: Held, batch: InputBatch) -> Arrival:
    """Return the row that arrives, after `next_event` has returned `COMES`."""
    i = batch.cursor["upcoming"][0] - 1
    codes = batch.codes
    time = np.nan if np.isnan(codes.times[i]) else rows.marks["arrived"][0]
    return Arrival(
        batch.lo[i], batch.hi[i], codes.subjects[i], codes.sensitive[i], time, batch.gaps[i]
    )
