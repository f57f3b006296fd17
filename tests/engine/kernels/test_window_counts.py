"""The values of a window: counted at once, and kept up to date row by row."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.kernels.window_counts import (
    WindowCounts,
    add_row,
    counted,
    empty_counts,
    index_of,
    remove_row,
    window_counts_of,
    with_room,
)
from tests.examples import examples

SETTINGS = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)
#: Codes have all 64 bits.
CODES = st.sampled_from([0, 1, 2, 3, -1, -(2**63), 2**63 - 1, 2**62])
PAIRS = st.lists(st.tuples(CODES, CODES), max_size=14)


def array(rows: list[tuple[int, int]]) -> np.ndarray:
    return np.array(rows, np.int64).reshape(len(rows), 2)


def listed(window: WindowCounts) -> list[list[tuple[int, int]]]:
    """The values of each attribute with their counts, in their order."""
    return [
        list(zip(window.values[j, :n].tolist(), window.counts[j, :n].tolist(), strict=True))
        for j, n in enumerate(window.n)
    ]


@SETTINGS
@given(rows=PAIRS)
def test_a_window_counts_its_values_in_ascending_order(rows: list[tuple[int, int]]) -> None:
    window = window_counts_of(array(rows))
    assert listed(window) == [sorted(Counter(row[j] for row in rows).items()) for j in range(2)]
    assert window.n_rows.tolist() == [len(rows)]


@SETTINGS
@given(rows=PAIRS, steps=st.lists(st.booleans(), max_size=40))
def test_rows_that_come_and_go_leave_the_window_of_the_rest(
    rows: list[tuple[int, int]], steps: list[bool]
) -> None:
    window, here, coming = empty_counts(2, room=len(rows)), list[tuple[int, int]](), list(rows)
    for comes in steps:
        if comes and coming:
            here.append(coming.pop())
            add_row(window, np.array(here[-1]))
        elif not comes and here:
            remove_row(window, np.array(here.pop(0)))
        assert listed(window) == listed(window_counts_of(array(here)))
        assert window.n_rows[0] == len(here)


@SETTINGS
@given(rows=PAIRS, some=st.lists(st.tuples(CODES, CODES), min_size=1, max_size=5))
def test_rows_are_counted_by_the_values_of_the_window(
    rows: list[tuple[int, int]], some: list[tuple[int, int]]
) -> None:
    window = window_counts_of(array(rows))
    for j in range(2):
        there, here = Counter(row[j] for row in rows), Counter(row[j] for row in some)
        expected = [here[value] for value in sorted(there)] if here.keys() <= there.keys() else []
        assert counted(window, j, array(some)).tolist() == expected


def test_when_a_value_goes_the_others_keep_their_counts() -> None:
    window = window_counts_of(np.array([[1], [2], [2], [3], [3], [3]]))
    remove_row(window, np.array([1]))
    assert listed(window) == [[(2, 2), (3, 3)]]


def test_a_value_has_a_place_whether_it_is_there_or_not() -> None:
    window = window_counts_of(np.array([[2], [4], [4]]))
    assert [int(index_of(window, 0, code)) for code in (1, 2, 3, 4, 5)] == [0, 0, 1, 1, 2]


def test_a_window_with_more_room_is_the_same_window() -> None:
    window = window_counts_of(array([(3, 1), (1, 1)]))
    larger = with_room(window, 7)
    assert larger.values.shape == larger.counts.shape == (2, 7)
    assert listed(larger) == listed(window) == [[(1, 1), (3, 1)], [(1, 2)]]
    add_row(larger, np.array([2, 0]))
    assert listed(larger) == [[(1, 1), (2, 1), (3, 1)], [(0, 1), (1, 2)]]
    assert (larger.n_rows[0], window.n_rows[0]) == (3, 2)


def test_a_window_without_rows_has_no_values_and_no_room_for_any() -> None:
    for empty, of_none in zip(
        empty_counts(2), window_counts_of(np.empty((0, 2), np.int64)), strict=True
    ):
        assert empty.shape == of_none.shape
        assert not empty.any()


def test_a_window_without_attributes_counts_rows() -> None:
    window = window_counts_of(np.empty((3, 0), np.int64))
    assert (window.n_rows[0], len(window.n)) == (3, 0)
