"""The engine of z-anonymity: each value is published at once or not at all.

Rows are taken in one after another, and the window moves with them. At regular intervals the engine
estimates how many subjects can't be told apart. The tables of exposures depend on whether values
have ladders: see `shoal.engine.z.flat` and `shoal.engine.z.ladders`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.engine.base import Engine
from shoal.engine.decisions import ESTIMATE, HIDDEN, MISSING, Decisions, Out, Outcome
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.space import Codes, Space
from shoal.engine.z.set_fingerprints import distinct, sets_of
from shoal.engine.z.window import DONE, LEAST, PLACE, ROOM, ZDecisions, ZWindow
from shoal.errors import ParameterError

__all__ = ["ZEngine", "ZKnobs", "ZState", "alike", "least_z"]

#: Tables shrink when less than one entry in this many is used.
SPARSE = 8


class ZKnobs(NamedTuple):
    """The knobs: how subjects are counted, and how z is adapted to the stream."""

    plain: bool
    probability: float
    k: int
    estimates: int


class ZState(NamedTuple):
    """The state of a run."""

    table: Any
    place: Records


class ZEngine(Engine):
    """One run. Every row is decided when it is pushed; time alone decides nothing."""

    state: ZState

    def __init__(self, space: Space, table: Any, knobs: ZKnobs, seed: bytes) -> None:
        place = np.zeros(1, PLACE)
        place["now"], place["slot"], place["z"] = -np.inf, -1, space.z
        super().__init__(space, ZState(table, place), seed)
        self._knobs = knobs
        self._cuts = np.cumsum([0, *space.n_levels])
        seconds, rows = space.window.seconds, space.window.rows
        length = seconds or float(rows)
        # There are no estimates under "plain": a subject counts for levels it isn't published at.
        step = 0.0 if knobs.plain or not knobs.estimates else length / knobs.estimates
        self._window = ZWindow(seconds > 0, length, seconds or rows - 1.0, step)

    def be_a_shard(self) -> None:
        """Make this engine count a part of the values of a stream, as one of several shards.

        Values that are counted elsewhere are missing here. Times are the clock of the whole stream,
        in seconds or rows, and are given by the caller. The caller also makes the estimates and
        sets z: see `shown` and `follow`.
        """
        self.space.missing = "maybe"
        self._window = self._window._replace(seconds=True, step=0.0)

    @property
    def n_held(self) -> int:
        """No row is ever held."""
        return 0

    @property
    @abstractmethod
    def n_exposures(self) -> int:
        """The number of different exposures (a subject, a value) in the window."""

    # -- for subclasses ----------------------------------------------------------------------------

    @abstractmethod
    def _take(self, codes: Codes, cells: ZDecisions, cursor: Ints) -> int:
        """Take in rows from the cursor on; return why it has stopped."""

    @abstractmethod
    def _there(self) -> tuple[int, ...]:
        """Return the room in each table."""

    @abstractmethod
    def _needed(self) -> tuple[int, ...]:
        """Return the room that each table needs for its content and the next row."""

    @abstractmethod
    def _move(self, room: Sequence[int]) -> None:
        """Move the content to tables with this much room."""

    @abstractmethod
    def _subjects(self) -> Ints:
        """Return the subject of each exposure in the window."""

    @abstractmethod
    def _published(self, z: int) -> tuple[Ints, Ints]:
        """Return the subjects behind levels that may be published, and the keys of these levels."""

    def _prepare(self) -> None:
        """Make room for the counts under any other z."""

    def _count(self, z: int) -> None:
        """Recount the subjects behind each level for another z."""

    # -- the three verbs --------------------------------------------------------------------------

    def push(self, codes: Codes) -> Decisions:
        """Take in a batch; every row of it is decided."""
        self._check(codes)
        n, n_cells = len(codes.subjects), len(self.space.n_levels)
        cells = ZDecisions(
            np.full((n, n_cells), HIDDEN), np.zeros((n, n_cells), np.int64),
            np.empty(n, np.int64), np.full(n, np.nan),
        )  # fmt: skip
        first = int(self.state.place["upcoming"][0])
        # The next row, and room for what a kernel reads in advance.
        cursor = np.zeros(2, np.int64)
        estimates: list[Any] = []
        why = self._take(codes, cells, cursor)
        while why != DONE:
            if why == ROOM:
                self._make_room()
            else:
                estimates.append(self._estimate())
            why = self._take(codes, cells, cursor)
        self._give_room_back()
        return self._decisions(first, cells, estimates)

    def advance(self, now: float) -> Decisions:
        """Decide nothing: the window ends with the latest row, not with the clock."""
        if not np.isfinite(now):
            raise ParameterError("now", "must be a finite number of seconds", got=now)
        return self.flush()

    def flush(self) -> Decisions:
        """Decide nothing: nothing is held."""
        return self.push(Codes.empty(0, 0)._replace(keys=np.empty((0, self._cuts[-1]), np.int64)))

    def _check(self, codes: Codes) -> None:
        shape = len(codes.subjects), int(self._cuts[-1])
        if codes.keys.shape != shape:
            raise ParameterError(
                "Codes.keys",
                "must have a key for each level of each attribute",
                got=f"{codes.keys.shape} instead of {shape}",
            )
        if self._window.seconds and not np.isfinite(codes.times).all():
            raise ParameterError(
                "Codes.times",
                "must be finite, since the window is in seconds",
                got=f"{np.count_nonzero(~np.isfinite(codes.times))} that aren't",
            )
        missing = codes.keys[:, self._cuts[:-1]] == 0
        if self.space.missing == "quarantine" and missing.any():
            raise ParameterError(
                "Codes.keys",
                "must be there, since the policy doesn't say what a missing one means",
                got=f"{np.count_nonzero(missing)} that are missing",
                fix='Set policy.missing to "maybe"',
            )

    def _decisions(self, first: int, cells: ZDecisions, estimates: list[Any]) -> Decisions:
        n = len(cells.z)
        rows = np.arange(first, first + n)
        n_levels = np.array(self.space.n_levels)
        is_out, is_there = cells.levels >= 0, cells.levels != MISSING
        lost = np.where(is_out, cells.levels / n_levels, 1.0)
        lost[~is_there] = 0.0
        n_there = is_there.sum(axis=1)
        losses = np.divide(lost.sum(axis=1), n_there, out=np.ones(n), where=n_there > 0)
        outcomes = np.where(is_out.any(axis=1), Outcome.group.value, Outcome.suppressed.value)
        nothing = Out.room(0, 0).decisions()
        return nothing._replace(
            rows=rows, outcomes=outcomes, boxes=np.full(n, -1), published=rows,
            published_s=cells.times, instants=rows, gaps=np.zeros(n, np.int64), losses=losses,
            levels=cells.levels, n_behind=cells.n_behind, z=cells.z,
            estimates=np.array(estimates, ESTIMATE),
        )  # fmt: skip

    # -- room --------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Enlarge the tables to one and a half times what is needed, so that it happens rarely."""
        self._move([max(n + n // 2, m) for n, m in zip(self._needed(), self._there(), strict=True)])

    def _give_room_back(self) -> None:
        """Shrink the tables where the window has become much smaller."""
        needed, there = self._needed(), self._there()
        if any(m > max(LEAST, SPARSE * n) for n, m in zip(needed, there, strict=True)):
            self._move([max(LEAST, 2 * n) for n in needed])

    # -- estimates ---------------------------------------------------------------------------------

    def _estimate(self) -> tuple[int, float, int, int, int, float, float]:
        """Estimate which share of subjects can't be told apart, and adapt z if asked to."""
        place, knobs = self.state.place, self._knobs
        before = int(place["z"][0])
        people = distinct(self._subjects())
        z = before
        if knobs.probability:
            self._prepare()
            z = self._wanted(people)
            self._count(z)
            place["z"] = z
        share, entropy = self._look(people, z)
        time = place["now"][0] if np.isfinite(place["now"][0]) else np.nan
        return int(place["upcoming"][0]), time, before, z, len(people), share, entropy

    def _wanted(self, people: Ints) -> int:
        """Return the smallest z, from the policy's on, under which enough subjects are alike."""
        return least_z(
            self.space.z, len(people), self._knobs.probability, lambda z: self._share(people, z)
        )

    def _share(self, people: Ints, z: int) -> float:
        self._count(z)
        return self._look(people, z)[0]

    def _look(self, people: Ints, z: int) -> tuple[float, float]:
        return alike(sets_of(people, *self._published(z)), self._knobs.k)

    def shown(self, z: int) -> tuple[Ints, Ints]:
        """Return the subjects in the window, and a fingerprint of what each would publish under z.

        The fingerprints of one subject in several shards add up, modulo 2**61, to that of all it
        shows. This recounts for the given z: call `follow` before anything else is decided.
        """
        self._prepare()
        self._count(z)
        people = distinct(self._subjects())
        return people, sets_of(people, *self._published(z))

    def follow(self, z: int) -> None:
        """Decide by another z from now on."""
        self._prepare()
        self._count(z)
        self.state.place["z"] = z


def least_z(least: int, n_subjects: int, probability: float, share: Callable[[int], float]) -> int:
    """Return the smallest z under which the share of subjects that are alike is large enough."""
    low, high = least, n_subjects + 1
    if high <= low or share(low) >= probability:
        return low
    while high - low > 1:
        middle = (low + high) // 2
        if share(middle) >= probability:
            high = middle
        else:
            low = middle
    return high


def alike(sets: Ints, k: int) -> tuple[float, float]:
    """Return the share of subjects that are alike with k - 1 others, and the entropy.

    ``sets`` has a fingerprint of what is published of each subject.

    >>> alike(np.array([7, 7, 8]), k=2)[0]
    0.6666666666666666
    """
    if not len(sets):
        return 1.0, 0.0
    n = np.unique(sets, return_counts=True)[1]
    shares = n / len(sets)
    entropy = -math.fsum((shares * np.log(shares)).tolist())
    return float(n[n >= k].sum() / len(sets)), entropy + 0.0
