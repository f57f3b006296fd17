"""Which Mondrian: SABRE against variants of tMondrian, on three kinds of data."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures.model import Claim, Curve, Figure, Panel
from benchmarks.figures.sabre.settings import LABELS, OURS, SabreSizes, Setting, axes, run
from benchmarks.figures.sabre.trial import Found
from benchmarks.figures.sabre.words import promise_text, setting_text
from benchmarks.figures.variants import OPENING, SAMPLES, VARIANTS, compared, concluded, told

__all__ = ["figure_mondrians"]

WORDS = "provides superior information quality compared to tMondrian"


def figure_mondrians(sizes: SabreSizes) -> Figure:
    """Loss over t, for each variant and each kind of data."""
    axis = axes(sizes)["t"]
    panels, claims = [], {ours: list[Claim]() for ours in OURS}
    every: list[Found] = []
    for sample, words in SAMPLES.items():
        at: list[Setting] = [replace(one, sample=sample) for one in axis.settings]
        found = {LABELS[ours]: [run(sizes, one, ours) for one in at] for ours in OURS}
        rivals = {
            variant: [run(sizes, replace(one, knobs=knobs), "t-mondrian") for one in at]
            for variant, knobs in VARIANTS.items()
        }
        every += [each for some in (found | rivals).values() for each in some]
        lost = {name: [each.loss for each in some] for name, some in (found | rivals).items()}
        panels.append(
            Panel(
                words, axis.x_label, axis.xs,
                tuple(Curve(name, cells) for name, cells in lost.items()),
            )
        )  # fmt: skip
        for ours in OURS:
            claims[ours] += compared(
                f"{LABELS[ours]} {WORDS}", sample, lost[LABELS[ours]],
                {variant: lost[variant] for variant in VARIANTS}, axis.places,
            )  # fmt: skip
    summary = " ".join(f"Of {LABELS[ours]}: {told(claims[ours])}" for ours in OURS)
    return Figure(
        "mondrian",
        "which tMondrian?",
        f"{OPENING} {setting_text(sizes)} {promise_text(every)}\n\n"
        f"**What depends on it.** {summary} "
        f"{concluded([claim for some in claims.values() for claim in some], 'tMondrian', 'SABRE')}",
        tuple(panels),
        tuple(claim for ours in OURS for claim in claims[ours]),
        page="sabre",
        heading="Beside Figure 3.7",
    )
