"""Figures 9 to 11: beside a method for tables, and on points in a cube."""

from __future__ import annotations

from benchmarks.figures.burel.settings import hardly_changes
from benchmarks.figures.model import Claim, Figure, Panel, below
from benchmarks.figures.trees.data import Data
from benchmarks.figures.trees.scale import COST, PENALTY, curves, usual_text
from benchmarks.figures.trees.settings import TreeSizes, axes
from benchmarks.figures.trees.trial import ALGORITHMS, LABELS, TABLE, Trials
from benchmarks.figures.trees.words import about, far_below

__all__ = ["figure_9", "figure_10", "figure_11"]

#: How much more the full method loses than Mondrian (§5.1.6).
TIMES_OF_TABLE = 10.0


def figure_9(sizes: TreeSizes) -> Figure:
    """The four methods beside Mondrian."""
    axis, trials = axes(sizes, "distinct")["rows"], Trials(sizes.few_seeds)
    found = {name: trials.along(axis.settings, name) for name in (*ALGORITHMS, TABLE)}
    penalty = {name: [one.penalty for one in cells] for name, cells in found.items()}
    claims = [
        Claim(
            f"Mondrian's penalty is small, for it anonymizes all rows in a batch (here: less than "
            f"{LABELS[name]}).",
            *below(penalty[TABLE], penalty[name], axis.places),
        )
        for name in ALGORITHMS
    ]
    claims.append(
        Claim(
            f"In the full method the penalty is about {TIMES_OF_TABLE:g} times of that in the "
            "static case.",
            *about(penalty["tree-full"], penalty[TABLE], TIMES_OF_TABLE),
        )
    )
    return Figure(
        "9", "Comparison with Mondrian",
        f"{usual_text(sizes)} Of rows that are equal in all attributes one was kept, so that each "
        "row is a person; then so many were drawn. Mondrian gets all of them at once: a row has "
        f"waited for half of them on average. {trials}",
        (Panel(f"by {axis.name}", axis.x_label, axis.xs, curves(found, "penalty"), *PENALTY),),
        tuple(claims), page="trees", source="the paper",
    )  # fmt: skip


def figure_10(sizes: TreeSizes) -> Figure:
    """Points of a uniform distribution."""
    return _points(sizes, "10", "uniform", "Uniform distribution")


def figure_11(sizes: TreeSizes) -> Figure:
    """Points of a normal distribution."""
    return _points(sizes, "11", "gaussian", "Normal distribution")


def _points(sizes: TreeSizes, name: str, data: Data, title: str) -> Figure:
    axis, trials = axes(sizes, data)["rows"], Trials(sizes.few_seeds)
    found = {one: trials.along(axis.settings, one) for one in ALGORITHMS[1:]}
    cost = {one: [each.cost for each in cells] for one, cells in found.items()}
    claims = [
        Claim(
            "The full method outperforms the other two methods substantially (here: "
            f"{LABELS[other]}).",
            *far_below(cost["tree-full"], cost[other]),
        )
        for other in ALGORITHMS[1:-1]
    ]
    claims += [
        Claim(f"The average information loss is stable ({LABELS[one]}).", *hardly_changes(cells))
        for one, cells in cost.items()
    ]
    return Figure(
        name, title,
        "Points in a cube, each of another person: 3 quasi attributes from 0 to 10, "
        f"k = {sizes.k}, α = {sizes.alpha:g}, {sizes.samples:,} samples. {trials}",
        (Panel(f"by {axis.name}", axis.x_label, axis.xs, curves(found, "cost"), *COST),),
        tuple(claims), page="trees", source="the paper",
    )  # fmt: skip
