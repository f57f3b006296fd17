"""Which Mondrian: SABRE_W against variants of tMondrian_W, on three kinds of data."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures.model import Claim, Curve, Figure, Panel
from benchmarks.figures.sabre.words import promise_text
from benchmarks.figures.sliding.settings import LABELS, SlidingSizes, axes, run
from benchmarks.figures.variants import OPENING, SAMPLES, VARIANTS, compared, concluded, told

__all__ = ["figure_mondrians"]

OURS = LABELS["sabre-w"]
WORDS = f"{OURS} achieves better information quality than tMondrian_W"


def figure_mondrians(sizes: SlidingSizes) -> Figure:
    """Loss over t, for each variant and each kind of data."""
    axis = axes(sizes)["few_t"]
    panels: list[Panel] = []
    claims: list[Claim] = []
    every = []
    for sample, words in SAMPLES.items():
        at = [replace(one, sample=sample) for one in axis.settings]
        found = {OURS: [run(sizes, one, "sabre-w") for one in at]} | {
            variant: [run(sizes, replace(one, knobs=knobs), "t-mondrian-w") for one in at]
            for variant, knobs in VARIANTS.items()
        }
        every += [each for some in found.values() for each in some]
        lost = {name: [each.loss for each in some] for name, some in found.items()}
        curves = tuple(Curve(name, cells) for name, cells in lost.items())
        panels.append(Panel(words, axis.x_label, axis.xs, curves))
        rivals = {variant: lost[variant] for variant in VARIANTS}
        claims += compared(WORDS, sample, lost[OURS], rivals, axis.places)
    return Figure(
        "mondrian",
        "which tMondrian_W?",
        f"{OPENING} {sizes.rows:,} rows, windows of {sizes.window:,} rows that advance by "
        f"{sizes.advance:,}, {sizes.n_quasi} quasi attributes, k = {sizes.k}. "
        f"{promise_text(every)}\n\n**What depends on it.** {told(claims)} "
        f"{concluded(claims, 'tMondrian_W', 'SABRE_W')}",
        tuple(panels),
        tuple(claims),
        page="sliding",
        heading="Beside Figure 6.6",
    )
