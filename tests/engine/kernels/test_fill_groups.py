"""Groups filled from buckets: each row once, the right number of each bucket, the nearest first."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import KAnonymity, Policy, Quasi, Range, Schema
from shoal.engine import Space
from shoal.engine.kernels.fill_groups import BucketOrder, along_curve, bucket_order, by_distance
from shoal.engine.kernels.hilbert import centres, hilbert
from shoal.engine.kernels.rng import below, seeded
from tests.examples import examples
from tests.naive.fill_groups import GroupFiller
from tests.naive.space import Row
from tests.naive.space import Space as NaiveSpace

SETTINGS = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)
DOMAINS = [Range(0, 100), Range(0, 100)]
SPACE = Space(
    Schema(None, [Quasi(f"q{d}", domain) for d, domain in enumerate(DOMAINS)]),
    Policy(KAnonymity(1)),
)


def test_buckets_are_in_the_order_of_the_curve_and_then_of_arrival() -> None:
    bucket, keys = np.array([1, 0, 1, 1, 0]), np.array([5, 9, 5, 2, 9])
    ordered = bucket_order(bucket, 3, keys)
    assert ordered.rows.tolist() == [1, 4, 3, 0, 2]
    assert ordered.starts.tolist() == [0, 2, 5, 5]
    assert ordered.keys.tolist() == [9, 9, 2, 5, 5]


def placed(points: list[tuple[int, int]], buckets: list[int]) -> tuple[BucketOrder, np.ndarray]:
    """The ordered buckets of some points, and their centres."""
    values = np.array(points, float).T.copy()
    middle = centres(SPACE.sides, values, values)
    keys = hilbert(SPACE.sides, middle)
    return bucket_order(np.array(buckets), max(buckets) + 1, keys), middle


def cut(points: list[tuple[int, int]], buckets: list[int], n_groups: int, seed: int) -> np.ndarray:
    """Sizes of groups that use up every bucket; some take no row of one, none is empty."""
    draw = random.Random(seed)
    sizes = np.zeros((n_groups, max(buckets) + 1), np.int64)
    for row, bucket in enumerate(buckets):
        sizes[row if row < n_groups else draw.randrange(n_groups), bucket] += 1
    return sizes


def taken(
    ordered: BucketOrder, sizes: np.ndarray, middle: np.ndarray, look: int | None
) -> list[list[int]]:
    """The rows of each group; look = None: at all rows."""
    random_state = seeded(b"take", "test")
    if look is None:
        order, starts = by_distance(ordered, sizes, middle, random_state)
    else:
        order, starts = along_curve(ordered, sizes, middle, look, random_state)
    assert starts.tolist() == [0, *np.cumsum(sizes.sum(axis=1)).tolist()]
    return [order[a:b].tolist() for a, b in itertools.pairwise(starts)]


POINTS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=24)
LOOK = st.sampled_from([1, 2, 8, 1000, None])


@SETTINGS
@given(points=POINTS, seed=st.integers(0, 999), look=LOOK)
def test_groups_are_those_of_the_twin_and_take_each_row_once(
    points: list[tuple[int, int]], seed: int, look: int | None
) -> None:
    draw = random.Random(seed)
    buckets = [draw.randrange(3) for _ in points]
    sizes = cut(points, buckets, draw.randint(1, len(points)), seed)
    ordered, middle = placed(points, buckets)
    found = taken(ordered, sizes, middle, look)
    assert sorted(row for group in found for row in group) == list(range(len(points)))
    for group, wanted in zip(found, sizes, strict=True):
        assert np.bincount([buckets[row] for row in group], minlength=len(wanted)).tolist() == (
            wanted.tolist()
        )
    rows = [
        Row(i, ((float(x), float(x)), (float(y), float(y))), i, ())
        for i, (x, y) in enumerate(points)
    ]
    state = seeded(b"take", "test")
    twin = GroupFiller(NaiveSpace(DOMAINS, [1.0, 1.0], "glm"), look, lambda n: int(below(state, n)))
    by_bucket = [[row for row in rows if buckets[row.number] == b] for b in range(sizes.shape[1])]
    expected = twin.groups(by_bucket, sizes.tolist())
    assert [sorted(group) for group in found] == [
        sorted(row.number for row in group) for group in expected
    ]


@pytest.mark.parametrize("look", [1, 8, None])
def test_clusters_are_not_torn_apart(look: Any) -> None:
    # Three clusters, each with two rows of both buckets: whichever row is drawn, its own cluster.
    points = [(x, x) for x in (0, 1, 2, 3, 50, 51, 52, 53, 97, 98, 99, 100)]
    ordered, middle = placed(points, [0, 1, 1, 0] * 3)
    found = taken(ordered, np.array([[2, 2]] * 3), middle, look)
    assert sorted(sorted(group) for group in found) == [
        [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11],
    ]  # fmt: skip


def test_an_empty_bucket_is_skipped() -> None:
    # The first group uses up the second bucket: no further row is drawn from it.
    points = [(x, 0) for x in range(6)]
    ordered, middle = placed(points, [0, 1, 0, 0, 0, 0])
    for look in (1, 8, None):
        found = taken(ordered, np.array([[1, 1], [2, 0], [2, 0]]), middle, look)
        assert 1 in found[0]
        assert sorted(row for group in found for row in group) == list(range(6))


def test_at_the_same_distance_along_the_curve_the_one_before_is_taken() -> None:
    # Row 0 has key 10; of the other bucket there are keys 5 and 15, in either order of arrival.
    n_around_0 = 0
    for seed in range(8):
        state = seeded(bytes([seed]), "test")
        if below(state.copy(), 2) != 0:
            continue
        n_around_0 += 1
        ordered = bucket_order(np.array([0, 1, 1]), 2, np.array([10, 15, 5]))
        middle = np.zeros((1, 3))
        for look in (1, 8):
            order, _ = along_curve(ordered, np.array([[1, 1], [0, 1]]), middle, look, state.copy())
            assert order.tolist() == [0, 2, 1]
    assert n_around_0 > 1


def test_looking_at_more_rows_finds_nearer_ones() -> None:
    # Along the curve the nearest may lie far away; what is looked at beyond it may not.
    draw = random.Random(5)
    points = [(draw.randrange(101), draw.randrange(101)) for _ in range(120)]
    ordered, middle = placed(points, [0] * 120)
    sizes = np.full((30, 4), 4)[:, :1]
    spread = {}
    for look in (1, 8, None):
        groups = taken(ordered, sizes, middle, look)
        spread[look] = sum(np.ptp(middle[:, group], axis=1).sum() for group in groups)
    assert spread[8] < spread[1]
    assert spread[None] < spread[1]
