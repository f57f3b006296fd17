"""Figure 8: how many groups are kept for reuse."""

from __future__ import annotations

import numpy as np

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
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, below
from benchmarks.figures.trial import WINDOWS, WindowKind

__all__ = ["figure_8"]


def figure_8(sizes: IdeaSizes) -> Figure:
    """Groups added to the set of those that may be used again, by the degree of missing values."""
    panels: dict[Data, list[Curve]] = {data: [] for data in DATA}
    claims: list[Claim] = []
    for window in WINDOWS:
        how = " by arrival" if window == "arrived" else ""
        of_idea: list[Reading] = []
        for data, name in DATA.items():
            added = {
                algorithm: [
                    Reading(_added(sizes, one, algorithm, window), digits=0)
                    for one in axes(sizes, data)["gaps"].settings
                ]
                for algorithm in ALGORITHMS
            }
            of_idea += added["idea"]
            panels[data] += [Curve(label(one, window), cells) for one, cells in added.items()]
            claims += [
                Claim(
                    f"IDEA has more groups for reuse than {LABELS[rival]}{how} ({name}; here: has "
                    f"{LABELS[rival]} fewer?).",
                    *below(added[rival], added["idea"]),
                )
                for rival in ("iot", "k-varp")
            ]
        most = max(cell.most for cell in of_idea)
        claims.append(
            Claim(
                f"β = {sizes.kept} can save all the added groups{how}.",
                "holds" if most <= sizes.kept else "doesn't hold",
                f"at most {most:,.0f} groups of IDEA were added",
            )
        )
    return Figure(
        "8",
        "Groups that may be used again",
        f"A new group is added if its loss is below τ = {sizes.threshold:g}; "
        f"{sizes.rows:,} rows, k = {sizes.k}, δ = {sizes.delay:,} rows.",
        tuple(_panel(sizes, data, curves) for data, curves in panels.items()),
        tuple(claims),
        page="idea",
        source="the paper",
        one_axis=False,
    )


def _panel(sizes: IdeaSizes, data: Data, curves: list[Curve]) -> Panel:
    axis = axes(sizes, data)["gaps"]
    return Panel(
        DATA[data], axis.x_label, axis.xs, tuple(curves),
        what="Groups added to those that may be used again", axis="groups added",
    )  # fmt: skip


def _added(
    sizes: IdeaSizes, setting: Setting, algorithm: str, window: WindowKind
) -> tuple[int, ...]:
    """How many groups were added with each seed."""
    runs = run(sizes, setting, algorithm, window=window).runs
    return tuple(int(np.count_nonzero(ran.new_groups < sizes.threshold)) for ran in runs)
