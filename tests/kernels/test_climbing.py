"""Who stands behind a rung is kept up to date as if it were counted anew each time, with sets."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kernels.climbing import Rule, climb, expose, forget, rebuild
from shoal.kernels.exposures import (
    LEVEL,
    N_ENTRIES,
    N_LEAVES,
    N_NODES,
    N_SUBJECTS,
    NONE,
    Exposures,
    empty,
    find_entry,
    find_node,
)

#: Keys from fine to coarse: a tree of three levels with uneven branches.
LEAVES = [(1, 101, 1001), (2, 101, 1001), (3, 102, 1001), (4, 103, 1001), (5, 104, 1002)]
#: Subjects as they may come, the smallest and the largest among them.
SUBJECTS = [0, 1, -1, 2**63 - 1, -(2**63), 7_919_000_000_000, 42]


class Naive:
    """The window as a queue; everything else is found from it."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.queue: deque[tuple[tuple[int, ...], int]] = deque()

    def behind(self) -> dict[int, set[int]]:
        crowds: dict[int, set[int]] = {}
        for keys, subject in self.queue:
            crowds.setdefault(keys[0], set()).add(subject)
        for level in (0, 1):
            for fine, coarse in {(keys[level], keys[level + 1]) for keys, _ in self.queue}:
                above = crowds.setdefault(coarse, set())
                if self.rule.plain or len(crowds[fine]) < self.rule.z:
                    above |= crowds[fine]
        return crowds

    def level(self, keys: tuple[int, ...]) -> int | None:
        crowds = self.behind()
        return next((i for i, key in enumerate(keys) if len(crowds[key]) >= self.rule.z), None)


def roomy() -> tuple[Exposures, np.ndarray]:
    return empty(400, 40, 256), np.empty(400, np.int64)


def compare(table: Exposures, naive: Naive) -> None:
    crowds = naive.behind()
    for keys in LEAVES:
        for key in keys:
            node = find_node(table, key)
            assert (node != NONE) == (key in crowds)
            if node == NONE:
                continue
            behind = {s for s in SUBJECTS if find_entry(table, node, s) != NONE}
            assert behind == crowds[key]
            assert table.nodes[node, N_SUBJECTS] == len(behind)
        if keys[0] in crowds:
            node = climb(table, naive.rule, find_node(table, keys[0]))
            assert (None if node == NONE else table.nodes[node, LEVEL]) == naive.level(keys)
    assert table.marks[N_NODES] == len(crowds)
    assert table.marks[N_ENTRIES] == sum(map(len, crowds.values()))
    assert table.marks[N_LEAVES] == len(set(naive.queue))


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(LEAVES), st.sampled_from(SUBJECTS)), max_size=60
)
RULES = st.builds(Rule, st.integers(1, 5), st.booleans())


def play(
    table: Exposures,
    changed: np.ndarray,
    naive: Naive,
    steps: Iterable[tuple[int, tuple[int, ...], int]],
) -> None:
    """Each step: a value is exposed, or, one time in four, the oldest exposure is forgotten."""
    for time, (kind, keys, subject) in enumerate(steps):
        if kind == 0 and naive.queue:
            forget(table, naive.rule, changed)
            naive.queue.popleft()
        elif kind:
            leaf = expose(table, naive.rule, np.array(keys), subject, float(time), changed)
            assert leaf == find_node(table, keys[0])
            naive.queue.append((keys, subject))
        compare(table, naive)


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(rule=RULES, steps=STEPS)
def test_exposing_and_forgetting(rule: Rule, steps: list[tuple[int, tuple[int, ...], int]]) -> None:
    (table, changed), naive = roomy(), Naive(rule)
    play(table, changed, naive, steps)
    while naive.queue:
        forget(table, rule, changed)
        naive.queue.popleft()
    compare(table, naive)
    assert not table.marks[[N_ENTRIES, N_NODES, N_LEAVES]].any()


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(rule=RULES, other=st.integers(1, 6), steps=STEPS, further=STEPS)
def test_another_z_counts_anew_and_goes_on(
    rule: Rule,
    other: int,
    steps: list[tuple[int, tuple[int, ...], int]],
    further: list[tuple[int, tuple[int, ...], int]],
) -> None:
    (table, changed), naive = roomy(), Naive(rule._replace(plain=False))
    play(table, changed, naive, steps)
    naive.rule = Rule(other, False)
    rebuild(table, naive.rule)
    compare(table, naive)
    play(table, changed, naive, further[:20])


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("z", [1, 2, 3, 6])
def test_a_long_run_with_a_window(z: int, plain: bool) -> None:
    draw = random.Random(z)
    (table, changed), naive = roomy(), Naive(Rule(z, plain))
    for _ in range(150):
        leaf, subject = draw.choice(LEAVES), draw.choice(SUBJECTS)
        n_old = max(0, len(naive.queue) - draw.choice([3, 10, 25]))
        play(table, changed, naive, [(0, leaf, subject)] * n_old + [(1, leaf, subject)])


def test_a_rung_that_becomes_popular_leaves_its_parent_and_comes_back() -> None:
    (table, changed), rule = roomy(), Rule(2, False)
    turin, aosta = np.array([1, 9]), np.array([2, 9])

    def behind(key: int) -> int:
        return int(table.nodes[find_node(table, key), N_SUBJECTS])

    expose(table, rule, turin, 7, 0.0, changed)
    expose(table, rule, aosta, 8, 1.0, changed)
    assert behind(9) == 2
    expose(table, rule, turin, 9, 2.0, changed)
    assert (behind(1), behind(9)) == (2, 1)
    forget(table, rule, changed)
    assert (behind(1), behind(9)) == (1, 2)
