"""Pairs and counts against plain dictionaries."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.z.pairs import (
    N_PAIRS,
    Pairs,
    empty,
    hash_of,
    moved,
    needed,
    published,
    room,
    take,
)
from shoal.engine.z.window import DONE, LOOK, PLACE, ROOM, ZDecisions, ZWindow
from tests.examples import examples

#: Many keys and subjects of which few are different, some of them huge or below 0.
NUMBERS = [1, 2, 3, -1, -(2**63), 2**63 - 1, 2**32, 12345678901234567]


def place(z: int = 2) -> np.ndarray:
    marks = np.zeros(1, PLACE)
    marks["now"], marks["slot"], marks["z"] = -np.inf, -1, z
    return marks


def cells(n: int, n_cells: int = 1) -> ZDecisions:
    shape = n, n_cells
    return ZDecisions(np.full(shape, -1), np.zeros(shape, np.int64), np.zeros(n, np.int64),
                 np.full(n, np.nan))  # fmt: skip


class World:
    """A table that grows when needed, and a dictionary with the same exposures."""

    def __init__(self, rows: int, z: int = 2) -> None:
        self.table: Pairs = empty(1, 1, 1)
        self.place, self.rows, self.z = place(z), rows, z
        self.latest: dict[tuple[int, int], int] = {}
        self.n = 0

    def take(self, key: int, subject: int) -> tuple[int, int]:
        """Take in a row; give its level and how many stand behind it."""
        out, cursor = cells(1), np.zeros(2, np.int64)
        reach = ZWindow(False, float(self.rows), self.rows - 1.0, 0.0)
        given = np.array([subject]), np.array([np.nan]), np.array([[key]])
        while (why := take(self.table, self.place, reach, *given, out, cursor)) == ROOM:
            wanted = [
                max(n + 1, m) for n, m in zip(needed(self.table), room(self.table), strict=True)
            ]
            self.table = moved(self.table, *wanted)
        assert why == DONE
        self.latest[key, subject] = self.n
        self.latest = {pair: at for pair, at in self.latest.items() if at > self.n - self.rows}
        self.n += 1
        return int(out.levels[0, 0]), int(out.n_behind[0, 0])

    def crowd(self, key: int) -> int:
        return sum(other == key for other, _ in self.latest)


@settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)), max_size=80),
    window=st.sampled_from([1, 2, 5, 17, 1000]),
    cut=st.integers(0, 80),
)
def test_pairs_are_those_of_a_dictionary(
    rows: list[tuple[int, int]], window: int, cut: int
) -> None:
    world = World(window)
    for i, (key, subject) in enumerate(rows):
        level, crowd = world.take(key, subject)
        expected = world.crowd(key)
        assert (level, crowd) == ((0, expected) if expected >= world.z else (-1, 0))
        assert world.table.marks[N_PAIRS] == len(world.latest)
        if i == cut:
            world.table = moved(world.table, *(max(1, n) for n in needed(world.table)))
    subjects, keys = published(world.table, 0)
    assert sorted(zip(keys.tolist(), subjects.tolist(), strict=True)) == sorted(world.latest)
    subjects, keys = published(world.table, 2)
    found = sorted(zip(keys.tolist(), subjects.tolist(), strict=True))
    assert found == sorted(pair for pair in world.latest if world.crowd(pair[0]) >= 2)


def test_what_leaves_the_window_leaves_no_line_behind() -> None:
    world = World(3)
    for i in range(50):
        world.take(i + 1, i)
    assert needed(world.table) == (3, 3, 3)
    assert np.count_nonzero(world.table.pairs) == np.count_nonzero(world.table.counts[:, 0]) == 3


def test_it_stops_at_an_estimate_and_resumes() -> None:
    table, marks, cursor, out = empty(), place(1), np.zeros(2, np.int64), cells(4)
    reach = ZWindow(True, 2.0, 2.0, 2.0)
    given = np.arange(4), np.array([0.0, 1.0, 2.0, 3.0]), np.ones((4, 1), np.int64)
    assert take(table, marks, reach, *given, out, cursor) == LOOK
    assert cursor[0] == 2
    assert take(table, marks, reach, *given, out, cursor) == DONE
    assert out.n_behind[:, 0].tolist() == [1, 2, 3, 3]
    assert out.times.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_hashes_have_31_bits_and_spread() -> None:
    hashes = {hash_of(key, subject) for key in range(100) for subject in range(100)}
    assert len(hashes) > 9_900
    assert all(0 <= h < 2**31 for h in hashes)
    assert 0 <= hash_of(-(2**63), 2**63 - 1) < 2**31
