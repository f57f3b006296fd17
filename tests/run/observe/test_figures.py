from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.metrics import Summary
from shoal.run.observe import Figures
from tests.run.observe.figures import a_summary, some_figures


def test_the_figures_of_a_summary() -> None:
    figures = some_figures()
    counts = {
        name: getattr(figures, name)
        for name in (field.name for field in dataclasses.fields(figures))
        if name.startswith("n_")
    }
    assert counts == {
        "n_in": 9, "n_published": 4, "n_suppressed": 2, "n_quarantined": 1, "n_late": 1,
        "n_reused": 1, "n_alone": 0, "n_held": 2, "n_audited": None, "n_skipped": 0,
    }  # fmt: skip
    assert figures.loss == 0.1235
    assert figures.loss_sum == pytest.approx(4 * 0.123456)
    assert (figures.lag, figures.checkpoint_bytes, figures.checkpoint_seconds) == (77, 1000, 0.25)
    rows, seconds = dict(figures.delay_rows), dict(figures.delay_seconds or ())
    assert (rows[10], rows[1000], rows[3000], rows[math.inf]) == (3, 3, 4, 4)
    assert (seconds[0.1], seconds[10.0], seconds[30.0], seconds[math.inf]) == (3, 3, 4, 4)
    groups = dict(figures.group_subjects)
    assert list(groups)[:3] == [20, 40, 80]
    assert (groups[20], groups[320], groups[640], groups[math.inf]) == (1, 1, 2, 2)


def test_they_are_frozen() -> None:
    summary = a_summary()
    figures = Figures.of(summary, algorithm="castle", k=10)
    before = dataclasses.astuple(figures)
    one = np.ones(1, np.int64)
    summary.n_in += 1
    summary.add(np.zeros(1, np.int8), np.ones(1), one, np.ones(1), one, one)
    assert dataclasses.astuple(figures) == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        figures.n_in = 3  # type: ignore[misc]


def test_nothing_yet() -> None:
    figures = Figures.of(Summary(), algorithm="castle", k=1)
    assert (figures.loss, figures.delay_seconds, figures.lag) == (None, None, None)
    assert figures.group_subjects[-1] == (math.inf, 0)


@given(st.integers(1, 1000), st.lists(st.integers(0, 5000), min_size=1))
def test_buckets_of_groups_are_no_finer_than_doublings(k: int, more: list[int]) -> None:
    summary = Summary()
    subjects = np.array([k + n for n in more])
    empty = np.array([])
    summary.add(empty.astype(np.int8), empty, empty.astype(np.int64), None, subjects, subjects)
    figures = Figures.of(summary, algorithm="castle", k=k)
    bounds, counts = zip(*figures.group_subjects, strict=True)
    assert bounds[0] == 2 * k
    assert all(high == 2 * low for low, high in itertools.pairwise(bounds[:-1]))
    assert list(counts) == sorted(counts)
    assert counts[-1] == len(more)


def test_reasons_are_ranked_and_bounded() -> None:
    summary = a_summary()
    summary.bad_rows.add([f"column {i} is missing" for i in range(30)] + ["age is missing"] * 3)
    summary.suppression.reasons["found no group"] = 2
    figures = Figures.of(summary, algorithm="castle", k=10)
    assert figures.quarantined_for[0] == ("age is missing", 3)
    assert figures.quarantined_for[-1] == ("another reason", 19)
    assert len(figures.quarantined_for) == 13
    assert figures.suppressed_for == (("found no group", 2),)
    assert figures.shards == ()
    shards = Figures.of(summary, algorithm="castle", k=10, shards=[summary, a_summary(8)]).shards
    assert shards == ((9, 4, 2, 2), (13, 8, 2, 2))
