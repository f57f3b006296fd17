"""Figure 5.5: the number of open clusters and the memory of the threshold."""

from __future__ import annotations

from benchmarks.figures.model import Claim, Curve, Figure, Panel, Verdict
from benchmarks.figures.sizes import Sizes
from benchmarks.figures.streams import Adult, adult_quasi
from benchmarks.figures.sweep import Cell, Task, sweep

__all__ = ["figure"]

#: The values that the thesis finds best, and the rival of the second one.
BEST_CLUSTERS, BEST_RECENT, RIVAL_RECENT = 50, 100, 150


def figure(sizes: Sizes) -> Figure:
    """Vary eta and mu together on UCI Adult."""
    stream = Adult(sizes.rows, adult_quasi())
    grid = [(recent, clusters) for recent in sizes.recent for clusters in sizes.clusters]
    tasks = [
        Task(stream, sizes.k, sizes.delay, clusters=clusters, recent=recent)
        for recent, clusters in grid
    ]
    cells = dict(zip(grid, sweep(tasks, seeds=sizes.seeds, jobs=sizes.jobs), strict=True))
    panel = Panel(
        "UCI Adult",
        "open clusters at most, η",
        sizes.clusters,
        tuple(
            Curve(f"μ = {recent}", tuple(cells[recent, clusters] for clusters in sizes.clusters))
            for recent in sizes.recent
        ),
    )
    return Figure(
        "5.5",
        "Varying η and μ",
        f"{sizes.rows:,} rows of UCI Adult, ten quasi attributes, k = {sizes.k}, "
        f"δ = {sizes.delay:,} rows. The thesis shows SFU-Adult, too: the "
        "complete rows of Adult's train and test files together, of which only the former is here.",
        (panel,),
        (_best_clusters(sizes, cells), _best_recent(cells)),
    )


def _best_clusters(sizes: Sizes, cells: dict[tuple[int, int], Cell]) -> Claim:
    by_clusters = {clusters: cells[BEST_RECENT, clusters] for clusters in sizes.clusters}
    least = min(by_clusters, key=lambda clusters: by_clusters[clusters].mean)
    here, best = by_clusters[BEST_CLUSTERS], by_clusters[least]
    verdict: Verdict = "holds"
    if least != BEST_CLUSTERS:
        within = here.mean - best.mean <= here.spread + best.spread
        verdict = "inconclusive" if within else "doesn't hold"
    return Claim(
        f"η = {BEST_CLUSTERS} minimizes the information loss.",
        verdict,
        f"with μ = {BEST_RECENT} the least loss is {best} at η = {least}; "
        f"at η = {BEST_CLUSTERS} it is {here}",
    )


def _best_recent(cells: dict[tuple[int, int], Cell]) -> Claim:
    best, rival = cells[BEST_RECENT, BEST_CLUSTERS], cells[RIVAL_RECENT, BEST_CLUSTERS]
    gain, noise = rival.mean - best.mean, rival.spread + best.spread
    verdict: Verdict = "inconclusive"
    if abs(gain) > noise:
        verdict = "holds" if gain > 0 else "doesn't hold"
    return Claim(
        f"μ = {BEST_RECENT} outperforms μ = {RIVAL_RECENT} on UCI Adult.",
        verdict,
        f"at η = {BEST_CLUSTERS} the loss is {best} with μ = {BEST_RECENT} and {rival} with "
        f"μ = {RIVAL_RECENT}",
    )
