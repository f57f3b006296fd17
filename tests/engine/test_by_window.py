"""Windows that slide over a stream: when they advance, what leaves, and under which window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Hierarchy, Policy
from shoal.algorithms import find, names
from shoal.engine import Codes, Decisions
from shoal.engine.base import Out, Outcome
from shoal.engine.by_window import ByWindow, ByWindowEngine
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts, parts_of
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.spec.criteria import Criterion, EnhancedLikeness, KAnonymity, TCloseness
from shoal.spec.policy import Delay, Window
from shoal.testing.streams import Stream, Tick, batch, difference, joined, play, steps
from tests.examples import examples
from tests.naive.measured import Promises
from tests.naive.papers.test_emd import RAGGED
from tests.tables import codes, drifting, naive, schema, start, windowed

NAMES = [name for name in ("sabre-w", "burel-w") if name in names()]
STRICT: dict[str, Criterion] = {"sabre-w": TCloseness(0.1), "burel-w": EnhancedLikeness(0.3)}
LOOSE: dict[str, Criterion] = {"sabre-w": TCloseness(0.25), "burel-w": EnhancedLikeness(0.9)}
AB = Hierarchy.flat([*"ab"])


# -- when windows advance --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Whole(ByWindow):
    """All rows are one part."""

    name = "whole"
    enforces = (KAnonymity, TCloseness)

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        n = len(rows.subjects)
        return parts_of(space.sides, rows, np.arange(n), np.array([0, n]))


@dataclass(frozen=True, kw_only=True)
class Apart(ByWindow):
    """Every row is a part of its own."""

    name = "apart"
    enforces = (KAnonymity, TCloseness)

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        n = len(rows.subjects)
        return parts_of(space.sides, rows, np.arange(n), np.arange(n + 1))


class Noting(ByWindowEngine):
    """Notes each window: its rows, and those that expire."""

    def __init__(self, space: Space, seed: bytes, anonymizer: ByWindow) -> None:
        super().__init__(space, seed, anonymizer)
        self.noted: list[tuple[tuple[int, int], tuple[int, int]]] = []

    def _advance_window(self, end: int, expired: int, out: Out) -> None:
        base, rows = int(self.state.marks["base"][0]), self.space.window.rows
        self.noted.append(((max(0, end - rows), end), (base, expired)))
        super()._advance_window(end, expired, out)


def noting(
    rows: int,
    advance: int,
    seconds: float | None = None,
    kind: type[ByWindow] = Apart,
    k: int = 1,
) -> Noting:
    delay = None if seconds is None else Delay(seconds=seconds)
    policy = Policy(KAnonymity(k), TCloseness(9.0), window=Window(rows, advance), delay=delay)
    return Noting(Space(schema([AB]), policy), b"1", kind())


def alike(n: int, times: Any = None) -> Codes:
    return codes([(0, i, 0) for i in range(n)], [AB], times)


def test_a_window_advances_when_as_many_rows_have_come_after_it() -> None:
    engine = noting(4, 2)
    assert len(engine.push(alike(5)).rows) == 0
    assert engine.noted == []
    decided = engine.push(alike(1))
    assert engine.noted == [((0, 4), (0, 2))]
    assert sorted(decided.rows.tolist()) == [0, 1]
    assert set(decided.published.tolist()) == {5}
    assert set(decided.windows.tolist()) == {4}
    engine.push(alike(4))
    assert engine.noted[1:] == [((2, 6), (2, 4)), ((4, 8), (4, 6))]


@pytest.mark.parametrize(
    ("n_rows", "windows"),
    [
        (3, [((0, 3), (0, 3))]),
        (4, [((0, 4), (0, 4))]),
        (5, [((0, 4), (0, 1)), ((1, 5), (1, 5))]),
        (6, [((0, 4), (0, 2)), ((2, 6), (2, 6))]),
        (7, [((0, 4), (0, 2)), ((2, 6), (2, 3)), ((3, 7), (3, 7))]),
        (8, [((0, 4), (0, 2)), ((2, 6), (2, 4)), ((4, 8), (4, 8))]),
    ],
)
def test_the_end_advances_until_all_rows_have_left(n_rows: int, windows: list[Any]) -> None:
    engine = noting(4, 2)
    engine.push(alike(n_rows))
    decided = engine.flush()
    assert engine.noted == windows
    assert engine.n_held == 0
    assert set(decided.published.tolist()) == {n_rows}
    assert len(set(decided.instants.tolist())) == 1
    assert len(engine.flush().rows) == 0


def test_a_window_that_advances_by_all_of_its_rows() -> None:
    engine = noting(3, 3)
    engine.push(alike(9))
    assert engine.noted == [((0, 3), (0, 3)), ((3, 6), (3, 6))]


def test_an_advance_by_single_rows() -> None:
    engine = noting(1, 1)
    decided = engine.push(alike(4))
    assert engine.noted == [((n, n + 1), (n, n + 1)) for n in range(3)]
    assert (decided.published - decided.rows).tolist() == [1, 1, 1]


def test_nothing_comes_of_nothing() -> None:
    for seconds in (None, 10.0):
        engine = noting(4, 2, seconds)
        assert len(engine.advance(1e6).rows) == 0
        assert len(engine.flush().rows) == 0
        assert len(engine.push(alike(0)).rows) == 0
        assert engine.noted == []
        assert engine.next_deadline is None


# -- seconds ---------------------------------------------------------------------------------------


def test_a_delay_in_seconds_advances_early() -> None:
    engine = noting(4, 2, 10.0)
    engine.push(alike(3, [0, 1, 2]))
    assert engine.next_deadline == 10.0
    assert len(engine.advance(9.9).rows) == 0
    decided = engine.advance(10.0)
    assert engine.noted == [((0, 3), (0, 2))]
    # The second row isn't due, and leaves with what advances.
    assert sorted(decided.rows.tolist()) == [0, 1]
    assert (set(decided.published.tolist()), set(decided.published_s.tolist())) == ({3}, {10.0})
    assert engine.next_deadline == 12.0
    engine.advance(12.0)
    assert engine.noted[1:] == [((0, 3), (2, 3))]
    # What leaves by its position next is counted from where the window has come to.
    engine.push(alike(5, [20, 21, 22, 23, 24]))
    assert engine.noted[2:] == []
    engine.push(alike(1, [24]))
    assert engine.noted[2:] == [((3, 7), (3, 5))]


def test_a_late_row_finds_others_overdue() -> None:
    engine = noting(4, 2, 10.0)
    engine.push(alike(1, [0]))
    decided = engine.push(alike(1, [30]))
    # It isn't in their window, and they left before it came.
    assert engine.noted == [((0, 1), (0, 1))]
    assert decided.rows.tolist() == [0]
    assert (decided.published.tolist(), decided.published_s.tolist()) == ([1], [10.0])


def test_at_the_end_rows_that_are_due_leave_first() -> None:
    engine = noting(4, 2, 10.0)
    engine.push(alike(3, [0, 8, 9]))
    engine.advance(9.5)
    decided = engine.flush()
    assert engine.noted == [((0, 3), (0, 3))]
    assert set(decided.published_s.tolist()) == {9.5}


def test_a_window_that_is_full_advances_by_rows_whatever_the_clock_says() -> None:
    engine = noting(2, 1, 1000.0)
    decided = engine.push(alike(4, [0, 1, 2, 3]))
    assert engine.noted == [((0, 2), (0, 1)), ((1, 3), (1, 2))]
    assert decided.published_s.tolist() == [2.0, 3.0]


def test_an_early_window_has_rows_that_have_left() -> None:
    # Each value once; then two rows of one, whose window still has all four.
    engine = start("sabre-w", TCloseness(0.1), domains=[AB], window=Window(4, 2), seconds=10.0)
    engine.push(codes([(0, 0, 0), (0, 1, 1)], [AB], [0.0, 0.0]))
    assert windowed(engine.advance(10.0)) == [([0, 1], 2)]
    engine.push(codes([(0, 2, 1), (0, 3, 1)], [AB], [11.0, 11.0]))
    decided = engine.advance(21.0)
    assert (decided.rows.tolist(), decided.outcomes.tolist()) == ([2, 3], [Outcome.suppressed] * 2)


# -- what leaves -----------------------------------------------------------------------------------


def test_groups_without_an_expiring_row_are_remembered() -> None:
    engine = noting(4, 2)
    engine.push(alike(6))
    # Rows 2 and 3 were parts of their own, and stay; they are parted again when they expire.
    assert engine.n_held == 4
    assert (engine.state.marks["n_remembered"][0], engine.state.marks["remembered"][0]) == (2, 4)


def test_a_part_with_an_expiring_row_takes_all_of_its_rows_along() -> None:
    engine = noting(4, 2, kind=Whole)
    decided = engine.push(alike(6))
    assert windowed(decided) == [([0, 1, 2, 3], 4)]
    # Nothing that expires next is held: nothing is done (case 1).
    assert len(engine.push(alike(2)).rows) == 0
    assert engine.noted == [((0, 4), (0, 2)), ((2, 6), (2, 4))]


def test_what_expires_without_a_group_is_suppressed_and_the_rest_is_not() -> None:
    # k = 2 of one subject: the window as a whole is no group.
    engine = noting(4, 2, k=2)
    one = alike(6)._replace(subjects=np.zeros(6, np.int64))
    decided = engine.push(one)
    assert (decided.rows.tolist(), decided.outcomes.tolist()) == ([0, 1], [Outcome.suppressed] * 2)
    # Somebody else comes, and the rest finds a group.
    more = engine.push(alike(2)._replace(subjects=np.array([5, 6])))
    assert sorted(more.rows.tolist()) == [2, 3]
    assert engine.n_held == 4


# -- the algorithms --------------------------------------------------------------------------------


def play_out(
    name: str, rows: list[tuple[int, ...]], criteria: list[Criterion], window: Window,
    seconds: float | None = None,
) -> tuple[Decisions, Promises, Codes]:  # fmt: skip
    engine = start(name, *criteria, domains=[RAGGED], window=window, seconds=seconds)
    data = codes(rows, [RAGGED], [float(i) for i in range(len(rows))])
    decided = engine.push(data)
    assert (decided.published - decided.rows < window.rows + (window.advance or 0)).all()
    policy = Policy(*criteria, window=window)
    return joined([decided, engine.flush()]), Promises.of(schema([RAGGED]), policy), data


@pytest.mark.parametrize("name", NAMES)
def test_streams_keep_the_promise_and_the_delay(name: str) -> None:
    @settings(max_examples=examples(30), deadline=None, derandomize=True, database=None)
    @given(
        seed=st.integers(0, 10**6),
        n_rows=st.integers(0, 50),
        advance=st.integers(1, 4),
        times=st.integers(1, 5),
        k=st.integers(1, 3),
        criterion=st.sampled_from([STRICT[name], LOOSE[name]]),
        seconds=st.sampled_from([None, None, 3.0, 12.0]),
    )
    def kept(
        seed: int, n_rows: int, advance: int, times: int, k: int, criterion: Any, seconds: Any
    ) -> None:
        window = Window(advance * times, advance)
        decided, promises, data = play_out(
            name, drifting(seed, n_rows), [KAnonymity(k), criterion], window, seconds
        )
        # In is released and suppressed, each row once.
        assert sorted(decided.rows.tolist()) == list(range(n_rows))
        rows = naive(data)
        for group, end in windowed(decided):
            against = rows[max(0, end - window.rows) : end]
            assert set(group) <= {row.number for row in against}
            assert promises.hold([rows[n] for n in group], against)
        suppressed = decided.outcomes == Outcome.suppressed
        assert ((decided.boxes < 0) == suppressed).all()
        if seconds is not None:
            assert (decided.published_s - decided.rows <= seconds).all()

    kept()


@pytest.mark.parametrize("name", NAMES)
def test_streams_that_drift_leave_groups_of_earlier_windows(name: str) -> None:
    # INDIRECT: the window that advances when row p has come ends before row p + 1 - advance.
    late = 0
    for seed in range(6):
        decided, _, _ = play_out(name, drifting(seed, 60), [STRICT[name]], Window(12, 2))
        before_the_end = (decided.boxes >= 0) & (decided.published < 60)
        windows = decided.windows[decided.boxes[before_the_end]]
        late += np.count_nonzero(windows < decided.published[before_the_end] + 1 - 2)
    assert late > 2


@st.composite
def streams(draw: st.DrawFn, name: str) -> Stream:
    """A stream that drifts, with a clock, ticks and cuts."""
    n = draw(st.integers(0, 40))
    advance = draw(st.integers(1, 4))
    seconds = draw(st.sampled_from([None, 3.0, 12.0]))
    policy = Policy(
        KAnonymity(draw(st.integers(1, 3))), LOOSE[name],
        window=Window(advance * draw(st.integers(1, 4)), advance),
        delay=None if seconds is None else Delay(seconds=seconds),
    )  # fmt: skip
    gaps = draw(st.lists(st.sampled_from([0.0, 0.5, 4.0, -1.0]), min_size=n, max_size=n))
    times = np.cumsum(gaps).tolist()
    data = codes(drifting(draw(st.integers(0, 999)), n), [RAGGED], times)
    where = draw(st.lists(st.tuples(st.integers(0, n), st.sampled_from([0.0, 5.0])), max_size=3))
    ticks = [Tick(at, (times[at - 1] if at else 0.0) + later) for at, later in sorted(where)]
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return Stream(schema([RAGGED], "at"), policy, data, tuple(ticks), tuple(cuts))


@pytest.mark.parametrize("name", NAMES)
def test_batching_does_not_matter(name: str) -> None:
    @settings(max_examples=examples(25), deadline=None, derandomize=True, database=None)
    @given(stream=streams(name))
    def same(stream: Stream) -> None:
        anonymizer = find(name)()
        whole = play(anonymizer, stream)
        for cuts in (stream.cuts, stream.row_by_row()):
            assert difference(whole, play(anonymizer, stream, cuts=cuts)) is None

    same()


@pytest.mark.parametrize("name", NAMES)
def test_a_snapshot_in_the_middle_of_a_window(name: str) -> None:
    @settings(max_examples=examples(15), deadline=None, derandomize=True, database=None)
    @given(stream=streams(name), at=st.integers(0, 40))
    def same(stream: Stream, at: int) -> None:
        anonymizer = find(name)()
        one, other = stream.start(anonymizer), stream.start(anonymizer, b"other")
        expected, found = [], []
        for n, step in enumerate(steps(one, stream, stream.row_by_row())):
            if n > at:
                found.append(step.move.make(other, stream.codes))
                expected.append(step.decisions)
            if n == at:
                other.restore(one.snapshot())
        for left, right in zip(expected, found, strict=True):
            assert difference(left, right) is None

    same()


@pytest.mark.parametrize("name", NAMES)
def test_a_snapshot_with_remembered_groups(name: str) -> None:
    rows = codes(drifting(1, 120), [RAGGED])
    one, other = (
        start(name, LOOSE[name], domains=[RAGGED], window=Window(12, 2)) for _ in range(2)
    )
    at = 0
    while len(one.state.lo) < 2:
        one.push(batch(rows, at, at + 2))
        at += 2
    assert at < 100
    other.restore(one.snapshot())
    rest = batch(rows, at, 120)
    assert difference(one.push(rest), other.push(rest)) is None
    assert difference(one.flush(), other.flush()) is None


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_that_of_a_window(name: str) -> None:
    engine = start(name, KAnonymity(2), STRICT[name], domains=[RAGGED], window=Window(40, 20))
    engine.push(codes(drifting(2, 400), [RAGGED]))
    before = {key: array.nbytes for key, array in engine.snapshot().items()}
    engine.push(codes(drifting(3, 700), [RAGGED]))
    after = {key: array.nbytes for key, array in engine.snapshot().items()}
    assert {key: n for key, n in after.items() if key not in ("lo", "hi")} == {
        key: n for key, n in before.items() if key not in ("lo", "hi")
    }
    assert after["lo"] <= 60 * 8


@pytest.mark.parametrize("name", NAMES)
def test_a_window_larger_than_the_first_room(name: str) -> None:
    # More rows are held than the ring has places for at first.
    engine = start(name, KAnonymity(2), LOOSE[name], domains=[RAGGED], window=Window(400, 200))
    data = codes(drifting(4, 700, n_subjects=200), [RAGGED])
    decided = joined([engine.push(batch(data, 0, 599)), engine.push(batch(data, 599, 700))])
    assert set(decided.published.tolist()) == {599}
    assert set(range(200)) <= set(decided.rows.tolist())
    assert len(joined([decided, engine.flush()]).rows) == 700
