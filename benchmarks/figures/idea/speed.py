"""Figures 7 and 9: how long it takes on Adult and on INFORMS."""

from __future__ import annotations

from typing import TypeAlias

from benchmarks.figures.idea.settings import (
    ALGORITHMS,
    DATA,
    LABELS,
    Data,
    IdeaSizes,
    Setting,
    axes,
    label,
    run,
)
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, below, rises
from benchmarks.figures.trial import WINDOWS, WindowKind

__all__ = ["figure_7", "figure_9"]

#: By what is varied, then by algorithm.
Times: TypeAlias = dict[str, dict[str, tuple[Reading, ...]]]

#: The paper's bound on the average run time, in seconds.
QUICK_ENOUGH = 2.0


def figure_7(sizes: IdeaSizes) -> Figure:
    """Run time on Adult."""
    return _figure(sizes, "7", "adult")


def figure_9(sizes: IdeaSizes) -> Figure:
    """Run time on INFORMS."""
    return _figure(sizes, "9", "informs")


def _figure(all_sizes: IdeaSizes, name: str, data: Data) -> Figure:
    sizes = all_sizes.fewer
    runs: dict[WindowKind, Times] = {window: {} for window in WINDOWS}
    panels = []
    for key, axis in axes(sizes, data).items():
        for window in WINDOWS:
            runs[window][key] = {
                algorithm: tuple(
                    Reading(_seconds(sizes, one, algorithm, window)) for one in axis.settings
                )
                for algorithm in ALGORITHMS
            }
        curves = tuple(
            Curve(label(algorithm, window), cells)
            for window in WINDOWS
            for algorithm, cells in runs[window][key].items()
        )
        panels.append(
            Panel(
                axis.title, axis.x_label, axis.xs, curves,
                what="Run time in seconds", axis="seconds", log=axis.log,
            )
        )  # fmt: skip
    return Figure(
        name,
        f"Run time of IoT, K-VARP and IDEA on {DATA[data]}",
        f"{sizes.rows:,} rows, k = {sizes.k}, δ = {sizes.delay:,} rows, at most {sizes.gaps} "
        "missing values, except for the varied parameter: runs of the figure of losses. Processor "
        "time of the engine alone, from codes to decisions, in one thread, and the smaller of two "
        "measurements. The paper measured Java on another machine.",
        tuple(panels),
        (*_claims(data, runs["held"], ""), *_claims(data, runs["arrived"], " by arrival")),
        page="idea",
        source="the paper",
        one_axis=False,
    )


def _claims(data: Data, seconds: Times, how: str) -> list[Claim]:
    """The claims of the paper, judged by the runs of one kind of window."""
    everywhere = {
        algorithm: [cell for cells in seconds.values() for cell in cells[algorithm]]
        for algorithm in ALGORITHMS
    }
    claims = [
        Claim(
            f"IDEA takes more time than {LABELS[rival]}{how} (here: is {LABELS[rival]} faster?).",
            *below(everywhere[rival], everywhere["idea"]),
        )
        for rival in ("iot", "k-varp")
    ]
    mean = sum(cell.mean for cell in everywhere["idea"]) / len(everywhere["idea"])
    claims.append(
        Claim(
            f"The average run time of IDEA is less than {QUICK_ENOUGH:g} s{how}.",
            "holds" if mean < QUICK_ENOUGH else "doesn't hold",
            f"{mean:.2f} s",
        )
    )
    gaps = "grows" if data == "adult" else "decreases"
    trends = (
        ("gaps", data != "adult", f"{gaps} with the degree of missing values"),
        ("k", True, "decreases as k increases"),
        ("delay", False, "increases when δ increases"),
        ("rows", False, "increases with the data size"),
    )
    claims += [
        Claim(
            f"The run time {words}{how} (here: {LABELS[algorithm]}).",
            *rises(seconds[key][algorithm], falls=falls),
        )
        for key, falls, words in trends
        for algorithm in ALGORITHMS
    ]
    return claims


def _seconds(
    sizes: IdeaSizes, setting: Setting, algorithm: str, window: WindowKind
) -> tuple[float, ...]:
    """The processor time with each seed."""
    tries = (
        run(sizes, setting, algorithm, attempt=attempt, window=window).runs for attempt in range(2)
    )
    return tuple(min(ran.processor for ran in rans) for rans in zip(*tries, strict=True))
