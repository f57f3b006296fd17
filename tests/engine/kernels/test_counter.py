"""The counter of subjects in places does what a dictionary does."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.kernels import counter
from tests.examples import examples

SUBJECTS = [0, 1, -1, 2**62, -(2**63), 2**63 - 1, 7_919_000_000_000]
KEYS = st.tuples(st.integers(-1, 2), st.sampled_from(SUBJECTS))


def contents(table: np.ndarray) -> Counter[tuple[int, int]]:
    return Counter(
        {(int(e["place"]), int(e["subject"])): int(e["count"]) for e in table if e["count"]}
    )


@settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)
@given(keys=st.lists(st.tuples(st.booleans(), KEYS), max_size=60), grow=st.booleans())
def test_adding_and_removing(keys: list[tuple[bool, tuple[int, int]]], grow: bool) -> None:
    table = counter.empty(2 if grow else 28)
    expected: Counter[tuple[int, int]] = Counter()
    for adds, key in keys:
        if adds:
            if grow and 2 * (len(expected) + 1) > len(table):
                table = counter.grown(table, 2 * len(expected))
            assert counter.add(table, *key) == (expected[key] == 0)
            expected[key] += 1
        elif expected[key]:
            assert counter.remove(table, *key) == (expected[key] == 1)
            expected[key] -= 1
        expected = +expected
        assert contents(table) == expected


def test_long_runs_of_probing_survive_removals() -> None:
    """At a load of one half, entries lie far from home; every order of removal finds them all."""
    table = counter.empty(64)
    keys = [(place, subject) for place in range(-1, 7) for subject in range(0, 8000, 1000)]
    for key in keys:
        assert counter.add(table, *key)
    for key in keys[::3] + keys[1::3] + keys[2::3]:
        assert counter.remove(table, *key)
    assert not contents(table)


def test_growing_keeps_the_counts() -> None:
    table = counter.empty(4)
    for subject in (5, 5, 6):
        counter.add(table, 0, subject)
    larger = counter.grown(table, 100)
    assert len(larger) > len(table)
    assert contents(larger) == contents(table) == {(0, 5): 2, (0, 6): 1}


@settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)
@given(keys=st.lists(KEYS, max_size=25), asked=KEYS)
def test_counting_looks_and_changes_nothing(
    keys: list[tuple[int, int]], asked: tuple[int, int]
) -> None:
    table = counter.empty(28)
    for key in keys:
        counter.add(table, *key)
    before = table.copy()
    assert counter.count(table, *asked) == keys.count(asked)
    np.testing.assert_array_equal(table, before)
