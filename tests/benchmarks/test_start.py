"""The table of first starts."""

from __future__ import annotations

from benchmarks.start import report


def test_the_report_has_the_figures_of_before_where_there_are_any() -> None:
    now = {
        "castle": {"empty": 17.5, "next": 4.0, "again": 1.7, "measured": 3.0},
        "fads": {"empty": 12.0, "next": 6.0, "again": 1.6, "measured": 3.1},
    }
    text = report(now, {"castle": {"empty": 75.5}})
    lines = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    assert ["", "castle", "75.5", "17.5", "", "4.0", "", "1.7", "", "3.0", ""] in lines
    assert "at most 17.5 s (`castle`), target 20 s met" in text
    assert "at most 6.0 s (`fads`), target 5 s **not met**" in text
    assert "before" not in report(now, {}).split("\n\n")[1]
