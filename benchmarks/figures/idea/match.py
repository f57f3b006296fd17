"""Figure 6: a missing value that stays missing, or one that stands for any value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from benchmarks.figures.idea.settings import DATA, IdeaSizes, axes, run
from benchmarks.figures.model import Claim, Curve, Figure, Measured, Panel, Reading, below, rises
from benchmarks.figures.trial import WINDOWS
from shoal.spec.policy import Missing

__all__ = ["figure_6"]

MATCHES: dict[Missing, str] = {"maybe": "maybe match", "extended": "extended match"}


def figure_6(sizes: IdeaSizes) -> Figure:
    """IDEA with both ways to generalize a missing value, and how many values each makes missing."""
    losses, rates = [], []
    claims = []
    for window, (data, name) in product(WINDOWS, DATA.items()):
        label = name if window == "held" else f"{name}, by arrival"
        axis = axes(sizes, data)["gaps"]
        runs = {
            match: [run(sizes, one, "idea", match, window=window) for one in axis.settings]
            for match in MATCHES
        }
        loss = {match: [one.loss for one in found] for match, found in runs.items()}
        rate = {
            match: [Reading(tuple(ran.pollution for ran in one.runs)) for one in found]
            for match, found in runs.items()
        }
        losses.append(_panel(f"{label}", axis.xs, loss))
        rates.append(
            _panel(f"{label}, pollution", axis.xs, rate, "Missing pollution rate", "MPR (0 to 1)")
        )
        differences = [
            Reading(
                tuple(
                    wide.lost.published - tight.lost.published
                    for wide, tight in zip(extended.runs, maybe.runs, strict=True)
                )
            )
            for maybe, extended in zip(runs["maybe"], runs["extended"], strict=True)
        ]
        claims += [
            Claim(
                f"Extended match loses more than maybe match ({label}).",
                *below(loss["maybe"], loss["extended"]),
            ),
            Claim(
                f"The difference expands with the degree of missing values ({label}).",
                *rises(differences),
            ),
        ]
    claims.append(_no_pollution(sizes))
    return Figure(
        "6",
        "Maybe match and extended match",
        f"IDEA on {sizes.rows:,} rows, k = {sizes.k}, δ = {sizes.delay:,} rows. With extended "
        "match a missing value is any value of its domain, for the group and so for everybody in "
        "it. Loss is that of values which were there. The missing pollution rate is that of "
        "Definition 9.",
        (*losses, *rates),
        tuple(claims),
        page="idea",
        source="the paper",
        one_axis=False,
    )


def _panel(
    title: str,
    xs: tuple[int, ...],
    cells: Mapping[Missing, Sequence[Measured]],
    what: str = "Mean loss of published rows",
    axis: str = "mean information loss (0 to 1)",
) -> Panel:
    curves = tuple(Curve(MATCHES[match], found) for match, found in cells.items())
    return Panel(title, "missing attributes at most", xs, curves, what, axis)


def _no_pollution(sizes: IdeaSizes) -> Claim:
    """Over every run of this figure with maybe match."""
    rates = [
        ran.pollution
        for data, window in product(DATA, WINDOWS)
        for one in axes(sizes, data)["gaps"].settings
        for ran in run(sizes, one, "idea", window=window).runs
    ]
    return Claim(
        "The missing pollution rate of IDEA is 0 (here: on every run of this figure).",
        "doesn't hold" if any(rates) else "holds",
        f"at most {max(rates):g} in {len(rates)} runs",
    )
