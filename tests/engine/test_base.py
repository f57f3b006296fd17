"""What is written once for all engines: verbs, shuffling, snapshots, refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

from shoal import Delay, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema, Sensitive
from shoal.algorithms import Castle
from shoal.engine import Codes, Space
from shoal.engine.base import (
    Anonymizer,
    BoxEngine,
    Engine,
    Out,
    Outcome,
    Publishes,
    decide,
    write_box,
)
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.boxes import Box
from shoal.errors import CheckpointError, ParameterError, UnsupportedError
from shoal.spec.policy import Criterion, DistinctLDiversity, TCloseness, Window

SCHEMA = Schema("p", [Quasi("x", Range(0, 100))])
POLICY = Policy(KAnonymity(2), delay=Delay(rows=5))


class Inner(NamedTuple):
    n_rows: Ints


class State(NamedTuple):
    values: Floats
    inner: Inner


class BufferEngine(BoxEngine):
    """Holds everything; the flush publishes it as one group, a tick suppresses it."""

    state: State

    def __init__(self, space: Space, seed: bytes) -> None:
        super().__init__(space, State(np.zeros(100), Inner(np.zeros(2, np.int64))), seed)

    @property
    def n_held(self) -> int:
        return int(self.state.inner.n_rows[1])

    def _push(self, codes: Codes, out: Out) -> None:
        n = len(codes.subjects)
        self.state.values[self.n_held : self.n_held + n] = codes.values[:, 0]
        self.state.inner.n_rows[:] += n

    def _advance(self, now: float, out: Out) -> None:
        self._decide(out, Outcome.suppressed, -1)

    def _flush(self, out: Out) -> None:
        held = self.state.values[: self.n_held]
        if len(held):
            lo, hi = np.array([held.min()]), np.array([held.max()])
            loss = self.space.loss(lo, hi)
            box = write_box(out, lo, hi, Box(loss, 0, self.n_held, 1, 0))
            self._decide(out, Outcome.group, box)

    def _decide(self, out: Out, outcome: Outcome, box: int) -> None:
        seen, n_held = self.state.inner.n_rows
        for row in range(seen - n_held, seen):
            decide(out, row, int(outcome), box, 0, 0)
        self.state.inner.n_rows[1] = 0


@dataclass(frozen=True, kw_only=True)
class Buffer(Anonymizer):
    name: ClassVar[str] = "buffer"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity,)
    reference: ClassVar[str] = "nobody"
    room: int = 100
    mode: str = "one"

    def __post_init__(self) -> None:
        self._at_least(1, "room")
        self._one_of("mode", ("one", "other"))

    def _start(self, space: Space, seed: bytes) -> Engine:
        return BufferEngine(space, seed)


def batch(*values: float) -> Codes:
    n = len(values)
    nothing = np.empty((n, 0), np.int64)
    return Codes(np.array(values).reshape(n, 1), np.arange(n), nothing, np.full(n, np.nan))


def started(seed: bytes | None = b"seed") -> Engine:
    return Buffer().start(SCHEMA, POLICY, seed=seed)


def test_the_three_verbs() -> None:
    engine = started()
    assert engine.next_deadline is None
    assert len(engine.push(batch(1.0, 2.0)).rows) == 0
    assert repr(engine) == "BufferEngine(n_held=2)"
    suppressed = engine.advance(1.0)
    assert sorted(suppressed.rows.tolist()) == [0, 1]
    assert suppressed.outcomes.tolist() == [Outcome.suppressed] * 2
    assert suppressed.lo.shape == (0, 1)
    engine.push(batch(3.0, 5.0, 4.0))
    group = engine.flush()
    assert sorted(group.rows.tolist()) == [2, 3, 4]
    assert (group.lo.tolist(), group.hi.tolist()) == ([[3.0]], [[5.0]])
    assert group.loss.tolist() == [0.02]
    assert (group.n_rows.tolist(), group.n_subjects.tolist()) == ([3], [1])
    assert engine.flush().rows.tolist() == []


def test_rows_of_a_group_are_shuffled_and_suppressed_ones_are_not() -> None:
    engine = started()
    engine.push(batch(*range(40)))
    assert engine.advance(0.0).rows.tolist() == list(range(40))
    engine.push(batch(*range(40)))
    rows = engine.flush().rows.tolist()
    assert sorted(rows) == list(range(40, 80))
    assert rows != sorted(rows)


def test_without_a_seed_no_two_runs_are_alike() -> None:
    orders = set()
    for _ in range(2):
        engine = started(seed=None)
        engine.push(batch(*range(60)))
        orders.add(tuple(engine.flush().rows.tolist()))
    assert len(orders) == 2


class Renamed(Buffer):
    """The same anonymizer in a class of another name."""


def test_a_snapshot_doesnt_depend_on_the_name_of_a_class() -> None:
    engine = started()
    engine.push(batch(1.0, 2.0, 3.0))
    other = Renamed().start(SCHEMA, POLICY, seed=b"other")
    other.restore(engine.snapshot())
    assert other.n_held == 3
    with pytest.raises(CheckpointError):
        Renamed(room=99).start(SCHEMA, POLICY, seed=b"other").restore(engine.snapshot())


def test_snapshots_are_flat_copies() -> None:
    engine = started()
    engine.push(batch(1.0, 2.0, 3.0))
    snapshot = engine.snapshot()
    assert set(snapshot) == {"values", "inner.n_rows", "shuffling", "identity"}
    first = engine.flush()
    other = started(b"other")
    other.restore(snapshot)
    assert other.n_held == 3
    assert other.flush().rows.tolist() == first.rows.tolist()
    assert snapshot["inner.n_rows"].tolist() == [3, 3]


@pytest.mark.parametrize("spoil", ["missing", "extra"])
def test_a_snapshot_of_something_else_is_refused(spoil: str) -> None:
    engine = started()
    snapshot = engine.snapshot()
    if spoil == "missing":
        del snapshot["values"]
    else:
        snapshot["other"] = np.zeros(1)
    with pytest.raises(CheckpointError, match="another algorithm or version: 1 of its arrays"):
        engine.restore(snapshot)


def test_a_promise_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="'buffer' can't enforce distinct l-diversity"):
        Buffer().start(SCHEMA, Policy(DistinctLDiversity(2), delay=Delay(rows=1)))
    with pytest.raises(UnsupportedError, match="sets no bound"):
        Buffer().start(SCHEMA, Policy(KAnonymity(2)))


@pytest.mark.parametrize("room", [0, True, 1.0, "1"])
def test_a_knob_that_is_no_whole_number_is_refused(room: object) -> None:
    with pytest.raises(ParameterError, match=r"Buffer\.room: must be a whole number of at least 1"):
        Buffer(room=room)  # type: ignore[arg-type]


def test_a_knob_that_is_no_known_word_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"Buffer\.mode: must be one of one, other; got 'two'"):
        Buffer(mode="two")


def test_a_snapshot_of_another_promise_is_refused() -> None:
    schema = Schema(subject="p", quasi=[Quasi("x", Range(0, 10))])
    two, ten = (
        Castle().start(schema, Policy(KAnonymity(k), delay=Delay(rows=5)), seed=b"s")
        for k in (2, 10)
    )
    with pytest.raises(CheckpointError, match="another schema, policy or other knobs"):
        ten.restore(two.snapshot())


# -- windows ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Slides(Buffer):
    name: ClassVar[str] = "slides"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, TCloseness)
    needs_delay: ClassVar[bool] = False
    publishes: ClassVar[Publishes] = "windows"


@dataclass(frozen=True, kw_only=True)
class AtOnce(Slides):
    name: ClassVar[str] = "at-once"
    publishes: ClassVar[Publishes] = "table"


ILL = Schema("p", [Quasi("x", Range(0, 100))], [Sensitive("ill", Hierarchy.flat([*"abc"]))])
CLOSE = TCloseness(0.2)


@pytest.mark.parametrize(
    ("anonymizer", "policy", "says"),
    [
        (AtOnce(), Policy(KAnonymity(2), delay=Delay(rows=5)), "'at-once' publishes a whole table"),
        (AtOnce(), Policy(CLOSE, window=Window(4, 2)), 'whole table at once. Set .*= "all"'),
        (Slides(), Policy(CLOSE, window="all"), "'slides' publishes a stream and never knows all"),
        (Buffer(), Policy(KAnonymity(2), window="all"), "never knows all"),
        (Slides(), Policy(CLOSE, window=Window(4)), "doesn't say by how much a window advances"),
        (Slides(), Policy(KAnonymity(2)), "measured against windows, and nothing is"),
        (
            Slides(),
            Policy(CLOSE, window=Window(4000, 2000), delay=Delay(rows=5999)),
            r"up to window \+ advance = 6,000 rows and the delay is 5,999 .*Lemma 6.1.*least 6000",
        ),
    ],
)
def test_a_window_that_does_not_go_with_an_algorithm_is_refused(
    anonymizer: Anonymizer, policy: Policy, says: str
) -> None:
    with pytest.raises(UnsupportedError, match=says):
        anonymizer.start(ILL, policy)


@pytest.mark.parametrize(
    ("anonymizer", "policy"),
    [
        (AtOnce(), Policy(KAnonymity(2), window="all")),
        (AtOnce(), Policy(CLOSE, window="all")),
        (Slides(), Policy(CLOSE, window=Window(4, 2))),
        (Slides(), Policy(CLOSE, window=Window(4, 2), delay=Delay(rows=6))),
        # Seconds only make a window advance early.
        (Slides(), Policy(CLOSE, window=Window(4, 2), delay=Delay(seconds=0.1))),
        (Slides(), Policy(CLOSE, window=Window(4, 2), delay=Delay(rows=6, seconds=0.1))),
    ],
)
def test_a_window_that_goes_with_an_algorithm(anonymizer: Anonymizer, policy: Policy) -> None:
    assert anonymizer.start(ILL, policy).n_held == 0


def test_a_box_has_its_window() -> None:
    out = Out.room(2, 1)
    edge = np.zeros(1)
    assert write_box(out, edge, edge, Box(0.0, 0, 1, 1, 0)) == 0
    assert write_box(out, edge, edge, Box(0.0, 1, 1, 1, 0, 8)) == 1
    assert out.decisions().windows.tolist() == [-1, 8]


@pytest.mark.parametrize(
    "other",
    [
        Policy(TCloseness(0.3), window=Window(4, 2)),
        Policy(TCloseness(0.2), window=Window(8, 2)),
        Policy(TCloseness(0.2), window=Window(4, 4)),
        Policy(TCloseness(0.2), KAnonymity(2), window=Window(4, 2)),
        Policy(TCloseness(0.2), window=Window(4, 2), delay=Delay(rows=6)),
    ],
)
def test_a_snapshot_of_another_window_or_measure_is_refused(other: Policy) -> None:
    one = Slides().start(ILL, Policy(CLOSE, window=Window(4, 2)), seed=b"s")
    with pytest.raises(CheckpointError, match="another schema, policy or other knobs"):
        Slides().start(ILL, other, seed=b"s").restore(one.snapshot())


def test_a_snapshot_of_another_clock_is_refused() -> None:
    policy = Policy(KAnonymity(2), delay=Delay(rows=5))
    one, other = (
        Buffer().start(Schema("p", [Quasi("x", Range(0, 9))], time=time), policy, seed=b"s")
        for time in ("x", "t")
    )
    with pytest.raises(CheckpointError, match="another schema"):
        other.restore(one.snapshot())


def test_a_snapshot_of_another_tree_is_refused() -> None:
    deeper = Hierarchy.from_dict({"*": {"A": ["a", "b"], "C": ["c"]}})
    policy = Policy(CLOSE, window=Window(4, 2))
    one, other = (
        Slides().start(Schema("p", ILL.quasi, [Sensitive("ill", tree)]), policy, seed=b"s")
        for tree in (Hierarchy.flat([*"abc"]), deeper)
    )
    with pytest.raises(CheckpointError, match="another schema"):
        other.restore(one.snapshot())


def test_decisions_stay_as_they_are_when_buffers_are_used_again() -> None:
    schema = Schema("p", [Quasi("x", Range(0, 9))])
    policy = Policy(KAnonymity(2), delay=Delay(rows=2))
    engine = Castle().start(schema, policy, seed=b"again")
    made, before = [], []
    for begin in range(0, 40, 8):
        numbers = np.arange(begin, begin + 8)
        nothing = np.empty((8, 0), np.int64)
        values = (numbers % 10).astype(float).reshape(8, 1)
        made.append(engine.push(Codes(values, numbers, nothing, np.full(8, np.nan))))
        before.append([array.copy() for array in made[-1]])
    for decided, copies in zip(made, before, strict=True):
        for array, copy in zip(decided, copies, strict=True):
            np.testing.assert_array_equal(array, copy)
    assert sum(len(decided.rows) for decided in made) > 30
