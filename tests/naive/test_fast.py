"""FAST's naive twin: its worked example, the flaws Shoal fixes, and the rounds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.algorithms.world import both, check_section, feed, flags_of, groups, line
from tests.naive.examples import TABLE_2_BEGIN, TABLE_2_END
from tests.naive.fast import Deviations, NaiveFast
from tests.naive.on_deadline import Decision

# -- Tables 1 and 2 --------------------------------------------------------------------------------


def university(**options: Any) -> NaiveFast:
    return NaiveFast(
        list(TABLE_2_END.domains.values()), [1.0, 1.0], k=2, delay_rows=4,
        **{**TABLE_2_END.knobs, **options},
    )  # fmt: skip


def test_the_new_group_of_id_n_is_with_id_n_plus_1() -> None:
    # The paper writes id_{n+2} with the values of id_{n+1}; its generalization is of the latter.
    twin = university(block=100)
    for subject in ("id_n", "id_n+1", "id_n+2"):
        twin.push(TABLE_2_END.values(subject), subject)
    rows = twin.form(twin.oldest)
    assert rows is not None
    assert [row.subject for row in rows] == ["id_n", "id_n+1"]
    (lo, hi), job = twin.space.box(rows)
    assert TABLE_2_END.published("group", (lo, job[0]), (hi, job[1])) == (
        "group", ("26-45", "Staff"),
    )  # fmt: skip
    # C_k-best loses less than g_cnew.
    assert twin.space.loss(((44, 46), job)) < twin.space.loss(((26, 45), job))


def test_table_2_by_the_paper_to_the_letter() -> None:
    # The first three rows come out alike if a thread publishes one row and suppresses the others.
    paper, _ = both("fast", "all_in_danger_are_served")
    twin = NaiveFast(
        list(TABLE_2_BEGIN.domains.values()), [1.0, 1.0], k=2, delay_rows=2, deviations=paper,
        **TABLE_2_BEGIN.knobs,
    )  # fmt: skip
    decisions = [
        d for subject, _ in TABLE_2_BEGIN.rows
        for d in twin.push(TABLE_2_BEGIN.values(subject), subject)
    ]  # fmt: skip
    assert {
        TABLE_2_BEGIN.rows[d.row][0]: TABLE_2_BEGIN.published(d.outcome, d.lo, d.hi)
        for d in decisions
    } == {**TABLE_2_BEGIN.expected, "id3": ("suppressed", None)}


# -- the deviations, each off and on ---------------------------------------------------------------


def test_fast_1_all_in_danger_are_served() -> None:
    rows = [(20, "a"), (20, "b"), (80, "c"), (80, "d")]
    paper, shoal = (
        feed(line("fast", 2, delay_rows=3, workers=1, block=4, deviations=d), rows, end=False)
        for d in both("fast", "all_in_danger_are_served")
    )
    # Nothing is wrong with c and d, but that they came with a and b.
    assert [d.outcome for d in paper] == ["group", "group", "suppressed", "suppressed"]
    assert groups(shoal) == {0: {0, 1}, 1: {2, 3}}


def test_fast_2_rounds_read_a_frozen_set() -> None:
    # Worker 0 has 20, 20, 25 and worker 1 has 20, 30, 25: the first changes what the other does.
    rows = [(20, "a"), (20, "b"), (25, "c"), (20, "d"), (30, "e"), (25, "f")]

    def run(deviations: Deviations, timing: list[int]) -> list[Decision]:
        return feed(
            line("fast", 2, delay_rows=5, workers=2, block=3, deviations=deviations, timing=timing),
            rows,
            end=False,
        )

    paper, shoal = both("fast", "rounds_read_a_frozen_set")
    assert run(paper, [0, 1]) != run(paper, [1, 0])
    assert run(shoal, [0, 1]) == run(shoal, [1, 0])


def test_fast_3_left_over_rows_meet_everybody() -> None:
    rows = [(20, "a"), (21, "b")]
    paper, shoal = (
        feed(line("fast", 2, delay_rows=1, workers=2, block=1, deviations=d), rows, end=False)
        for d in both("fast", "left_over_rows_meet_everybody")
    )
    assert {d.outcome for d in paper} == {"suppressed"}  # each alone with its thread
    assert groups(shoal) == {0: {0, 1}}


def test_fast_4_who_can_wait_waits() -> None:
    # Its deadline comes before the next full block; b comes just in time for a.
    rows = [(20, "a"), (20, "a"), (20, "b")]
    paper, shoal = (
        feed(line("fast", 2, delay_rows=2, workers=2, block=1, deviations=d), rows, end=False)
        for d in both("fast", "who_can_wait_waits")
    )
    assert [(d.row, d.outcome, d.published) for d in paper if d.row == 0] == [(0, "suppressed", 1)]
    assert [(d.row, d.outcome, d.published) for d in shoal if d.row == 0] == [(0, "group", 2)]


def test_fast_5_only_the_best_is_renewed() -> None:
    """One wide group of a quiet night would take in everybody of the day, one after another."""
    rows = [(0, "a"), (90, "b"), *[(40, f"s{n}") for n in range(20)]]
    paper, shoal = (
        feed(
            line("fast", 2, delay_rows=1, age=4, workers=1, block=1, joins="alone", deviations=d),
            rows,
            end=False,
        )
        for d in both("fast", "only_the_best_is_renewed")
    )
    assert {d.outcome for d in paper if d.row > 1} == {"reuse"}
    assert [d.row for d in shoal if d.outcome == "group"][:4] == [0, 1, 5, 6]


# -- the rounds ------------------------------------------------------------------------------------


def test_reuse_makes_a_group_young_again() -> None:
    twin = line("fast", 2, delay_rows=1, age=3, workers=1, block=1, reuse="best")
    rows = [(20, "a"), (21, "b"), *[(20, "c")] * 5]
    outcomes = [d.outcome for d in feed(twin, rows, end=False)]
    assert outcomes == ["group", "group", "reuse", "reuse", "reuse", "reuse"]


def test_a_group_of_this_round_is_there_for_the_same_worker() -> None:
    rows = [(20, "a"), (20, "b"), (20, "a"), (20, "a")]
    for kept, at_once in [(10, 4), (0, 2)]:
        twin = line("fast", 2, delay_rows=3, workers=1, block=4, kept=kept)
        decisions = feed(twin, rows, end=False)
        assert [(d.row, d.outcome, d.instant) for d in decisions] == [
            (0, "group", 0), (1, "group", 0), (2, "reuse", 0), (3, "reuse", 0),
        ][:at_once]  # fmt: skip


def test_without_a_block_it_follows_from_the_delay() -> None:
    assert line("fast", 2, delay_rows=64, workers=2).block == 16
    assert line("fast", 2, delay_rows=3, workers=2).block == 1
    assert line("fast", 2, delay_seconds=3, workers=2).block == 250


def test_a_round_in_which_nothing_is_due_only_measures_time() -> None:
    twin = line("fast", 1, delay_seconds=100, workers=1, block=2)
    for n, second in enumerate([0, 4, 5, 8, 9, 20]):
        assert twin.push([n], f"s{n}", (), second) == []
    # Rounds at 4, 8 and 20: 4 seconds at first, then a quarter of the way to 12.
    assert (twin.last_round, twin.estimate, twin.instant) == (20, 6.0, 3)


def test_rows_leave_a_round_early_when_the_next_may_be_too_late() -> None:
    twin = line("fast", 1, delay_seconds=10, workers=1, block=2)
    decided = {}
    for n, second in enumerate([0, 4, 5, 10]):
        for d in twin.push([n], f"s{n}", (), second):
            decided[d.row] = (d.published, d.published_s)
    # Round 1 at 4 knows nothing yet. At 10 the first row is due: a round at once, and 6 seconds
    # after the one before, so that all but the newest must go. Then the block is full at 10, too.
    assert decided == {0: (3, 10), 1: (3, 10), 2: (3, 10)}
    assert twin.estimate == 6 + (0 - 6) / 4


def test_a_tick_is_a_reason_for_a_round() -> None:
    twin = line("fast", 1, delay_seconds=10, workers=2)
    twin.push([1], "a", (), 0.0)
    assert twin.advance(9.0) == []
    assert [(d.row, d.published, d.published_s) for d in twin.advance(12.0)] == [(0, 1, 10.0)]


def test_what_is_due_now_is_in_danger_though_rounding_says_otherwise() -> None:
    twin = line("fast", 1, delay_seconds=0.1, workers=1)
    first = next(n / 10 for n in range(1, 1000) if n / 10 + 0.1 - n / 10 < 0.1)
    twin.push([1], "a", (), first)
    assert [d.row for d in twin.advance(first + 1)] == [0]


def test_a_row_that_was_on_its_way_while_the_clock_went_on_isnt_late() -> None:
    twin = line("fast", 1, delay_seconds=5, workers=1, block=2)
    twin.push([1], "a", (), 0.0)
    assert [d.published_s for d in twin.advance(20.0)] == [5.0]
    # b fills a block, c is due as it comes; and no round takes less than no time.
    assert [d.published_s for d in twin.push([1], "b", (), 0.0)] == [5.0]
    assert [d.published_s for d in twin.push([1], "c", (), 0.0)] == [5.0]
    assert (twin.last_round, twin.estimate) == (5.0, 0.0)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_rows_belong_to_workers_in_blocks(workers: int) -> None:
    twin = line("fast", 50, delay_rows=50, workers=workers, block=2)
    feed(twin, [(n, f"s{n}") for n in range(8)], end=False)
    assert [twin._worker_of(row) for row in twin.held.values()] == [
        n // 2 % workers for n in range(8)
    ]


def test_every_deviation_is_described_and_tested() -> None:
    check_section("FAST", "fast", flags_of(Deviations))
