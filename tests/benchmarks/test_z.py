"""The figures of z-anonymity: how claims are judged, and the page from end to end."""

from __future__ import annotations

import doctest

from benchmarks.figures.model import Reading
from benchmarks.figures.z import settings
from benchmarks.figures.z.classes import figure_8
from benchmarks.figures.z.design import figure_3
from benchmarks.figures.z.released import figure_2
from benchmarks.figures.z.settings import ZSizes, line, turns

from shoal.models.z import Bounds
from tests.benchmarks.test_commands import run


def test_examples():
    failed, tried = doctest.testmod(settings)
    assert tried > 0
    assert failed == 0


def readings(*values):
    return [Reading((value,)) for value in values]


def test_what_only_falls_or_goes_up_and_down_does_not_turn():
    assert turns(readings(1.0, 0.5, 0.2))[0] == "doesn't hold"
    assert turns(readings(0.2, 0.5, 1.0))[0] == "doesn't hold"
    assert turns(readings(1.0, 0.2, 0.5, 0.4))[0] == "doesn't hold"


def test_bounds_show_their_spread_where_it_can_be_seen():
    near, far = line("", [Bounds(0.5, 0.5001), Bounds(0.5, 0.6)]).cells
    assert (str(near), str(far)) == ("0.500", "0.550 ± 0.050")


def test_claims_are_computed():
    sizes = ZSizes.quick()
    verdicts = {claim.paper: claim.verdict for claim in figure_8(sizes).claims}
    assert verdicts["At 0 it is that of a single class."] == "doesn't hold"
    half = "At 0 it is that of a single class of half the rates (which is what Table 3 says)."
    assert verdicts[half] == "holds"
    assert len(figure_3(sizes).panels) == 2
    assert len(figure_2(sizes).panels[0].curves) == 4


def test_the_page(tmp_path):
    done = run("benchmarks.figures", "z", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "z.md").read_text()
    for section, name in [*((f"z-{n}", str(n)) for n in range(2, 9)), ("z-c10", "C.10")]:
        text = page.partition(f"<!-- {section}:begin -->")[2]
        text = text.partition(f"<!-- {section}:end -->")[0]
        picture = f"z-{name.replace('.', '-')}.svg"
        assert text.lstrip().startswith(f"## Figure {name}: ")
        assert f"({picture})" in text
        assert "| the paper " in text
        assert "<svg" in (tmp_path / picture).read_text()
