"""Zhou et al.'s minimum delay method: publish a group as soon as it has enough subjects.

A row joins the first group that has no row of its subject, whatever its values are, and a group is
published once it keeps the policy. No method waits less and few lose more: it is the baseline that
the others are compared with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.engine.base import Engine, Out
from shoal.engine.deadlines import COMES, DONE, HoldingEngine, InputBatch, arrival, next_event
from shoal.engine.groups import may_be_group, publish, suppress
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter, held
from shoal.engine.kernels.array_tools import in_order
from shoal.engine.kernels.arrays import Ints, Records, power_of_two
from shoal.engine.kernels.boxes import Sides
from shoal.engine.kernels.held import Held, put
from shoal.engine.kernels.linked_lists import append, members
from shoal.engine.kernels.predicate import Limits, needed
from shoal.engine.kernels.ring import wrap
from shoal.engine.space import Deadlines, Space
from shoal.engine.waiting import MANY, WaitingAnonymizer, nobody_can, uncount

__all__ = ["MinDelay"]


@dataclass(frozen=True, kw_only=True)
class MinDelay(WaitingAnonymizer):
    """The minimum delay method, with l-diversity and a bound on the held rows.

    Parameters
    ----------
    capacity
        The most rows that are held; 0: as many as the policy's delay lets wait. A row that comes
        when all places are taken makes the oldest one leave. Required if there is no delay.
    loss
        How loss is measured; see `Space`.

    >>> import pyarrow as pa
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [20, 70, 22, 71]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=10))
    >>> anonymize(people, schema, policy, MinDelay())["age"].to_pylist()
    ['[20, 70]', '[20, 70]', '[22, 71]', '[22, 71]']

    References
    ----------
    B. Zhou, Y. Han, J. Pei, B. Jiang, Y. Tao, Y. Jia, "Continuous Privacy Preserving Publishing of
    Data Streams", EDBT 2009, §2.2.
    """

    name: ClassVar[str] = "min-delay"

    def _start(self, space: Space, seed: bytes) -> Engine:
        return MinDelayEngine(self, space, seed)


#: A class of rows that will be published together: their number, and the positions of the first
#: and the last of them.
CLASS = np.dtype([("n_rows", "i8"), ("first", "i8"), ("last", "i8")])
#: The number of groups and of instants so far, the number of free classes, and the begin and the
#: length of the list of classes.
MARKS = np.dtype(
    [("groups", "i8"), ("instants", "i8"), ("free", "i8"), ("begin", "i8"), ("n_listed", "i8")]
)


class MinDelayState(NamedTuple):
    """The whole state of a run: ``listed`` is a ring, the list of classes by number.

    The rows of a subject lie in the first classes of the list, one in each. So their number is the
    place of the class that the next one goes to. ``free`` is a stack of numbers that no class has.
    """

    held: Held
    classes: Records
    listed: Ints
    free: Ints
    counter: Records
    marks: Records


class MinDelayRules(NamedTuple):
    """What doesn't change in a run: space, policy and knobs."""

    sides: Sides
    limits: Limits
    deadlines: Deadlines
    capacity: int


class MinDelayEngine(HoldingEngine):
    """One run of `MinDelay`."""

    state: MinDelayState

    def __init__(self, anonymizer: MinDelay, space: Space, seed: bytes) -> None:
        room = held.SMALLEST
        self._rules = MinDelayRules(
            space.sides, space.limits, anonymizer._deadlines(space), anonymizer.capacity
        )
        marks = np.zeros(1, MARKS)
        marks["free"] = room
        state = MinDelayState(
            held=held.empty(space.n_quasi, space.n_sensitive),
            classes=np.zeros(room, CLASS),
            listed=np.zeros(room, np.int64),
            free=np.arange(room)[::-1].copy(),
            counter=counter.empty(2 * room),
            marks=marks,
        )
        super().__init__(space, state, seed)

    def _reserve(self, n: int) -> None:
        super()._reserve(n)
        # There are never more classes than rows.
        before, room = self.state, power_of_two(self.n_held + n + 1)
        if room <= len(before.listed):
            return
        marks, former = before.marks, len(before.listed)
        classes, listed = np.zeros(room, CLASS), np.zeros(room, np.int64)
        classes[:former] = before.classes
        places = np.arange(marks["begin"][0], marks["begin"][0] + marks["n_listed"][0])
        listed[places % room] = before.listed[places % former]
        free = np.concatenate((np.arange(former, room)[::-1], before.free[: marks["free"][0]]))
        marks["free"][0] = len(free)
        free = np.concatenate((free, np.zeros(room - len(free), np.int64)))
        self.state = before._replace(classes=classes, listed=listed, free=free)

    def _run(self, batch: InputBatch, out: Out) -> None:
        _run(self._rules, self.state, batch, out)


@kernel
def _run(rules: MinDelayRules, state: MinDelayState, batch: InputBatch, out: Out) -> None:
    """Take in rows and fire deadlines, between the rows and after them."""
    rows, marks = state.held, state.marks
    while True:
        due = next_event(rows, rules.deadlines, batch, out)
        before = out.progress["n_decided"][0]
        if due >= 0:
            _force(rules, state, due, out)
        elif due == COMES:
            _take_in(rules, state, batch, out)
        # The whole end of a stream is one instant.
        if (due == DONE) if batch.at_end else (out.progress["n_decided"][0] > before):
            marks["instants"][0] += 1
        if due == DONE:
            break


@kernel
def _take_in(rules: MinDelayRules, state: MinDelayState, batch: InputBatch, out: Out) -> None:
    """Add a row to the first class without its subject, and publish the class if it may be."""
    rows, marks = state.held, state.marks
    row = arrival(rows, batch)
    rank = counter.count(state.counter, counter.EVERYWHERE, row.subject)
    if rank == marks["n_listed"][0]:
        marks["free"][0] -= 1
        number = state.free[marks["free"][0]]
        state.classes["n_rows"][number] = 0
        state.listed[wrap(marks["begin"][0] + rank, len(state.listed))] = number
        marks["n_listed"][0] += 1
    number = _listed(state, rank)
    position = put(rows, row, number)
    if counter.add(state.counter, counter.EVERYWHERE, row.subject):
        rows.marks["n_subjects"][0] += 1
    append(rows.rows, state.classes, position, number)
    out.progress["published"][0] = position
    out.progress["published_s"][0] = np.nan if np.isnan(row.time) else rows.marks["now"][0]
    if state.classes["n_rows"][number] >= needed(rules.limits):
        found = members(rows.rows, state.classes, number)
        if may_be_group(rules.limits, rows, found):
            _close(state, rank)
            uncount(rows.rows, rows.marks, state.counter, found)
            publish(rules.sides, rows, found, marks, out)
    while rules.capacity > 0 and rows.marks["n_rows"][0] > rules.capacity:
        _force(rules, state, rows.marks["oldest"][0], out)


@kernel
def _listed(state: MinDelayState, rank: int) -> int:
    """Return the number of the class at a place of the list."""
    return state.listed[wrap(state.marks["begin"][0] + rank, len(state.listed))]


@kernel
def _close(state: MinDelayState, rank: int) -> None:
    """Take a class off the list. Those before it move up: mostly it is the first."""
    marks = state.marks
    state.free[marks["free"][0]] = _listed(state, rank)
    marks["free"][0] += 1
    begin = marks["begin"][0]
    for i in range(rank, 0, -1):
        before = wrap(begin + i - 1, len(state.listed))
        state.listed[wrap(begin + i, len(state.listed))] = state.listed[before]
    marks["begin"][0] += 1
    marks["n_listed"][0] -= 1


# -- rows whose time is up ------------------------------------------------------------------------


@kernel
def _force(rules: MinDelayRules, state: MinDelayState, position: int, out: Out) -> None:
    """Publish a row with its class and as many others as a group needs, or suppress it."""
    rows = state.held
    rank = _rank_of(state, position)
    if not _publish_merged(rules, state, rank, out):
        _leave(state, rank, position)
        suppress(rows, position, state.marks, out)


@kernel
def _rank_of(state: MinDelayState, position: int) -> int:
    """Return the place of a row's class in the list: mostly near its beginning."""
    number = state.held.rows["cluster"][wrap(position, len(state.held.rows))]
    rank = 0
    while _listed(state, rank) != number:
        rank += 1
    return rank


@kernel
def _publish_merged(rules: MinDelayRules, state: MinDelayState, rank: int, out: Out) -> bool:
    """Publish a class with the first others that make it a group; return whether there are."""
    rows, n = state.held, state.marks["n_listed"][0]
    if nobody_can(rules.limits, rows):
        return False
    taken = np.zeros(n, np.bool_)
    taken[rank] = True
    union = members(rows.rows, state.classes, _listed(state, rank))
    merged, tested, found = 0, 0, may_be_group(rules.limits, rows, union)
    for other in range(n):
        if found:
            break
        if taken[other]:
            continue
        taken[other] = True
        merged += 1
        number = _listed(state, other)
        union = np.concatenate((union, members(rows.rows, state.classes, number)))
        if merged <= MANY or len(union) >= 2 * tested or merged == n - 1:
            tested = len(union)
            found = may_be_group(rules.limits, rows, union)
    if not found:
        return False
    # From the end, so that those before keep their places.
    for i in range(n - 1, -1, -1):
        if taken[i]:
            _close(state, i)
    uncount(rows.rows, rows.marks, state.counter, union)
    publish(rules.sides, rows, in_order(union), state.marks, out)
    return True


@kernel
def _leave(state: MinDelayState, rank: int, position: int) -> None:
    """Remove a row from its class.

    The last row of the same subject takes its place, so that the subject's rows stay in the first
    classes.
    """
    rows = state.held.rows
    subject = rows["subject"][wrap(position, len(rows))]
    last = counter.count(state.counter, counter.EVERYWHERE, subject) - 1
    uncount(rows, state.held.marks, state.counter, np.array([position]))
    number = _listed(state, rank)
    _unlink(rows, state.classes, number, position)
    if last > rank:
        other = _listed(state, last)
        for member in members(rows, state.classes, other):
            if rows["subject"][wrap(member, len(rows))] == subject:
                _unlink(rows, state.classes, other, member)
                append(rows, state.classes, member, number)
        rank, number = last, other
    if state.classes["n_rows"][number] == 0:
        _close(state, rank)


@kernel
def _unlink(rows: Records, classes: Records, number: int, position: int) -> None:
    """Take a row out of the chain of its class."""
    positions = members(rows, classes, number)
    classes["n_rows"][number] = 0
    for member in positions:
        if member != position:
            append(rows, classes, member, number)
