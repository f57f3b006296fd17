"""FAST: FADS by several workers at once.

Rows are dealt to workers in blocks. In a round every worker decides those of its rows whose time
would be up before the next round, or its oldest row if there is no room for another one: each joins
a group published before, or is published in a new group with its nearest neighbours among the
worker's rows. A worker knows the groups that were kept when the round began, and its own; the
decisions are merged in the order of the workers. So the result depends on the number of workers,
but never on which of them was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from shoal.engine.base import Engine
from shoal.engine.deadlines import (
    COMES,
    DONE,
    DueRowAnonymizer,
    HoldingEngine,
    InputBatch,
    arrival,
    next_event,
    overfull,
    with_capacity,
)
from shoal.engine.decisions import GROUP, REUSE, Out, decide, write_box
from shoal.engine.groups import shape
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter, held, held_columns, kept_groups, rng
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.boxes import Box
from shoal.engine.kernels.held import Held, due_at, forget, is_held, people, put
from shoal.engine.kernels.held_columns import HeldColumns
from shoal.engine.kernels.kept_groups import KeptGroups, best, keep, reusable, used_again
from shoal.engine.kernels.ring import wrap
from shoal.engine.on_deadline import (
    MARKS,
    OnDeadlineRules,
    OnDeadlineState,
    covering,
    find_place,
    moment,
    neighbours,
    neighbours_of,
    settle,
)
from shoal.engine.space import Space
from shoal.errors import ParameterError
from shoal.spec.policy import Criterion, DistinctLDiversity, KAnonymity

__all__ = ["Fast"]

#: Rows that a worker takes at a time where the delay isn't in rows.
BLOCK = 250
#: The number of rounds in a delay in rows.
ROUNDS = 2
#: The weight of the latest round in the estimated time of the next one.
LATEST = 0.25
#: With fewer rows held than this, starting threads costs more than it gains.
WORTH_A_THREAD = 256


@dataclass(frozen=True, kw_only=True)
class Fast(DueRowAnonymizer):
    """FAST, with distinct l-diversity, safe reuse, and the same result for any timing of threads.

    Criteria that are measured against a window are refused: workers decide independently, and none
    would check a group that several of them let rows join in one round.

    Parameters
    ----------
    workers
        The number of threads (MaxNumThread). Each searches neighbours among its own rows only, so
        more of them are faster and lose more.
    block
        The number of rows that a worker is given at a time (delta). A round comes after a block for
        each. None: half of the delay in rows, shared by the workers.
    capacity
        The maximum number of held rows; 0: the policy's delay is the only bound. When one more
        arrives, there is a round in which each worker decides its oldest row, as in the paper, and
        new rows are dealt so that workers have equally many. There are no blocks then.
    kept
        The number of latest groups that are kept for reuse; 0 for no reuse. A row that leaves alone
        into a kept group shows who it is to anyone who knows when it came.
    age
        The number of further rows, or rounds, for which a group is kept (T_kc); with
        ``reuse="best"``, after its last use.
    age_unit
        ``"rows"`` or ``"rounds"``; see `shoal.algorithms.Fads`.
    reuse
        ``"random"`` or ``"best"``; see `shoal.algorithms.Fads`.
    joins
        ``"together"`` or ``"alone"``; see `shoal.algorithms.Fads`. Together, rows join kept groups
        when all workers are done, among the rows of all.
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.

    >>> import pyarrow as pa
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [20, 22, 70, 71]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=3))
    >>> anonymize(people, schema, policy, Fast(workers=2, block=2))["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    E. Mohammadian, M. Noferesti, R. Jalili, "FAST: Fast Anonymization of Big Data Streams", ACM
    BigDataScience 2014.
    """

    name: ClassVar[str] = "fast"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, DistinctLDiversity)
    reference: ClassVar[str] = "Mohammadian, Noferesti, Jalili: FAST (BigDataScience 2014)"

    workers: int = 2
    block: int | None = None
    kept: int = 0
    age: int = 2_000
    age_unit: Literal["rows", "rounds"] = "rows"
    reuse: Literal["random", "best"] = "random"
    joins: Literal["together", "alone"] = "together"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._at_least(1, "workers", "age")
        self._at_most(64, "workers")
        if self.block is not None:
            self._at_least(1, "block")
            if self.capacity:
                what = "must be left out where there is a capacity, which shares rows evenly"
                raise ParameterError("Fast.block", what, got=repr(self.block))
        self._one_of("age_unit", ("rows", "rounds"))
        self._at_least(0, "kept")
        self._one_of("reuse", ("random", "best"))
        self._one_of("joins", ("together", "alone"))

    def _start(self, space: Space, seed: bytes) -> Engine:
        return FastEngine(self, space, seed)


#: Up to which position rows have been dealt to workers; when the last round was, and how long one
#: is estimated to take, in seconds (NaN: not known).
CLOCK = np.dtype([("dealt", "i8"), ("last_round", "f8"), ("estimate", "f8")])


class FastState(NamedTuple):
    """The whole state of a run of FAST. Columns and draws have workers along the first axis."""

    held: Held
    columns: HeldColumns
    kept: KeptGroups
    marks: Records
    clock: Records
    rng: Ints
    draws: Ints


class Round(NamedTuple):
    """A round: the position from which on rows are new to their workers; the row count and the time
    of the round, and by which moment groups get older; the position and the estimated time of the
    next one; whether there is no room for another row, and whether this round is the last.
    """

    dealt: int
    published: int
    now: float
    moment: int
    following: int
    until: float
    full: bool
    at_end: bool


class Worker(NamedTuple):
    """One worker in a round: its number, its rows, its copy of the kept groups, its random state;
    then its decisions, the place of the kept group of each box, and the rows it left to all.
    """

    number: int
    columns: HeldColumns
    kept: KeptGroups
    draws: Ints
    out: Out
    places: Ints
    left: Ints
    n_left: Ints


class FastEngine(HoldingEngine):
    """One run of `Fast`."""

    state: FastState

    def __init__(self, anonymizer: Fast, space: Space, seed: bytes) -> None:
        n, rows, capacity = anonymizer.workers, space.deadlines.rows, anonymizer.capacity
        self._block = anonymizer.block or (max(1, rows // (ROUNDS * n)) if rows else BLOCK)
        if capacity:
            self._block = 1
        self._rules = OnDeadlineRules(
            space.sides,
            space.shown,
            space.limits,
            with_capacity(space.deadlines, capacity),
            capacity,
            anonymizer.reuse == "best",
            anonymizer.joins == "together",
            np.inf,
            anonymizer.age,
            anonymizer.age_unit == "rounds",
            anonymizer.reuse == "best",
        )
        self._joins_last = anonymizer.kept > 0 and anonymizer.joins == "together"
        self._threads: ThreadPoolExecutor | None = None
        clock = np.zeros(1, CLOCK)
        clock["last_round"] = clock["estimate"] = np.nan
        state = FastState(
            held=held.empty(space.n_quasi, space.n_sensitive),
            columns=_stacked([held_columns.empty(space.n_quasi, self._room(held.SMALLEST, n))] * n),
            kept=kept_groups.empty(anonymizer.kept, space.n_quasi, space.n_sensitive, space.limits),
            marks=np.zeros(1, MARKS),
            clock=clock,
            rng=rng.seeded(seed, "decide"),
            draws=np.stack([rng.seeded(seed, f"worker {w}") for w in range(n)]),
        )
        super().__init__(space, state, seed)

    def _grow(self, larger: Held) -> None:
        room = self._room(len(larger.rows), len(self.state.draws))
        roomier = [held_columns.grown(each, room) for each in self._columns()]
        self.state = self.state._replace(held=larger, columns=_stacked(roomier))

    def _room(self, ring: int, workers: int) -> int:
        """Return twice the most rows of a ring that one worker can have, as rows are dealt."""
        return 2 * min(ring, ring // workers + self._block + 1)

    def _columns(self) -> list[HeldColumns]:
        """Return the columns of each worker."""
        return [HeldColumns(*arrays) for arrays in zip(*self.state.columns, strict=True)]

    def _run(self, batch: InputBatch, out: Out) -> None:
        while _until_round(self._rules, self.state, self._block, batch, out) != DONE:
            self._round(batch.at_end, out)

    def _round(self, at_end: bool, out: Out) -> None:
        ask = _ask(self._rules, self.state, self._block, at_end, out)
        workers = [
            self._worker(number, own, draws)
            for number, (own, draws) in enumerate(
                zip(self._columns(), self.state.draws, strict=True)
            )
        ]
        self._each([partial(_work, self._rules, self.state.held, ask, each) for each in workers])
        for each in workers:
            _merge(self._rules, self.state, each, out)
        left = np.sort(np.concatenate([each.left[: each.n_left[0]] for each in workers]))
        if len(left):
            everything = held_columns.empty(self.space.n_quasi, self.n_held)
            _decide_left(
                self._rules, self.state, everything, counter.empty(self.n_held), ask, left, out
            )
        self.state.marks["instants"] += 1

    def _worker(self, number: int, own: HeldColumns, draws: Ints) -> Worker:
        # No worker can have more rows than there is room for.
        n = min(len(own.slots), self.n_held)
        return Worker(
            number, own, KeptGroups._make(array.copy() for array in self.state.kept), draws,
            Out.room(n, self.space.n_quasi),
            np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(1, np.int64),
        )  # fmt: skip

    def _each(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run all tasks, in threads if there are enough rows, in any order."""
        if len(tasks) == 1 or self.n_held < WORTH_A_THREAD:
            for task in tasks:
                task()
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(len(tasks) - 1, "fast")
        others = [self._threads.submit(task) for task in tasks[1:]]
        tasks[0]()
        for other in others:
            other.result()


def _stacked(each: list[HeldColumns]) -> HeldColumns:
    return HeldColumns(*(np.stack(arrays) for arrays in zip(*each, strict=True)))


# -- between rounds -------------------------------------------------------------------------------


@kernel
def _of(state: FastState, worker: int) -> HeldColumns:
    """Return the columns of a worker."""
    rows = state.columns
    return HeldColumns(rows.lo[worker], rows.hi[worker], rows.slots[worker], rows.marks[worker])


@kernel
def _until_round(
    rules: OnDeadlineRules, state: FastState, block: int, batch: InputBatch, out: Out
) -> int:
    """Take in rows until a round is due; return `DONE` if none is."""
    workers, marks = len(state.draws), state.held.marks
    while True:
        due = next_event(state.held, rules.deadlines, batch, out)
        if due != COMES:
            return due
        row = arrival(state.held, batch)
        position = put(state.held, row, (marks["upcoming"][0] // block) % workers)
        if overfull(state.held, rules.capacity, out):
            return position
        if rules.capacity == 0 and (position + 1) % (workers * block) == 0:
            out.progress["published"][0] = position
            out.progress["published_s"][0] = np.nan if np.isnan(row.time) else marks["now"][0]
            return position
        if rules.deadlines.seconds == 0.0:
            _take_many(rules, state, block, batch)


@kernel
def _ends_cycle(position: int, cycle: int) -> int:
    """Return the first position, from this one on, at which every worker has got a block."""
    return position + cycle - 1 - position % cycle


@kernel
def _take_many(rules: OnDeadlineRules, state: FastState, block: int, batch: InputBatch) -> None:
    """Take in all rows before the next one at which a row may be due or there may be a round.

    For these rows no check between rows is needed.
    """
    marks, cursor, times = state.held.marks, batch.cursor, batch.codes.times
    workers, upcoming = len(state.draws), marks["upcoming"][0]
    stop = _ends_cycle(upcoming, workers * block)
    if rules.capacity > 0:
        stop = upcoming + rules.capacity - marks["n_rows"][0]
    if rules.deadlines.rows > 0:
        if upcoming > marks["oldest"][0] + rules.deadlines.rows:
            return
        stop = min(stop, marks["oldest"][0] + rules.deadlines.rows)
    n = min(stop - upcoming, len(times) - cursor["upcoming"][0])
    cursor["just_put"][0] = False
    for _ in range(n):
        i = cursor["upcoming"][0]
        if times[i] > marks["now"][0]:
            marks["now"][0] = times[i]
        if times[i] > marks["arrived"][0]:
            marks["arrived"][0] = times[i]
        cursor["upcoming"][0] += 1
        put(state.held, arrival(state.held, batch), (marks["upcoming"][0] // block) % workers)


@kernel
def _ask(rules: OnDeadlineRules, state: FastState, block: int, at_end: bool, out: Out) -> Round:
    """Return the round that is due now, and update the estimated time between rounds."""
    clock, workers = state.clock, len(state.draws)
    if rules.deadlines.seconds > 0.0:
        # The clock may be past the deadline already; the round still counts as on time.
        deadline = due_at(state.held, rules.deadlines.seconds)
        out.progress["published_s"][0] = min(out.progress["published_s"][0], deadline)
    now = out.progress["published_s"][0]
    if not np.isnan(now):
        if not np.isnan(clock["last_round"][0]):
            took = now - clock["last_round"][0]
            if np.isnan(clock["estimate"][0]):
                clock["estimate"][0] = took
            else:
                clock["estimate"][0] += (took - clock["estimate"][0]) * LATEST
        clock["last_round"][0] = now
    known = 0.0 if np.isnan(clock["estimate"][0]) else clock["estimate"][0]
    upcoming = state.held.marks["upcoming"][0]
    full = 0 < rules.capacity < state.held.marks["n_rows"][0]
    following = _ends_cycle(upcoming, workers * block)
    if rules.capacity > 0:
        # While there is no room, rounds follow one another; else as with blocks.
        following = upcoming if full else upcoming + rules.deadlines.rows // ROUNDS
    dealt = clock["dealt"][0]
    clock["dealt"][0] = upcoming
    if rules.capacity > 0:
        _deal(state, dealt)
    return Round(
        dealt,
        out.progress["published"][0],
        now,
        moment(rules, state.marks, out),
        following,
        now + known,
        full,
        at_end,
    )


@kernel
def _deal(state: FastState, dealt: int) -> None:
    """Deal the rows since ``dealt``, each to the worker with the fewest rows."""
    rows, n_rows = state.held.rows, np.empty(len(state.draws), np.int64)
    for worker in range(len(n_rows)):
        marks = state.columns.marks[worker]
        n_rows[worker] = marks["n"][0] - marks["n_holes"][0]
    for position in range(dealt, state.held.marks["upcoming"][0]):
        fewest = np.argmin(n_rows)
        n_rows[fewest] += 1
        rows["cluster"][wrap(position, len(rows))] = fewest


@kernel
def _in_danger(rules: OnDeadlineRules, rows: Held, position: int, ask: Round) -> bool:
    """Return whether the time of a row is up before the next round."""
    delay = rules.deadlines
    if ask.at_end or (delay.rows > 0 and position + delay.rows < ask.following):
        return True
    time = rows.rows["time"][wrap(position, len(rows.rows))]
    return delay.seconds > 0.0 and time + delay.seconds <= ask.until


@kernel
def _is_due(rules: OnDeadlineRules, rows: Held, position: int, ask: Round) -> bool:
    """Return whether the time of a row is up, or there is still no room for another row."""
    delay = rules.deadlines
    if ask.at_end or (delay.rows > 0 and position + delay.rows < rows.marks["upcoming"][0]):
        return True
    if 0 < rules.capacity < rows.marks["n_rows"][0]:
        return True
    time = rows.rows["time"][wrap(position, len(rows.rows))]
    return delay.seconds > 0.0 and time + delay.seconds <= ask.now


# -- a round of one worker ------------------------------------------------------------------------


@kernel
def _work(rules: OnDeadlineRules, rows: Held, ask: Round, worker: Worker) -> None:
    """Decide those rows of a worker that would be late in the next round, oldest first.

    If there is no room for another row, the oldest is one of them. The only shared state that this
    changes are the slots of the worker's own rows in the ring.
    """
    own, out = worker.columns, worker.out
    _take_own(rows, ask, worker)
    out.progress["published"][0] = ask.published
    out.progress["published_s"][0] = ask.now
    urgent = np.empty(own.marks["n"][0], np.int64)
    n = 0
    for slot in range(len(urgent)):
        position = own.slots["position"][slot]
        is_oldest = ask.full and n == 0
        if position >= 0 and (is_oldest or _in_danger(rules, rows, position, ask)):
            urgent[n] = position
            n += 1
    for position in urgent[:n]:
        slot = rows.rows["following"][wrap(position, len(rows.rows))]
        if own.slots["position"][slot] == position:
            _decide_own(rules, rows, ask, worker, position)


@kernel
def _take_own(rows: Held, ask: Round, worker: Worker) -> None:
    """Take in the rows that have come since the last round and are the worker's."""
    for position in range(ask.dealt, rows.marks["upcoming"][0]):
        if rows.rows["cluster"][wrap(position, len(rows.rows))] == worker.number:
            held_columns.append(worker.columns, rows, position)


@kernel
def _decide_own(
    rules: OnDeadlineRules, rows: Held, ask: Round, worker: Worker, position: int
) -> None:
    """Decide a row of a worker among its own rows, if there are enough.

    A row that is to join a kept group in company is left to `_decide_left`.
    """
    at = wrap(position, len(rows.rows))
    lo, hi, subject = rows.lo[at], rows.hi[at], rows.rows["subject"][at]
    since = ask.moment - rules.age
    groups = reusable(worker.kept, rules.limits, lo, hi, subject, rows.sensitive[at], since)
    if len(groups) > 0 and not rules.best:
        if rules.together:
            _leave_to_all(worker, position)
            return
        _join(rules, rows, ask, worker, position, groups[rng.below(worker.draws, len(groups))])
        return
    held_columns.close_holes(worker.columns, rows, held_columns.DENSE)
    slot = rows.rows["following"][at]
    members = neighbours_of(rules, rows, worker.columns, slot)
    shown, box_lo, box_hi = shape(rules.sides, rules.shown, rows, members)
    known = best(worker.kept, groups, shown.loss)
    if known >= 0 and not rules.together:
        _join(rules, rows, ask, worker, position, known)
        return
    if known >= 0 or len(members) == 0:
        _leave_to_all(worker, position)
        return
    # Its number until the groups of all workers are merged: made of that of its box.
    box = worker.out.progress["n_boxes"][0]
    shown = Box(shown.loss, -1 - box, shown.n_rows, shown.n_subjects, shown.gaps, -1)
    write_box(worker.out, box_lo, box_hi, shown)
    subjects, sensitive = people(rows, members)
    keep(worker.kept, box_lo, box_hi, shown, ask.moment, subjects, sensitive)
    for member in members:
        gaps = rows.rows["gaps"][wrap(member, len(rows.rows))]
        decide(worker.out, member, GROUP, box, 0, gaps)
        held_columns.remove(worker.columns, rows, member)


@kernel
def _leave_to_all(worker: Worker, position: int) -> None:
    """Leave a row to be decided among the rows of all workers."""
    worker.left[worker.n_left[0]] = position
    worker.n_left[0] += 1


@kernel
def _join(
    rules: OnDeadlineRules, rows: Held, ask: Round, worker: Worker, position: int, place: int
) -> None:
    """Let a row join a group that is kept or was made by the worker in this round."""
    shown, lo, hi = used_again(worker.kept, place, -1)
    box = write_box(worker.out, lo, hi, shown)
    worker.places[box] = place
    if rules.renews:
        worker.kept.groups["since"][place] = ask.moment
    gaps = rows.rows["gaps"][wrap(position, len(rows.rows))]
    decide(worker.out, position, REUSE, box, 0, gaps)
    held_columns.remove(worker.columns, rows, position)


# -- what all workers decided ---------------------------------------------------------------------


@kernel
def _merge(rules: OnDeadlineRules, state: FastState, worker: Worker, out: Out) -> None:
    """Take over the decisions of a worker: number its groups, and keep them."""
    boxes, first = worker.out.boxes, out.progress["n_boxes"][0]
    since = moment(rules, state.marks, out)
    number = np.empty(worker.out.progress["n_boxes"][0], np.int64)
    subjects, sensitive = people(state.held, np.empty(0, np.int64))
    for box in range(len(number)):
        made, lo, hi = boxes[box], worker.out.lo[box], worker.out.hi[box]
        number[box] = made["group"]
        if made["n_rows"] > 0:
            number[box] = state.marks["groups"][0]
            state.marks["groups"][0] += 1
        elif number[box] < 0:
            number[box] = number[-1 - number[box]]
        elif rules.renews and state.kept.groups["number"][worker.places[box]] == number[box]:
            # No new group has taken its place in the meantime.
            state.kept.groups["since"][worker.places[box]] = since
        shown = Box(made["loss"], number[box], made["n_rows"], made["n_subjects"], made["gaps"], -1)
        write_box(out, lo, hi, shown)
        if made["n_rows"] > 0:
            keep(state.kept, lo, hi, shown, since, subjects, sensitive)
    for i in range(worker.out.progress["n_decided"][0]):
        row, instant = worker.out.decided[i], state.marks["instants"][0]
        decide(out, row["row"], row["outcome"], first + row["box"], instant, row["gaps"])
        forget(state.held, row["row"])


@kernel
def _decide_left(
    rules: OnDeadlineRules,
    state: FastState,
    everything: HeldColumns,
    subjects: Records,
    ask: Round,
    left: Ints,
    out: Out,
) -> None:
    """Decide the rows that their workers found no group for, among the rows of all.

    A row that finds none there either is suppressed when its time is up, and waits till then. One
    that finds too little company joins a kept group all the same: a round hides when it came better
    than its deadline would.
    """
    rows = state.held
    rows.marks["n_subjects"][0] = 0
    for position in range(rows.marks["oldest"][0], rows.marks["upcoming"][0]):
        if is_held(rows, position):
            held_columns.append(everything, rows, position)
            subject = rows.rows["subject"][wrap(position, len(rows.rows))]
            if counter.add(subjects, counter.EVERYWHERE, subject):
                rows.marks["n_subjects"][0] += 1
    whole = OnDeadlineState(rows, everything, subjects, state.kept, state.marks, state.rng)
    for position in left:
        if not is_held(rows, position) or find_place(rules, whole, position, ask.at_end, out):
            continue
        members = neighbours(rules, whole, position)
        if (
            len(members) > 0
            or _is_due(rules, rows, position, ask)
            or len(covering(rules, whole, position, out)) > 0
        ):
            settle(rules, whole, position, members, out)
    # Write the slots of all rows with their workers to the ring again.
    for worker in range(len(state.draws)):
        own = _of(state, worker)
        own.marks["n"][0] = 0
        own.marks["n_holes"][0] = 0
        own.marks["n_wide"][0] = 0
    for position in range(rows.marks["oldest"][0], rows.marks["upcoming"][0]):
        if is_held(rows, position):
            worker = rows.rows["cluster"][wrap(position, len(rows.rows))]
            held_columns.append(_of(state, worker), rows, position)
