"""Which window each moment is measured against, and traces that tell of none that it could be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.audit import Verdict
from shoal.audit.criteria import moments
from shoal.audit.criteria.moments import Moments
from shoal.audit.evidence import EquivalenceClasses
from shoal.spec.policy import BasicLikeness, Delay, Measured, TCloseness, Window
from tests.audit.criteria.measured_world import NUMBERS, Row, holds, ordered_distance, run

WORST = "worst_group_closeness_by_rows"


def stream() -> list[Row]:
    """Windows of four rows: two groups that are like theirs, and a row that joins the first.

    Values 1 and 2 take turns up to row 7, and then 3 and 4 do.
    """
    rows = [Row(1 + i % 2) for i in range(8)] + [Row(3 + i % 2) for i in range(4)]
    for i in (0, 1):
        rows[i] = Row(rows[i].value, 0, 5, 4)
    for i in (2, 4, 5, 3):
        rows[i] = Row(rows[i].value, 1, 7, 6)
    for i in (6, 7):
        rows[i] = Row(rows[i].value, 0, 8, 8, joins=True)
    for i in (8, 9, 10, 11):
        rows[i] = Row(rows[i].value, 2, 12, 12)
    return rows


def judge(rows: list[Row], criterion: Measured | None = None, **options: Any) -> Verdict:
    criterion = criterion or TCloseness(0.0)
    options = {"domain": NUMBERS, "window": Window(4, advance=1), **options}
    return run(rows, criterion, **options)[f"{criterion.name} of disease"]


def test_each_group_is_measured_against_its_own_window() -> None:
    verdict = judge(stream())
    assert verdict.verdict == "kept"
    assert verdict.figures == {
        "t": 0.0,
        "n_groups": 3,
        "n_groups_beyond": 0,
        "n_moments": 4,
        "n_windows": 4,
        WORST: 0.0,
        "worst_group_closeness_by_subjects": 0.0,
    }
    assert judge(stream(), window=Window(5, advance=1)).verdict == "broken"


def measured_against(end: int) -> list[Row]:
    """Eight rows, of which the first two left when the eighth came, and the others at the end."""
    rows = [Row(i % 2, 0, 7, end) for i in range(2)]
    return rows + [Row(i % 2, 1, 8, 8) for i in range(6)]


def test_windows_that_advance_end_on_their_grid() -> None:
    """They go on by two rows; the latest rows are a window as well, whatever their number."""
    t, window = TCloseness(0.5), Window(6, advance=2)
    for end, is_on_grid in ((5, False), (6, True), (7, True), (8, True)):
        verdict = judge(measured_against(end), t, window=Window(8, advance=2))
        assert (verdict.verdict == "kept") == is_on_grid
        off = "isn't one of those that the advance leads to: 1 of 2 groups (0)"
        assert (off in verdict.detail) != is_on_grid
    assert judge(measured_against(6), t, window=window).verdict == "kept"


@pytest.mark.parametrize(
    ("delay", "expected"), [(Delay(rows=8), "broken"), (Delay(seconds=8.0), "kept")]
)
def test_where_a_clock_lets_windows_advance_they_may_end_anywhere(
    delay: Delay, expected: str
) -> None:
    options: dict[str, Any] = {"window": Window(8, advance=2), "delay": delay}
    assert judge(measured_against(5), TCloseness(0.5), **options).verdict == expected


def no_window(rows: list[Row]) -> None:
    rows[0].window = rows[1].window = None


def no_window_of_a_row(rows: list[Row]) -> None:
    rows[1].window = None


def no_window_of_a_join(rows: list[Row]) -> None:
    rows[6].window = None


def two_windows(rows: list[Row]) -> None:
    rows[1].window = 5


def too_late(rows: list[Row]) -> None:
    """Row 5 made the group leave; the window of row 6 would be as good, but wasn't there."""
    for i in (2, 3, 4, 5):
        rows[i].published, rows[i].window = 5, 7
    rows[2].group, rows[2].published = None, 7


def beyond_the_end(rows: list[Row]) -> None:
    for i in (8, 9, 10, 11):
        rows[i].published, rows[i].window = 99, 13


def far_beyond_the_end(rows: list[Row]) -> None:
    for i in (8, 9, 10, 11):
        rows[i].published, rows[i].window = 99, 99


def before_its_rows(rows: list[Row]) -> None:
    for i in (2, 3, 4, 5):
        rows[i].window = 5


def behind_its_rows(rows: list[Row]) -> None:
    """The window has moved past the group's first rows."""
    for i in (2, 3, 4, 5):
        rows[i].window = 7


def of_a_join_behind_it(rows: list[Row]) -> None:
    for i in (6, 7):
        rows[i].published, rows[i].window = 11, 12


def empty(rows: list[Row]) -> None:
    rows[0].window = rows[1].window = 0


def empty_for_a_row(rows: list[Row]) -> None:
    rows[0].window, rows[1].window = None, 0


FORGED: list[tuple[Callable[[list[Row]], None], list[str]]] = [
    (no_window, ["no window is named: 1 of 3 groups (0)"]),
    (
        no_window_of_a_row,
        [
            "no window is named: 1 of 3 groups (0)",
            "several windows are named at one moment: 1 of 3 groups (0)",
        ],
    ),
    (no_window_of_a_join, ["no window is named: 1 of 3 groups (0)"]),
    (two_windows, ["several windows are named at one moment: 1 of 3 groups (0)"]),
    (too_late, ["the window wasn't there yet: 1 of 3 groups (1)"]),
    (beyond_the_end, ["the window wasn't there yet: 1 of 3 groups (2)"]),
    (far_beyond_the_end, ["the window wasn't there yet: 1 of 3 groups (2)"]),
    (before_its_rows, ["the window doesn't hold the rows measured against it: 1 of 3 groups (1)"]),
    (behind_its_rows, ["the window doesn't hold the rows measured against it: 1 of 3 groups (1)"]),
    (
        of_a_join_behind_it,
        ["the window doesn't hold the rows measured against it: 1 of 3 groups (0)"],
    ),
    (empty, ["the window doesn't hold the rows measured against it: 1 of 3 groups (0)"]),
    (
        empty_for_a_row,
        [
            "no window is named: 1 of 3 groups (0)",
            "several windows are named at one moment: 1 of 3 groups (0)",
        ],
    ),
]


@pytest.mark.parametrize(("forge", "said"), FORGED, ids=[f[0].__name__ for f in FORGED])
def test_a_window_that_cannot_have_been_breaks_the_promise(
    forge: Callable[[list[Row]], None], said: list[str]
) -> None:
    rows = stream()
    forge(rows)
    verdict = judge(rows, TCloseness(1.0))
    assert verdict.verdict == "broken"
    assert [part for part in verdict.detail.split("; ") if "window" in part] == said
    assert verdict.figures["n_groups_beyond"] == 0


@pytest.mark.parametrize(
    ("published", "end", "is_latest"),
    [(6, 7, True), (7, 7, True), (8, 7, False), (7, 8, True), (9, 7, False)],
)
def test_without_an_advance_the_window_has_the_latest_rows(
    published: int, end: int, is_latest: bool
) -> None:
    rows = [Row(i % 2) for i in range(12)]
    for i in (4, 5):
        rows[i] = Row(rows[i].value, 0, published, end)
    for i in (10, 11):
        rows[i] = Row(rows[i].value, 1, 12, 12)
    verdict = judge(rows, TCloseness(0.5), window=Window(4))
    assert verdict.verdict == ("kept" if is_latest else "broken")
    not_latest = (
        "the window doesn't hold the rows measured against it, or isn't that of the latest rows: "
        "1 of 2 groups (0)"
    )
    assert (not_latest in verdict.detail) != is_latest
    # A window that advances stays the same until the next one begins.
    assert judge(rows, TCloseness(0.5), window=Window(4, advance=1)).verdict == "kept"


def test_a_window_moved_to_hide_something_is_measured_where_it_says() -> None:
    """3 3 isn't 3 4 3 4, whichever window that holds both rows is named."""
    rows = stream()
    rows[9].group = rows[11].group = None
    assert judge(rows).verdict == "broken"
    assert judge(rows).figures[WORST] == 0.5


def test_on_a_tick_the_next_row_has_not_arrived() -> None:
    """A tick and a row have the same moment in a trace, so the window may end with that row."""
    rows = stream()
    for i in (2, 3, 4, 5):
        rows[i].published = 5
    assert judge(rows).verdict == "kept"


def test_the_window_of_a_table_is_the_table() -> None:
    rows = [Row(i % 2, 0, 4, 4) for i in range(4)]
    assert judge(rows, window="all").verdict == "kept"
    for row in rows:
        row.window = 3
    detail = judge(rows, window="all").detail
    assert "the window isn't the whole table: 1 of 1 group (0)" in detail


def test_quarantined_rows_never_arrived() -> None:
    rows = [Row(i % 2, 0, 4, 4) for i in range(4)]
    rows.insert(2, Row(1, outcome="quarantined"))
    assert judge(rows, window="all").verdict == "kept"
    rows = stream()
    rows.insert(1, Row(777, outcome="quarantined"))
    assert judge(rows).verdict == "kept"


def test_held_rows_did() -> None:
    rows = stream()
    for i in (8, 9, 10, 11):
        rows[i] = Row(rows[i].value, outcome="held")
    rows[7].window = rows[6].window = 9
    verdict = judge(rows, TCloseness(1.0))
    assert verdict.verdict == "kept"
    assert verdict.figures[WORST] > 0


# -- joins -----------------------------------------------------------------------------------------


def test_who_joins_is_measured_with_those_that_are_there() -> None:
    rows = stream()
    rows[7].group = None
    verdict = judge(rows)  # 1 2, and then 1 2 1 against 1 2 1 2
    assert verdict.figures[WORST] == pytest.approx(float(ordered_distance([1, 2, 1], [1, 2])))
    assert "farther than 0 from the window: 1 of 3 groups (0)" in verdict.detail


def test_members_may_be_older_than_the_window_of_a_join_but_not_their_values() -> None:
    rows = stream()
    rows += [Row(3, 0, 13, 13, joins=True), Row(4, 0, 13, 14, joins=True)]
    verdict = judge(rows, TCloseness(1.0))
    assert verdict.verdict == "broken"
    assert "a value that the window lacks: 1 of 3 groups (0)" in verdict.detail
    assert verdict.figures[WORST] is None
    assert verdict.figures["n_groups_beyond"] == 1


def test_a_tick_and_a_row_of_one_moment_have_windows_of_their_own() -> None:
    """After each of the two, what is there is measured against the window of then."""
    rows = [Row(1 + i % 2) for i in range(12)]
    rows[0], rows[1] = Row(1, 0, 2, 2), Row(2, 0, 2, 2)
    rows[5], rows[6] = Row(2, 0, 8, 8, joins=True), Row(1, 0, 8, 9, joins=True)
    verdict = judge(rows, TCloseness(1.0))
    assert verdict.figures["n_moments"] == 3
    assert verdict.figures[WORST] == pytest.approx(float(ordered_distance([1, 2, 2], [1, 2])))


def test_the_earlier_window_is_the_earlier_moment_wherever_its_rows_stand() -> None:
    """1 2 1 is joined by the later row first, and is 1 2 1 1 for a moment."""
    rows = [Row(1 + i % 2) for i in range(12)]
    for i in (0, 1, 2):
        rows[i] = Row(rows[i].value, 0, 3, 4)
    rows[5], rows[6] = Row(2, 0, 8, 9, joins=True), Row(1, 0, 8, 8, joins=True)
    verdict = judge(rows, TCloseness(1.0))
    assert verdict.figures[WORST] == 0.25


def test_who_joins_nothing_is_a_matter_of_grouping() -> None:
    rows = stream()
    rows[6].group = rows[7].group = 7
    verdict = judge(rows)
    assert (verdict.verdict, verdict.figures["n_groups"]) == ("kept", 3)


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Row], int]:
    """Rows of two groups, each released at some moment with a window that holds all of it.

    The others join at moments of which some are the same.
    """
    groups = draw(st.lists(st.sampled_from([None, 0, 0, 1]), min_size=1, max_size=14))
    length = draw(st.integers(2, 8))
    n = len(groups)
    rows = [Row(draw(st.integers(1, 4)), published=n) for _ in groups]
    for group in (0, 1):
        members = [i for i in range(n) if groups[i] == group]
        first = [i for i in members[: draw(st.integers(1, 4))] if i < members[0] + length]
        if not first:
            continue
        end = draw(st.integers(first[-1] + 1, min(first[0] + length, n)))
        moment = draw(st.integers(end - 1, n))
        for i in members:
            if i in first:
                rows[i] = Row(rows[i].value, group, moment, end)
                continue
            moment = draw(st.integers(max(moment, i), n))
            latest = min(moment + 1, n, i + length)
            rows[i] = Row(
                rows[i].value, group, moment, draw(st.integers(i + 1, latest)), joins=True
            )
    return rows, length


@pytest.mark.parametrize(
    ("cells", "n_values", "sizes"),
    [(6, 2, [3, 2]), (7, 2, [3, 2]), (1, 2, [1] * 5), (2, 1, [2, 2, 1]), (99, 2, [5])],
)
def test_some_moments_are_counted_at_a_time_and_at_least_one(
    cells: int, n_values: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moments, "_CELLS", cells)
    five = Moments(
        EquivalenceClasses("group", *np.zeros((5, 1), dtype=np.int64)),
        class_of=np.array([0, 0, 1, 1, 1]),
        end=np.arange(5),
        rows=np.arange(5),
        moment=np.arange(5),
        flaws=[],
    )
    found = list(five.counts(np.zeros(5, dtype=np.int64), n_values))
    assert [len(counts) for _, counts in found] == sizes
    assert [n for _, counts in found for n in counts[:, 0].tolist()] == [1, 2, 1, 2, 3]


def moments_of(rows: list[Row], length: int) -> list[tuple[list[int], list[int]]]:
    """The members after each moment, and the window they are measured against."""
    found = []
    values = [row.value for row in rows]
    for group in {row.group for row in rows} - {None}:
        members = [row for row in rows if row.group == group]
        instants = {(row.joins, row.published, row.window or 0) for row in members}
        for now in instants:
            inside = [r.value for r in members if (r.joins, r.published, r.window or 0) <= now]
            found.append((inside, values[max(0, now[2] - length) : now[2]]))
    return found


@given(streams(), st.sampled_from([0.1, 0.3, 0.5]), st.integers(1, 12))
def test_every_moment_of_every_group_by_the_definition(
    drawn: tuple[list[Row], int], t: float, cells: int
) -> None:
    rows, length = drawn
    states = moments_of(rows, length)
    if not states:
        return
    for criterion in (TCloseness(t), BasicLikeness(10 * t)):
        good = all(holds(criterion, inside, beside, NUMBERS) for inside, beside in states)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(moments, "_CELLS", cells)  # few moments at a time
            verdict = judge(rows, criterion, window=Window(length, advance=1))
        assert verdict.verdict == ("kept" if good else "broken"), verdict.detail
        assert verdict.figures["n_moments"] == len(states)
