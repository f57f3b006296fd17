"""Losses in whole numbers: of boxes that grow, of rows that lack values, and of boxes joined."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import Delay, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema
from shoal.engine.space import Space
from shoal.engine.tide.grid import (
    SCALE,
    Boxes,
    Grid,
    GridRows,
    added,
    begin,
    boxes_for,
    grid_of,
    grid_rows,
    joint_loss,
    take,
    take_first,
)

pytestmark = pytest.mark.plain

EDUCATION = Hierarchy.from_dict(
    {"Any": {"School": ["Primary", "Secondary"], "University": ["Bachelor", "Master", "PhD"]}}
)
GAP = np.nan


def space(loss: str = "glm", missing: str = "maybe") -> Space:
    schema = Schema(None, [Quasi("age", Range(0, 100), 3.0), Quasi("education", EDUCATION, 1.0)])
    policy = Policy(KAnonymity(2), delay=Delay(rows=9), missing=missing)  # type: ignore[arg-type]
    return Space(schema, policy, loss)  # type: ignore[arg-type]


def on_grid(values: list[tuple[float, float]], known: Space) -> tuple[Grid, GridRows]:
    grid = grid_of(known.sides)
    lo, hi = known.points(np.array(values, float))
    return grid, grid_rows(grid, np.ascontiguousarray(lo.T), np.ascontiguousarray(hi.T))


def box(grid: Grid, rows: GridRows, members: list[int], boxes: Boxes, g: int = 0) -> int:
    begin(boxes, g)
    for i in members:
        take(grid, boxes, g, rows, i)
    return int(boxes.totals["loss"][g])


@pytest.mark.parametrize("loss", ["glm", "lm", "uncertainty"])
def test_the_loss_of_a_box_is_that_of_the_space(loss: str) -> None:
    known = space(loss)
    grid, rows = on_grid([(20, 0), (45, 1), (30, 3)], known)
    found = box(grid, rows, [0, 1, 2], boxes_for(1, 2)) / SCALE
    lo, hi = np.array([20.0, 0.0]), np.array([45.0, 4.0 if loss != "uncertainty" else 3.0])
    assert found == pytest.approx(known.loss(lo, hi), abs=1e-6)


def test_what_a_row_adds_is_what_the_box_loses_more() -> None:
    grid, rows = on_grid([(20, 0), (45, 1), (GAP, 3), (60, GAP), (GAP, GAP)], space())
    boxes = boxes_for(1, 2)
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]):
        for n in range(1, 5):
            before = box(grid, rows, order[:n], boxes)
            more = int(added(grid, boxes, 0, rows, order[n]))
            assert before + more == box(grid, rows, order[: n + 1], boxes)


def test_rows_that_have_a_value_and_rows_that_lack_it_cost_a_quarter_of_its_weight() -> None:
    grid, rows = on_grid([(20, 0), (20, GAP), (GAP, GAP)], space())
    boxes = boxes_for(1, 2)
    assert box(grid, rows, [0, 1], boxes) / SCALE == pytest.approx(0.25 / 4)
    assert box(grid, rows, [1, 1], boxes) == 0
    assert box(grid, rows, [0, 2], boxes) / SCALE == pytest.approx(0.25)


def test_boxes_joined_lose_what_all_their_rows_do() -> None:
    grid, rows = on_grid([(20, 0), (45, 1), (GAP, 3), (60, GAP)], space())
    boxes = boxes_for(3, 2)
    box(grid, rows, [0, 2], boxes, 0)
    box(grid, rows, [1, 3], boxes, 1)
    assert int(joint_loss(grid, boxes, 0, 1)) == box(grid, rows, [0, 1, 2, 3], boxes, 2)


@pytest.mark.parametrize("loss", ["glm", "uncertainty"])
def test_the_first_rows_at_once_are_the_box_of_one_after_the_other(loss: str) -> None:
    values = [(20.0, 0.0), (45.0, 1.0), (30.0, 3.0), (GAP, 2.0), (60.0, GAP), (GAP, GAP)]
    grid, rows = on_grid(values, space(loss))
    boxes = boxes_for(2, 2)
    for n in range(1, len(values) + 1):
        box(grid, rows, list(range(n)), boxes, 0)
        take_first(grid, boxes, 1, rows, n)
        for side in (boxes.lo, boxes.hi, boxes.node, boxes.lacks):
            assert (side[:, 0] == side[:, 1]).all()
        assert boxes.totals[0] == boxes.totals[1]
