"""Figures of values one by one: shares by level, and the latest look at the window."""

from __future__ import annotations

import json

import numpy as np
import pytest

from shoal.engine.decisions import ESTIMATE
from shoal.metrics import Summary
from shoal.metrics.z.counts import ZCounts

LEVELS = np.array([[0, 0], [2, -1], [-1, -1], [-2, 0], [0, -2]])
#: Row, time, z before and after, subjects, share of them in crowds, entropy.
LOOKS = np.array(
    [(5, 1.0, 3, 7, 40, 0.5, 2.0), (9, 2.0, 7, 7, 41, 0.625, 2.5), (12, 3.0, 7, 4, 50, 0.75, 3.0)],
    ESTIMATE,
)


def counted(looks: np.ndarray = LOOKS) -> ZCounts:
    cells = ZCounts([3, 1], z=3)
    cells.add(LEVELS[:2])
    cells.add(LEVELS[2:])
    cells.add(LEVELS[:0])
    cells.look(looks)
    return cells


def test_what_is_missing_counts_for_nothing():
    cells = counted()
    assert (cells.n_cells, cells.n_published) == (8, 5)
    assert cells.published == 5 / 8
    assert cells.shares() == [[0.5, 0.0, 0.25], [0.5]]


def test_before_anything_came():
    cells = ZCounts([3, 1], z=3)
    assert cells.published is None
    assert cells.shares() == [[0.0, 0.0, 0.0], [0.0]]
    assert cells.lines() == []
    assert cells.as_dict()["z"] == {"now": 3, "least": 3, "most": 3, "changes": 0}
    assert cells.as_dict()["window"] == {"subjects": None, "k_anonymous": None, "entropy": None}


def test_looks_at_the_window():
    cells = counted()
    assert cells.as_dict() == {
        "cells": 8,
        "published": 5,
        "share": 0.625,
        "by_rung": [[0.5, 0.0, 0.25], [0.5]],
        "z": {"now": 4, "least": 3, "most": 7, "changes": 2},
        "window": {"subjects": 50, "k_anonymous": 0.75, "entropy": 3.0},
    }
    assert cells.n_estimates == 3


def test_figures_in_words():
    assert counted().lines() == [
        "values: 5 of 8 published, 62.5 %; by rung 4, 0, 1",
        "window: 50 subjects at the latest look, 75.0 % of them indistinguishable from others; "
        "z = 4 (3 to 7, changed 2 times)",
    ]
    # A z that stays says nothing about changes, and one level nothing about levels.
    cells = ZCounts([1], z=7)
    cells.add(np.array([[0], [-1]]))
    cells.look(LOOKS[1:2])
    assert cells.lines() == [
        "values: 1 of 2 published, 50.0 %",
        "window: 41 subjects at the latest look, 62.5 % of them indistinguishable from others; "
        "z = 7",
    ]


def test_a_restored_state_continues():
    before, after = counted(), ZCounts([3, 1], z=3)
    after.restore(json.loads(json.dumps(before.state())))
    for cells in (before, after):
        cells.add(LEVELS)
        cells.look(LOOKS[:1])
    assert after.state() == before.state()
    assert after.as_dict() == before.as_dict()


def test_a_state_of_other_attributes_is_refused():
    for n_levels in ([3], [3, 2], [1, 3]):
        with pytest.raises(ValueError, match="other attributes"):
            ZCounts(n_levels, z=3).restore(counted().state())


def test_a_summary_carries_them():
    summary = Summary(None, counted())
    assert summary.as_dict()["values"] == counted().as_dict()
    again = Summary(None, ZCounts([3, 1], z=3))
    again.restore(json.loads(json.dumps(summary.state())))
    assert again.as_dict() == summary.as_dict()
    assert any("values: 5 of 8 published" in line for line in again.lines())
