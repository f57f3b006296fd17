"""What algorithms share that decide a row when its time is up, among all rows that are held then.

They differ in which group they form around the row. Whether it joins a group that was published
before, how a group is published and kept, and what becomes of a row that finds no group, is here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal._jit import kernel
from shoal.engine import Out, decide, write_box
from shoal.kernels import columns, counter, held, kept, rng
from shoal.kernels.arrays import Floats, Ints, Records
from shoal.kernels.boxes import Box, Sides, box_of, hull, joined_losses, mean_loss
from shoal.kernels.columns import Columns
from shoal.kernels.criteria import Limits, count_subjects, meets, needed
from shoal.kernels.held import Held, forget, gather, people, put
from shoal.kernels.kept import Kept, best, keep, reusable, reuse
from shoal.kernels.neighbours import none
from shoal.space import Deadlines, Space
from shoal.turns import Batch, HoldingEngine, arrival

__all__ = [
    "Rules",
    "State",
    "WindowEngine",
    "covering",
    "distances",
    "everybody",
    "join_any",
    "leave",
    "publish",
    "settle",
    "take_in",
]

#: How many groups and instants there have been.
MARKS = np.dtype([("groups", "i8"), ("instants", "i8")])
#: Where the subjects of all held rows are counted.
EVERYWHERE = -1
#: The age at which a kept group is too old, where there is none.
NEVER = 1 << 62


class State(NamedTuple):
    """All that a run remembers."""

    held: Held
    columns: Columns
    counter: Records
    kept: Kept
    marks: Records
    rng: Ints


class Rules(NamedTuple):
    """What a run obeys: space, promise, and the knobs for reuse.

    Groups that lose less than a threshold are kept, and reused until they are of an age in rows.
    """

    sides: Sides
    limits: Limits
    deadlines: Deadlines
    best: bool
    threshold: float
    age: int


class WindowEngine(HoldingEngine):
    """One run of such an algorithm."""

    state: State

    def __init__(
        self, space: Space, seed: bytes, *, n_kept: int, reuse: str,
        threshold: float = np.inf, age: int = NEVER,
    ) -> None:  # fmt: skip
        self._rules = Rules(
            space.sides, space.limits, space.deadlines, reuse == "best", threshold, age
        )
        state = State(
            held=held.empty(space.n_quasi, space.n_sensitive),
            columns=columns.empty(space.n_quasi, 2 * held.SMALLEST),
            counter=counter.empty(2 * held.SMALLEST),
            kept=kept.empty(n_kept, space.n_quasi, space.n_sensitive, space.limits),
            marks=np.zeros(1, MARKS),
            rng=rng.seeded(seed, "decide"),
        )
        super().__init__(space, state, seed)

    def _grow(self, larger: Held) -> None:
        super()._grow(larger)
        # Twice the room, so that holes needn't be closed at every turn.
        roomier = columns.grown(self.state.columns, 2 * len(larger.rows))
        self.state = self.state._replace(columns=roomier)


# -- rows come and go -----------------------------------------------------------------------------


@kernel
def take_in(state: State, batch: Batch) -> None:
    """Hold the row that comes."""
    position = put(state.held, arrival(state.held, batch), 0)
    columns.append(state.columns, state.held, position)
    subject = state.held.rows["subject"][position & (len(state.held.rows) - 1)]
    if counter.add(state.counter, EVERYWHERE, subject):
        state.held.marks["n_subjects"][0] += 1


@kernel
def leave(state: State, position: int) -> None:
    """A row is decided."""
    subject = state.held.rows["subject"][position & (len(state.held.rows) - 1)]
    if counter.remove(state.counter, EVERYWHERE, subject):
        state.held.marks["n_subjects"][0] -= 1
    columns.remove(state.columns, state.held, position)
    forget(state.held, position)


@kernel
def distances(rules: Rules, state: State, position: int) -> tuple[int, Floats]:
    """The slot of a row, and what it loses together with each other one."""
    columns.close_holes(state.columns, state.held, columns.DENSE)
    slot = state.held.rows["following"][position & (len(state.held.rows) - 1)]
    n, rows = state.columns.marks["n"][0], state.columns
    # Mostly all rows are points: one array for both sides is half of the memory to go through.
    his = rows.hi if rows.marks["n_wide"][0] > 0 else rows.lo
    distance = np.empty(n)
    lo, hi = box_of(rows.lo, slot), box_of(rows.hi, slot)
    joined_losses(rules.sides, rows.lo, his, n, lo, hi, distance)
    return slot, distance


@kernel
def everybody(rules: Rules, state: State) -> Ints:
    """All held rows, if they can be a group and are too few for two; else none.

    At the end of a stream the last few would otherwise be suppressed.
    """
    if state.held.marks["n_subjects"][0] >= 2 * needed(rules.limits):
        return none()
    mask, marks = len(state.held.rows) - 1, state.held.marks
    positions = np.empty(marks["n_rows"][0], np.int64)
    n = 0
    for position in range(marks["oldest"][0], marks["upcoming"][0]):
        if state.held.rows["cluster"][position & mask] >= 0:
            positions[n] = position
            n += 1
    subjects, sensitive = people(state.held, positions)
    return positions if meets(rules.limits, subjects, sensitive) else none()


# -- groups published before ----------------------------------------------------------------------


@kernel
def covering(rules: Rules, state: State, position: int, out: Out) -> Ints:
    """The kept groups, oldest first, that a row may join."""
    at = position & (len(state.held.rows) - 1)
    return reusable(
        state.kept,
        rules.limits,
        state.held.lo[at],
        state.held.hi[at],
        state.held.rows["subject"][at],
        state.held.sensitive[at],
        out.progress["published"][0] - rules.age,
    )


@kernel
def join_any(rules: Rules, state: State, position: int, groups: Ints, out: Out) -> bool:
    """Let a row join one of the kept groups that cover it, each equally likely, if any does.

    Nothing is compared: that a row left in one group and not in a better one would tell where it
    isn't. With reuse of the best one, nothing is done here.
    """
    if rules.best or len(groups) == 0:
        return False
    _join(state, position, groups[rng.below(state.rng, len(groups))], out)
    return True


@kernel
def _join(state: State, position: int, group: int, out: Out) -> None:
    at, groups = position & (len(state.held.rows) - 1), state.kept.groups
    reuse(state.kept, group, state.held.rows["subject"][at], state.held.sensitive[at])
    known = Box(groups["loss"][group], groups["number"][group], 0, 0, groups["gaps"][group])
    box = write_box(out, state.kept.lo[group], state.kept.hi[group], known)
    decide(out, position, 1, box, state.marks["instants"][0], state.held.rows["gaps"][at])
    leave(state, position)


# -- decisions ------------------------------------------------------------------------------------


@kernel
def settle(
    rules: Rules, state: State, position: int, groups: Ints, members: Ints, out: Out
) -> None:
    """Decide a row, given the kept groups that cover it and the members of a new group around it.

    Whichever loses less, the kept one only if it is better; without either the row is suppressed.
    """
    if len(members) == 0 and len(groups) == 0:
        at = position & (len(state.held.rows) - 1)
        decide(out, position, 2, -1, state.marks["instants"][0], state.held.rows["gaps"][at])
        leave(state, position)
        return
    if len(members) == 0:
        _join(state, position, best(state.kept, groups), out)
        return
    rows = gather(state.held, members)
    lo, hi = hull(rules.sides, rows.lo, rows.hi, np.arange(len(members)))
    loss = mean_loss(rules.sides, lo, hi)
    if len(groups) > 0:
        known = best(state.kept, groups)
        if state.kept.groups["loss"][known] < loss:
            _join(state, position, known, out)
            return
    publish(rules, state, members, lo, hi, loss, out)


@kernel
def publish(
    rules: Rules, state: State, members: Ints, lo: Floats, hi: Floats, loss: float, out: Out
) -> None:
    """Publish rows as a group, and keep it if it is good enough."""
    subjects, sensitive = people(state.held, members)
    mask, rows = len(state.held.rows) - 1, state.held.rows
    gaps = 0
    for position in members:
        gaps |= rows["gaps"][position & mask]
    group = state.marks["groups"][0]
    known = Box(loss, group, len(members), count_subjects(subjects), gaps)
    box = write_box(out, lo, hi, known)
    for position in members:
        decide(out, position, 0, box, state.marks["instants"][0], rows["gaps"][position & mask])
        leave(state, position)
    if loss < rules.threshold:
        keep(state.kept, lo, hi, known, out.progress["published"][0], subjects, sensitive)
    state.marks["groups"][0] += 1
