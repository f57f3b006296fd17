"""Condensed groups: by hand, and as the twin of dynamicGroup makes them."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.kernels.condensation import _middle, _neighbours, _Table, condensed_parts
from shoal.engine.kernels.rng import below, seeded
from shoal.spec.criteria import KAnonymity
from shoal.spec.hierarchy import Range
from tests.engine.kernels.tables import RAGGED, Table, shown, shown_slowly, tables, that_leave
from tests.examples import examples
from tests.naive.dynamic_group import NaiveDynamicGroup

EXAMPLES = examples(40 if numba.config.DISABLE_JIT else 400)
#: A power of two: places on it are exact, and so are ties.
LINE = Range(0, 64)


def line(*numbers: float, k: int, people: Sequence[int] | None = None) -> Table:
    """Numbers of different people, if nothing else is said."""
    subjects = people or range(len(numbers))
    rows = [((float(x),), s, 0, 1.0) for x, s in zip(numbers, subjects, strict=True)]
    return Table([LINE], [KAnonymity(k)], rows)


def members(table: Table, history: int = 1) -> list[list[int]]:
    parts = condensed_parts(*table.arrays(), history, seeded(b"1", "decide"))
    return [rows for rows, _ in shown(parts)]


# -- rows that come one by one --------------------------------------------------------------------


def test_rows_join_one_group_until_there_are_people_for_two() -> None:
    assert members(line(40, 0, 44, k=2)) == [[0, 1, 2]]
    assert members(line(40, 0, 44, 4, k=2)) == [[1, 3], [0, 2]]


def test_a_worked_example() -> None:
    # Four are cut into 0, 8 and 32, 40, with centroids 4 and 36; 16 moves the lower one to 8. Then
    # 23 is nearer to 36, and 21 nearer to 8: with it they are four, and cut.
    assert members(line(32, 0, 40, 8, 16, 23, k=2)) == [[1, 3, 4], [0, 2, 5]]
    assert members(line(32, 0, 40, 8, 16, 21, k=2)) == [[1, 3], [4, 5], [0, 2]]


def test_of_equally_near_centroids_the_first_is_taken() -> None:
    # The lower half keeps the number of its group.
    assert members(line(0, 16, 48, 64, 32, k=2)) == [[0, 1, 4], [2, 3]]
    assert members(line(64, 48, 16, 0, 32, k=2)) == [[2, 3, 4], [0, 1]]


def test_a_group_is_cut_where_it_is_spread_most() -> None:
    # Along neither axis alone these would be cut so.
    corners = [(0, 0), (20, 10), (10, 20), (30, 30)]
    rows = [((float(x), float(y)), n, 0, 1.0) for n, (x, y) in enumerate(corners)]
    square = Table([LINE, LINE], [KAnonymity(2)], rows)
    assert [set(rows) & {0, 3} for rows in members(square)] == [{0}, {3}]


def test_a_weight_changes_what_is_near() -> None:
    places = [(0, 0), (64, 0), (0, 48), (64, 48)]
    rows = [((float(x), float(y)), n, 0, 1.0) for n, (x, y) in enumerate(places)]
    square = [LINE, LINE]
    assert members(Table(square, [KAnonymity(2)], rows)) == [[0, 2], [1, 3]]
    heavy = Table(square, [KAnonymity(2)], rows, weights=[1.0, 2.0])
    assert members(heavy) == [[0, 1], [2, 3]]


def test_people_are_counted_not_rows() -> None:
    assert members(line(0, 1, 2, 3, 60, k=2, people=[0, 0, 0, 1, 2])) == [[0, 1, 2, 3, 4]]


def test_the_cut_is_in_the_middle_or_as_near_to_it_as_people_allow() -> None:
    assert _middle(np.array([0, 1, 2, 3]), 2) == 2
    assert _middle(np.array([0, 1, 2, 3, 3]), 2) == 2
    assert _middle(np.array([0, 0, 0, 0, 1, 2, 3]), 2) == 5
    assert _middle(np.array([3, 2, 1, 0, 0, 0, 0]), 2) == 2


def test_a_half_that_has_people_for_two_is_cut_again() -> None:
    # One person at both ends and one between: the upper half has both.
    assert members(line(0, 64, 32, k=1, people=[0, 0, 1])) == [[0], [2], [1]]


def test_equal_rows_are_cut_as_they_came() -> None:
    # Each newcomer joins the first group, the fourth has it cut.
    assert members(line(*[5] * 8, k=2)) == [[0, 1], [2, 3], [4, 5], [6, 7]]


# -- rows that are there from the start -----------------------------------------------------------


def test_history_is_grouped_by_neighbours() -> None:
    table = line(0, 60, 1, 61, 30, 31, k=2)
    assert members(table, history=6) == [[0, 2], [4, 5], [1, 3]]


def test_what_is_left_over_joins_the_nearest_group() -> None:
    # Whichever row is drawn, one row of the last person is left over.
    table = line(0, 1, 60, 61, 59, k=2, people=[0, 1, 2, 3, 2])
    assert members(table, history=5) == [[0, 1], [2, 3, 4]]
    assert members(table, history=8000) == [[0, 1], [2, 3, 4]]


def test_neighbours_are_of_other_people_and_one_row_of_each() -> None:
    numbers = np.array([[0.0, 1.0, 2.0, 3.0, 4.0, 9.0]])
    table = _Table(numbers, np.array([0, 0, 1, 1, 2, 3]), 3)
    room = np.empty(6), np.empty(4, np.int64), np.empty(3, np.int64)
    assert _neighbours(table, np.arange(6), 0, *room).tolist() == [2, 4]
    assert _neighbours(table, np.array([2, 3, 4, 5]), 4, *room).tolist() == [3, 5]
    # Rows 1 and 3 are equally near to row 2: the earlier one is nearer.
    table = table._replace(subjects=np.arange(6))
    room = np.empty(6), np.empty(6, np.int64), np.empty(3, np.int64)
    assert _neighbours(table._replace(fewest=2), np.arange(6), 2, *room).tolist() == [1]
    assert _neighbours(table._replace(fewest=3), np.arange(6), 2, *room).tolist() == [1, 3]


def test_the_first_row_of_each_group_is_drawn() -> None:
    # Who is drawn first takes the row in the middle along.
    table = line(0, 20, 40, 60, k=2)
    found = set()
    for seed in range(20):
        random = seeded(bytes([seed]), "decide")
        first = below(random.copy(), 4)
        rows = [rows for rows, _ in shown(condensed_parts(*table.arrays(), 4, random))]
        found.add(first)
        assert ([0, 1] in rows) == (first != 2)
    assert found == {0, 1, 2, 3}


# -- traps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("history", [1, 3, 8000])
def test_too_few_people_are_one_part(history: int) -> None:
    assert members(line(1, 2, 3, k=4), history) == [[0, 1, 2]]
    assert members(line(1, 60, 3, 4, 5, k=2, people=[7] * 5), history) == [[0, 1, 2, 3, 4]]


def test_one_row_of_one_person() -> None:
    assert members(line(5, k=1)) == [[0]]


def test_categories_are_places_among_the_leaves() -> None:
    rows = [((float(code),), n, 0, 1.0) for n, code in enumerate([3, 0, 2, 1])]
    parts = condensed_parts(*Table([RAGGED], [KAnonymity(2)], rows).arrays(), 1, seeded(b"1", ""))
    assert shown(parts) == [([1, 3], [(0, 3)]), ([0, 2], [(2, 3)])]


def test_what_is_missing_lies_in_the_middle() -> None:
    rows = [((x,), n, 0, 1.0) for n, x in enumerate([0.0, 10.0, np.nan, 64.0])]
    table = Table([LINE], [KAnonymity(2)], rows, missing="extended")
    assert members(table) == [[0, 1], [2, 3]]


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(tables(), st.sampled_from([1, 9, 8000]))
def test_equals_its_twin(table: Table, history: int) -> None:
    random, again = seeded(b"twin", "decide"), seeded(b"twin", "decide")
    twin = NaiveDynamicGroup(
        table.slow, table.promises, draw=lambda n: int(below(again, n)), history=history
    )
    arrays = table.arrays()
    parts = condensed_parts(*arrays, history, random)
    assert that_leave(*arrays, parts) == shown_slowly(twin(*table.naively()))
    assert random.tolist() == again.tolist()
