"""Rows cut into parts, and parts that may not leave: merged until they may, never torn."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.kernels import parts as module
from shoal.engine.kernels.parts import Parts, in_parts, parts_of, repaired
from shoal.spec.criteria import (
    Criterion,
    DistinctLDiversity,
    EnhancedLikeness,
    KAnonymity,
    TCloseness,
)
from tests.examples import examples
from tests.naive.papers.test_emd import RAGGED
from tests.naive.parts import merge
from tests.naive.space import Space as NaiveSpace
from tests.tables import SALARY, Table

SETTINGS = settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)


def members(parts: Parts) -> list[list[int]]:
    return [parts.rows[a:b].tolist() for a, b in itertools.pairwise(parts.starts.tolist())]


def fix(table: Table, groups: Sequence[Sequence[int]]) -> tuple[Parts, list[int]]:
    order = np.array([row for group in groups for row in group], np.int64)
    starts = np.array([0, *itertools.accumulate(len(group) for group in groups)])
    parts = parts_of(table.space.sides, table.rows, order, starts)
    good, lost = repaired(table.space.sides, table.limits, table.rows, parts)
    return good, lost.tolist()


def test_rows_are_sorted_by_their_part() -> None:
    rows, starts = in_parts(np.array([2, 0, 2, 0, 3]), 4)
    assert rows.tolist() == [1, 3, 0, 2, 4]
    assert starts.tolist() == [0, 2, 2, 4, 5]


def test_parts_have_the_boxes_of_their_rows() -> None:
    table = Table([(x, x, 0) for x in (5, 90, 7, 80)], KAnonymity(1), domains=[SALARY])
    parts = parts_of(table.space.sides, table.rows, np.array([0, 2, 3, 1]), np.array([0, 2, 4]))
    assert parts.lo.tolist() == [[5.0], [80.0]]
    assert parts.hi.tolist() == [[7.0], [90.0]]


POINTS = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=20
)
CRITERIA: list[list[Criterion]] = [
    [KAnonymity(3)],
    [KAnonymity(2), TCloseness(0.2)],
    [DistinctLDiversity(3)],
    [KAnonymity(2), EnhancedLikeness(0.7)],
    [KAnonymity(5), TCloseness(0.0)],
]


@SETTINGS
@given(points=POINTS, n_parts=st.integers(1, 6), criteria=st.sampled_from(CRITERIA))
def test_repaired_parts_keep_the_promise_and_no_row_is_lost_or_doubled(
    points: list[tuple[int, int, int]], n_parts: int, criteria: list[Criterion]
) -> None:
    table = Table(points, *criteria, domains=[RAGGED])
    draw = random.Random(len(points))
    part = [draw.randrange(n_parts) for _ in points]
    groups = [[i for i, p in enumerate(part) if p == n] for n in range(n_parts)]
    groups = [group for group in groups if group]
    good, lost = fix(table, groups)
    found = members(good)
    assert sorted([*itertools.chain(*found), *lost]) == list(range(len(points)))
    assert all(table.keeps(group) for group in found)
    for group, lo, hi in zip(found, good.lo, good.hi, strict=True):
        places = [points[row][0] for row in group]
        assert (lo.tolist(), hi.tolist()) == ([min(places)], [max(places)])
    # What is promised holds for all rows, or some may have to be left out.
    if table.keeps(range(len(points))):
        assert lost == []
    # Parts aren't torn apart, and those that are good by themselves aren't lost.
    for group in groups:
        assert any(set(group) <= set(other) for other in [*found, lost])
        if table.keeps(group):
            assert not set(group) & set(lost)
    # As the twin says, in the same order.
    space = NaiveSpace([table.schema.quasi[0].domain], [1.0], "glm")
    expected = merge(
        space,
        [[table.naive[i] for i in group] for group in groups],
        lambda rows: table.promises.hold(rows, table.naive),
    )
    assert found == [[row.number for row in rows] for rows in expected]


def test_where_nothing_can_be_helped_all_rows_are_lost() -> None:
    # Measured against a window in which their values are rare.
    some = Table([(x, x, 3) for x in range(5)], TCloseness(0.1), domains=[RAGGED])
    window = Table([(x, x, 3 * (x < 5)) for x in range(50)], TCloseness(0.1), domains=[RAGGED])
    parts = parts_of(some.space.sides, some.rows, np.arange(5), np.array([0, 2, 4, 5]))
    limits = some.limits._replace(window=window.limits.window)
    good, lost = repaired(some.space.sides, limits, some.rows, parts)
    assert (members(good), lost.tolist()) == ([], [0, 1, 2, 3, 4])


def test_good_parts_stay_where_the_rest_cannot_be_helped() -> None:
    # One window, and rows of it that as a whole are far from it: a value is missing among them.
    window = Table([(x, x, x % 2) for x in range(20)], TCloseness(0.1), domains=[RAGGED])
    some = Table([(x, x, v) for x, v in enumerate([0, 1, 0, 1, 0, 0, 0])], TCloseness(0.1),
                 domains=[RAGGED])  # fmt: skip
    parts = parts_of(some.space.sides, some.rows, np.arange(7), np.array([0, 2, 4, 5, 7]))
    limits = some.limits._replace(window=window.limits.window)
    good, lost = repaired(some.space.sides, limits, some.rows, parts)
    assert members(good) == [[0, 1], [2, 3]]
    assert lost.tolist() == [4, 5, 6]


def test_the_nearest_part_is_the_one_with_which_least_is_lost() -> None:
    # Of equals the first. The part that fails stays in its place.
    table = Table([(x, x, 0) for x in (0, 40, 50, 60, 100)], KAnonymity(2), domains=[RAGGED])
    good, lost = fix(table, [[0, 1], [2], [3, 4]])
    assert (members(good), lost) == ([[2, 0, 1], [3, 4]], [])


def test_parts_farther_than_a_part_looks_are_reached_in_the_end() -> None:
    # Two subjects, at both ends of a long row of parts: all between them are merged.
    n = 2 * module.NEAR + 20
    points = [(0, 1 if i == n - 1 else 0, 0) for i in range(n)]
    table = Table(points, KAnonymity(2), domains=[RAGGED])
    good, lost = fix(table, [[i] for i in range(n)])
    assert lost == []
    assert all(table.keeps(group) for group in members(good))


@pytest.mark.parametrize("n_others", [0, 2])
def test_large_parts_are_looked_at_now_and_then_and_at_last(n_others: int) -> None:
    # A part of many rows isn't checked after every merge; but when nothing is left, it is.
    n, each = module.MANY + 300, module.MANY // module.GROWTH // 4
    points = [(0, max(0, i - n + 1 + n_others), 0) for i in range(n)]
    table = Table(points, KAnonymity(3), domains=[RAGGED])
    good, lost = fix(table, [range(i, min(n, i + each)) for i in range(0, n, each)])
    found = members(good)
    assert [sorted(group) for group in found] == ([list(range(n))] if n_others else [])
    assert lost == ([] if n_others else list(range(n)))
