"""Prices: what rows cost a group is learned from what groups lost."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema
from shoal.engine.space import Space
from shoal.engine.tide.grid import SCALE, GridRows, grid_of, grid_rows
from shoal.engine.tide.prices import Prices, learn, no_prices, price_of

pytestmark = pytest.mark.plain

SPACE = Space(
    Schema(None, [Quasi("age", Range(0, 100))]), Policy(KAnonymity(2), delay=Delay(rows=9))
)
GRID = grid_of(SPACE.sides)


def rows(*values: float) -> GridRows:
    points = np.array([values])
    return grid_rows(GRID, points, points)


def taught(*groups: tuple[list[float], float], times: int = 300) -> Prices:
    """Prices after groups of some values, each with its loss."""
    prices = no_prices(GRID)
    for _ in range(times):
        for values, loss in groups:
            learn(GRID, prices, rows(*values), np.arange(len(values)), int(loss * SCALE))
    return prices


def test_the_price_of_rows_comes_near_to_what_their_groups_lose() -> None:
    prices = taught(([10.0, 11.0], 0.1), ([90.0, 91.0], 0.6))
    assert price_of(GRID, prices, rows(10.0), 0) / SCALE == pytest.approx(0.1, abs=0.03)
    assert price_of(GRID, prices, rows(90.0), 0) / SCALE == pytest.approx(0.6, abs=0.03)


def test_prices_follow_a_stream_that_changes() -> None:
    prices = taught(([10.0, 11.0], 0.1), times=2000)
    for _ in range(2000):
        learn(GRID, prices, rows(10.0, 11.0), np.arange(2), int(0.5 * SCALE))
    assert price_of(GRID, prices, rows(10.0), 0) / SCALE == pytest.approx(0.5, abs=0.03)


def test_a_row_that_makes_a_group_wide_gets_dearer_than_its_partners() -> None:
    """They are in narrow groups, too; it never is."""
    prices = taught(([10.0, 11.0], 0.01), ([10.0, 90.0], 0.8))
    near, far = (price_of(GRID, prices, rows(value), 0) for value in (10.0, 90.0))
    assert far > near + 0.2 * SCALE
