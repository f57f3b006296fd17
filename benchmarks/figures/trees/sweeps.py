"""Figures 6 to 8: k, the number of quasi attributes, and the number of samples."""

from __future__ import annotations

from benchmarks.figures.model import Claim, Figure, Panel, rises
from benchmarks.figures.trees.scale import COST, PENALTY, curves, usual_text
from benchmarks.figures.trees.settings import TreeSizes, axes
from benchmarks.figures.trees.trial import ALGORITHMS, LABELS, SAMPLING, Trials
from benchmarks.figures.trees.words import linear, little, slower_growth

__all__ = ["figure_6", "figure_7", "figure_8"]

#: "The last two attributes", occupation and race.
LAST = 2


def figure_6(sizes: TreeSizes) -> Figure:
    """The effect of k."""
    axis, trials = axes(sizes)["k"], Trials(sizes.few_seeds)
    found = {name: trials.along(axis.settings, name) for name in ALGORITHMS}
    claims = []
    for name, cells in found.items():
        cost = [one.cost for one in cells]
        claims += [
            Claim(f"The information loss increases with k ({LABELS[name]}).", *rises(cost)),
            Claim(f"The increase is linear in k ({LABELS[name]}).", *linear(axis.xs, cost)),
        ]
    return Figure(
        "6", "Effect of k", f"{usual_text(sizes)} {trials}",
        (Panel(f"by {axis.name}", axis.x_label, axis.xs, curves(found, "cost"), *COST),),
        tuple(claims), page="trees", source="the paper",
    )  # fmt: skip


def figure_7(sizes: TreeSizes) -> Figure:
    """The effect of the number of quasi attributes."""
    axis, trials = axes(sizes)["n_quasi"], Trials(sizes.few_seeds)
    found = {name: trials.along(axis.settings, name) for name in ALGORITHMS}
    claims = []
    for name, cells in found.items():
        cost = [one.cost for one in cells]
        claims += [
            Claim(
                f"The information loss increases with the QID dimensionality ({LABELS[name]}).",
                *rises(cost),
            ),
            Claim(
                "The increase is not much when the last two attributes, occupation and race, are "
                f"included (here: less than with those before; {LABELS[name]}).",
                *slower_growth(cost, LAST),
            ),
        ]
    return Figure(
        "7", "Effect of QID dimensionality",
        f"{usual_text(sizes)} People are told apart by all seven attributes, however many of them "
        f"are quasi. {trials}",
        (Panel(f"by {axis.name}", axis.x_label, axis.xs, curves(found, "cost"), *COST),),
        tuple(claims), page="trees", source="the paper",
    )  # fmt: skip


def figure_8(sizes: TreeSizes) -> Figure:
    """The effect of the number of samples."""
    axis, trials = axes(sizes)["samples"], Trials(sizes.few_seeds)
    found = {name: trials.along(axis.settings, name) for name in SAMPLING}
    claims = []
    for name, cells in found.items():
        penalty = [one.penalty for one in cells]
        claims += [
            Claim(
                f"The uncertainty penalty reduces as larger sample sets are used ({LABELS[name]}).",
                *rises(penalty, falls=True),
            ),
            Claim(f"The decrease is quite small ({LABELS[name]}).", *little(penalty)),
        ]
    return Figure(
        "8", "Effect of sample size",
        f"{usual_text(sizes)} {trials}",
        (Panel(f"by {axis.name}", axis.x_label, axis.xs, curves(found, "penalty"), *PENALTY),),
        tuple(claims), page="trees", source="the paper",
    )  # fmt: skip
