"""Columns hold the same rows as the ring, in order of arrival, whatever comes and goes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shoal.engine.kernels import held, held_columns


def put(ring: held.Held, table: held_columns.HeldColumns, lo: float, hi: float) -> int:
    row = held.Arrival(np.array([lo, 1.0]), np.array([hi, 1.0]), 7, np.array([0]), np.nan, 0)
    position = int(held.put(ring, row, 0))
    held_columns.append(table, ring, position)
    return position


def leave(ring: held.Held, table: held_columns.HeldColumns, position: int) -> None:
    held_columns.remove(table, ring, position)
    held.forget(ring, position)


def rows(table: held_columns.HeldColumns) -> list[tuple[int, float, float]]:
    n = table.marks["n"][0]
    return [
        (int(position), float(lo), float(hi))
        for position, lo, hi in zip(
            table.slots["position"][:n], table.lo[0, :n], table.hi[0, :n], strict=True
        )
        if position >= 0
    ]


@pytest.mark.parametrize("seed", range(5))
def test_columns_and_ring_hold_the_same(seed: int) -> None:
    draw = random.Random(seed)
    ring, table = held.empty(2, 1, 64), held_columns.empty(2, 40)
    known: dict[int, tuple[float, float]] = {}
    for _ in range(2000):
        if known and (len(known) > 30 or draw.random() < 0.45):
            position = draw.choice(list(known))
            leave(ring, table, position)
            del known[position]
        if not known or ring.marks["upcoming"][0] - min(known) < 64:
            value = draw.choice([(1.0, 1.0), (2.0, 3.0), (np.inf, -np.inf)])
            known[put(ring, table, *value)] = value
        if draw.random() < 0.1:
            held_columns.close_holes(table, ring, draw.choice([0, held_columns.DENSE]))
        assert rows(table) == [(position, *known[position]) for position in sorted(known)]
        assert table.marks["n_wide"][0] == sum(lo != hi for lo, hi in known.values())
        for position in known:
            slot = ring.rows["following"][position & 63]
            assert table.slots["position"][slot] == position


def test_an_empty_side_is_a_gap_and_a_whole_domain_is_none() -> None:
    ring, table = held.empty(2, 1), held_columns.empty(2, 8)
    for lo, hi in [(1.0, 1.0), (np.inf, -np.inf), (0.0, 100.0)]:
        put(ring, table, lo, hi)
    assert table.slots["gaps"][:3].tolist() == [0, 1, 0]


def test_holes_are_closed_only_if_there_are_many() -> None:
    ring, table = held.empty(2, 1), held_columns.empty(2, 40)
    for i in range(17):
        put(ring, table, float(i), float(i))
    for position, n in [(0, 17), (1, 17), (2, 14)]:
        leave(ring, table, position)
        held_columns.close_holes(table, ring, held_columns.DENSE)
        assert table.marks["n"][0] == n


def test_more_room_changes_nothing() -> None:
    ring, table = held.empty(2, 1), held_columns.empty(2, 8)
    for i in range(8):
        put(ring, table, float(i), float(i))
    leave(ring, table, 3)
    before = rows(table)
    assert rows(held_columns.grown(table, 20)) == before
