from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from shoal.errors import ParameterError
from shoal.metrics import cubes
from shoal.metrics.axes import Axis
from shoal.metrics.compared import Compared
from shoal.metrics.cubes import cube_divergence
from tests.metrics.world import SCHEMA, places, release, slow_divergence

#: Two ages and two sexes; three of four rows are published in one box, the fourth isn't.
SMALL = Compared(
    axes=(Axis.of_cells("age", 2), Axis.of_cells("sex", 2)),
    sensitive=Axis.of_cells("illness", 5),
    values=places((0, 0), (0, 0), (0, 1), (1, 1)),
    secrets=np.array([2.0, 2.0, 2.0, 3.0]),
    lo=places((0, 0)),
    hi=places((0, 1)),
    boxes=np.array([0, 0, 0]),
    published_secrets=np.array([2.0, 2.0, 2.0]),
)


def test_by_hand() -> None:
    # The row that isn't published is spread over two illnesses, and over the cells of each.
    found = cube_divergence(SMALL, level=1).by_attributes
    age = 3 / 4 * math.log(3 / (3 + 1 / 4)) + 1 / 4 * math.log(1 / (1 / 4))
    sex = (
        2 / 4 * math.log(2 / (3 / 2 + 1 / 4))
        + 1 / 4 * math.log(1 / (3 / 2 + 1 / 4))
        + 1 / 4 * math.log(1 / (1 / 4))
    )
    assert found == pytest.approx({("age",): age, ("sex",): sex})
    both = cube_divergence(SMALL, level=2)
    cells = ((2, 3 / 2 + 1 / 8), (1, 3 / 2 + 1 / 8), (1, 1 / 8))
    assert both.by_attributes == pytest.approx(
        {("age", "sex"): sum(n / 4 * math.log(n / published) for n, published in cells)}
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [1, 2, 3])
def test_as_the_slow_way(seed: int, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Some boxes at a time come to the same as all of them.
    monkeypatch.setattr(cubes, "_BOXES", 3)
    compared = Compared.from_tables(SCHEMA, *release(seed))
    found = cube_divergence(compared, level=level, cells=32)
    names = [axis.name for axis in compared.axes]
    expected = {
        tuple(names[d] for d in attributes): slow_divergence(compared, attributes, 32)
        for attributes in itertools.combinations(range(3), level)
    }
    assert found.by_attributes == pytest.approx(expected)
    assert found.total == pytest.approx(sum(expected.values()))
    assert found.mean == pytest.approx(found.total / len(expected))
    assert min(expected.values()) > 0


def exactly_published(compared: Compared) -> Compared:
    return replace(
        compared,
        lo=compared.values,
        hi=compared.values,
        boxes=np.arange(compared.n_rows),
        published_secrets=compared.secrets,
    )


@pytest.mark.parametrize("level", [1, 2, 3])
def test_exact_boxes_lose_nothing(level: int) -> None:
    compared = exactly_published(Compared.from_tables(SCHEMA, *release(7)))
    assert cube_divergence(compared, level=level).total == pytest.approx(0)


def test_coarse_cells_are_less_than_fine_ones() -> None:
    compared = Compared.from_tables(SCHEMA, *release(3))
    totals = [cube_divergence(compared, level=2, cells=cells).total for cells in (1, 4, 32)]
    # With a single cell for all, nothing but sensitive values of suppressed rows is lost.
    assert totals == sorted(totals)
    assert totals[0] < totals[1] / 2


def test_who_gives_a_box_its_upper_end_is_inside() -> None:
    height = Axis("height", 0.0, 4.0, 0.0)
    compared = Compared(
        (height,), None, places((0.0,), (1.0,), (4.0,)), np.zeros(3),
        places((0.0,), (4.0,)), places((1.0,), (4.0,)), np.array([0, 0, 1]), np.zeros(3),
    )  # fmt: skip
    assert cube_divergence(compared, level=1, cells=4).total == pytest.approx(0)


def test_long_attributes_are_cut() -> None:
    # Six ages in three cells: of the box from 1 to 3 a third lies in the first, the rest behind.
    compared = Compared(
        (Axis.of_cells("age", 6),), None, places((1,), (1,), (3,), (5,)), np.zeros(4),
        places((1,), (5,)), places((3,), (5,)), np.array([0, 0, 0, 1]), np.zeros(4),
    )  # fmt: skip
    expected = 2 / 4 * math.log(2 / 1) + 1 / 4 * math.log(1 / 2)
    assert cube_divergence(compared, level=1, cells=3).total == pytest.approx(expected)


def test_rows_that_say_nothing_are_suppressed_rows() -> None:
    root = replace(
        SMALL,
        lo=places((0, 0), (0, 0)),
        hi=places((0, 1), (1, 1)),
        boxes=np.array([0, 0, 0, 1]),
        published_secrets=np.array([2.0, 2.0, 2.0, np.nan]),
    )
    expected = cube_divergence(SMALL, level=2).by_attributes
    assert cube_divergence(root, level=2).by_attributes == pytest.approx(expected)


def test_a_missing_sensitive_value_is_a_value() -> None:
    compared = exactly_published(replace(SMALL, secrets=np.array([2.0, 2.0, np.nan, 3.0])))
    assert cube_divergence(compared, level=2).total == pytest.approx(0)
    hidden = replace(compared, published_secrets=np.array([2.0, np.nan, 2.0, 3.0]))
    assert cube_divergence(hidden, level=2).total == math.inf


def test_a_missing_value_is_in_no_cube_of_its_attribute() -> None:
    values = SMALL.values.copy()
    values[3, 0] = np.nan
    gap = places((np.inf, 1))
    compared = replace(
        SMALL,
        values=values,
        lo=np.concatenate([SMALL.lo, gap]),
        hi=np.concatenate([SMALL.hi, -gap * (1, -1)]),
        boxes=np.array([0, 0, 0, 1]),
        published_secrets=SMALL.secrets,
    )
    found = cube_divergence(compared, level=1).by_attributes
    # Everybody who has an age has the same one, and the sex of one of three is told wrongly.
    assert found["age",] == pytest.approx(0)
    sex = 2 / 4 * math.log(2 / 1.5) + 1 / 4 * math.log(1 / 1.5)
    assert found["sex",] == pytest.approx(sex)


def test_without_any_value_there_is_nothing_to_lose() -> None:
    nothing = replace(SMALL, values=np.full((4, 2), np.nan))
    assert cube_divergence(nothing, level=1).total == 0


def test_a_box_that_doesnt_cover_its_rows_is_infinitely_far() -> None:
    elsewhere = replace(
        exactly_published(SMALL), lo=places(*[(1, 1)] * 4), hi=places(*[(1, 1)] * 4)
    )
    assert cube_divergence(elsewhere, level=1).total == math.inf


def test_without_a_sensitive_attribute() -> None:
    compared = replace(
        exactly_published(SMALL), sensitive=None, secrets=np.zeros(4), published_secrets=np.zeros(4)
    )
    assert cube_divergence(compared, level=2).total == pytest.approx(0)
    coarse = replace(compared, lo=places((0, 0)), hi=places((1, 1)), boxes=np.zeros(4, np.int64))
    expected = 3 / 4 * math.log(3 / 2) + 1 / 4 * math.log(1 / 2)
    assert cube_divergence(coarse, level=1).by_attributes["age",] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("knobs", "what"),
    [
        ({"level": 3}, "level: must be a whole number from 1 to 2; got 3"),
        ({"level": True}, "level: must be a whole number"),
        ({"cells": 0}, "cells: must be a whole number from 1"),
    ],
)
def test_wrong_knobs_are_refused(knobs: dict[str, int], what: str) -> None:
    with pytest.raises(ParameterError, match=what):
        cube_divergence(SMALL, **knobs)
