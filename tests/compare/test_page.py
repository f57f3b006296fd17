"""The page of a comparison: charts that can be compared, and sentences where there is nothing."""

from __future__ import annotations

import dataclasses
import re

from shoal import Delay, KAnonymity, Policy
from shoal.algorithms import Castle, Tide
from shoal.compare.cells import Cell
from shoal.compare.choice import GridRun
from shoal.compare.comparison import Comparison
from shoal.compare.page import notebook, page
from shoal.compare.pool import Outcome
from tests.compare.test_choice import figures

POLICY = Policy(KAnonymity(5), delay=Delay(rows=300))


def waited(*waits: int) -> Outcome:
    found = dataclasses.replace(
        figures(0.3, 0.2), n_published=waits[-1], waits=waits, wait_bounds=(100.0, 200.0, 300.0),
        delay_mean=1.0, delay_most=2.0,
    )  # fmt: skip
    return Outcome("done", found)


def test_charts_of_the_delay_have_the_same_scale_and_say_what_they_show():
    runs = [GridRun(Cell(Castle(), POLICY), waited(10, 20, 100)),
            GridRun(Cell(Tide(), POLICY), waited(34, 67, 100))]  # fmt: skip
    html = page(Comparison(runs, 100), "job.toml")
    charts = [
        re.findall(r">([^<>]+)</text>", each)
        for each in re.findall(r"<svg .*?</svg>", html, re.S)
        if "how long rows waited" in each
    ]
    assert len(charts) == 2
    assert charts[0] == charts[1]
    assert "80 %" in charts[0]
    assert "All 2 algorithms that were run under k = 5, delay = 300 rows." in html


def test_without_a_run_there_is_a_sentence_and_no_empty_table():
    runs = [GridRun(Cell(Castle(), POLICY), Outcome("not run"))]
    found = Comparison(runs, 100, interrupted=True)
    for text in (page(found, "job.toml"), notebook(found), repr(found)):
        assert "interrupted before the first run ended: there is nothing to compare" in text
        assert "<table" not in text
        assert "castle: not run" in text
    refused = Comparison([GridRun(Cell(Castle(), POLICY), Outcome("unsupported", reason="x"))], 100)
    assert "No run could be made" in page(refused, "job.toml")
