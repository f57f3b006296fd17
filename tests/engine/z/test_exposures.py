"""Tables of nodes, entries and exposures do what dictionaries and a queue do."""

from __future__ import annotations

from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.z.exposures import (
    KEY,
    LEVEL,
    N_ENTRIES,
    N_NODES,
    N_SUBJECTS,
    NONE,
    OLDEST,
    PARENT,
    SHOWN,
    SUBJECT,
    UPCOMING,
    Exposures,
    add_entry,
    drop_entry,
    drop_node,
    empty,
    find_entry,
    find_node,
    moved,
    new_node,
    note,
)
from tests.examples import examples

#: Keys and subjects as they may come, the smallest and the largest among them.
NUMBERS = [1, -1, 2, 2**62, -(2**63), 2**63 - 1, 7_919_000_000_000]
PAIRS = st.tuples(st.sampled_from(NUMBERS), st.sampled_from([0, *NUMBERS]))


def contents(table: Exposures, pairs: set[tuple[int, int]]) -> dict[tuple[int, int], bool]:
    """Which of some pairs of a key and a subject there are."""
    found = {}
    for key, subject in pairs:
        node = find_node(table, key)
        found[key, subject] = node != NONE and find_entry(table, node, subject) != NONE
    return found


ALL_PAIRS = {(key, subject) for key in NUMBERS for subject in (0, *NUMBERS)}


@settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)
@given(steps=st.lists(st.tuples(st.sampled_from(["add", "drop", "move"]), PAIRS), max_size=80))
def test_entries_come_and_go(steps: list[tuple[str, tuple[int, int]]]) -> None:
    table = empty(2, 2, 1)
    expected: set[tuple[int, int]] = set()
    for step, (key, subject) in steps:
        node = find_node(table, key)
        assert (node != NONE) == any(key == other for other, _ in expected)
        if step == "add" and (key, subject) not in expected:
            n_keys = len({other for other, _ in expected})
            if len(expected) + 1 > len(table.entries) or n_keys + 1 > len(table.nodes):
                table = moved(table, 2 * len(expected) + 1, 2 * n_keys + 1, 1)
                node = find_node(table, key)
            if node == NONE:
                node = new_node(table, key, 0, NONE)
            add_entry(table, node, subject)
            expected.add((key, subject))
        elif step == "drop" and (key, subject) in expected:
            drop_entry(table, find_entry(table, node, subject))
            drop_node(table, node)
            expected.discard((key, subject))
        elif step == "move":
            # As tight as can be.
            n_keys = len({other for other, _ in expected})
            table = moved(table, max(1, len(expected)), max(1, n_keys), 1)
        assert contents(table, ALL_PAIRS) == {pair: pair in expected for pair in ALL_PAIRS}
        assert table.marks[N_ENTRIES] == len(expected)
        assert table.marks[N_NODES] == len({other for other, _ in expected})
        for other in {other for other, _ in expected}:
            behind = {subject for key, subject in expected if key == other}
            assert table.nodes[find_node(table, other), N_SUBJECTS] == len(behind)


def test_a_node_goes_with_those_above_it_that_have_no_other_below() -> None:
    table = empty()
    root = new_node(table, 1, 2, NONE)
    middle = new_node(table, 2, 1, root)
    leaf, other = new_node(table, 3, 0, middle), new_node(table, 4, 0, middle)
    drop_node(table, leaf)
    assert [find_node(table, key) for key in (1, 2, 3, 4)] == [root, middle, NONE, other]
    drop_node(table, other)
    assert [find_node(table, key) for key in (1, 2, 4)] == [NONE] * 3
    assert table.marks[N_NODES] == 0


def test_a_node_with_somebody_behind_it_or_something_below_stays() -> None:
    table = empty()
    parent = new_node(table, 1, 1, NONE)
    leaf = new_node(table, 2, 0, parent)
    at = add_entry(table, leaf, 7)
    drop_node(table, leaf)
    drop_node(table, parent)
    assert (find_node(table, 1), find_node(table, 2)) == (parent, leaf)
    drop_entry(table, at)
    assert find_entry(table, leaf, 7) == NONE
    drop_node(table, leaf)
    assert table.marks[N_NODES] == 0


def test_what_was_freed_is_used_again() -> None:
    table = empty(2, 2, 2)
    for key in range(1, 200):
        node = new_node(table, key, 0, NONE)
        at = add_entry(table, node, -key)
        drop_entry(table, at)
        drop_node(table, node)
    assert table.marks[N_ENTRIES] == table.marks[N_NODES] == 0


@settings(max_examples=examples(40), deadline=None, derandomize=True, database=None)
@given(
    exposures=st.lists(PAIRS, max_size=50),
    n_seen=st.integers(0, 50),
)
def test_moved_tables_have_the_ladders_and_the_latest_exposures(
    exposures: list[tuple[int, int]], n_seen: int
) -> None:
    table = empty(70, 70, 64)
    queue: deque[tuple[int, int, float]] = deque()
    for time, (key, subject) in enumerate(exposures):
        leaf = find_node(table, key)
        if leaf == NONE:
            parent = find_node(table, 5)
            if parent == NONE:
                parent = new_node(table, 5, 1, NONE)
            leaf = new_node(table, key, 0, parent)
        at = find_entry(table, leaf, subject)
        at = add_entry(table, leaf, subject) if at == NONE else at
        note(table, at, float(time))
        table.entries[at, SHOWN] = subject == 1
        queue.append((key, subject, float(time)))
    for _ in range(min(n_seen, len(queue) - len(set(exposures)))):
        # Those that aren't the latest of their pair may be passed by.
        if queue and (queue[0][0], queue[0][1]) not in [pair[:2] for pair in list(queue)[1:]]:
            break
        queue.popleft()
        table.marks[OLDEST] += 1
    n_pairs, n_keys = len(set(exposures)), len({key for key, _ in exposures})
    other = moved(table, max(1, n_pairs), n_keys + 1, max(1, n_pairs))
    latest = {(key, subject): time for key, subject, time in queue}
    assert contents(other, ALL_PAIRS) == {pair: pair in latest for pair in ALL_PAIRS}
    for key in {key for key, _ in exposures}:
        node = find_node(other, key)
        assert other.nodes[node, LEVEL] == 0
        assert other.nodes[other.nodes[node, PARENT], KEY] == 5
    for key, subject in latest:
        at = find_entry(other, find_node(other, key), subject)
        assert other.entries[at, SHOWN] == (subject == 1)
    seen = []
    for position in range(other.marks[OLDEST], other.marks[UPCOMING]):
        place = position & (len(other.ring) - 1)
        subject = int(other.entries[other.ring[place], SUBJECT])
        seen.append((subject, float(other.times[place])))
    expected = sorted((time, subject) for (_, subject), time in latest.items())
    assert seen == [(subject, time) for time, subject in expected]
