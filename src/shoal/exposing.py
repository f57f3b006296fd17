"""Values that are published one by one, each at once or not at all: the engine of z-anonymity.

Who has exposed what is in `shoal.kernels.exposures`, how far a value must climb in
`shoal.kernels.climbing`. Here rows are taken in one after another, the window moves on with them,
and every now and then it is looked at how many subjects can't be told apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal._jit import kernel
from shoal.decisions import ESTIMATE, HIDDEN, MISSING, Decisions, Out, Outcome
from shoal.engine import Engine
from shoal.errors import ParameterError
from shoal.kernels.arrays import Ints, Records
from shoal.kernels.climbing import Rule, climb, expose, forget, rebuild
from shoal.kernels.exposures import (
    KEY,
    LATEST,
    LEAST,
    LEVEL,
    N_ENTRIES,
    N_LEAVES,
    N_NODES,
    N_SUBJECTS,
    NODE,
    NONE,
    OLDEST,
    SUBJECT,
    TOP_ENTRY,
    UPCOMING,
    Exposures,
    empty,
    moved,
)
from shoal.space import Codes, Space

__all__ = ["Course", "ExposingEngine"]

#: Why the kernel has stopped: it is through, it needs room, or it is time for an estimate.
DONE, ROOM, LOOK = 0, 1, 2
#: A table is made smaller when it is filled to less than one in so many.
SPARSE = 8

PLACE = np.dtype(
    [
        # The position of the next row, the latest time, and the clock of the first row.
        ("upcoming", "i8"),
        ("now", "f8"),
        ("begin", "f8"),
        # The estimate that was made last, and the z in force.
        ("slot", "i8"),
        ("z", "i8"),
    ]
)


class Course(NamedTuple):
    """The knobs: how subjects are counted, and how z follows the stream."""

    plain: bool
    probability: float
    k: int
    estimates: int


class State(NamedTuple):
    """All that decisions depend on."""

    table: Exposures
    place: Records


class Reach(NamedTuple):
    """The window: how far it goes back, in seconds or rows, and how often it is looked at.

    A step of 0 is never.
    """

    seconds: bool
    length: float
    step: float
    n_rungs: int


class Cells(NamedTuple):
    """What is decided about a batch: for each cell its rung and those behind it; z by row."""

    levels: Ints
    crowds: Ints
    z: Ints
    times: NDArray[np.float64]


class ExposingEngine(Engine):
    """One run. Every row is decided when it is pushed; time alone decides nothing."""

    state: State

    def __init__(self, space: Space, course: Course, seed: bytes) -> None:
        place = np.zeros(1, PLACE)
        place["now"], place["slot"], place["z"] = -np.inf, -1, space.z
        super().__init__(space, State(empty(), place), seed)
        self._course = course
        self._cuts = np.cumsum([0, *space.rungs])
        seconds, rows = space.window.seconds, space.window.rows
        length = seconds or float(rows)
        # What "plain" shows isn't estimated: there a subject stands behind rungs it isn't shown at.
        step = 0.0 if course.plain else length / course.estimates
        self._reach = Reach(seconds > 0, length, step, max(space.rungs))

    @property
    def n_held(self) -> int:
        """No row is ever held."""
        return 0

    @property
    def n_exposures(self) -> int:
        """How many different exposures (a subject, a value) are in the window."""
        return int(self.state.table.marks[N_LEAVES])

    # -- the three verbs --------------------------------------------------------------------------

    def push(self, codes: Codes) -> Decisions:
        """Take in a batch; every row of it is decided."""
        self._check(codes)
        n, n_cells = len(codes.subjects), len(self.space.rungs)
        cells = Cells(
            np.full((n, n_cells), HIDDEN), np.zeros((n, n_cells), np.int64),
            np.empty(n, np.int64), np.full(n, np.nan),
        )  # fmt: skip
        first = int(self.state.place["upcoming"][0])
        cursor = np.zeros(1, np.int64)
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
        return self.push(Codes.empty(0, 0)._replace(cells=np.empty((0, self._cuts[-1]), np.int64)))

    def _check(self, codes: Codes) -> None:
        shape = len(codes.subjects), int(self._cuts[-1])
        if codes.cells.shape != shape:
            raise ParameterError(
                "Codes.cells",
                "must have a key for each rung of each attribute",
                got=f"{codes.cells.shape} instead of {shape}",
            )
        if self._reach.seconds and not np.isfinite(codes.times).all():
            raise ParameterError(
                "Codes.times",
                "must be finite, since the window is in seconds",
                got=f"{np.count_nonzero(~np.isfinite(codes.times))} that aren't",
            )
        missing = codes.cells[:, self._cuts[:-1]] == 0
        if self.space.missing == "quarantine" and missing.any():
            raise ParameterError(
                "Codes.cells",
                "must be there, since the policy doesn't say what a missing one means",
                got=f"{np.count_nonzero(missing)} that are missing",
                mend='Set policy.missing to "maybe"',
            )

    def _take(self, codes: Codes, cells: Cells, cursor: Ints) -> int:
        state = self.state
        # A rung that reaches z or sinks below it moves fewer than z subjects.
        most = min(int(state.place["z"][0]), len(state.table.entries)) + 1
        rule = Rule(int(state.place["z"][0]), self._course.plain)
        return int(
            _take(
                state, rule, self._reach, self._cuts, codes, cells, cursor,
                np.empty(most, np.int64), np.empty(len(self.space.rungs), np.int64),
            )
        )  # fmt: skip

    def _decisions(self, first: int, cells: Cells, estimates: list[Any]) -> Decisions:
        n = len(cells.z)
        rows = np.arange(first, first + n)
        rungs = np.array(self.space.rungs)
        is_out, is_there = cells.levels >= 0, cells.levels != MISSING
        lost = np.where(is_out, cells.levels / rungs, 1.0)
        lost[~is_there] = 0.0
        n_there = is_there.sum(axis=1)
        losses = np.divide(lost.sum(axis=1), n_there, out=np.ones(n), where=n_there > 0)
        outcomes = np.where(is_out.any(axis=1), Outcome.group.value, Outcome.suppressed.value)
        nothing = Out.room(0, 0).decisions()
        return nothing._replace(
            rows=rows, outcomes=outcomes, boxes=np.full(n, -1), published=rows,
            published_s=cells.times, instants=rows, gaps=np.zeros(n, np.int64), losses=losses,
            levels=cells.levels, crowds=cells.crowds, z=cells.z,
            estimates=np.array(estimates, ESTIMATE),
        )  # fmt: skip

    # -- room --------------------------------------------------------------------------------------

    def _room(self) -> tuple[int, int, int]:
        """How many entries, nodes and exposures there are, and may come with the next one."""
        marks, n_rungs = self.state.table.marks, self._reach.n_rungs
        more = _n_new(self.state.table, int(self.state.place["z"][0]), n_rungs)
        n_exposures = int(marks[UPCOMING] - marks[OLDEST])
        return (
            int(marks[N_ENTRIES]) + more,
            int(marks[N_NODES]) + n_rungs,
            n_exposures + 1,
        )

    def _make_room(self) -> None:
        """Larger tables: twice as large as is needed, so that it happens rarely."""
        table = self.state.table
        there = len(table.entries), len(table.nodes), len(table.ring)
        self._move([max(2 * n, m) for n, m in zip(self._room(), there, strict=True)])

    def _give_room_back(self) -> None:
        """Smaller tables, where the window has become much smaller than they are."""
        table = self.state.table
        there = len(table.entries), len(table.nodes), len(table.ring)
        needed = self._room()
        if any(m > max(LEAST, SPARSE * n) for n, m in zip(needed, there, strict=True)):
            self._move([max(LEAST, 2 * n) for n in needed])

    def _move(self, room: Sequence[int]) -> None:
        self.state = self.state._replace(table=moved(self.state.table, *room))

    # -- estimates ---------------------------------------------------------------------------------

    def _estimate(self) -> tuple[int, float, int, int, int, float, float]:
        """Look at the window: who can't be told apart, and what z that needs."""
        table, place = self.state.table, self.state.place
        before, course = int(place["z"][0]), self._course
        if course.probability and self._reach.n_rungs > 1:
            # As many entries as there can be under any z.
            most = int(table.marks[N_LEAVES]) * self._reach.n_rungs
            self._move((max(most, LEAST), len(table.nodes), len(table.ring)))
        people = np.unique(_subjects(self.state.table))
        z = before
        if course.probability:
            z = self._wanted(people)
            self._count(z)
            place["z"] = z
        share, entropy = self._look(people, z)
        time = place["now"][0] if np.isfinite(place["now"][0]) else np.nan
        return int(place["upcoming"][0]), time, before, z, len(people), share, entropy

    def _wanted(self, people: Ints) -> int:
        """The smallest z from the policy's on under which enough subjects can't be told apart."""
        low, high = self.space.z, len(people) + 1
        if high <= low or self._share(people, low) >= self._course.probability:
            return low
        while high - low > 1:
            middle = (low + high) // 2
            if self._share(people, middle) >= self._course.probability:
                high = middle
            else:
                low = middle
        return high

    def _share(self, people: Ints, z: int) -> float:
        self._count(z)
        return self._look(people, z)[0]

    def _count(self, z: int) -> None:
        if self._reach.n_rungs > 1:
            rebuild(self.state.table, Rule(z, self._course.plain))

    def _look(self, people: Ints, z: int) -> tuple[float, float]:
        """The share of subjects in crowds of k and more, and the entropy of the crowds."""
        if not len(people):
            return 1.0, 0.0
        subjects, keys = _published(self.state.table, z)
        sets = np.zeros(len(people), np.uint64)
        np.add.at(sets, np.searchsorted(people, subjects), _scattered(keys))
        n = np.unique(sets, return_counts=True)[1]
        shares = n / len(people)
        entropy = -math.fsum((shares * np.log(shares)).tolist())
        return float(n[n >= self._course.k].sum() / len(people)), entropy + 0.0


def _scattered(keys: Ints) -> NDArray[np.uint64]:
    """Numbers whose sum tells sets of keys apart."""
    mixed = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    scattered: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return scattered


@kernel
def _subjects(table: Exposures) -> Ints:
    """The subject of each value that is exposed in the window."""
    subjects = np.empty(table.marks[N_LEAVES], np.int64)
    n = 0
    for at in range(table.marks[TOP_ENTRY]):
        if table.entries[at, LATEST] != NONE:
            subjects[n] = table.entries[at, SUBJECT]
            n += 1
    return subjects


@kernel
def _published(table: Exposures, z: int) -> tuple[Ints, Ints]:
    """Who stands behind which node that may be published: subjects, and keys of nodes."""
    nodes = table.nodes
    subjects = np.empty(table.marks[N_ENTRIES], np.int64)
    keys = np.empty(len(subjects), np.int64)
    n = 0
    for at in range(table.marks[TOP_ENTRY]):
        node = table.entries[at, NODE]
        if node != NONE and nodes[node, N_SUBJECTS] >= z:
            subjects[n] = table.entries[at, SUBJECT]
            keys[n] = nodes[node, KEY]
            n += 1
    return subjects[:n], keys[:n]


@kernel
def _n_new(table: Exposures, z: int, n_rungs: int) -> int:
    """How many entries may have to be made when one exposure comes or goes."""
    return 1 + (n_rungs - 1) * min(z, table.marks[N_LEAVES] + 1)


@kernel
def _has_room(table: Exposures, z: int, n_rungs: int) -> bool:
    marks = table.marks
    return (
        len(table.entries) - marks[N_ENTRIES] >= _n_new(table, z, n_rungs)
        and len(table.nodes) - marks[N_NODES] >= n_rungs
        and len(table.ring) > marks[UPCOMING] - marks[OLDEST]
    )


@kernel
def _is_time(place: Records, reach: Reach, clock: float) -> bool:
    """Whether the window is to be looked at before a row is taken in; note that it is."""
    if reach.step == 0.0:
        return False
    slot = math.floor((clock - place["begin"][0] - reach.length) / reach.step)
    if slot < 0 or slot <= place["slot"][0]:
        return False
    place["slot"][0] = slot
    return True


@kernel
def _take(
    state: State, rule: Rule, reach: Reach, cuts: Ints, codes: Codes, cells: Cells, cursor: Ints,
    changed: Ints, leaves: Ints,
) -> int:  # fmt: skip
    """Take in rows from the cursor on, until all are decided or something else has to be done.

    What is done of a row before that may be done again.
    """
    table, place = state.table, state.place
    while cursor[0] < len(codes.subjects):
        i = cursor[0]
        if codes.times[i] > place["now"][0]:
            place["now"][0] = codes.times[i]
        clock, horizon = place["now"][0], place["now"][0] - reach.length
        if not reach.seconds:
            clock = float(place["upcoming"][0])
            # The row that comes is one of those in the window.
            horizon = clock - reach.length + 1.0
        if place["upcoming"][0] == 0:
            place["begin"][0] = clock
        while (
            table.marks[OLDEST] < table.marks[UPCOMING]
            and table.times[table.marks[OLDEST] & (len(table.ring) - 1)] < horizon
        ):
            if not _has_room(table, rule.z, reach.n_rungs):
                return ROOM
            forget(table, rule, changed)
        if _is_time(place, reach, clock):
            return LOOK
        for j in range(len(leaves)):
            keys = codes.cells[i, cuts[j] : cuts[j + 1]]
            leaves[j] = NONE
            if keys[0] != 0:
                if not _has_room(table, rule.z, reach.n_rungs):
                    return ROOM
                leaves[j] = expose(table, rule, keys, codes.subjects[i], clock, changed)
        for j in range(len(leaves)):
            node = climb(table, rule, leaves[j])
            if leaves[j] == NONE:
                cells.levels[i, j] = MISSING
            elif node != NONE:
                cells.levels[i, j] = table.nodes[node, LEVEL]
                cells.crowds[i, j] = table.nodes[node, N_SUBJECTS]
        cells.z[i] = rule.z
        if not np.isnan(codes.times[i]):
            cells.times[i] = place["now"][0]
        place["upcoming"][0] += 1
        cursor[0] += 1
    return DONE
