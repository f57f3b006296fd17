"""The page of BUREL's figures: its head, its sections and what they need."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.figures.burel.mondrians import figure_mondrians
from benchmarks.figures.burel.performance import figure_4_5, figure_4_6, figure_4_7
from benchmarks.figures.burel.privacy import figure_4_4
from benchmarks.figures.burel.queries import figure_4_8
from benchmarks.figures.burel.ranges import figure_4_9
from benchmarks.figures.burel.settings import BurelSizes
from benchmarks.figures.model import Figure

__all__ = ["HEAD", "SECTIONS"]

HEAD = f"""\
# BUREL: the figures of the thesis

Made by `python -m benchmarks.figures burel`; don't edit. The figures are those of J. Cao's thesis
(NUS, 2010), §4.4. Its CENSUS can't be had; here are the {BurelSizes().rows:,} government employees
of the American Community Survey of 2018, a random sample of 204,309, with age, sex and education as
quasi attributes unless said otherwise (then marital status and race), and the salary in 50 classes
of near equal frequency as the sensitive one. Numbers are means over {BurelSizes().seeds} seeds,
which are other samples and other choices, ± half of the distance between the least and the largest
(the bars in the pictures). Whether a claim of the thesis holds is computed from the numbers: a
difference counts if it is larger than the spreads of both sides together. The thesis' text gives no
numbers to compare with, only orderings and trends.

As in the thesis nothing but likeness is promised, no k. It is the enhanced one (Definition 4.3).
BUREL looks at 8 rows along the curve for each one that it takes, its default. DMondrian gets
δ = ln(1 + min(β, −ln p)) for the largest share p of a value (§4.4.2), so that β-likeness holds,
too. Every group of every run was judged apart from the engine, from the definitions; each figure
says how many.
"""

SECTIONS: dict[str, Callable[[bool], Figure]] = {
    name: lambda quick, make=make: make(BurelSizes.quick() if quick else BurelSizes())
    for name, make in {
        "4.4": figure_4_4,
        "4.5": figure_4_5,
        "4.6": figure_4_6,
        "4.7": figure_4_7,
        "4.8": figure_4_8,
        "4.9": figure_4_9,
        "burel-mondrian": figure_mondrians,
    }.items()
}
