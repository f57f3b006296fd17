"""The ring of held rows and the ring of kept groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal import Policy, Quasi, Range, Schema, Sensitive
from shoal.engine import Space
from shoal.engine.kernels import held, kept_groups, recent_rows
from shoal.engine.kernels.arrays import power_of_two
from shoal.engine.kernels.boxes import Box
from shoal.spec.policy import (
    BasicLikeness,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    RecursiveLDiversity,
    Window,
)

SCHEMA = Schema("p", [Quasi("a", Range(0, 9))], [Sensitive("s")])


def put(ring: held.Held, value: float, time: float = 0.0) -> int:
    box = np.array([value])
    return int(held.put(ring, held.Arrival(box, box, 7, np.array([3]), time, 0), 0))


def test_power_of_two() -> None:
    assert [power_of_two(n) for n in (0, 1, 2, 3, 8, 9)] == [1, 1, 2, 4, 8, 16]


def test_rows_are_put_forgotten_and_due_in_order() -> None:
    ring = held.empty(1, 1, 4)
    assert held.due_at(ring, 5.0) == np.inf
    for i in range(3):
        assert put(ring, i, float(i)) == i
    assert held.due_at(ring, 5.0) == 5.0
    held.forget(ring, 1)
    assert held.due_at(ring, 5.0) == 5.0
    held.forget(ring, 0)
    assert held.due_at(ring, 5.0) == 7.0
    assert ring.marks["oldest"][0] == 2
    held.forget(ring, 2)
    assert ring.marks["n_rows"][0] == 0
    assert held.due_at(ring, 5.0) == np.inf


def test_a_ring_grows_with_rows_around_its_end() -> None:
    ring = held.empty(1, 1, 4)
    for i in range(6):
        put(ring, float(i))
        if i < 3:
            held.forget(ring, i)
    larger = held.grown(ring, 9)
    assert len(larger.rows) == 16
    assert larger.lo[3:6, 0].tolist() == [3.0, 4.0, 5.0]
    assert larger.marks == ring.marks
    assert (larger.rows["cluster"] >= 0).sum() == 3


def test_what_has_left_is_held_no_more_even_if_its_place_is_taken() -> None:
    ring = held.empty(1, 1, 4)
    for i in range(4):
        put(ring, float(i))
    for i in range(2):
        held.forget(ring, i)
    put(ring, 4.0)
    assert [bool(held.is_held(ring, position)) for position in range(5)] == [False] * 2 + [True] * 3


def test_a_row_that_comes_is_the_last_of_its_cluster() -> None:
    """Whatever row had its place before."""
    ring = held.empty(1, 1, 4)
    ring.rows["following"] = 7
    put(ring, 1.0)
    assert ring.rows["following"][0] == -1


def test_a_window_ends_with_the_latest_row() -> None:
    for rows, expected in [(0, -1), (1, 3), (2, 3)]:
        ring = held.empty(1, 1, 4, window=rows)
        ring = ring._replace(recent=recent_rows.with_room_for(ring.recent, 0, 3))
        for i in range(3):
            put(ring, float(i))
        assert held.window_of(ring) == expected


def test_rows_are_copied_out_of_the_ring_with_what_they_lack() -> None:
    ring = held.empty(2, 1, 4)
    for gaps, subject in [(5, 11), (0, 12), (6, 13)]:
        lo, hi = np.array([1.0, gaps]), np.array([2.0, gaps])
        held.put(ring, held.Arrival(lo, hi, subject, np.array([subject + 10]), 0.0, gaps), 0)
    rows = held.gather(ring, np.array([2, 0]))
    assert rows.gaps.tolist() == [6, 5]
    assert rows.subjects.tolist() == [13, 11]
    assert rows.sensitive.tolist() == [[23], [21]]
    assert rows.lo.tolist() == [[1.0, 1.0], [6.0, 5.0]]
    assert rows.hi.tolist() == [[2.0, 2.0], [6.0, 5.0]]


def keep(
    ring: kept_groups.KeptGroups, value: float, group: int, sensitive: list[int], loss: float = 0.5
) -> None:
    box = np.array([value])
    codes = np.array(sensitive)
    shown = Box(loss, group, len(codes), len(codes), 1)
    kept_groups.keep(ring, box, box, shown, 0, np.arange(len(codes)), codes.reshape(-1, 1))


def found(
    ring: kept_groups.KeptGroups, space: Space, value: float, sensitive: int = 0
) -> list[int]:
    box = np.array([value])
    places = kept_groups.reusable(ring, space.limits, box, box, 99, np.array([sensitive]), 0)
    return [int(ring.groups["number"][place]) for place in places]


def test_the_latest_groups_are_kept_oldest_first() -> None:
    space = Space(SCHEMA, Policy(KAnonymity(2)))
    ring = kept_groups.empty(3, 1, 1, space.limits)
    assert found(ring, space, 1.0) == []
    for group in range(5):
        keep(ring, 1.0, group, [0, 0])
    assert found(ring, space, 1.0) == [2, 3, 4]
    assert found(ring, space, 2.0) == []


def test_no_room_for_groups_keeps_none() -> None:
    space = Space(SCHEMA, Policy(KAnonymity(2)))
    ring = kept_groups.empty(0, 1, 1, space.limits)
    keep(ring, 1.0, 0, [0, 0])
    assert found(ring, space, 1.0) == []


def test_a_row_that_would_break_the_promise_finds_no_group() -> None:
    space = Space(SCHEMA, Policy(EntropyLDiversity(1.9, "s")))
    ring = kept_groups.empty(2, 1, 1, space.limits)
    keep(ring, 1.0, 0, [5, 6])
    assert found(ring, space, 1.0, 5) == []
    keep(ring, 1.0, 1, [5, 6, 6])
    assert found(ring, space, 1.0, 5) == [1]


def test_a_kept_group_takes_rows_until_it_is_full() -> None:
    space = Space(SCHEMA, Policy(EntropyLDiversity(1.0, "s")))
    ring = kept_groups.empty(1, 1, 1, space.limits)
    room = ring.subject.shape[1]
    keep(ring, 1.0, 0, [0] * (room + 1))
    assert found(ring, space, 1.0) == [], "it has more members than there is room for"
    keep(ring, 1.0, 1, [0] * (room - 1))
    assert found(ring, space, 1.0) == [1]
    kept_groups.reuse(ring, 0, 99, np.array([0]))
    assert found(ring, space, 1.0) == []


def test_a_group_that_is_just_as_large_as_the_room_takes_a_place_and_no_row() -> None:
    space = Space(SCHEMA, Policy(EntropyLDiversity(1.0, "s")))
    ring = kept_groups.empty(1, 1, 1, space.limits)
    keep(ring, 1.0, 0, [0])
    assert found(ring, space, 1.0) == [0]
    keep(ring, 1.0, 1, [0] * ring.subject.shape[1])
    assert found(ring, space, 1.0) == []


def test_groups_that_a_row_cant_join_hide_no_later_one() -> None:
    """One is elsewhere, one is full, one would become uneven; the last of them takes the row."""
    space = Space(SCHEMA, Policy(EntropyLDiversity(1.9, "s")))
    ring = kept_groups.empty(4, 1, 1, space.limits)
    room = ring.subject.shape[1]
    keep(ring, 2.0, 0, [5, 6, 6])
    keep(ring, 1.0, 1, [5, 6] * (room // 2))
    keep(ring, 1.0, 2, [5, 6])
    keep(ring, 1.0, 3, [5, 6, 6])
    assert found(ring, space, 1.0, 5) == [3]


def test_members_are_stored_only_where_one_more_row_can_break_a_promise() -> None:
    for criteria, stored in [
        ((KAnonymity(5),), False),
        ((KAnonymity(5), DistinctLDiversity(2, "s")), False),
        ((EntropyLDiversity(2.0, "s"),), True),
        ((RecursiveLDiversity(2, "s"),), True),
    ]:
        ring = kept_groups.empty(1, 1, 1, Space(SCHEMA, Policy(*criteria)).limits)
        assert (ring.subject.shape[1] > 0) == stored


def test_who_joined_counts_as_a_member_with_their_value() -> None:
    space = Space(SCHEMA, Policy(EntropyLDiversity(1.5, "s")))
    ring = kept_groups.empty(1, 1, 1, space.limits)
    keep(ring, 1.0, 0, [5, 6])
    for subject in range(5):
        assert found(ring, space, 1.0, 5) == [0]
        kept_groups.reuse(ring, 0, 20 + subject, np.array([5]))
    assert ring.subject[0, :7].tolist() == [0, 1, 20, 21, 22, 23, 24]
    assert ring.sensitive[0, :7, 0].tolist() == [5, 6, 5, 5, 5, 5, 5]
    assert found(ring, space, 1.0, 5) == []
    assert found(ring, space, 1.0, 6) == [0]


@pytest.mark.parametrize(
    ("criteria", "most"),
    [
        ([EntropyLDiversity(2.0, "s")], 4 * 2),
        ([KAnonymity(5), EntropyLDiversity(2.0, "s")], 4 * 5),
        ([KAnonymity(2), BasicLikeness(3.0, attribute="s")], 64),
        ([KAnonymity(20), BasicLikeness(3.0, attribute="s")], 4 * 20),
    ],
)
def test_a_group_is_kept_up_to_four_times_the_fewest_people(criteria: Any, most: int) -> None:
    """And up to 64 where groups are measured, since most of these are far larger."""
    measured = any(isinstance(criterion, BasicLikeness) for criterion in criteria)
    policy = Policy(*criteria, window=Window(rows=500) if measured else None)
    for size, kept in [(most, 1), (most + 1, 0)]:
        ring = kept_groups.empty(2, 1, 1, Space(SCHEMA, policy).limits)
        keep(ring, 1.0, 0, [5, 6] * (size // 2) + [5] * (size % 2))
        assert ring.marks["n_kept"][0] == kept


def test_where_groups_are_measured_larger_ones_are_kept() -> None:
    """Most have far more people than the fewest."""
    policy = Policy(KAnonymity(2), BasicLikeness(3.0, attribute="s"), window=Window(rows=100))
    ring = kept_groups.empty(2, 1, 1, Space(SCHEMA, policy).limits)
    keep(ring, 1.0, 0, [5, 6] * 20)
    assert ring.marks["n_kept"][0] == 1


def test_the_best_is_the_oldest_that_loses_least_and_less_than_asked() -> None:
    ring = kept_groups.empty(4, 1, 1, Space(SCHEMA, Policy(KAnonymity(2))).limits)
    for group, loss in enumerate([0.5, 0.25, 0.25, 0.75]):
        keep(ring, 1.0, group, [0, 0], loss)
    everything = np.arange(4)
    assert kept_groups.best(ring, everything, np.inf) == 1
    assert kept_groups.best(ring, everything[2:], 0.5) == 2
    assert kept_groups.best(ring, everything, 0.25) == -1, "as good isn't better"
    assert kept_groups.best(ring, everything[:0], np.inf) == -1


def test_a_reused_box_has_counts_of_zero() -> None:
    ring = kept_groups.empty(2, 1, 1, Space(SCHEMA, Policy(KAnonymity(2))).limits)
    keep(ring, 1.0, 7, [0, 0])
    keep(ring, 2.0, 8, [0, 0])
    shown, lo, hi = kept_groups.used_again(ring, 1, 25)
    assert shown == Box(0.5, 8, 0, 0, 1, 25)
    assert (lo.tolist(), hi.tolist()) == ([2.0], [2.0])
