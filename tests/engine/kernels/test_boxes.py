"""Boxes in arrays against the domains they come from."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Delay, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema
from shoal.engine import Space
from shoal.engine.kernels.boxes import (
    box_loss,
    cover,
    covers,
    distances_from,
    hull,
    join,
    joined_losses,
    mean_loss,
    shared_losses,
)
from shoal.testing.strategies import schemas
from tests.examples import examples

SETTINGS = settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)
POLICY = Policy(KAnonymity(2), delay=Delay(rows=5))


def rows_of(data: st.DataObject, schema: Schema, n: int) -> np.ndarray:
    columns = [
        st.floats(a.domain.lo, a.domain.hi)
        if isinstance(a.domain, Range)
        else st.integers(0, len(a.domain) - 1).map(float)
        for a in schema.quasi
    ]
    return np.array([[data.draw(column) for column in columns] for _ in range(n)])


def published(schema: Schema, values: np.ndarray) -> tuple[list[float], list[float]]:
    """The box over some rows, by the domains alone."""
    lo, hi = [], []
    for attribute, column in zip(schema.quasi, values.T, strict=True):
        domain = attribute.domain
        if isinstance(domain, Range):
            own = [domain.snap(value, value) for value in column.tolist()]
            side = (min(low for low, _ in own), max(high for _, high in own))
        else:
            node = domain.cover(int(column.min()), int(column.max()))
            side = (float(domain.lows[node]), float(domain.highs[node]))
        lo.append(side[0])
        hi.append(side[1])
    return lo, hi


@SETTINGS
@given(schema=schemas(), data=st.data(), measure=st.sampled_from(["glm", "lm"]))
def test_points_join_hull_and_loss(
    schema: Schema, data: st.DataObject, measure: Literal["glm", "lm"]
) -> None:
    space = Space(schema, POLICY, measure)
    values = rows_of(data, schema, 3)
    los, his = space.points(values)
    for row, lo, hi in zip(values, los, his, strict=True):
        assert (lo.tolist(), hi.tolist()) == published(schema, row[None])
    whole = published(schema, values)
    lo, hi = hull(space.sides, los.T.copy(), his.T.copy(), np.arange(3))
    assert (lo.tolist(), hi.tolist()) == whole
    lo, hi = los[0].copy(), his[0].copy()
    for i in (1, 2):
        join(space.sides, lo, hi, los[i], his[i])
    assert (lo.tolist(), hi.tolist()) == whole
    assert covers(lo, hi, los[1], his[1])
    for d, attribute in enumerate(schema.quasi):
        if not isinstance(attribute.domain, Range):
            node = cover(space.sides, d, lo[d], hi[d])
            first = np.flatnonzero(space.sides.nodes["parent"] == np.arange(len(space.sides.nodes)))
            assert node - first[first <= node][-1] == attribute.domain.cover(int(lo[d]), int(hi[d]))
    assert -1e-12 <= space.loss(lo, hi) <= 1 + 1e-12


@SETTINGS
@given(schema=schemas(), data=st.data())
def test_joined_losses_are_the_losses_of_the_joined_boxes(
    schema: Schema, data: st.DataObject
) -> None:
    """To the last bit, since ties are broken by ``==``."""
    space = Space(schema, POLICY)
    los, his = space.points(rows_of(data, schema, 5))
    others_lo, others_hi = los[:4].T.copy(), his[:4].T.copy()
    out = np.empty(4)
    joined_losses(space.sides, others_lo, others_hi, 4, los[4], his[4], out)
    for c in range(4):
        lo, hi = los[c].copy(), his[c].copy()
        join(space.sides, lo, hi, los[4], his[4])
        assert out[c] == box_loss(space.sides, lo, hi)


@SETTINGS
@given(schema=schemas(), data=st.data())
def test_where_categories_are_numbers_boxes_are_tight(schema: Schema, data: st.DataObject) -> None:
    space = Space(schema, POLICY, "uncertainty")
    values = rows_of(data, schema, 3)
    los, his = space.points(values)
    lo, hi = hull(space.sides, los.T.copy(), his.T.copy(), np.arange(3))
    assert (lo.tolist(), hi.tolist()) == (los.min(axis=0).tolist(), his.max(axis=0).tolist())
    tight = space.loss(lo, hi)
    # What is shown of it is what a space that knows the trees shows.
    join(space.shown, lo, hi, lo, hi)
    assert (lo.tolist(), hi.tolist()) == published(schema, values)
    assert box_loss(space.shown, lo, hi) == space.loss(lo, hi) >= tight


def test_covers_looks_at_every_side() -> None:
    lo, hi = np.array([0.0, 0.0]), np.array([2.0, 2.0])
    assert covers(lo, hi, lo, hi)
    for outside in ([-1.0, 1.0], [1.0, 3.0]):
        point = np.array(outside)
        assert not covers(lo, hi, point, point)


@SETTINGS
@given(schema=schemas(), data=st.data())
def test_sides_that_nobody_has_lose_nothing_and_widen_nothing(
    schema: Schema, data: st.DataObject
) -> None:
    space = Space(schema, Policy(KAnonymity(1), delay=Delay(rows=1), missing="maybe"))
    values = rows_of(data, schema, 4)
    complete = values.copy()
    bits = data.draw(st.lists(st.booleans(), min_size=values.size, max_size=values.size))
    values[np.array(bits).reshape(values.shape)] = np.nan
    los, his = space.points(values)
    gaps = space.gaps(values)
    assert [[bool(gap >> d & 1) for d in range(space.n_quasi)] for gap in gaps.tolist()] == (
        np.isnan(values).tolist()
    )
    lo, hi = hull(space.sides, los.T.copy(), his.T.copy(), np.arange(4))
    weights = space.sides.attributes["weight"]
    total, weight = 0.0, 0.0
    for d in range(space.n_quasi):
        there = values[~np.isnan(values[:, d])]
        if not len(there):
            assert (lo[d], hi[d]) == (np.inf, -np.inf)
            continue
        # As if only the rows with a value there had been, and all had the first one's others.
        column = np.repeat(complete[:1], len(there), axis=0)
        column[:, d] = there[:, d]
        one_lo, one_hi = published(schema, column)
        assert (lo[d], hi[d]) == (one_lo[d], one_hi[d])
        only = np.full(space.n_quasi, np.inf), np.full(space.n_quasi, -np.inf)
        only[0][d], only[1][d] = lo[d], hi[d]
        total += space.loss(*only)
        weight += weights[d]
    assert mean_loss(space.sides, lo, hi) == pytest.approx(total / weight if weight else 0.0)
    for i in range(4):
        assert covers(lo, hi, los[i], his[i])
    out = np.empty(3)
    joined_losses(space.sides, los[:3].T.copy(), his[:3].T.copy(), 3, los[3], his[3], out)
    for i in range(3):
        both = los[i].copy(), his[i].copy()
        join(space.sides, *both, los[3], his[3])
        assert out[i] == space.loss(*both)
    rows = los[:3].T.copy(), his[:3].T.copy()
    distances_from(space.sides, *rows, 0, 3, los[3], his[3], True, out)
    for i in range(3):
        common = ~np.isnan(values[i]) & ~np.isnan(values[3])
        only_one = np.isnan(values[i]) != np.isnan(values[3])
        both = np.where(common, los[i], np.inf), np.where(common, his[i], -np.inf)
        join(
            space.sides, *both,
            np.where(common, los[3], np.inf), np.where(common, his[3], -np.inf),
        )  # fmt: skip
        assert out[i] == pytest.approx(space.loss(*both) + weights[only_one].sum())
    shared_losses(space.sides, los[:3].T.copy(), his[:3].T.copy(), 3, los[3], his[3], out)
    for i in range(3):
        common = ~np.isnan(values[i]) & ~np.isnan(values[3])
        if not common.any():
            assert out[i] == 1.0
            continue
        both = np.where(common, los[i], np.inf), np.where(common, his[i], -np.inf)
        join(
            space.sides, *both,
            np.where(common, los[3], np.inf), np.where(common, his[3], -np.inf),
        )  # fmt: skip
        assert out[i] == pytest.approx(space.loss(*both) / weights[common].sum())


@SETTINGS
@given(schema=schemas(), data=st.data())
def test_an_extended_gap_is_the_whole_domain(schema: Schema, data: st.DataObject) -> None:
    space = Space(schema, Policy(KAnonymity(1), delay=Delay(rows=1), missing="extended"))
    values = rows_of(data, schema, 1)
    values[0, 0] = np.nan
    lo, hi = space.points(values)
    domain = schema.quasi[0].domain
    whole = (domain.lo, domain.hi) if isinstance(domain, Range) else (0, len(domain) - 1)
    assert (lo[0, 0], hi[0, 0]) == whole
    assert space.gaps(values).tolist() == [1]


def binary(levels: int) -> Hierarchy:
    """A tree in which each node has two children."""
    codes = [f"{code:0{levels - 1}b}" for code in range(2 ** (levels - 1))]
    ends = range(levels - 2, -1, -1)
    return Hierarchy.from_rows([code, *(code[:end] + "*" for end in ends)] for code in codes)


@pytest.mark.parametrize("levels", range(2, 9))
def test_trees_of_any_depth_are_climbed_to_the_node_that_covers(levels: int) -> None:
    tree = binary(levels)
    sides = Space(Schema("p", [Quasi("x", tree)]), POLICY).sides
    lows, highs = np.array(tree.lows, float), np.array(tree.highs, float)
    los, his, n = lows.reshape(1, -1), highs.reshape(1, -1), len(lows)
    joined = np.empty(n)
    for low, high in zip(lows, highs, strict=True):
        joined_losses(sides, los, his, n, np.array([low]), np.array([high]), joined)
        for c in range(n):
            lo, hi = np.array([min(low, lows[c])]), np.array([max(high, highs[c])])
            assert joined[c] == box_loss(sides, lo, hi)
