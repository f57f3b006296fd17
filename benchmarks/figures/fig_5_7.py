"""Figure 5.7: skewed data."""

from __future__ import annotations

from itertools import product

from benchmarks.figures.model import Claim, Curve, Figure, Panel, rises
from benchmarks.figures.sizes import Sizes
from benchmarks.figures.streams import PowerLaw
from benchmarks.figures.sweep import Task, sweep

__all__ = ["figure"]


def figure(sizes: Sizes) -> Figure:
    """Vary the skew and the delay, for several k, on data that follow a power law."""
    grid = list(product(sizes.power_ks, sizes.deltas, sizes.alphas))
    tasks = [
        Task(PowerLaw(sizes.rows, sizes.columns, sizes.largest, alpha, 0), k, delay)
        for k, delay, alpha in grid
    ]
    cells = dict(zip(grid, sweep(tasks, seeds=sizes.seeds, jobs=sizes.jobs), strict=True))
    panels = tuple(
        Panel(
            f"k = {k}",
            "skew α",
            sizes.alphas,
            tuple(
                Curve(
                    f"δ = {delay:,} rows", tuple(cells[k, delay, alpha] for alpha in sizes.alphas)
                )
                for delay in sizes.deltas
            ),
        )
        for k in sizes.power_ks
    )
    claims = tuple(
        Claim(
            f"CASTLE is very effective for clustered data: the loss falls with α (k = {k}, "
            f"δ = {delay:,} rows).",
            *rises([cells[k, delay, alpha] for alpha in sizes.alphas], falls=True),
        )
        for k, delay in product(sizes.power_ks, sizes.deltas)
    )
    return Figure(
        "5.7",
        "Data that follow a power law",
        f"{sizes.rows:,} rows of {sizes.columns} independent columns of whole numbers from 1 to "
        f"{sizes.largest:,} with p(v) = c / v^α; α = 0 is the uniform distribution. The thesis "
        "names neither the number of columns nor the largest value.",
        panels,
        claims,
    )
