"""What is learnt by knowing arrivals: who can be the row that is looked for."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from benchmarks.arrivals import Ran, candidates
from benchmarks.figures.streams import ADULT

from benchmarks import arrivals


def test_candidates_are_the_rows_of_an_instant_whose_box_covers_the_values():
    """Two rows of one person and one of another leave together, and one row alone."""
    found = Ran(
        rows=np.array([0, 1, 2, 3]),
        instants=np.array([5, 5, 5, 6]),
        lo=np.array([[0.0], [0.0], [5.0], [0.0]]),
        hi=np.array([[4.0], [6.0], [9.0], [9.0]]),
        reused=np.array([False, False, False, True]),
        losses=np.zeros(4),
        n_suppressed=0,
    )
    values, subjects = np.array([[1.0], [6.0], [7.0], [7.0]]), np.array([1, 1, 2, 3])
    n_rows, n_people = candidates(found, values, subjects, by_values=False)
    assert (n_rows.tolist(), n_people.tolist()) == ([3, 3, 3, 1], [2, 2, 2, 1])
    n_rows, n_people = candidates(found, values, subjects, by_values=True)
    assert (n_rows.tolist(), n_people.tolist()) == ([2, 2, 1, 1], [1, 2, 1, 1])


@pytest.mark.skipif(not ADULT.exists(), reason="../shared/data/adult.csv isn't there")
def test_the_command_measures_every_way_of_reuse(monkeypatch, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- arrivals:begin -->\n<!-- arrivals:end -->\n")
    command = ["arrivals", "--quick", "--algorithms", "fads", "--write", str(page)]
    monkeypatch.setattr(sys, "argv", command)
    arrivals.main()
    out = capsys.readouterr().out
    for way in ("no reuse", "`together`", "`alone`"):
        assert way in out
    assert out.strip() in page.read_text()
