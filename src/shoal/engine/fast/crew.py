"""The workers of a batch: threads that share its rounds, and stay for all of them.

In a round each worker has work for less than a millisecond; to wake a thread up takes a good part
of that. So threads meet in a kernel, without Python in between: one leads and opens a round, and
whoever is free takes the next worker of it, the leader as well. A thread that comes too late finds
that others have done its work, and nobody waits for one that hasn't begun.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.engine.deadlines import DONE, InputBatch
from shoal.engine.decisions import Out
from shoal.engine.fast.merging import decide_left, hand_over, merge
from shoal.engine.fast.rounds import ask_for, until_round
from shoal.engine.fast.state import PENDING, ROUND, Crew, FastState, Round, Worker
from shoal.engine.fast.work import work
from shoal.engine.jit import IS_PLAIN, inlined, kernel
from shoal.engine.kernels import atomics
from shoal.engine.kernels.array_tools import in_order
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held_columns import HeldColumns
from shoal.engine.kernels.kept_groups import KeptGroups
from shoal.engine.kernels.ring import wrap
from shoal.engine.on_deadline import OnDeadlineRules

__all__ = [
    "FAILED",
    "HELPED",
    "NEEDS_HELP",
    "OVER",
    "WAITS",
    "close_round",
    "hand_over_all",
    "help_out",
    "lead",
    "new_crew",
    "open_round",
    "work_off",
]

# The words of a gate, far enough apart that no two share a line of a cache.
#: Workers are numbered through all rounds: the next one to be taken, and the first one whose round
#: isn't open yet; how many have finished.
NEXT, END, FINISHED = 0, 16, 32
#: Whether a round is open, whether other threads help, whether there is nothing more to do, and
#: whether a thread has failed.
IS_OPEN, HELPED, OVER, FAILED = 48, 64, 80, 96
WORDS = 112
#: How often a thread looks for work before it goes to sleep: for about a tenth of a millisecond.
SPINS = 1 if IS_PLAIN else 300_000
#: What happens when `lead` returns, beside `DONE`: a worker hasn't finished; other threads are
#: worth it.
WAITS, NEEDS_HELP = -3, -4


def new_crew(state: FastState) -> Crew:
    """Return room for what all workers decide in any round of a batch."""
    # No worker can have more rows than there is room for. Most of it is never touched.
    n_workers, n = state.columns.slots.shape
    room = Out.room(n, state.held.lo.shape[1])
    return Crew(
        KeptGroups(*(_for_each(n_workers, array) for array in state.kept)),
        Out(*(_for_each(n_workers, array) for array in room)),
        np.zeros((n_workers, 1), PENDING),
        np.empty((n_workers, n), np.int64),
        np.empty((n_workers, n), np.int64),
        np.zeros((n_workers, 1), np.int64),
        np.zeros(1, ROUND),
        np.zeros(WORDS, np.int64),
    )


def _for_each(n: int, like: Any) -> Any:
    """Return room for n arrays like one."""
    return np.empty((n, *like.shape), like.dtype)


# -- threads --------------------------------------------------------------------------------------


@kernel
def lead(
    rules: OnDeadlineRules,
    state: FastState,
    block: int,
    batch: InputBatch,
    crew: Crew,
    least: int,
    out: Out,
) -> int:
    """Have rounds until none is due; return `DONE`, or why it must be called again.

    A round must be due when it is called first. Others may help if ``least`` rows are held.
    """
    gate, workers = crew.gate, len(state.draws)
    while True:
        if gate[IS_OPEN] == 0:
            is_shared = workers > 1 and state.held.marks["n_rows"][0] >= least
            if is_shared and gate[HELPED] == 0:
                return NEEDS_HELP
            open_round(rules, state, block, batch, crew, out)
            gate[IS_OPEN] = 1
            if is_shared:
                atomics.store(gate, END, gate[END] + workers)
            else:
                for number in range(workers):
                    work_off(rules, state, block, batch, crew, number, out)
        while True:
            number = _taken(gate, workers)
            if number < 0:
                break
            work_off(rules, state, block, batch, crew, number, out)
            atomics.add(gate, FINISHED, 1)
        if not _have_finished(gate):
            return WAITS
        gate[IS_OPEN] = 0
        close_round(rules, state, crew, batch.at_end, out)
        if until_round(rules, state, block, batch, out) == DONE:
            hand_over_all(state, crew, out)
            return DONE


@kernel
def help_out(
    rules: OnDeadlineRules, state: FastState, block: int, batch: InputBatch, crew: Crew, out: Out
) -> int:
    """Do the work of workers that nobody else does; return how many, when there is no more."""
    n, spins = 0, 0
    while spins < SPINS and atomics.load(crew.gate, OVER) == 0:
        spins += 1
        number = _taken(crew.gate, len(state.draws))
        if number >= 0:
            work_off(rules, state, block, batch, crew, number, out)
            atomics.add(crew.gate, FINISHED, 1)
            n += 1
            spins = 0
    return n


@inlined
def _taken(gate: Ints, workers: int) -> int:
    """Take the next worker of the open round, and return its number; -1: there is none left."""
    while True:
        following = atomics.load(gate, NEXT)
        if following >= atomics.load(gate, END):
            return -1
        if atomics.swap(gate, NEXT, following, following + 1):
            return following % workers


@kernel
def _have_finished(gate: Ints) -> bool:
    """Return whether all workers of the open round finish soon enough to wait for them here."""
    for _ in range(SPINS):  # noqa: SIM110 - Numba compiles no generator expressions
        if atomics.load(gate, FINISHED) == gate[END]:
            return True
    return False


# -- a round --------------------------------------------------------------------------------------


@kernel
def open_round(
    rules: OnDeadlineRules, state: FastState, block: int, batch: InputBatch, crew: Crew, out: Out
) -> None:
    """Write down the round that is due, for all workers."""
    ask, asked = ask_for(rules, state, block, batch, out), crew.asked
    asked["dealt"][0] = ask.dealt
    asked["begin"][0] = ask.begin
    asked["published"][0] = ask.published
    asked["now"][0] = ask.now
    asked["moment"][0] = ask.moment
    asked["following"][0] = ask.following
    asked["until"][0] = ask.until
    asked["full"][0] = ask.full


@kernel
def _round_of(crew: Crew, at_end: bool) -> Round:
    """Return the round that is open."""
    asked = crew.asked
    return Round(
        asked["dealt"][0],
        asked["begin"][0],
        asked["published"][0],
        asked["now"][0],
        asked["moment"][0],
        asked["following"][0],
        asked["until"][0],
        asked["full"][0],
        at_end,
    )


@kernel
def work_off(
    rules: OnDeadlineRules,
    state: FastState,
    block: int,
    batch: InputBatch,
    crew: Crew,
    number: int,
    out: Out,
) -> None:
    """Do what a worker has to do in the open round."""
    worker = _worker(state, crew, number)
    hand_over(worker, crew.pending[number], out)
    work(rules, state, block, batch, _round_of(crew, batch.at_end), worker)
    state.columns.marks[number, 0] = worker.columns.marks[0]
    crew.out.progress[number, 0] = worker.out.progress[0]
    crew.n_left[number, 0] = worker.n_left[0]


@kernel
def _worker(state: FastState, crew: Crew, number: int) -> Worker:
    """Return a worker. It counts apart from others: a line of a cache has room for several counts,
    and would move from one processor to another with each row.
    """
    rows, kept, out = state.columns, crew.kept, crew.out
    return Worker(
        number,
        HeldColumns(
            rows.lo[number], rows.hi[number], rows.slots[number], rows.marks[number].copy()
        ),
        KeptGroups(
            kept.lo[number],
            kept.hi[number],
            kept.groups[number],
            kept.subject[number],
            kept.sensitive[number],
            kept.marks[number].copy(),
        ),
        state.draws[number],
        Out(
            out.decided[number],
            out.boxes[number],
            out.lo[number],
            out.hi[number],
            out.progress[number].copy(),
        ),
        crew.places[number],
        crew.left[number],
        crew.n_left[number].copy(),
    )


@kernel
def close_round(
    rules: OnDeadlineRules, state: FastState, crew: Crew, at_end: bool, out: Out
) -> None:
    """Put together what all workers decided, and decide what they left, when all have finished."""
    n_left = 0
    for number in range(len(state.draws)):
        merge(rules, state, _worker(state, crew, number), crew.pending[number], out)
        n_left += crew.n_left[number, 0]
    _move_oldest(state)
    if n_left > 0:
        left = np.empty(n_left, np.int64)
        n = 0
        for number in range(len(state.draws)):
            for i in range(crew.n_left[number, 0]):
                left[n] = crew.left[number, i]
                n += 1
        decide_left(rules, state, _round_of(crew, at_end), in_order(left), out)
    state.marks["instants"][0] += 1


@kernel
def _move_oldest(state: FastState) -> None:
    """Move the beginning of the ring to the oldest row that no worker has decided."""
    marks, rows = state.held.marks, state.held.rows
    oldest = marks["oldest"][0]
    while oldest < marks["upcoming"][0] and rows["cluster"][wrap(oldest, len(rows))] < 0:
        oldest += 1
    marks["oldest"][0] = oldest


@kernel
def hand_over_all(state: FastState, crew: Crew, out: Out) -> None:
    """Write down what all workers decided in the last round: no further one comes for that."""
    for number in range(len(state.draws)):
        hand_over(_worker(state, crew, number), crew.pending[number], out)
