"""The subjects behind a level are updated as if they were recounted each time, with sets."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.z.climbing import CountingRule, climb, expose, forget, level_of, rebuild, show
from shoal.engine.z.exposures import (
    LEVEL,
    N_ENTRIES,
    N_LEAVES,
    N_NODES,
    N_SUBJECTS,
    NONE,
    SHOWN,
    Exposures,
    empty,
    find_entry,
    find_node,
)
from tests.examples import examples

#: Keys from fine to coarse: a tree of three levels with uneven branches.
LEAVES = [(1, 101, 1001), (2, 101, 1001), (3, 102, 1001), (4, 103, 1001), (5, 104, 1002)]
#: Subjects as they may come, the smallest and the largest among them.
SUBJECTS = [0, 1, -1, 2**63 - 1, -(2**63), 7_919_000_000_000, 42]


class Naive:
    """The window as a queue; everything else is found from it."""

    def __init__(self, rule: CountingRule) -> None:
        self.rule = rule
        self.queue: deque[tuple[tuple[int, ...], int]] = deque()
        #: The values that were published as they are, and of whom.
        self.shown: set[tuple[int, int]] = set()

    def forget(self) -> None:
        self.queue.popleft()
        self.shown &= {(keys[0], subject) for keys, subject in self.queue}

    def behind(self) -> dict[int, set[int]]:
        crowds: dict[int, set[int]] = {}
        for keys, subject in self.queue:
            crowds.setdefault(keys[0], set()).add(subject)
        for level in (0, 1):
            for fine, coarse in {(keys[level], keys[level + 1]) for keys, _ in self.queue}:
                above = crowds.setdefault(coarse, set())
                if self.rule.plain:
                    above |= crowds[fine]
                elif len(crowds[fine]) <= self.rule.z - 2:
                    above |= {who for who in crowds[fine] if (fine, who) not in self.shown}
        return crowds

    def published(self, keys: tuple[int, ...], subject: int) -> tuple[int, int] | None:
        """The level of a value of a subject, and how many stand behind it."""
        crowds = self.behind()
        n_behind = [len(crowds[key] | {subject}) for key in keys]
        return next(((i, n) for i, n in enumerate(n_behind) if n >= self.rule.z), None)


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
            compare_published(table, naive, keys, crowds[keys[0]])
    assert table.marks[N_NODES] == len(crowds)
    assert table.marks[N_ENTRIES] == sum(map(len, crowds.values()))
    assert table.marks[N_LEAVES] == len(set(naive.queue))


def compare_published(
    table: Exposures, naive: Naive, keys: tuple[int, ...], subjects: set[int]
) -> None:
    leaf = find_node(table, keys[0])
    for subject in SUBJECTS:
        found = level_of(table, naive.rule, np.array(keys), subject)
        assert found == (naive.published(keys, subject) or (NONE, 0))
    for subject in subjects:
        node = climb(table, naive.rule, leaf, subject)
        found = naive.published(keys, subject)
        assert (node == NONE) == (found is None)
        assert found is None or table.nodes[node, LEVEL] == found[0]
        is_shown = table.entries[find_entry(table, leaf, subject), SHOWN] == 1
        assert is_shown == ((keys[0], subject) in naive.shown)


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(LEAVES), st.sampled_from(SUBJECTS)), max_size=60
)
RULES = st.builds(CountingRule, st.integers(1, 5), st.booleans())


def play(
    table: Exposures,
    changed: np.ndarray,
    naive: Naive,
    steps: Iterable[tuple[int, tuple[int, ...], int]],
) -> None:
    """Each step: a value is exposed, or, one time in four, the oldest exposure is forgotten.

    What is published as it is is shown, as by the engine.
    """
    for time, (kind, keys, subject) in enumerate(steps):
        if kind == 0 and naive.queue:
            forget(table, naive.rule, changed)
            naive.forget()
        elif kind:
            leaf = expose(table, naive.rule, np.array(keys), subject, float(time), changed)
            assert leaf == find_node(table, keys[0])
            naive.queue.append((keys, subject))
            published = naive.published(keys, subject)
            if published is not None and published[0] == 0:
                show(table, leaf, subject)
                naive.shown.add((keys[0], subject))
        compare(table, naive)


@settings(max_examples=examples(50), deadline=None, derandomize=True, database=None)
@given(rule=RULES, steps=STEPS)
def test_exposing_and_forgetting(
    rule: CountingRule, steps: list[tuple[int, tuple[int, ...], int]]
) -> None:
    (table, changed), naive = roomy(), Naive(rule)
    play(table, changed, naive, steps)
    while naive.queue:
        forget(table, rule, changed)
        naive.forget()
    compare(table, naive)
    assert not table.marks[[N_ENTRIES, N_NODES, N_LEAVES]].any()


@settings(max_examples=examples(50), deadline=None, derandomize=True, database=None)
@given(rule=RULES, other=st.integers(1, 6), steps=STEPS, further=STEPS)
def test_another_z_recounts_and_continues(
    rule: CountingRule,
    other: int,
    steps: list[tuple[int, tuple[int, ...], int]],
    further: list[tuple[int, tuple[int, ...], int]],
) -> None:
    (table, changed), naive = roomy(), Naive(rule._replace(plain=False))
    play(table, changed, naive, steps)
    naive.rule = CountingRule(other, False)
    rebuild(table, naive.rule)
    compare(table, naive)
    play(table, changed, naive, further[:20])


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("z", [1, 2, 3, 6])
def test_a_long_run_with_a_window(z: int, plain: bool) -> None:
    draw = random.Random(z)
    (table, changed), naive = roomy(), Naive(CountingRule(z, plain))
    for _ in range(150):
        leaf, subject = draw.choice(LEAVES), draw.choice(SUBJECTS)
        n_old = max(0, len(naive.queue) - draw.choice([3, 10, 25]))
        play(table, changed, naive, [(0, leaf, subject)] * n_old + [(1, leaf, subject)])


def test_a_level_that_becomes_popular_leaves_its_parent_and_comes_back() -> None:
    (table, changed), rule = roomy(), CountingRule(3, False)
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


def test_who_is_shown_doesnt_come_back_with_the_others() -> None:
    (table, changed), rule = roomy(), CountingRule(3, False)
    turin = np.array([1, 9])
    for subject in (7, 8, 9):
        leaf = expose(table, rule, turin, subject, 0.0, changed)
    show(table, leaf, 9)
    parent = find_node(table, 9)
    assert table.nodes[parent, N_SUBJECTS] == 0
    forget(table, rule, changed)
    forget(table, rule, changed)
    assert (table.nodes[leaf, N_SUBJECTS], table.nodes[parent, N_SUBJECTS]) == (1, 0)
    # Exposed again, it is shown still; forgotten, it is a new one.
    expose(table, rule, turin, 9, 1.0, changed)
    assert table.entries[find_entry(table, leaf, 9), SHOWN] == 1
    forget(table, rule, changed)
    forget(table, rule, changed)
    leaf = expose(table, rule, turin, 9, 2.0, changed)
    assert table.nodes[find_node(table, 9), N_SUBJECTS] == 1
