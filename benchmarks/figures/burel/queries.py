"""Figure 4.8: the median relative error of COUNT queries."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from benchmarks.figures.burel.settings import BurelSizes, wavers
from benchmarks.figures.burel.trial import ALGORITHMS, LABELS, Setting, Trials, decided, table
from benchmarks.figures.model import Claim, Curve, Figure, Measured, Panel, Reading, below, rises
from shoal.engine.kernels.arrays import Ints
from shoal.metrics import Compared
from shoal.metrics.queries import Queries, QueryError, counts, draw, estimates

__all__ = ["figure_4_8"]


class Workload(NamedTuple):
    """Of how many queries, on how many attributes, with which selectivity."""

    n_queries: int
    n_asked: int
    selectivity: float


class Line(NamedTuple):
    """One panel: what is varied, and for each point of it a table and a workload."""

    title: str
    x_label: str
    xs: tuple[float, ...]
    points: list[tuple[Setting, Workload]]


def figure_4_8(sizes: BurelSizes) -> Figure:
    """The error over the attributes of a query, beta, quasi attributes and selectivity."""
    trials = Trials(sizes.seeds)
    lines = _lines(sizes)
    errors: dict[str, dict[str, list[Measured]]] = {
        key: {name: [_error(trials, *point, name) for point in line.points] for name in ALGORITHMS}
        for key, line in lines.items()
    }
    panels = tuple(
        Panel(
            line.title, line.x_label, line.xs,
            tuple(Curve(LABELS[name], errors[key][name]) for name in ALGORITHMS),
            what="Median relative error in %", axis="median relative error, %",
        )
        for key, line in lines.items()
    )  # fmt: skip
    everywhere = {
        name: [cell for by_name in errors.values() for cell in by_name[name]] for name in ALGORITHMS
    }
    places = [f"{line.x_label} = {x:g}" for line in lines.values() for x in line.xs]
    claims = [
        Claim(
            f"In all experiments BUREL answers better than {LABELS[rival]}.",
            *below(everywhere["burel"], everywhere[rival], places),
        )
        for rival in ALGORITHMS[1:]
    ]
    claims += [
        Claim(
            f"The error doesn't depend monotonically on λ ({LABELS[name]}).",
            *wavers(errors["asked"][name]),
        )
        for name in ALGORITHMS
    ]
    trends = (
        ("beta", True, "drops as β grows"),
        ("n_quasi", False, "grows with the quasi attributes"),
        ("selectivity", True, "drops as θ grows"),
    )
    claims += [
        Claim(f"The error {words} ({LABELS[name]}).", *rises(errors[key][name], falls=falls))
        for key, falls, words in trends
        for name in ALGORITHMS
    ]
    return Figure(
        "4.8",
        "Median relative error of COUNT queries",
        f"{sizes.n_queries:,} queries; {sizes.rows:,} rows, {sizes.query_n_quasi} quasi "
        f"attributes, β = {sizes.beta:g}, λ = {sizes.n_asked} (or all attributes, where there are "
        f"fewer), θ = {sizes.selectivity:g}, except for the varied parameter. Queries whose true "
        f"answer is 0 are dropped. {trials}",
        panels,
        tuple(claims),
        page="burel",
        one_axis=False,
    )


def _lines(sizes: BurelSizes) -> dict[str, Line]:
    usual = replace(sizes.usual, n_quasi=sizes.query_n_quasi)
    asked = Workload(sizes.n_queries, sizes.n_asked, sizes.selectivity)
    return {
        "asked": Line(
            "(a) attributes of a query", "λ", sizes.all_n_asked,
            [(usual, asked._replace(n_asked=n)) for n in sizes.all_n_asked],
        ),
        "beta": Line(
            "(b) β", "β", sizes.betas, [(replace(usual, beta=x), asked) for x in sizes.betas],
        ),
        "n_quasi": Line(
            "(c) quasi attributes", "quasi attributes", sizes.all_n_quasi,
            [(replace(usual, n_quasi=n), asked) for n in sizes.all_n_quasi],
        ),
        "selectivity": Line(
            "(d) selectivity", "θ", sizes.selectivities,
            [(usual, asked._replace(selectivity=x)) for x in sizes.selectivities],
        ),
    }  # fmt: skip


def _error(trials: Trials, setting: Setting, workload: Workload, name: str) -> Reading:
    return Reading(
        tuple(
            _median(trials, replace(setting, seed=seed), workload, name)
            for seed in range(trials.seeds)
        ),
        digits=1,
    )


def _median(trials: Trials, setting: Setting, workload: Workload, name: str) -> float:
    """The median error in percent."""
    trials.run(setting, name)
    queries, truth = _asked(setting.rows, setting.n_quasi, setting.seed, workload)
    median = QueryError.of(truth, estimates(_compared(setting, name), queries)).median
    return float("nan") if median is None else 100 * median


@lru_cache(maxsize=len(ALGORITHMS))
def _compared(setting: Setting, name: str) -> Compared:
    schema, codes = table(setting.rows, setting.n_quasi, setting.seed)
    return Compared.from_decisions(schema, codes, [decided(setting, name)])


@lru_cache(maxsize=64)
def _asked(rows: int, n_quasi: int, seed: int, workload: Workload) -> tuple[Queries, Ints]:
    """A workload and its truth, which no algorithm changes."""
    schema, codes = table(rows, n_quasi, seed)
    whole = Compared.from_decisions(schema, codes, [])
    queries = draw(
        whole, n_queries=workload.n_queries, selectivity=workload.selectivity,
        n_quasi=workload.n_asked, seed=seed,
    )  # fmt: skip
    return queries, counts(whole, queries)
