"""Small functions on arrays, against what Python says."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.kernels.array_tools import by_first, is_ascending, nth_smallest
from tests.examples import examples

SETTINGS = settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)


@SETTINGS
@given(numbers=st.lists(st.integers(0, 9), min_size=1, max_size=40), data=st.data())
def test_the_nth_smallest_is_that_of_the_sorted_numbers(
    numbers: list[int], data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, len(numbers)))
    wanted = data.draw(st.integers(0, n - 1))
    keys = np.array(numbers, float)
    assert nth_smallest(keys, n, wanted) == sorted(numbers[:n])[wanted]
    assert keys[n:].tolist() == numbers[n:], "those after the first n are left alone"
    assert sorted(keys[:n].tolist()) == sorted(numbers[:n])


@SETTINGS
@given(numbers=st.lists(st.integers(-5, 30), max_size=12), ordered=st.booleans())
def test_keys_are_numbered_by_first_appearance_in_order_or_not(
    numbers: list[int], ordered: bool
) -> None:
    if ordered:
        numbers = sorted(set(numbers))
    keys = np.array(numbers, np.int64)
    firsts = list(dict.fromkeys(numbers))
    assert by_first(keys).tolist() == [firsts.index(number) for number in numbers]
    assert is_ascending(keys) == (numbers == sorted(set(numbers)))
