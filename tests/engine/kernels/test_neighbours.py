"""The group around a row, against a search through everything."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
import pytest

from shoal import (
    Delay,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    Policy,
    Quasi,
    Range,
    Schema,
    Sensitive,
)
from shoal.engine import Space
from shoal.engine.kernels import held, held_columns
from shoal.engine.kernels.neighbours import group_around
from shoal.engine.kernels.partitions import attribute_distance, partitions, spread, united
from tests.naive.criteria import Promise
from tests.naive.space import Row

SCHEMA = Schema("p", [Quasi("x", Range(0, 100))], [Sensitive("s")])


class World(NamedTuple):
    ring: held.Held
    table: held_columns.HeldColumns
    subjects: list[int]
    values: list[int]
    distance: np.ndarray
    apart: np.ndarray


def world(seed: int, n: int = 60) -> World:
    draw = random.Random(seed)
    ring, table = held.empty(1, 1), held_columns.empty(1, 100)
    subjects = [draw.randrange(25) for _ in range(n)]
    values = [draw.choice([0, 0, 0, 1, 2]) for _ in range(n)]
    for subject, value in zip(subjects, values, strict=True):
        point = np.array([5.0])
        row = held.Arrival(point, point, subject, np.array([value]), np.nan, 0)
        held_columns.append(table, ring, int(held.put(ring, row, 0)))
    gone = draw.sample(range(1, n), 8)
    for position in gone:
        held_columns.remove(table, ring, position)
        held.forget(ring, position)
    # Few different distances, so that there are many ties.
    distance = np.array([draw.randrange(6) / 8 for _ in range(n)])
    apart = np.array([0.0, *(draw.choice([0.0, 0.5]) for _ in range(n - 1))])
    return World(ring, table, subjects, values, distance, apart)


def naive(w: World, fewest: int, promise: Promise | None, radius: float) -> list[int]:
    candidates = sorted(
        (c for c in range(len(w.subjects))
         if w.table.slots["position"][c] >= 0 and w.apart[c] <= radius
         and w.subjects[c] != w.subjects[0]),
        key=lambda c: (w.distance[c], c),
    )  # fmt: skip
    firsts, seen = [], set()
    for c in candidates:
        if w.subjects[c] not in seen:
            seen.add(w.subjects[c])
            firsts.append(c)
    n = fewest
    if len(firsts) + 1 < n:
        return []
    while True:
        group = [0, *firsts[: n - 1]]
        rows = [Row(c, (), w.subjects[c], (w.values[c],)) for c in group]
        if promise is None or promise.diverse(rows):
            return sorted(group)
        if n == len(firsts) + 1:
            return []
        n = min(n + max(1, n // 8), len(firsts) + 1)


def group(w: World, policy: Policy, radius: float) -> list[int]:
    limits = Space(SCHEMA, policy).limits
    found = group_around(limits, w.ring, w.table, 0, w.distance, w.apart, radius)
    return [int(position) for position in found]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("radius", [0.0, 0.5])
@pytest.mark.parametrize("k", [1, 2, 7, 20, 25, 26])
def test_the_nearest_rows_of_other_subjects(seed: int, radius: float, k: int) -> None:
    w = world(seed)
    assert group(w, Policy(KAnonymity(k), delay=Delay(rows=1)), radius) == naive(w, k, None, radius)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("k", [1, 3, 12])
@pytest.mark.parametrize(
    "criterion", [DistinctLDiversity(2), DistinctLDiversity(3), EntropyLDiversity(2.2)]
)
def test_a_group_grows_until_it_is_diverse(
    seed: int, k: int, criterion: DistinctLDiversity | EntropyLDiversity
) -> None:
    w = world(seed)
    policy = Policy(KAnonymity(k), criterion, delay=Delay(rows=1))
    entropy = criterion.l if isinstance(criterion, EntropyLDiversity) else 0.0
    promise = Promise(k, (criterion.needed,), (entropy,), ((0.0, 0),))
    assert group(w, policy, 0.5) == naive(w, max(k, criterion.needed), promise, 0.5)


# -- partitions ------------------------------------------------------------------------------------


def test_attribute_distance_is_one_minus_the_jaccard_coefficient() -> None:
    for gaps, other in [(0b0011, 0b0000), (0b0100, 0b0000), (0b1010, 0b0110), (0b1111, 0b1111)]:
        mine = {d for d in range(4) if not gaps >> d & 1}
        others = {d for d in range(4) if not other >> d & 1}
        either = mine | others
        expected = 1 - len(mine & others) / len(either) if either else 0.0
        assert attribute_distance(4, gaps, other) == pytest.approx(expected)
        assert attribute_distance(4, other, gaps) == attribute_distance(4, gaps, other)


def test_partitions_are_in_order_of_their_oldest_row() -> None:
    ring, table = held.empty(2, 1), held_columns.empty(2, 20)
    full, left, right = (1.0, 1.0), (1.0, np.nan), (np.nan, 1.0)
    for values in [full, left, full, right, left, left]:
        lo = np.where(np.isnan(values), np.inf, values)
        hi = np.where(np.isnan(values), -np.inf, values)
        row = held.Arrival(lo, hi, 1, np.array([0]), np.nan, 0)
        held_columns.append(table, ring, int(held.put(ring, row, 0)))
    held_columns.remove(table, ring, 1)
    found = partitions(table, 3)
    assert found.of.tolist() == [0, -1, 0, 1, 2, 2]
    assert found.n_rows.tolist() == [2, 1, 2]
    assert found.apart.tolist() == [0.5, 0.0, 1.0]
    assert spread(found).tolist() == [0.5, np.inf, 0.5, 0.0, 1.0, 1.0]
    assert united(table, found, np.array([True, False, True])).tolist() == [0, 2, 4, 5]
