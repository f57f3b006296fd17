"""Figure 5.11: how well CASTLE and dynamicGroup answer COUNT queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from benchmarks.figures.condensed import EVEN_NUMBERS, LABELS, Against, decided, numbers
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, below
from benchmarks.figures.sizes import Sizes
from shoal.engine.kernels.arrays import Ints
from shoal.metrics import Compared
from shoal.metrics.queries import Queries, QueryError, counts, draw, estimates

__all__ = ["figure"]


class Workload(NamedTuple):
    """Of how many queries, with which selectivity, on how many quasi attributes."""

    n_queries: int
    selectivity: float
    n_asked: int = len(EVEN_NUMBERS)


class Line(NamedTuple):
    """One panel: what is varied, what the thesis says of it, and the errors of both."""

    title: str
    x_label: str
    xs: tuple[float, ...]
    claim: str
    errors: dict[str, list[Reading]]

    @property
    def panel(self) -> Panel:
        curves = tuple(Curve(label, self.errors[name]) for name, label in LABELS.items())
        return Panel(
            self.title, self.x_label, self.xs, curves,
            what="Median relative error in %", axis="median relative error, %",
        )  # fmt: skip

    @property
    def verdict(self) -> Claim:
        places = [f"{self.x_label} = {x:g}" for x in self.xs]
        ours, others = self.errors["castle"], self.errors["dynamic-group"]
        return Claim(self.claim, *below(ours, others, places))


def figure(sizes: Sizes) -> Figure:
    """Vary k, then the selectivity of the queries, then on how many attributes they are."""
    usual = Workload(sizes.n_queries, sizes.selectivity)
    by_share = [usual._replace(selectivity=share) for share in sizes.selectivities]
    by_asked = [usual._replace(n_asked=n) for n in range(1, len(EVEN_NUMBERS) + 1)]
    lines = (
        Line(
            f"(a) θ = {sizes.selectivity:g}", "k", sizes.ks,
            "CASTLE outperforms dynamicGroup clearly as k is varied.",
            {name: [_errors(sizes, name, k, [usual])[0] for k in sizes.ks] for name in LABELS},
        ),
        Line(
            f"(b) k = {sizes.query_k}", "θ", sizes.selectivities,
            "CASTLE outperforms dynamicGroup clearly as θ is varied.",
            {name: _errors(sizes, name, sizes.query_k, by_share) for name in LABELS},
        ),
        Line(
            f"(c) k = {sizes.query_k}, θ = {sizes.selectivity:g}", "λ",
            tuple(workload.n_asked for workload in by_asked),
            "The same, whatever λ was (not in the thesis, which doesn't name it).",
            {name: _errors(sizes, name, sizes.query_k, by_asked) for name in LABELS},
        ),
    )  # fmt: skip
    return Figure(
        "5.11",
        "Median relative error of CASTLE and of dynamicGroup",
        f"{sizes.rows:,} rows of UCI Adult, four numbers as quasi attributes (without capital gain "
        f"and loss), δ = {sizes.query_delay:,} rows for CASTLE. {sizes.n_queries:,} queries over "
        "the whole output, each with a predicate on the occupation and on λ of the quasi "
        "attributes: the thesis says neither what λ is nor which attribute is the sensitive one. "
        "In (a) and (b) λ is 4, all of them. Queries whose true answer is 0 are dropped. People "
        "behind each group of every run were counted independently of the engine.",
        tuple(line.panel for line in lines),
        tuple(line.verdict for line in lines),
        one_axis=False,
    )


def _errors(sizes: Sizes, name: str, k: int, workloads: Sequence[Workload]) -> list[Reading]:
    """The median error of each workload, in percent."""
    delay = sizes.query_delay if name == "castle" else None
    run = Against(name, sizes.rows, EVEN_NUMBERS, k, delay)
    medians = [_medians(replace(run, seed=seed), workloads) for seed in range(sizes.seeds)]
    return [Reading(values, digits=1) for values in zip(*medians, strict=True)]


def _medians(run: Against, workloads: Sequence[Workload]) -> list[float]:
    stream = numbers(run.rows, run.quasi)
    compared = Compared.from_decisions(stream.schema, stream.codes, decided(run))
    found = []
    for workload in workloads:
        queries, truth = _asked(run.rows, workload, run.seed)
        median = QueryError.of(truth, estimates(compared, queries)).median
        found.append(float("nan") if median is None else 100 * median)
    return found


@lru_cache(maxsize=64)
def _asked(rows: int, workload: Workload, seed: int) -> tuple[Queries, Ints]:
    """The queries of a workload and their truth, which no algorithm changes."""
    stream = numbers(rows, EVEN_NUMBERS)
    whole = Compared.from_decisions(stream.schema, stream.codes, [])
    queries = draw(
        whole, n_queries=workload.n_queries, selectivity=workload.selectivity,
        n_quasi=workload.n_asked, seed=seed,
    )  # fmt: skip
    return queries, counts(whole, queries)
