"""Figures 4 and 5: what is lost on Adult and on INFORMS."""

from __future__ import annotations

from benchmarks.figures.idea.settings import (
    ALGORITHMS,
    DATA,
    LABELS,
    Data,
    IdeaSizes,
    axes,
    run,
)
from benchmarks.figures.model import Claim, Curve, Figure, Panel, below, rises
from benchmarks.figures.sweep import Cell

__all__ = ["figure_4", "figure_5"]


def figure_4(sizes: IdeaSizes) -> Figure:
    """Loss on Adult."""
    return _figure(sizes, "4", "adult")


def figure_5(sizes: IdeaSizes) -> Figure:
    """Loss on INFORMS."""
    return _figure(sizes, "5", "informs")


def _figure(sizes: IdeaSizes, name: str, data: Data) -> Figure:
    losses: dict[str, dict[str, tuple[Cell, ...]]] = {}
    panels = []
    for key, axis in axes(sizes, data).items():
        losses[key] = {
            algorithm: tuple(run(sizes, one, algorithm).loss for one in axis.settings)
            for algorithm in ALGORITHMS
        }
        curves = tuple(Curve(LABELS[name_], cells) for name_, cells in losses[key].items())
        panels.append(Panel(axis.title, axis.x_label, axis.xs, curves, log=axis.log))
    everywhere = {
        algorithm: [cell for cells in losses.values() for cell in cells[algorithm]]
        for algorithm in ALGORITHMS
    }
    places = [place for axis in axes(sizes, data).values() for place in axis.places]
    claims = [
        Claim(
            f"IDEA loses less than {LABELS[rival]} in all the experiments.",
            *below(everywhere["idea"], everywhere[rival], places),
        )
        for rival in ("iot", "k-varp")
    ]
    trends = (
        ("gaps", False, "increases with the degree of missing values"),
        ("k", False, "increases quickly with k"),
        ("delay", True, "decreases as δ increases"),
        ("rows", True, "decreases slightly when the data size is large"),
    )
    claims += [
        Claim(
            f"The average information loss {words} (here: {LABELS[algorithm]}).",
            *rises(losses[key][algorithm], falls=falls),
        )
        for key, falls, words in trends
        for algorithm in ALGORITHMS
    ]
    return Figure(
        name,
        f"Loss of IoT, K-VARP and IDEA on {DATA[data]}",
        f"{sizes.rows:,} rows of {DATA[data]} of which equally many lack 0, 1, …, {sizes.gaps} "
        f"values, k = {sizes.k}, δ = {sizes.delay:,} rows, τ = {sizes.threshold:g}, "
        f"β = {sizes.kept}, R = {sizes.radius:g}, but for what is varied; missing values match "
        "anything. Only values that a row has can be lost.",
        tuple(panels),
        tuple(claims),
        page="idea",
        source="the paper",
    )
