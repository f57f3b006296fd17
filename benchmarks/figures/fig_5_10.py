"""Figure 5.10: the loss of CASTLE and of dynamicGroup."""

from __future__ import annotations

from benchmarks.figures.condensed import ALL_NUMBERS, LABELS, Against, lost
from benchmarks.figures.model import Claim, Curve, Figure, Panel, below, rises
from benchmarks.figures.sizes import Sizes
from benchmarks.figures.sweep import Cell
from shoal.algorithms.dynamic_group import DynamicGroup

__all__ = ["figure"]


def figure(sizes: Sizes) -> Figure:
    """Vary the delay of CASTLE, for several k; dynamicGroup has none."""
    deltas = (*sizes.deltas, sizes.rows)
    condensed = {k: _cell(sizes, "dynamic-group", k, None) for k in sizes.power_ks}
    castle = {
        k: tuple(_cell(sizes, "castle", k, delta) for delta in deltas) for k in sizes.power_ks
    }
    panels = tuple(
        Panel(
            f"k = {k}", "δ, rows", deltas,
            (
                Curve(LABELS["castle"], castle[k]),
                Curve(LABELS["dynamic-group"], (condensed[k],) * len(deltas)),
            ),
        )
        for k in sizes.power_ks
    )  # fmt: skip
    at = deltas.index(sizes.delay)
    rivals, places = list(condensed.values()), [f"k = {k}" for k in sizes.power_ks]
    claims = (
        *(
            Claim(
                f"The information quality of CASTLE increases with δ (k = {k}).",
                *rises(cells, falls=True),
            )
            for k, cells in castle.items()
        ),
        Claim(
            f"CASTLE outperforms dynamicGroup when δ is {sizes.delay:,}.",
            *below([cells[at] for cells in castle.values()], rivals, places),
        ),
        Claim(
            "For a fair comparison δ is infinite (here: the whole table); CASTLE outperforms "
            "dynamicGroup then, too.",
            *below([cells[-1] for cells in castle.values()], rivals, places),
        ),
    )
    return Figure(
        "5.10",
        "The loss of CASTLE and of dynamicGroup",
        f"{sizes.rows:,} rows of UCI Adult with its six numbers as quasi attributes. dynamicGroup "
        f"takes the first {DynamicGroup().history:,} rows as its history, as in the thesis, and "
        "publishes all at the end; its cuts know the rows (dynamic-group-2), where the source has "
        "statistics only, so that it may be a stronger rival than in the thesis. The thesis has "
        "CASTLE publish at its end all clusters that may leave, then what old groups cover, then "
        "the rest as one; here the end is as any other deadline. People behind each "
        "group of every run were counted independently of the engine.",
        panels,
        claims,
    )


def _cell(sizes: Sizes, algorithm: str, k: int, delay: int | None) -> Cell:
    runs = (
        Against(algorithm, sizes.rows, ALL_NUMBERS, k, delay, seed) for seed in range(sizes.seeds)
    )
    return Cell(tuple(lost(run) for run in runs))
