"""Figures 9 to 11: beside a method for tables, and on points in a cube."""

from __future__ import annotations

from benchmarks.figures.model import Figure
from benchmarks.figures.trees.data import Data
from benchmarks.figures.trees.settings import TreeSizes, axes
from benchmarks.figures.trees.shown import claims_of, figure, panel, readings, usual_text
from benchmarks.figures.trees.trial import ALGORITHMS, TABLE, TREES, Trials
from benchmarks.figures.trees.words import (
    ABOUT,
    LITTLE,
    SUBSTANTIAL,
    about,
    far_below,
    less,
    stable,
)

__all__ = ["figure_9", "figure_10", "figure_11"]

#: How much more the full method loses than Mondrian (§5.1.6).
TIMES_OF_TABLE = 10.0


def figure_9(sizes: TreeSizes) -> Figure:
    """The four methods beside Mondrian."""
    axis, trials = axes(sizes, "distinct")["some_rows"], Trials(sizes.few_seeds)
    table = trials.along(axis.settings, (TABLE,))
    found = {
        bound: trials.along(axes(sizes, "distinct", bound)["some_rows"].settings, ALGORITHMS)
        | table
        for bound in sizes.bounds
    }
    penalty = {bound: readings(some, "penalty") for bound, some in found.items()}
    claims = claims_of(
        "In the static case the uncertainty penalty is small; here: less than that of all others",
        penalty, ALGORITHMS, lambda of, one: less(of[TABLE], of[one]),
    ) + claims_of(
        f"In the full method the uncertainty penalty is about {TIMES_OF_TABLE:g} times of that in "
        f"the static case; here: within a factor of {ABOUT:g}", penalty, ("tree-full",),
        lambda of, one: about(of[one], of[TABLE], TIMES_OF_TABLE),
    )  # fmt: skip
    return figure(
        "9", "Comparison with Mondrian",
        f"{usual_text(sizes)} Of rows that are equal in all attributes one was kept, so that each "
        "row is a person; then the given number was drawn. Mondrian gets all of them at once: a "
        f"row has waited for half of them on average. {trials}",
        [panel(bound, axis, some, "penalty") for bound, some in found.items()], claims,
    )  # fmt: skip


def figure_10(sizes: TreeSizes) -> Figure:
    """Points of a uniform distribution."""
    return _points(sizes, "10", "uniform", "Uniform distribution")


def figure_11(sizes: TreeSizes) -> Figure:
    """Points of a normal distribution."""
    return _points(sizes, "11", "gaussian", "Normal distribution")


def _points(sizes: TreeSizes, name: str, data: Data, title: str) -> Figure:
    axis, trials, trees = axes(sizes, data)["some_rows"], Trials(sizes.few_seeds), TREES
    found = {
        bound: trials.along(axes(sizes, data, bound)["some_rows"].settings, trees)
        for bound in sizes.bounds
    }
    cost = {bound: readings(some, "cost") for bound, some in found.items()}
    claims = claims_of(
        "The full method outperforms the other two methods substantially; here: by at least "
        f"{SUBSTANTIAL:.0%}", cost, trees[:-1],
        lambda of, one: far_below(of["tree-full"], of[one]),
    ) + claims_of(
        f"The average information loss is stable; here: up to {LITTLE:.0%} apart", cost, trees,
        lambda of, one: stable(of[one]),
    )  # fmt: skip
    return figure(
        name, title,
        "Points in a cube, each of another person: 3 quasi attributes from 0 to 10, "
        f"k = {sizes.k}, α = {sizes.alpha:g}, {sizes.samples:,} samples. {trials}",
        [panel(bound, axis, some, "cost") for bound, some in found.items()], claims,
    )  # fmt: skip
