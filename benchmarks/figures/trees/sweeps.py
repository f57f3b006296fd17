"""Figures 6 to 8: k, the number of quasi attributes, and the number of samples."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures.model import Figure, rises
from benchmarks.figures.trees.settings import TreeSizes, axes
from benchmarks.figures.trees.shown import claims_of, figure, panel, readings, usual_text
from benchmarks.figures.trees.trial import ALGORITHMS, SAMPLING, Trials
from benchmarks.figures.trees.words import BENT, LITTLE, linear, little, slower_growth

__all__ = ["figure_6", "figure_7", "figure_8"]

#: "The last two attributes", occupation and race.
LAST = 2


def figure_6(sizes: TreeSizes) -> Figure:
    """The effect of k."""
    sizes = replace(sizes, rows=sizes.few_rows)
    axis, trials = axes(sizes)["k"], Trials(sizes.few_seeds)
    found = {
        bound: trials.along(axes(sizes, bound=bound)["k"].settings, ALGORITHMS)
        for bound in sizes.bounds
    }
    cost = {bound: readings(some, "cost") for bound, some in found.items()}
    claims = claims_of(
        "The information loss increases with k", cost, ALGORITHMS, lambda of, one: rises(of[one])
    ) + claims_of(
        f"The increase is linear in k; here: up to {BENT:.0%} of the rise off a straight line",
        cost, ALGORITHMS, lambda of, one: linear(axis.xs, of[one]),
    )  # fmt: skip
    return figure(
        "6", "Effect of k", f"{usual_text(sizes)} {trials}",
        [panel(bound, axis, some, "cost") for bound, some in found.items()], claims,
    )  # fmt: skip


def figure_7(sizes: TreeSizes) -> Figure:
    """The effect of the number of quasi attributes."""
    sizes = replace(sizes, rows=sizes.few_rows)
    axis, trials = axes(sizes)["n_quasi"], Trials(sizes.few_seeds)
    found = {
        bound: trials.along(axes(sizes, bound=bound)["n_quasi"].settings, ALGORITHMS)
        for bound in sizes.bounds
    }
    cost = {bound: readings(some, "cost") for bound, some in found.items()}
    claims = claims_of(
        "The information loss increases with the QID dimensionality", cost, ALGORITHMS,
        lambda of, one: rises(of[one]),
    ) + claims_of(
        "The increase is not much when the last two attributes, occupation and race, are included; "
        "here: less with each of them than before", cost, ALGORITHMS,
        lambda of, one: slower_growth(of[one], LAST),
    )  # fmt: skip
    return figure(
        "7", "Effect of QID dimensionality",
        f"{usual_text(sizes)} People are distinguished by all seven attributes, however many of "
        f"them are quasi. {trials}",
        [panel(bound, axis, some, "cost") for bound, some in found.items()], claims,
    )  # fmt: skip


def figure_8(sizes: TreeSizes) -> Figure:
    """The effect of the number of samples."""
    axis, trials = axes(sizes)["samples"], Trials(sizes.few_seeds)
    found = {
        bound: trials.along(axes(sizes, bound=bound)["samples"].settings, SAMPLING)
        for bound in sizes.bounds
    }
    penalty = {bound: readings(some, "penalty") for bound, some in found.items()}
    claims = claims_of(
        "The uncertainty penalty reduces as larger sample sets are used", penalty, SAMPLING,
        lambda of, one: rises(of[one], falls=True),
    ) + claims_of(
        f"The decrease is quite small; here: up to {LITTLE:.0%}", penalty, SAMPLING,
        lambda of, one: little(of[one]),
    )  # fmt: skip
    return figure(
        "8", "Effect of sample size", f"{usual_text(sizes)} {trials}",
        [panel(bound, axis, some, "penalty") for bound, some in found.items()], claims,
    )  # fmt: skip
