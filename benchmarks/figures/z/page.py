"""The page of z-anonymity's figures: its head, its sections and what they need."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.figures.model import Figure
from benchmarks.figures.z.classes import figure_7, figure_8
from benchmarks.figures.z.design import figure_3, figure_4
from benchmarks.figures.z.released import figure_2
from benchmarks.figures.z.scale import figure_5, figure_6
from benchmarks.figures.z.settings import ZSizes
from benchmarks.figures.z.validation import figure_c_10

__all__ = ["HEAD", "SECTIONS"]

HEAD = """\
# z-anonymity: the figures of the paper

Made by `python -m benchmarks.figures z`; don't edit. The figures are those of the paper on
z-anonymity (Jha and others, 2023), computed with `shoal.models.z`, the
[model](../model.md). They need no data. Parameters are those of its Table 2 unless said otherwise:
1,000 subjects, 20 attributes of rates 0.2/r, Δt = 12, z = 150, k = 2. Whether a claim of the paper
holds is computed from the numbers; where the paper says "almost" or "close", what that is taken
for is stated. The paper's pictures aren't in its text, so only the numbers that its text names can
be compared.
"""

SECTIONS: dict[str, Callable[[bool], Figure]] = {
    name: lambda quick, make=make: make(ZSizes.quick() if quick else ZSizes())
    for name, make in {
        "z-2": figure_2,
        "z-3": figure_3,
        "z-4": figure_4,
        "z-5": figure_5,
        "z-6": figure_6,
        "z-7": figure_7,
        "z-8": figure_8,
        "z-c10": figure_c_10,
    }.items()
}
