"""The small parts: samples, tables, sections, and how a claim is judged."""

from __future__ import annotations

import doctest

import pytest
from benchmarks.figures import model
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, below, rises
from benchmarks.figures.page import figure_text, picture_name
from benchmarks.figures.plot import draw
from benchmarks.figures.sweep import Cell, Lost
from benchmarks.markdown import replace_parts, replace_section
from benchmarks.measure import Sample, interleaved

from benchmarks import gaps, incomplete, markdown, measure, passthrough


def cell(*losses, suppressed=0.0):
    return Cell(tuple(Lost(loss, loss, suppressed) for loss in losses))


@pytest.mark.parametrize("module", [gaps, incomplete, markdown, measure, model, passthrough])
def test_examples(module):
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0


def test_actions_are_timed_in_turn():
    order = []
    samples = interleaved(3, lambda: order.append("a"), lambda: order.append("b"))
    assert "".join(order) == "ab" + "ab" + "ba" + "ab"
    assert [len(sample.values) for sample in samples] == [3, 3]


def test_what_is_warm_is_counted_from_the_first_round():
    order = []
    interleaved(2, lambda: order.append("a"), lambda: order.append("b"), warm=True)
    assert "".join(order) == "ab" + "ba"


def test_a_ratio_is_taken_repeat_by_repeat():
    ratio = Sample((2.0, 30.0, 4.0)).per(Sample((1.0, 10.0, 2.0)))
    assert (ratio.least, ratio.median, ratio.most) == (2.0, 2.0, 3.0)


def test_only_what_is_between_the_markers_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- r:begin -->\nold\n<!-- r:end -->\nafter\n")
    replace_section(page, "r", "new")
    replace_section(page, "r", "newer")
    text = "before\n<!-- r:begin -->\n\nnewer\n\n<!-- r:end -->\nafter\n"
    assert page.read_text() == text
    with pytest.raises(SystemExit, match="<!-- s:begin -->"):
        replace_section(page, "s", "new")


def test_parts_of_a_section_are_replaced_by_their_titles(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- r:begin -->\nhead\n\n### A\n\n1\n\n### B\n\n2\n<!-- r:end -->\n")
    replace_parts(page, "r", {"B": "3", "C": "4"})
    expected = "head\n\n### A\n\n1\n\n### B\n\n3\n\n### C\n\n4"
    assert page.read_text() == f"<!-- r:begin -->\n\n{expected}\n\n<!-- r:end -->\n"


@pytest.mark.parametrize(
    ("cells", "falls", "verdict"),
    [
        ([cell(0.1), cell(0.2), cell(0.3)], False, "holds"),
        ([cell(0.1), cell(0.2), cell(0.3)], True, "doesn't hold"),
        ([cell(0.1), cell(0.4), cell(0.3)], False, "holds in general"),
        ([cell(0.1, 0.3), cell(0.15, 0.35)], False, "inconclusive"),
        ([cell(0.1, 0.12), cell(0.29, 0.35), cell(0.28, 0.34)], False, "holds"),
        ([cell(0.3), cell(0.2)], True, "holds"),
    ],
)
def test_a_claim_is_judged_by_more_than_the_spread(cells, falls, verdict):
    assert rises(cells, falls=falls)[0] == verdict


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ([cell(0.1), cell(0.1), cell(0.1)], "holds"),
        ([cell(0.1), cell(0.1), cell(0.3)], "holds in general"),
        ([cell(0.1), cell(0.1, 0.3), cell(0.1)], "holds in general"),
        ([cell(0.1), cell(0.1, 0.3), cell(0.3)], "inconclusive"),
        ([cell(0.1), cell(0.1, 0.3), cell(0.1, 0.3)], "inconclusive"),
        ([cell(0.1), cell(0.3), cell(0.3)], "doesn't hold"),
    ],
)
def test_less_must_be_less_by_more_than_the_spreads(ours, verdict):
    assert below(ours, [cell(0.2)] * 3)[0] == verdict


def test_where_it_is_not_less_is_reported():
    places = ["k = 1", "k = 2", "k = 1", "k = 3"]
    found = below([cell(0.3), cell(0.1), cell(0.3), cell(0.1, 0.3)], [cell(0.2)] * 4, places)[1]
    assert found.endswith("; more at k = 1; within the spreads at k = 3")


def test_what_is_no_loss_has_no_suppressed_rows():
    curve = Curve("a", [Reading((1234.5, 1235.5), digits=2), Reading((0.125,), digits=2)])
    panel = Panel("one", "x", (1.0, 2000.0), (curve,), what="Time", axis="seconds")
    figure = Figure(
        "7", "Times", "Said before.", (panel,), (Claim("Fast.", "holds", "yes"),),
        page="idea", source="the paper", heading="§5",
    )  # fmt: skip
    text = figure_text(figure)
    assert text.startswith("## §5: Times\n\nSaid before.\n\n![§5: Times](idea-7.svg)")
    assert "Time, one:" in text
    assert "1,235 ± 0 |" in text
    # One seed has no spread.
    assert "|      0.12 |" in text
    assert "suppressed" not in text
    assert "| the paper | here " in text
    assert picture_name(figure) == "idea-7"


def test_the_same_numbers_give_the_same_picture(tmp_path):
    curves = tuple(Curve(f"k = {k}", (cell(0.1, 0.2), cell(0.3 * k))) for k in (1, 2))
    panel = Panel("a panel", "x", (1.0, 2.0), curves)
    figure = Figure("1", "a figure", "", (panel, panel), (Claim("", "holds", ""),))
    for name in ("one.svg", "two.svg"):
        draw(figure, tmp_path / name)
    picture = (tmp_path / "one.svg").read_text()
    assert picture == (tmp_path / "two.svg").read_text()
    assert "k = 2" in picture
    assert "date" not in picture
