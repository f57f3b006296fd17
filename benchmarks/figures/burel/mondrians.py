"""Which Mondrian: BUREL against variants of LMondrian, on three kinds of data."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures.burel.settings import BurelSizes, axes
from benchmarks.figures.burel.trial import Trials
from benchmarks.figures.model import Claim, Curve, Figure, Panel
from benchmarks.figures.variants import OPENING, SAMPLES, VARIANTS, compared, concluded, told

__all__ = ["figure_mondrians"]


def figure_mondrians(sizes: BurelSizes) -> Figure:
    """Loss over beta, for each variant and each kind of data."""
    axis, trials = axes(sizes)["few_beta"], Trials(sizes.seeds)
    panels: list[Panel] = []
    claims: list[Claim] = []
    for sample, words in SAMPLES.items():
        at = [replace(one, rows=sizes.few_rows, sample=sample) for one in axis.settings]
        lost = {"BUREL": [trials.found(one, "burel").loss for one in at]} | {
            variant: [trials.found(replace(one, knobs=knobs), "l-mondrian").loss for one in at]
            for variant, knobs in VARIANTS.items()
        }
        curves = tuple(Curve(name, cells) for name, cells in lost.items())
        panels.append(Panel(words, axis.x_label, axis.xs, curves))
        rivals = {variant: lost[variant] for variant in VARIANTS}
        claims += compared(
            "BUREL loses less than LMondrian", sample, lost["BUREL"], rivals, axis.places
        )
    return Figure(
        "mondrian",
        "which LMondrian?",
        f"{OPENING} {sizes.few_rows:,} rows, {sizes.n_quasi} quasi attributes. {trials}"
        f"\n\n**What depends on it.** {told(claims)} {concluded(claims, 'LMondrian', 'BUREL')} "
        "Where losses are equal, so are the groups: of age, sex and education two are numbers and "
        "one has two values, and there the widest side is the one that loses most, and a cut by "
        "hierarchy is one by code.",
        tuple(panels),
        tuple(claims),
        page="burel",
        heading="Beside Figure 4.5",
    )
