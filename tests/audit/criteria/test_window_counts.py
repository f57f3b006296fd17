from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.audit.criteria import window_counts
from shoal.audit.criteria.window_counts import WindowCounts, repeats

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=40)


@given(rows, st.one_of(st.none(), st.integers(1, 12)), st.booleans(), st.integers(1, 9))
def test_every_window_counted_from_scratch(
    drawn: list[tuple[int, int]], length: int | None, once: bool, fewest: int
) -> None:
    values = np.array([value for value, _ in drawn], dtype=np.int64)
    subjects = np.array([subject for _, subject in drawn], dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_counts, "_FEWEST", fewest)  # sums at few instants and at many
        found = WindowCounts(
            values, 4, rows=length, earlier=repeats(values, subjects) if once else None
        )
    # A window of all rows is asked for at the end only.
    ends = range(len(drawn) + 1) if length is not None else [len(drawn)]
    counts = found.at(np.array(ends, dtype=np.int64))
    for end, line in zip(ends, counts.tolist(), strict=True):
        window = drawn[max(0, end - length) if length is not None else 0 : end]
        there = set(window) if once else window
        assert line == [sum(value == v for value, _ in there) for v in range(4)]


def test_rows_leave_a_window_one_after_the_other() -> None:
    values = np.array([0, 1, 1, 2, 0, 2])
    counts = WindowCounts(values, 3, rows=3).at(np.arange(7))
    assert counts.tolist() == [
        [0, 0, 0],
        [1, 0, 0],
        [1, 1, 0],
        [1, 2, 0],
        [0, 2, 1],
        [1, 1, 1],
        [1, 0, 2],
    ]


def test_a_repeated_row_counts_as_soon_as_the_earlier_one_has_left() -> None:
    """Somebody has value 0 in rows 0, 1 and 4; windows have three rows."""
    values, subjects = np.array([0, 0, 1, 1, 0, 1]), np.array([7, 7, 7, 8, 7, 9])
    tallies = WindowCounts(values, 2, rows=3, earlier=repeats(values, subjects))
    assert tallies.at(np.arange(7)).tolist() == [
        [0, 0],
        [1, 0],
        [1, 0],
        [1, 1],
        [1, 2],
        [1, 2],
        [1, 2],
    ]


def test_what_is_kept_grows_with_the_rows_and_not_with_rows_times_values() -> None:
    values = np.arange(20_000)
    tracemalloc.start()
    try:
        tallies = WindowCounts(values, len(values), rows=5)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100 * len(values)
    assert tallies.at(np.array([20_000])).sum() == 5


def test_nothing_repeats_nothing() -> None:
    assert repeats(np.empty(0, dtype=np.int64)).tolist() == []
    assert repeats(np.array([3, 4, 3, 3])).tolist() == [-1, -1, 0, 2]
