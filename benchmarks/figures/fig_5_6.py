"""Figure 5.6: the number of quasi attributes, and k."""

from __future__ import annotations

import numpy as np

from benchmarks.figures.model import Claim, Curve, Figure, Panel, rises
from benchmarks.figures.sizes import Sizes
from benchmarks.figures.streams import Adult, adult_quasi
from benchmarks.figures.sweep import Cell, Lost, Task, sweep

__all__ = ["figure"]


def figure(sizes: Sizes) -> Figure:
    """Vary the number of quasi attributes, then k, on UCI Adult."""
    names = adult_quasi()
    orders = [names, *_random_orders(names, sizes.orders)]
    tasks = [
        Task(Adult(sizes.rows, order[:n]), sizes.k, sizes.delay)
        for order in orders
        for n in sizes.n_quasi
    ]
    tasks += [Task(Adult(sizes.rows, names), k, sizes.delay) for k in sizes.ks]
    cells = sweep(tasks, seeds=sizes.seeds, jobs=sizes.jobs)
    width = len(sizes.n_quasi)
    by_order = [tuple(cells[i * width : (i + 1) * width]) for i in range(len(orders))]
    by_k = tuple(cells[len(orders) * width :])
    any_order = tuple(_mean(column) for column in zip(*by_order[1:], strict=True))
    panels = (
        Panel(
            f"k = {sizes.k}",
            "quasi attributes",
            sizes.n_quasi,
            (
                Curve(f"mean of {sizes.orders} random orders", any_order),
                Curve("in the order of Table 5.4", by_order[0]),
            ),
        ),
        Panel("ten quasi attributes", "k", sizes.ks, (Curve("UCI Adult", by_k),)),
    )
    claims = (
        Claim(
            "The information loss increases with the number of quasi attributes "
            "(here: over random orders).",
            *rises(any_order),
        ),
        Claim("The same, with the attributes in the order of Table 5.4.", *rises(by_order[0])),
        Claim("The information loss increases with k.", *rises(by_k)),
    )
    return Figure(
        "5.6",
        "Varying the number of quasi attributes and k",
        f"{sizes.rows:,} rows of UCI Adult, δ = {sizes.delay:,} rows. The thesis doesn't say which "
        "attributes come first, and some lose far less than others (capital gain and loss are "
        "nearly always 0), so the table's order is shown next to the mean of random ones.",
        panels,
        claims,
    )


def _random_orders(names: tuple[str, ...], n: int) -> list[tuple[str, ...]]:
    rng = np.random.default_rng(56)
    return [tuple(names[i] for i in rng.permutation(len(names))) for _ in range(n)]


def _mean(cells: tuple[Cell, ...]) -> Cell:
    """Average over cells, seed by seed, so that the spread stays that of the seeds."""
    by_seed = zip(*(cell.runs for cell in cells), strict=True)
    return Cell(tuple(Lost(*(float(x) for x in np.mean(runs, axis=0))) for runs in by_seed))
