"""Boxes are compared as boxes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.attacks.world import crowd, setting

ROWS = [
    ("ann", 20, "Oslo", "flu", ("[20, 30]", "North")),
    ("bob", 30, "Turku", "cold", ("[20, 30]", "North")),
    ("cid", 25, "Oslo", "flu", ("[0, 99]", "Any")),
    ("dan", 80, "Rome", "flu", ("[0, 99]", "Any")),
]


def pairs(matches):
    return list(zip(matches.target.tolist(), matches.box.tolist(), strict=True))


def test_all_covering_boxes_and_the_smallest_of_them():
    given = setting(ROWS)
    narrow, wide = given.boxes.of_row[[0, 2]]
    points = given.points[[2, 3]]
    assert pairs(given.boxes.covering(points)) == sorted([(0, narrow), (0, wide), (1, wide)])
    assert pairs(given.boxes.tightest(points)) == [(0, narrow), (1, wide)]


def test_what_is_not_known_fits_every_side():
    given = setting(ROWS)
    points = np.array([[80.0, 0.0]])
    only_city = np.array([[False, True]])
    assert len(given.boxes.covering(points, only_city).box) == 2
    assert len(given.boxes.covering(np.array([[np.nan, 2.0]])).box) == 1


@pytest.mark.parametrize("at_once", [1, 7, 10**6])
def test_pieces_do_not_matter(at_once, monkeypatch):
    given = setting(crowd(5, 3))
    whole = pairs(given.boxes.covering(given.points))
    monkeypatch.setattr("shoal.attacks.boxes._AT_ONCE", at_once)
    assert pairs(given.boxes.covering(given.points)) == whole
    assert len(whole) == 15


def test_suppressed_rows_are_in_no_box():
    given = setting([*ROWS, ("eve", 50, "Bari", "flu", None)])
    assert len(given.boxes) == 2
    assert given.boxes.n_rows.tolist() == [2, 2]
    assert given.outcome.tolist() == [0, 0, 0, 0, 2]
