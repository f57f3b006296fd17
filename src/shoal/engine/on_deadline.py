"""The family of algorithms that decide a row when it is due, among all rows held at that time.

A row is due at its deadline, or when it is the oldest and more rows are held than there is room
for.

They differ in the group that they form around the row. This module decides whether the row joins a
group that was published before, publishes and keeps groups, and suppresses rows without a group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.deadlines import (
    COMES,
    DONE,
    HoldingEngine,
    InputBatch,
    arrival,
    next_event,
    overfull,
    with_capacity,
)
from shoal.engine.decisions import GROUP, REUSE, SUPPRESSED, Out, decide, write_box
from shoal.engine.groups import shape
from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels import counter, held, held_columns, kept_groups, rng, spatial_index
from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import Box, Sides, box_of, distances_from
from shoal.engine.kernels.held import Held, forget, people, positions_of, put, window_of
from shoal.engine.kernels.held_columns import HeldColumns
from shoal.engine.kernels.joins import ALONE, ANY, ENOUGH, find_joins
from shoal.engine.kernels.kept_groups import KeptGroups, keep, reusable, used_again
from shoal.engine.kernels.neighbours import group_around, none
from shoal.engine.kernels.predicate import Limits, count_subjects, meets, needed
from shoal.engine.kernels.ring import wrap
from shoal.engine.kernels.spatial_index import Index
from shoal.engine.space import Deadlines, Space

__all__ = [
    "MARKS",
    "NEVER",
    "OnDeadlineEngine",
    "OnDeadlineRules",
    "OnDeadlineState",
    "covering",
    "find_place",
    "moment",
    "neighbours",
    "neighbours_by_index",
    "neighbours_of",
    "next_row",
    "settle",
    "slot_of",
]

#: The number of groups so far, and the number of the instant.
MARKS = np.dtype([("groups", "i8"), ("instants", "i8")])
#: A search by index looks for this many times the fewest people that a group needs.
AMPLE = 2
#: The maximum age of a kept group, where there is none.
NEVER = 1 << 62


class OnDeadlineState(NamedTuple):
    """The state of a run."""

    held: Held
    columns: HeldColumns
    counter: Records
    kept: KeptGroups
    marks: Records
    rng: Ints


class OnDeadlineRules(NamedTuple):
    """The constants of a run: space, limits, and the knobs.

    At most ``capacity`` rows are held (0: any number). Groups that lose less than ``threshold`` are
    kept and reused for ``age`` rows, or as many instants if it counts ``rounds``, from the last
    reuse where it ``renews``. (With reuse at random, groups must expire: otherwise one wide group
    covers all rows, and no better one is ever formed.) ``together``: rows that join kept groups
    leave in company. ``shown`` is how boxes are published and kept.
    """

    sides: Sides
    shown: Sides
    limits: Limits
    deadlines: Deadlines
    capacity: int
    best: bool
    together: bool
    threshold: float
    age: int
    rounds: bool
    renews: bool


class OnDeadlineEngine(HoldingEngine):
    """One run of an algorithm of this family."""

    state: OnDeadlineState

    def __init__(
        self, space: Space, seed: bytes, *, capacity: int, n_kept: int, reuse: str, joins: str,
        threshold: float = np.inf, age: int = NEVER, age_unit: str = "rows",
    ) -> None:  # fmt: skip
        self._rules = OnDeadlineRules(
            space.sides, space.shown, space.limits, with_capacity(space.deadlines, capacity),
            capacity, reuse == "best", joins == "together", threshold, age, age_unit == "rounds",
            False,
        )  # fmt: skip
        self._joins_last = n_kept > 0 and joins == "together"
        state = OnDeadlineState(
            held=held.empty(space.n_quasi, space.n_sensitive, window=space.window.rows),
            columns=held_columns.empty(space.n_quasi, 2 * held.SMALLEST),
            counter=counter.empty(2 * held.SMALLEST),
            kept=kept_groups.empty(n_kept, space.n_quasi, space.n_sensitive, space.limits),
            marks=np.zeros(1, MARKS),
            rng=rng.seeded(seed, "decide"),
        )
        state.marks["instants"] = -1
        super().__init__(space, state, seed)
        self._bound_rows(capacity)

    @property
    def _rules_now(self) -> OnDeadlineRules:
        return self._rules._replace(limits=self._of_now(self._rules.limits))

    def _flush(self, out: Out) -> None:
        # All decisions at the end of a stream are one instant.
        self.state.marks["instants"] += 1
        super()._flush(out)

    def _grow(self, larger: Held) -> None:
        super()._grow(larger)
        # Twice the room, so that holes are closed rarely.
        roomier = held_columns.grown(self.state.columns, 2 * len(larger.rows))
        self.state = self.state._replace(columns=roomier)


# -- rows arrive and leave ------------------------------------------------------------------------


@kernel
def take_in(state: OnDeadlineState, batch: InputBatch) -> None:
    """Hold the row that arrives."""
    position = put(state.held, arrival(state.held, batch), 0)
    held_columns.append(state.columns, state.held, position)
    subject = state.held.rows["subject"][wrap(position, len(state.held.rows))]
    if counter.add(state.counter, counter.EVERYWHERE, subject):
        state.held.marks["n_subjects"][0] += 1


@kernel
def leave(state: OnDeadlineState, position: int) -> None:
    """Remove a row that was decided."""
    subject = state.held.rows["subject"][wrap(position, len(state.held.rows))]
    if counter.remove(state.counter, counter.EVERYWHERE, subject):
        state.held.marks["n_subjects"][0] -= 1
    held_columns.remove(state.columns, state.held, position)
    forget(state.held, position)


@kernel
def slot_of(state: OnDeadlineState, position: int) -> int:
    """Return the slot of a row in the columns, after closing holes if there are many."""
    held_columns.close_holes(state.columns, state.held, held_columns.DENSE)
    return state.held.rows["following"][wrap(position, len(state.held.rows))]


@kernel
def neighbours(rules: OnDeadlineRules, state: OnDeadlineState, position: int) -> Ints:
    """Return a row and its nearest held neighbours; none if there are too few."""
    slot = slot_of(state, position)
    return neighbours_of(rules, state.held, state.columns, slot)


@kernel
def neighbours_of(rules: OnDeadlineRules, rows: Held, among: HeldColumns, slot: int) -> Ints:
    """Return the row in a slot and its nearest neighbours: those with which it loses least."""
    distance = np.empty(among.marks["n"][0])
    lo, hi = box_of(among.lo, slot), box_of(among.hi, slot)
    wide = among.marks["n_wide"][0] > 0
    distances_from(rules.sides, among.lo, among.hi, 0, len(distance), lo, hi, wide, distance)
    apart = np.zeros(len(distance))
    return group_around(rules.limits, rows, among, slot, distance, apart, 0.0)


@kernel
def neighbours_by_index(
    rules: OnDeadlineRules, state: OnDeadlineState, known: Index, position: int
) -> Ints:
    """Return the same as `neighbours`, faster where many rows are held.

    Only the nearest rows are considered. If the group uses all people among them, farther rows
    might belong to it, and all rows are searched.
    """
    slot = slot_of(state, position)
    if spatial_index.is_worth_it(state.columns, needed(rules.limits)):
        spatial_index.refresh(known, rules.sides, state.held, state.columns)
        few, distance = _few(rules, state, known, slot)
        apart = np.zeros(len(distance))
        members = group_around(rules.limits, state.held, few, 0, distance, apart, 0.0)
        if 0 < len(members) < count_subjects(few.slots["subject"]):
            return members
    return neighbours_of(rules, state.held, state.columns, slot)


@kernel
def _few(
    rules: OnDeadlineRules, state: OnDeadlineState, known: Index, slot: int
) -> tuple[HeldColumns, Floats]:
    """Return columns of a row, in the first slot, and its nearest rows, and their distances."""
    rows = state.columns
    near, far = spatial_index.nearest(
        known, rules.sides, state.held, rows, slot, AMPLE * needed(rules.limits)
    )
    slots, distance = np.empty(len(near) + 1, rows.slots.dtype), np.empty(len(near) + 1)
    slots[0], distance[0] = rows.slots[slot], 0.0
    for i in range(len(near)):
        slots[i + 1], distance[i + 1] = rows.slots[near[i]], far[i]
    marks = rows.marks.copy()
    marks["n"][0] = len(slots)
    return HeldColumns(rows.lo, rows.hi, slots, marks), distance


@kernel
def everybody(rules: OnDeadlineRules, state: OnDeadlineState) -> Ints:
    """Return all held rows if they can be one group and are too few for two; else none.

    Otherwise the last few rows of a stream would be suppressed.
    """
    if state.held.marks["n_subjects"][0] >= 2 * needed(rules.limits):
        return none()
    positions = positions_of(state.held)
    subjects, sensitive = people(state.held, positions)
    return positions if meets(rules.limits, subjects, sensitive) else none()


# -- kept groups ----------------------------------------------------------------------------------


@kernel
def moment(rules: OnDeadlineRules, marks: Records, out: Out) -> int:
    """Return the current row count or the number of the instant, by which groups get older."""
    return marks["instants"][0] if rules.rounds else out.progress["published"][0]


@kernel
def covering(rules: OnDeadlineRules, state: OnDeadlineState, position: int, out: Out) -> Ints:
    """Return the kept groups that a row may join, oldest first."""
    at = wrap(position, len(state.held.rows))
    return reusable(
        state.kept,
        rules.limits,
        state.held.lo[at],
        state.held.hi[at],
        state.held.rows["subject"][at],
        state.held.sensitive[at],
        moment(rules, state.marks, out) - rules.age,
    )


@on_demand
def _reuse(
    rules: OnDeadlineRules, state: OnDeadlineState, due: int, loss: float, least: int, out: Out
) -> bool:
    """Let a row join a kept group, with others as its company; return whether it could."""
    candidates = np.array([due])
    if least != ALONE:
        # The row that is due comes first, then the others, oldest first.
        others = positions_of(state.held)
        candidates = np.concatenate((candidates, others[others != due]))
    since = moment(rules, state.marks, out) - rules.age
    positions, groups = find_joins(
        state.kept,
        rules.limits,
        state.held,
        candidates,
        since,
        rules.best,
        loss,
        least,
        state.rng,
    )
    for i in range(len(positions)):
        at = wrap(positions[i], len(state.held.rows))
        shown, lo, hi = used_again(state.kept, groups[i], window_of(state.held))
        box = write_box(out, lo, hi, shown)
        gaps = state.held.rows["gaps"][at]
        decide(out, positions[i], REUSE, box, state.marks["instants"][0], gaps)
        if rules.renews:
            state.kept.groups["since"][groups[i]] = moment(rules, state.marks, out)
        leave(state, positions[i])
    return len(positions) > 0


# -- decisions ------------------------------------------------------------------------------------


@kernel
def next_row(rules: OnDeadlineRules, state: OnDeadlineState, batch: InputBatch, out: Out) -> int:
    """Process input until a row is due that needs a new group; return its position, or `DONE`.

    The caller must decide the returned row with `settle` before calling again.
    """
    while True:
        if overfull(state.held, rules.capacity, out):
            due = state.held.marks["oldest"][0]
        else:
            due = next_event(state.held, rules.deadlines, batch, out)
        if due >= 0 and not batch.at_end:
            state.marks["instants"][0] += 1
        if due == DONE:
            return DONE
        if due == COMES:
            take_in(state, batch)
            continue
        if not find_place(rules, state, due, batch.at_end, out):
            return due


@kernel
def find_place(
    rules: OnDeadlineRules, state: OnDeadlineState, position: int, at_end: bool, out: Out
) -> bool:
    """Try to decide a row without a new group around it; return whether it was decided.

    If kept groups cover the row and enough others, it joins one of them, chosen at random. The
    choice doesn't depend on the loss: a row that left in one group and not in a better one would
    reveal where it isn't. (With reuse of the best group, `settle` chooses.) At the end, the last
    rows leave together.
    """
    least = ENOUGH if rules.together else ALONE
    may_join = state.kept.marks["n_kept"][0] > 0 and not rules.best
    if may_join and _reuse(rules, state, position, np.inf, least, out):
        return True
    rest = everybody(rules, state) if at_end else none()
    if len(rest) > 0:
        settle(rules, state, position, rest, out)
    return len(rest) > 0


@kernel
def settle(
    rules: OnDeadlineRules, state: OnDeadlineState, position: int, members: Ints, out: Out
) -> None:
    """Decide a row, given the members of a new group around it.

    With reuse of the best group, the row joins a kept group if that loses less than the new one.
    Without a new group it joins a kept one with whatever company there is, as the last resort.
    Without any group it is suppressed.
    """
    shown, lo, hi = shape(rules.sides, rules.shown, state.held, members)
    least = ENOUGH if rules.together else ALONE
    any_kept = state.kept.marks["n_kept"][0] > 0
    if any_kept and rules.best and _reuse(rules, state, position, shown.loss, least, out):
        return
    if len(members) > 0:
        _publish(rules, state, members, shown, lo, hi, out)
    elif not (any_kept and rules.together and _reuse(rules, state, position, np.inf, ANY, out)):
        at = wrap(position, len(state.held.rows))
        gaps = state.held.rows["gaps"][at]
        decide(out, position, SUPPRESSED, -1, state.marks["instants"][0], gaps)
        leave(state, position)


@kernel
def _publish(
    rules: OnDeadlineRules,
    state: OnDeadlineState,
    members: Ints,
    shown: Box,
    lo: Floats,
    hi: Floats,
    out: Out,
) -> None:
    """Publish rows as a group, and keep it if it is good enough."""
    rows = state.held.rows
    number = state.marks["groups"][0]
    known = Box(shown.loss, number, shown.n_rows, shown.n_subjects, shown.gaps, shown.window)
    box = write_box(out, lo, hi, known)
    subjects, sensitive = people(state.held, members)
    for position in members:
        gaps = rows["gaps"][wrap(position, len(rows))]
        decide(out, position, GROUP, box, state.marks["instants"][0], gaps)
        leave(state, position)
    if known.loss < rules.threshold and len(state.kept.groups) > 0:
        since = moment(rules, state.marks, out)
        keep(state.kept, lo, hi, known, since, subjects, sensitive)
    state.marks["groups"][0] += 1
