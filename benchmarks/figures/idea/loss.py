"""Figures 4 and 5: what is lost on Adult and on INFORMS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from benchmarks.figures.idea.settings import (
    ALGORITHMS,
    DATA,
    LABELS,
    Data,
    IdeaSizes,
    axes,
    label,
    run,
)
from benchmarks.figures.model import Claim, Curve, Figure, Panel, below, rises
from benchmarks.figures.sweep import Cell
from benchmarks.figures.trial import WINDOWS, WindowKind

__all__ = ["figure_4", "figure_5"]

#: By what is varied, then by algorithm.
Losses: TypeAlias = dict[str, dict[str, tuple[Cell, ...]]]


def figure_4(sizes: IdeaSizes) -> Figure:
    """Loss on Adult."""
    return _figure(sizes, "4", "adult")


def figure_5(sizes: IdeaSizes) -> Figure:
    """Loss on INFORMS, at every other value of what is varied."""
    return _figure(sizes.fewer, "5", "informs")


def _figure(sizes: IdeaSizes, name: str, data: Data) -> Figure:
    runs: dict[WindowKind, Losses] = {window: {} for window in WINDOWS}
    panels = []
    for key, axis in axes(sizes, data).items():
        for window in WINDOWS:
            runs[window][key] = {
                algorithm: tuple(
                    run(sizes, one, algorithm, window=window).loss for one in axis.settings
                )
                for algorithm in ALGORITHMS
            }
        curves = tuple(
            Curve(label(algorithm, window), cells)
            for window in WINDOWS
            for algorithm, cells in runs[window][key].items()
        )
        panels.append(Panel(axis.title, axis.x_label, axis.xs, curves, log=axis.log))
    places = [place for axis in axes(sizes, data).values() for place in axis.places]
    claims = [
        *_claims(runs["held"], places, ""),
        *_claims(runs["arrived"], places, " (by arrival)"),
    ]
    claims += [
        Claim(
            f"Rows held by count lose less than by arrival ({LABELS[algorithm]}; ours).",
            *below(*(_everywhere(runs[window], algorithm) for window in WINDOWS), places),
        )
        for algorithm in ALGORITHMS
    ]
    return Figure(
        name,
        f"Loss of IoT, K-VARP and IDEA on {DATA[data]}",
        f"{sizes.rows:,} rows of {DATA[data]} of which equally many lack 0, 1, …, {sizes.gaps} "
        f"values, k = {sizes.k}, δ = {sizes.delay:,} rows, τ = {sizes.threshold:g}, "
        f"β = {sizes.kept}, R = {sizes.radius:g}, except for the varied parameter; missing values "
        "match anything. Only values that a row has can be lost. A row is decided when δ rows are "
        "held or, by arrival, when δ have arrived after it.",
        tuple(panels),
        tuple(claims),
        page="idea",
        source="the paper",
    )


def _everywhere(losses: Losses, algorithm: str) -> list[Cell]:
    return [cell for cells in losses.values() for cell in cells[algorithm]]


def _claims(losses: Losses, places: Sequence[str], how: str) -> list[Claim]:
    """The claims of the paper, judged by the runs of one kind of window."""
    claims = [
        Claim(
            f"IDEA loses less than {LABELS[rival]} in all the experiments{how}.",
            *below(_everywhere(losses, "idea"), _everywhere(losses, rival), places),
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
            f"The average information loss {words}{how} (here: {LABELS[algorithm]}).",
            *rises(losses[key][algorithm], falls=falls),
        )
        for key, falls, words in trends
        for algorithm in ALGORITHMS
    ]
    return claims
