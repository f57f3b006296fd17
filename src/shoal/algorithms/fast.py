"""FAST: FADS by several workers at once.

Rows are dealt to workers in blocks. In a round every worker decides those of its rows whose time
would be up before the next round, or its oldest row if there is no room for another one: each joins
a group published before, or is published in a new group with its nearest neighbours among the
worker's rows. A worker knows the groups that were kept when the round began, and its own; the
decisions are merged in the order of the workers. So the result depends on the number of workers,
but never on which of them was faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from shoal.engine.base import Engine
from shoal.engine.deadlines import (
    DONE,
    DueRowAnonymizer,
    HoldingEngine,
    InputBatch,
    with_capacity,
)
from shoal.engine.decisions import Out
from shoal.engine.fast.crew import FAILED, HELPED, NEEDS_HELP, OVER, help_out, lead, new_crew
from shoal.engine.fast.rounds import ROUNDS, put_rest, until_round
from shoal.engine.fast.state import CLOCK, FastState
from shoal.engine.jit import IS_PLAIN
from shoal.engine.kernels import held, held_columns, kept_groups, rng
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import Held
from shoal.engine.kernels.held_columns import HeldColumns
from shoal.engine.on_deadline import MARKS, OnDeadlineRules
from shoal.engine.pool import Pool, n_processors
from shoal.engine.space import Space
from shoal.errors import ParameterError
from shoal.spec.policy import Criterion, DistinctLDiversity, KAnonymity

__all__ = ["Fast"]

#: Rows that a worker takes at a time where the delay isn't in rows.
BLOCK = 250
#: With fewer rows held than this, threads that meet cost more than they gain.
WORTH_A_THREAD = 256
#: How long a thread sleeps, in seconds, until it looks again whether there is work.
NAP, LONGEST_NAP = 5e-5, 1e-3


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
        self._threads = Pool(max(1, n - 1), "fast")
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
        if until_round(self._rules, self.state, self._block, batch, out) != DONE:
            self._rounds(batch, out)
        put_rest(self.state, self._block, batch)

    def _rounds(self, batch: InputBatch, out: Out) -> None:
        """Have all rounds of a batch, in threads where enough rows are held."""
        crew = new_crew(self.state)
        known = self._rules, self.state, self._block, batch, crew
        helpers: list[Future[None]] = []
        try:
            while (event := lead(*known, WORTH_A_THREAD, out)) != DONE:
                if event == NEEDS_HELP:
                    crew.gate[HELPED] = 1
                    helpers = self._call(partial(_help, crew.gate, partial(help_out, *known, out)))
                elif crew.gate[FAILED]:
                    break
                else:
                    time.sleep(NAP)
        finally:
            crew.gate[OVER] = 1
            for helper in helpers:
                helper.result()

    def _call(self, task: Callable[[], None]) -> list[Future[None]]:
        """Start a task in each thread but this one, as many as there are processors for.

        Plain Python holds its lock all the time, and gains nothing by threads.
        """
        n = min(len(self.state.draws), 1 if IS_PLAIN else n_processors()) - 1
        begun = [self._threads.submit(task) for _ in range(n)]
        return [helper for helper in begun if helper is not None]


def _help(gate: Ints, work: Callable[[], int]) -> None:
    """Work until all is over. Who finds nothing to do sleeps, longer and longer."""
    nap = NAP
    try:
        while not gate[OVER]:
            nap = NAP if work() else min(2 * nap, LONGEST_NAP)
            if not gate[OVER]:
                time.sleep(nap)
    except BaseException:
        gate[FAILED] = 1
        raise


def _stacked(each: list[HeldColumns]) -> HeldColumns:
    return HeldColumns(*(np.stack(arrays) for arrays in zip(*each, strict=True)))
