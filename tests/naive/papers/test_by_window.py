"""The twin of SABRE_W's windows: Example 6.1, every way a window advances, and what leaves when."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.spec.criteria import Criterion, EnhancedLikeness, KAnonymity, TCloseness
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import Delay, Policy, Window
from shoal.spec.schema import Quasi, Schema, Sensitive
from tests.algorithms.world import groups
from tests.examples import examples
from tests.naive.by_window import Deviations, NaiveByWindow
from tests.naive.measured_twins import FOR_STREAMS, twin
from tests.naive.on_deadline import Decision
from tests.naive.papers.test_emd import RAGGED
from tests.naive.parts import Part
from tests.naive.sabre import NaiveSabre
from tests.naive.space import Row

AB = Hierarchy.flat([*"ab"])
A, B = 0, 1


def start(
    name: str = "sabre-w",
    *criteria: Criterion,
    window: tuple[int, int],
    seconds: float | None = None,
    domain: Any = AB,
    deviations: Deviations | None = None,
    **knobs: Any,
) -> NaiveByWindow:
    schema = Schema("person", [Quasi("x", Range(0, 100))], [Sensitive("s", domain)], time="at")
    policy = Policy(
        *(criteria or [KAnonymity(2), TCloseness(0.2)]),
        window=Window(*window),
        delay=None if seconds is None else Delay(seconds=seconds),
    )
    run = twin(name, schema, policy, seed=b"1", **knobs)
    assert isinstance(run, NaiveByWindow)
    run.sliding = deviations or run.sliding
    return run


def push(run: NaiveByWindow, rows: Sequence[tuple[float, int]]) -> list[list[Decision]]:
    """Push (x, value), each of another subject: what each of them decides."""
    return [run.push([x], f"s{run.n_rows}", [value]) for x, value in rows]


def flat(decided: Sequence[list[Decision]]) -> list[Decision]:
    return [decision for decisions in decided for decision in decisions]


def drifting(seed: int, n_rows: int) -> list[tuple[float, int, int]]:
    """Rows (x, value, subject) whose values come in runs: windows differ from what is left."""
    draw, value, rows = random.Random(seed), 0, []
    for _ in range(n_rows):
        value = value if draw.random() < 0.8 else draw.randrange(4)
        rows.append((float(draw.randrange(101)), value, draw.randrange(10)))
    return rows


# -- Example 6.1 -----------------------------------------------------------------------------------

#: Windows of 8 rows move by 2; t = 0.2 and k = 2. The rows of each group stand at one place.
EXAMPLE_6_1 = [
    (0, A), (10, A), (0, A), (20, A), (0, B), (10, B), (90, A), (90, B), (20, B), (20, B),
    (40, A), (41, A), (42, A), (43, A), (40, B), (41, B), (42, B), (43, B), (50, A), (50, B),
]  # fmt: skip


def example_6_1() -> NaiveByWindow:
    """A run that forms each group around the first row of the first bucket."""
    run = start(window=(8, 2), look=1)
    assert isinstance(run.partition, NaiveSabre)
    run.partition.taking.draw = lambda n: 0
    return run


def test_example_6_1() -> None:
    run = example_6_1()
    decided = push(run, EXAMPLE_6_1)
    assert run.cases == [2, 2, 1, 3, 1, 2]
    left = {n: sorted(groups(rows).values(), key=min) for n, rows in enumerate(decided) if rows}
    assert {n: found for n, found in left.items() if n < 19} == {
        9: [{0, 2, 4}, {1, 5}],  # W1, DIRECT
        11: [{3, 8, 9}],  # W2, DIRECT: what was left of W1 is parted again
        15: [{6, 7}],  # W4, INDIRECT: remembered since W2
    }
    assert 10 in {row for found in left[19] for row in found}  # W6, from scratch
    windows = {d.row: d.window for d in flat(decided)}  # type: ignore[attr-defined]
    assert [windows[row] for row in (0, 3, 6, 7, 10)] == [8, 10, 10, 10, 18]


def test_example_6_1_rows_left_are_too_different() -> None:
    # W4: five of six rows left are a, and five of its eight rows.
    run = example_6_1()
    push(run, EXAMPLE_6_1[:15])
    window, pool = run.rows[6:14], [run.rows[n] for n in (6, 7, 10, 11, 12, 13)]
    assert all(row.number in run.held for row in pool)
    assert run.too_different(pool, window)
    assert [(sorted(r.number for r in part.rows), end) for part, end in run.remembered] == [
        ([6, 7], 10)
    ]


# -- when windows advance --------------------------------------------------------------------------


class Noting(NaiveByWindow):
    """Notes each window instead of deciding: its rows, and those that expire."""

    def slide(self, end: int, expired: int, when: Any) -> list[Decision]:
        noted = self.__dict__.setdefault("noted", [])
        noted.append(((max(0, end - self.width), end), (self.base, expired), when))
        self.base = expired
        for number in list(self.held):
            if number < expired:
                del self.held[number]
        return []


def noting(rows: int, advance: int, seconds: float | None = None) -> Noting:
    run = start(window=(rows, advance), seconds=seconds)
    run.__class__ = Noting
    assert isinstance(run, Noting)
    return run


def noted(run: NaiveByWindow) -> list[Any]:
    return [entry[:2] for entry in run.__dict__.get("noted", [])]


def test_a_window_advances_when_as_many_rows_have_come_after_it() -> None:
    run = noting(4, 2)
    push(run, [(0, A)] * 5)
    assert noted(run) == []
    push(run, [(0, A)])
    assert noted(run) == [((0, 4), (0, 2))]
    push(run, [(0, A)] * 4)
    assert noted(run)[1:] == [((2, 6), (2, 4)), ((4, 8), (4, 6))]


def test_the_end_advances_until_one_window_is_left() -> None:
    run = noting(4, 2)
    push(run, [(0, A)] * 7)
    run.flush()
    assert noted(run)[1:] == [((2, 6), (2, 3)), ((3, 7), (3, 7))]


def test_a_stream_shorter_than_a_window_is_one_window() -> None:
    run = noting(4, 2)
    push(run, [(0, A)] * 3)
    run.flush()
    assert noted(run) == [((0, 3), (0, 3))]


def test_the_end_without_a_row() -> None:
    run = start(window=(4, 2))
    assert run.flush() == []


def test_a_delay_in_seconds_advances_early() -> None:
    run = noting(4, 2, seconds=10)
    for second in (0, 1, 2):
        run.push([0], "s", [A], second)
    run.advance(9.9)
    assert noted(run) == []
    run.advance(10)
    assert noted(run) == [((0, 3), (0, 2))]
    # The next is due at 12: of its window only one more row has come.
    run.advance(12)
    assert noted(run)[1:] == [((0, 3), (2, 3))]
    for second in (20, 21, 22, 23):
        run.push([0], "s", [A], second)
    assert noted(run)[2:] == []
    # The fifth row after base makes it due by position only when rows + advance have come.
    run.push([0], "s", [A], 24)
    run.push([0], "s", [A], 24)
    assert noted(run)[2:] == [((3, 7), (3, 5))]


def test_early_advances_tell_when_and_why() -> None:
    run = noting(4, 2, seconds=10)
    run.push([0], "s", [A], 0)
    run.push([0], "s", [A], 30)
    # The row that comes at 30 finds the first overdue since 10, and isn't in its window.
    assert run.__dict__["noted"] == [((0, 1), (0, 1), (1, 10.0))]


def test_an_early_advance_reaches_a_row_behind_others_that_have_left() -> None:
    run = start(window=(4, 2), seconds=10)
    for second, (x, value) in enumerate([(0, A), (90, A), (0, B), (0, B), (91, B), (91, A)]):
        run.push([x], f"s{second}", [value], second)
    assert run.base == 2
    held = min(run.held)
    before = len(run.cases)
    decisions = run.advance(10.0 + held)
    assert held in {d.row for d in decisions}
    assert {d.published for d in decisions} == {6}
    assert {d.published_s for d in decisions} == {10.0 + held}
    assert len(run.cases) > before


# -- the deviations, each off and on ---------------------------------------------------------------


def test_sliding_1_cases_by_the_promise() -> None:
    # t = 0: rows that are just like their window are never nearer than that.
    rows = [(x, value) for x in range(3) for value in (A, B)]
    paper, shoal = (
        start("sabre-w", TCloseness(0.0), window=(4, 2), deviations=Deviations(**flags))
        for flags in ({"cases_by_the_promise": False}, {})
    )
    assert {d.outcome for d in flat(push(paper, rows))} == {"suppressed"}
    assert {d.outcome for d in flat(push(shoal, rows))} == {"group"}
    assert (paper.cases, shoal.cases) == ([3], [2])


def test_sliding_1_likeness_is_asked_as_it_is() -> None:
    # §6.6 has no threshold that rows could lie on: there both rules are one.
    both = [
        start(
            "burel-w", EnhancedLikeness(0.3), window=(12, 2), domain=RAGGED,
            deviations=Deviations(cases_by_the_promise=flag),
        )
        for flag in (False, True)
    ]  # fmt: skip
    rows = [(x, value) for x, value, _ in drifting(seed=0, n_rows=60)]
    paper, shoal = (flat(push(run, rows)) for run in both)
    assert paper == shoal
    assert set(both[1].cases) == {1, 2, 3}


class Alone:
    """Parts every row from the others, whatever is promised."""

    def __init__(self, run: NaiveByWindow) -> None:
        self.space, self.promises = run.space, run.promises

    def __call__(self, pool: Sequence[Row], window: Sequence[Row]) -> list[Part]:
        return [Part([row], row.box) for row in pool]


def test_sliding_2_groups_are_checked() -> None:
    found = []
    for flag in (False, True):
        run = start(window=(4, 2), deviations=Deviations(groups_are_checked=flag))
        run.partition = Alone(run)
        found.append(flat(push(run, [(0, A), (0, B)] * 3)))
    paper, shoal = found
    assert [(d.row, d.outcome, d.n_subjects) for d in paper] == [(0, "group", 1), (1, "group", 1)]
    assert [(d.row, d.outcome) for d in shoal] == [(0, "suppressed"), (1, "suppressed")]


def test_sliding_3_the_rest_is_suppressed() -> None:
    # At the end two rows of one person are left, and nothing is remembered.
    decided = []
    for flag in (False, True):
        run = start(window=(4, 4), deviations=Deviations(the_rest_is_suppressed=flag))
        push(run, [(0, A), (50, B), (50, A), (0, B)])
        run.push([50], "one", [A])
        run.push([50], "one", [B])
        found = {d.row: d.outcome for d in run.flush()}
        assert [found.pop(row) for row in range(4)] == ["group"] * 4
        decided.append((found, set(run.held)))
    paper, shoal = decided
    assert paper == ({}, {4, 5})
    assert shoal == ({4: "suppressed", 5: "suppressed"}, set())


# -- streams ---------------------------------------------------------------------------------------

CRITERIA: dict[str, list[Criterion]] = {
    name: [EnhancedLikeness(0.3), EnhancedLikeness(0.9)] if name == "burel-w"
    else [TCloseness(0.1), TCloseness(0.25)]
    for name in FOR_STREAMS
}  # fmt: skip


def keeps_all(run: NaiveByWindow, rows: Sequence[tuple[float, int, int]]) -> int:
    """Run a stream to its end, look at all that leaves, and tell how often it was INDIRECT."""
    found: list[Any] = []
    for second, (x, value, subject) in enumerate(rows):
        found += run.push([x], subject, [value], float(second))
    assert all(d.published - d.row < run.width + run.step for d in found)
    found += run.flush()
    assert sorted(d.row for d in found) == list(range(len(rows)))
    for members in groups(found).values():
        (end,) = {d.window for d in found if d.row in members}
        window = run.rows[max(0, end - run.width) : end]
        inside = [run.rows[n] for n in members]
        assert all(row in window for row in inside)
        assert run.promises.hold(inside, window)
    assert all(d.window is None for d in found if d.outcome == "suppressed")
    if run.delay_seconds is not None:
        assert all(d.published_s - d.row <= run.delay_seconds for d in found)
    return sum(case == 3 for case in run.cases)


@pytest.mark.parametrize("name", FOR_STREAMS)
def test_streams_keep_the_promise_and_the_delay(name: str) -> None:
    @settings(max_examples=examples(30), deadline=None, derandomize=True, database=None)
    @given(
        seed=st.integers(0, 10**6),
        n_rows=st.integers(0, 50),
        advance=st.integers(1, 4),
        times=st.integers(1, 5),
        k=st.integers(1, 3),
        criterion=st.sampled_from(CRITERIA[name]),
        seconds=st.sampled_from([None, None, 3.0, 12.0]),
    )
    def kept(
        seed: int, n_rows: int, advance: int, times: int, k: int, criterion: Any, seconds: Any
    ) -> None:
        window = advance * times, advance
        run = start(name, KAnonymity(k), criterion, window=window, seconds=seconds, domain=RAGGED)
        keeps_all(run, drifting(seed, n_rows))

    kept()


@pytest.mark.parametrize("name", FOR_STREAMS)
def test_streams_that_drift_are_indirect_at_times(name: str) -> None:
    runs = [start(name, CRITERIA[name][0], window=(12, 2), domain=RAGGED) for _ in range(6)]
    assert sum(keeps_all(run, drifting(seed, 60)) for seed, run in enumerate(runs)) > 2
