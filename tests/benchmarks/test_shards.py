"""The figure of shards: how rows are sent, what is counted, what is said, and all of it, tiny."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.figures import shards
from benchmarks.figures.shards import NEEDS, ShardSizes, Task, figure, run
from benchmarks.figures.streams import encoded
from benchmarks.figures.sweep import Cell, Lost

from shoal.datasets import census
from shoal.spec.policy import KAnonymity
from tests.benchmarks.test_commands import run as command

needs_people = pytest.mark.skipif(
    not all(path.exists() for path in NEEDS),
    reason="../shared/data has no acs_income_2018 or its hierarchies",
)
TASK = Task(400, 200, 3, 40, "rows", 8, "place", 4)


@pytest.fixture
def made_up(monkeypatch):
    """Other people, who need no file."""
    whole = encoded(census(600, subjects=600, seed=3))
    monkeypatch.setattr(shards, "_whole", lambda: whole)


def cell(*losses: float, suppressed: float = 0.0) -> Cell:
    return Cell(tuple(Lost(loss, loss + suppressed, suppressed) for loss in losses))


# -- runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["place", "curve", "hash"])
def test_every_row_has_an_engine_and_none_has_all(made_up, route):
    schema, codes = shards._drawn(TASK.rows, 0)
    sent = shards._shards(replace(TASK, route=route), schema, codes)
    assert sorted(set(sent)) == [0, 1, 2, 3]
    assert np.array_equal(sent, shards._shards(replace(TASK, route=route), schema, codes))
    assert not shards._shards(replace(TASK, route="one"), schema, codes).any()


@pytest.mark.parametrize("unit", ["rows", "seconds"])
def test_a_run_reports_what_was_lost_and_how_full_shards_were(made_up, unit):
    by_place = run(replace(TASK, unit=unit))
    assert 0 < by_place.lost.published <= by_place.lost.with_suppressed < 1
    assert 1 <= by_place.fullest < 2
    assert run(replace(TASK, unit=unit, route="one")).fullest == TASK.n_shards


def test_one_engine_that_is_as_large_holds_as_many_rows_and_clusters(made_up):
    small = run(replace(TASK, route="one", n_shards=1))
    large = run(replace(TASK, route="one", n_shards=4, clusters=2, delay=10))
    # Four times a quarter of it is the same engine.
    assert large.lost == run(replace(TASK, route="one", n_shards=1)).lost == small.lost


def test_a_broken_promise_is_noticed(made_up, monkeypatch):
    monkeypatch.setattr(shards, "KAnonymity", lambda k: KAnonymity(k - 1))
    with pytest.raises(AssertionError, match="fewer than 3 people"):
        run(TASK)


def test_a_lost_row_is_noticed(made_up, monkeypatch):
    whole = shards._decided
    monkeypatch.setattr(shards, "_decided", lambda *args: list(whole(*args))[:1])
    with pytest.raises(AssertionError, match="of 400 rows were decided"):
        run(TASK)


# -- words -----------------------------------------------------------------------------------------


def test_more_than_a_bound_is_judged_by_the_spreads():
    one = cell(0.50, 0.50)
    assert shards._at_most(cell(0.51, 0.52), one, 1.05)[0] == "holds"
    assert shards._at_most(cell(0.54, 0.56), one, 1.05)[0] == "doesn't hold"
    assert shards._at_most(cell(0.50, 0.54), one, 1.05)[0] == "inconclusive"
    words = shards._at_most(cell(0.4, suppressed=0.05), one, 1.05)[1]
    assert words.endswith("-20.0 % (-10.0 % with suppressed rows as 1)")


def test_the_figure_has_each_way_at_each_number_of_shards(made_up):
    found = figure(replace(ShardSizes.quick(), seeds=2))
    rows, seconds, fullest = found.panels
    for panel in (rows, seconds):
        assert [curve.label for curve in panel.curves] == list(shards.LABELS.values())
        firsts = {curve.cells[0] for curve in panel.curves}
        assert len(firsts) == 1
    assert fullest.curves[0].cells[0].mean == 1.0
    assert len(found.claims) == 8
    assert {"(delay in rows).", "(delay in seconds)."} == {
        claim.paper[claim.paper.index("(") :] for claim in found.claims
    }


@needs_people
def test_the_page(tmp_path):
    done = command("benchmarks.figures", "shards", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "shards.md").read_text()
    assert "300 rows of `acs_income_2018`" in page
    assert page.count("By place") == 8
    assert (tmp_path / "shards-loss.svg").exists()
