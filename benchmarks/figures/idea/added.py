"""Figure 8: how many groups are kept for reuse."""

from __future__ import annotations

import numpy as np

from benchmarks.figures.idea.settings import ALGORITHMS, DATA, LABELS, IdeaSizes, axes, run
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, below
from benchmarks.figures.trial import Ran

__all__ = ["figure_8"]


def figure_8(sizes: IdeaSizes) -> Figure:
    """Groups added to the set of those that may be used again, by the degree of missing values."""
    panels, claims, of_idea = [], [], []
    for data, label in DATA.items():
        axis = axes(sizes, data)["gaps"]
        added = {
            algorithm: [
                Reading(
                    tuple(_n_added(ran, sizes) for ran in run(sizes, one, algorithm).runs), digits=0
                )
                for one in axis.settings
            ]
            for algorithm in ALGORITHMS
        }
        of_idea += added["idea"]
        panels.append(
            Panel(
                label, axis.x_label, axis.xs,
                tuple(Curve(LABELS[name], cells) for name, cells in added.items()),
                what="Groups added to those that may be used again", axis="groups added",
            )
        )  # fmt: skip
        claims += [
            Claim(
                f"IDEA has more groups for reuse than {LABELS[rival]} ({label}; here: has "
                f"{LABELS[rival]} fewer?).",
                *below(added[rival], added["idea"]),
            )
            for rival in ("iot", "k-varp")
        ]
    most = max(cell.most for cell in of_idea)
    claims.append(
        Claim(
            f"β = {sizes.kept} can save all the added groups.",
            "holds" if most <= sizes.kept else "doesn't hold",
            f"at most {most:,.0f} groups of IDEA were added",
        )
    )
    return Figure(
        "8",
        "Groups that may be used again",
        f"A new group is added if its loss is below τ = {sizes.threshold:g}; "
        f"{sizes.rows:,} rows, k = {sizes.k}, δ = {sizes.delay:,} rows.",
        tuple(panels),
        tuple(claims),
        page="idea",
        source="the paper",
        one_axis=False,
    )


def _n_added(ran: Ran, sizes: IdeaSizes) -> int:
    return int(np.count_nonzero(ran.new_groups < sizes.threshold))
