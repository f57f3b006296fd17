"""The runs that CASTLE and dynamicGroup are compared by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.figures.condensed import ALL_NUMBERS, Against, _judge, decided, lost, numbers
from benchmarks.figures.streams import ADULT

from shoal.spec.policy import Delay

needs_adult = pytest.mark.skipif(not ADULT.exists(), reason="../shared/data/adult.csv isn't there")
CONDENSED = Against("dynamic-group", 120, ALL_NUMBERS, 10)
CASTLE = replace(CONDENSED, algorithm="castle", delay=40)


def test_a_delay_is_that_of_a_stream():
    assert CONDENSED.policy.window == "all"
    assert CASTLE.policy.delay == Delay(rows=40)
    assert CASTLE.policy.window is None


@needs_adult
@pytest.mark.parametrize("run", [CONDENSED, CASTLE], ids=["dynamic-group", "castle"])
def test_what_is_lost_is_the_mean_over_rows(run):
    found = decided(run)
    rows = np.concatenate([some.rows for some in found])
    assert sorted(rows.tolist()) == list(range(120))
    by_row = [
        some.loss[box] for some in found for box, out in zip(some.boxes, some.outcomes, strict=True)
        if out != 2
    ]  # fmt: skip
    assert lost(run).published == pytest.approx(np.mean(by_row))
    assert lost(run).suppressed == pytest.approx(1 - len(by_row) / 120)


@needs_adult
def test_groups_of_too_few_end_everything():
    with pytest.raises(SystemExit, match="groups have fewer than 60 people"):
        _judge(replace(CONDENSED, k=60), numbers(120, ALL_NUMBERS), decided(CONDENSED))
