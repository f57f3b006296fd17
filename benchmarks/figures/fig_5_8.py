"""Figure 5.8: several rows of one person."""

from __future__ import annotations

from itertools import product

from benchmarks.figures.model import Claim, Curve, Figure, Panel, rises
from benchmarks.figures.sizes import Sizes
from benchmarks.figures.streams import Transactions, adult_quasi
from benchmarks.figures.sweep import Task, sweep

__all__ = ["figure"]


def figure(sizes: Sizes) -> Figure:
    """Vary the number of quasi attributes, then k, on streams of bought items."""
    by_quasi = [(dup, n, sizes.k) for dup, n in product(sizes.dups, sizes.n_quasi)]
    by_k = [(dup, sizes.transaction_n_quasi, k) for dup, k in product(sizes.dups, sizes.ks)]
    grid = list(dict.fromkeys(by_quasi + by_k))
    names = adult_quasi()
    tasks = [
        Task(Transactions(sizes.customers, dup, names[:n], 0), k, sizes.delay) for dup, n, k in grid
    ]
    cells = dict(zip(grid, sweep(tasks, seeds=sizes.seeds, jobs=sizes.jobs), strict=True))
    over_quasi = {dup: tuple(cells[dup, n, sizes.k] for n in sizes.n_quasi) for dup in sizes.dups}
    over_k = {
        dup: tuple(cells[dup, sizes.transaction_n_quasi, k] for k in sizes.ks) for dup in sizes.dups
    }
    panels = (
        Panel(
            f"k = {sizes.k}",
            "quasi attributes",
            sizes.n_quasi,
            tuple(Curve(f"dup = {dup}", over_quasi[dup]) for dup in sizes.dups),
        ),
        Panel(
            f"{sizes.transaction_n_quasi} quasi attributes",
            "k",
            sizes.ks,
            tuple(Curve(f"dup = {dup}", over_k[dup]) for dup in sizes.dups),
        ),
    )
    claims = (
        *(
            Claim(
                "In general the information quality degrades with the number of quasi "
                f"attributes (dup = {dup}).",
                *rises(over_quasi[dup]),
            )
            for dup in sizes.dups
        ),
        *(
            Claim(f"The loss uniformly increases with k (dup = {dup}).", *rises(over_k[dup]))
            for dup in sizes.dups
        ),
    )
    return Figure(
        "5.8",
        "Several rows of one person",
        f"Baskets of {sizes.customers:,} people of UCI Adult with dup items on average, one row "
        f"for each item, δ = {sizes.delay:,} rows, attributes in the order of "
        "Table 5.4. The thesis cuts a basket into rows inside of CASTLE; here a row is an item "
        "from the start, so the same δ covers fewer people, the fewer the more items they buy.",
        panels,
        claims,
    )
