"""A group among many rows is the one that grows among the nearest of them."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema
from shoal.engine.space import Space
from shoal.engine.tide.forming import rules_for
from shoal.engine.tide.grid import boxes_for, grid_of, grid_rows
from shoal.engine.tide.grow import TAKEN, candidates_for
from shoal.engine.tide.nearest import group_around

pytestmark = pytest.mark.plain


def around(
    values: list[float], seed: int, k: int, subjects: list[int], bias: list[int]
) -> set[int]:
    space = Space(
        Schema(None, [Quasi("age", Range(0, 100))]), Policy(KAnonymity(k), delay=Delay(rows=9))
    )
    grid, n, points = grid_of(space.sides), len(values), np.array([values])
    members = np.empty(n, np.int64)
    m = group_around(
        grid, rules_for(space.limits), grid_rows(grid, points, points), n,
        np.array(bias, np.int32), np.array(subjects), np.empty((0, 0), np.int64), seed,
        candidates_for(n, 1, False, False), np.empty(n, np.int32), boxes_for(1, 1), 0, members,
    )  # fmt: skip
    return set(members[:m].tolist())


def test_the_nearest_of_many_rows_are_taken() -> None:
    values = [float(i) for i in range(100)]
    assert around(values, 50, 3, list(range(100)), [0] * 100) in ({50, 49, 48}, {50, 49, 51})


def test_a_person_is_taken_once() -> None:
    assert around([50.0, 50.0, 51.0, 80.0], 0, 3, [1, 1, 2, 3], [0] * 4) == {0, 2, 3}


def test_a_row_that_is_taken_cannot_be_had() -> None:
    assert around([50.0, 50.0, 51.0, 80.0], 0, 2, [1, 2, 3, 4], [0, TAKEN, 0, 0]) == {0, 2}


def test_a_row_with_a_high_price_comes_first() -> None:
    assert around([50.0, 52.0, 49.0], 0, 2, [1, 2, 3], [0, -(1 << 22), 0]) == {0, 1}


def test_too_few_people_are_no_group() -> None:
    assert around([50.0, 52.0, 49.0], 0, 3, [1, 1, 2], [0] * 3) == set()
