"""Figures 5.12 and 5.13: l-diversity of the age and of the occupation."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures.castle_utility import Asked, Run, attributes, error, loss
from benchmarks.figures.model import Claim, Curve, Figure, Panel, rises
from benchmarks.figures.sizes import Sizes

__all__ = ["figure_5_12", "figure_5_13"]


def figure_5_12(sizes: Sizes) -> Figure:
    """Vary l of the age."""
    return _figure(sizes, "5.12", "age", sizes.ages)


def figure_5_13(sizes: Sizes) -> Figure:
    """Vary l of the occupation."""
    return _figure(sizes, "5.13", "occupation", sizes.occupations)


def _figure(sizes: Sizes, name: str, sensitive: str, ls: tuple[int, ...]) -> Figure:
    quasi = attributes(sensitive, sizes.diverse_n_quasi)
    usual = Run(sizes.rows, quasi, sensitive, sizes.k, sizes.delay)
    asked = Asked(sizes.n_queries, sizes.selectivity, len(quasi))
    runs = {k: [replace(usual, k=k, l=each) for each in ls] for k in sizes.diverse_ks}
    lost = {k: [loss(run, sizes.seeds) for run in some] for k, some in runs.items()}
    wrong = {k: [error(run, asked, sizes.seeds) for run in some] for k, some in runs.items()}
    title = f"{len(quasi)} quasi attributes, δ = {sizes.delay:,}"
    panels = (
        Panel(
            f"(a) {title}", "l", ls, tuple(Curve(f"k = {k}", cells) for k, cells in lost.items())
        ),
        Panel(
            f"(b) {title}", "l", ls, tuple(Curve(f"k = {k}", found) for k, found in wrong.items()),
            what="Workload error in %", axis="workload error, %",
        ),
    )  # fmt: skip
    claims = [
        Claim(f"When the diversity increases, {words} decreases (k = {k}).", *rises(found[k]))
        for k in sizes.diverse_ks
        for words, found in (("information quality", lost), ("utility", wrong))
    ]
    claims += [
        Claim(
            f"To preserve more {words}, we need to reduce k (here: at l = {ls[0]}).",
            *rises([found[k][0] for k in sizes.diverse_ks]),
        )
        for words, found in (("information", lost), ("utility", wrong))
    ]
    return Figure(
        name,
        f"k_s-anonymity and l-diversity: {sensitive}",
        f"{sizes.rows:,} rows of UCI Adult, the {sensitive} is sensitive. The thesis sets k = 100 "
        f"and |QI| = 5 and gives no l; the other values of k test its conclusion about k. The "
        f"quasi attributes are {', '.join(quasi)}; a query asks for all of them, as in Figure 5.9, "
        f"with θ = {sizes.selectivity:g}. People and values of each group of every run were "
        "counted independently of the engine.",
        panels,
        tuple(claims),
        one_axis=False,
    )
