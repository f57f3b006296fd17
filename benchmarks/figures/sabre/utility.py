"""Figures 3.12 and 3.13: what published tables are still good for."""

from __future__ import annotations

from functools import cache

from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, below
from benchmarks.figures.sabre.settings import (
    ALGORITHMS,
    LABELS,
    OURS,
    RIVALS,
    SabreSizes,
    Setting,
    axes,
    run,
)
from benchmarks.figures.sabre.words import (
    promise_text,
    setting_text,
    times_as_fast,
    trends,
    widens,
)
from shoal.metrics import cube_divergence, query_error

__all__ = ["figure_3_12", "figure_3_13"]

#: "One order of magnitude".
ONE_ORDER = 10.0
#: What is asked of every output.
QUERY_SEED = 1

#: The readings of a panel: by algorithm, one for each x.
Readings = dict[str, list[Reading]]


def figure_3_12(sizes: SabreSizes) -> Figure:
    """The median relative error of COUNT queries."""

    def along(key: str) -> Readings:
        return {
            name: [
                _error(sizes, one, name, min(sizes.n_asked, one.n_quasi), sizes.theta)
                for one in axes(sizes)[key].settings
            ]
            for name in ALGORITHMS
        }

    usual = sizes.usual
    by_lambda = {
        name: [_error(sizes, usual, name, n, sizes.theta) for n in sizes.lambdas]
        for name in ALGORITHMS
    }
    by_theta = {
        name: [_error(sizes, usual, name, sizes.n_asked, theta) for theta in sizes.thetas]
        for name in ALGORITHMS
    }
    panels = (
        _panel("(a) λ", "quasi attributes that are asked for", sizes.lambdas, by_lambda, _ERROR),
        _panel("(b) QI", "quasi attributes", sizes.all_n_quasi, along("n_quasi"), _ERROR),
        _panel("(c) t", "t", sizes.ts, along("t"), _ERROR),
        _panel("(d) θ", "expected selectivity θ", sizes.thetas, by_theta, _ERROR),
    )
    claims = [
        *trends("The error increases as λ grows", by_lambda),
        *trends("The error increases with QI size", along("n_quasi")),
        *trends("The error drops as t grows", along("t"), falls=True),
        *trends("The error becomes smaller as θ increases", by_theta, falls=True),
        *_better("offers better utility than", by_lambda, along("n_quasi"), along("t"), by_theta),
        *(
            Claim(
                f"SABRE outperforms tIncognito by one order of magnitude (here: {LABELS[one]}, "
                f"at least {ONE_ORDER:g} times).",
                *times_as_fast(
                    *(
                        _joined(name, by_lambda, along("n_quasi"), along("t"), by_theta)
                        for name in (one, "t-incognito")
                    ),
                    ONE_ORDER,
                ),
            )
            for one in OURS
        ),
    ]
    return Figure(
        "3.12",
        "Median relative error of COUNT queries",
        f"{setting_text(sizes)} {sizes.n_queries:,} queries (10,000 in the thesis), the same for "
        f"all, with λ = {sizes.n_asked} predicates in addition to that on the salary and θ = "
        f"{sizes.theta:g}, except for the varied parameter. One table: every difference counts. "
        + _promise(sizes, "n_quasi", "t"),
        panels,
        tuple(claims),
        page="sabre",
        one_axis=False,
    )


def figure_3_13(sizes: SabreSizes) -> Figure:
    """The KL-divergence of OLAP cubes."""

    def along(key: str) -> Readings:
        return {
            name: [_far(sizes, one, name, sizes.level) for one in axes(sizes)[key].settings]
            for name in ALGORITHMS
        }

    by_level = {
        name: [_far(sizes, sizes.usual, name, level) for level in sizes.levels]
        for name in ALGORITHMS
    }
    panels = (
        _panel("(a) t", "t", sizes.ts, along("t"), _FAR),
        _panel("(b) level", "level of the lattice", sizes.levels, by_level, _FAR),
        _panel("(c) QI", "quasi attributes", sizes.all_n_quasi, along("n_quasi"), _FAR),
        _panel("(d) rows", "rows", sizes.all_rows, along("rows"), _FAR),
    )
    claims = [
        *trends("As t increases, KL-divergence decreases", along("t"), falls=True),
        *trends("The schemes perform better at lower levels", by_level),
        *(
            Claim(
                "SABRE is significantly more scalable with growing QI size (here: the gap between "
                f"{LABELS[ours]} and {LABELS[rival]} widens).",
                *widens(along("n_quasi")[ours], along("n_quasi")[rival]),
            )
            for ours in OURS
            for rival in RIVALS
        ),
        *trends("Information quality slightly improves with the rows", along("rows"), falls=True),
        *_better("clearly outperforms", along("t"), by_level, along("n_quasi"), along("rows")),
    ]
    return Figure(
        "3.13",
        "KL-divergence of OLAP cubes",
        f"{setting_text(sizes)} Level {sizes.level}, but where it is varied. The mean over the "
        "cubes of a level: the thesis adds them up, so that more attributes have more to add. "
        "One table: every difference counts. " + _promise(sizes, "t", "n_quasi", "rows"),
        panels,
        tuple(claims),
        page="sabre",
        one_axis=False,
    )


def _promise(sizes: SabreSizes, *keys: str) -> str:
    settings = [sizes.usual, *(one for key in keys for one in axes(sizes)[key].settings)]
    return promise_text(run(sizes, one, name) for one in settings for name in ALGORITHMS)


_ERROR = ("Median relative error", "median relative error")
_FAR = ("Mean KL-divergence of the cubes", "mean KL-divergence")


@cache
def _error(
    sizes: SabreSizes, setting: Setting, algorithm: str, n_asked: int, theta: float
) -> Reading:
    compared = run(sizes, setting, algorithm).runs[0].compared()
    found = query_error(
        compared, n_queries=sizes.n_queries, selectivity=theta, n_quasi=n_asked, seed=QUERY_SEED
    )
    return Reading((found.median or 0.0,))


@cache
def _far(sizes: SabreSizes, setting: Setting, algorithm: str, level: int) -> Reading:
    compared = run(sizes, setting, algorithm).runs[0].compared()
    return Reading((cube_divergence(compared, level=level).mean,))


def _panel(
    title: str, x_label: str, xs: tuple[float, ...], found: Readings, words: tuple[str, str]
) -> Panel:
    curves = tuple(Curve(LABELS[name], cells) for name, cells in found.items())
    return Panel(title, x_label, xs, curves, what=words[0], axis=words[1])


def _joined(name: str, *panels: Readings) -> list[Reading]:
    return [cell for panel in panels for cell in panel[name]]


def _better(words: str, *panels: Readings) -> list[Claim]:
    return [
        Claim(
            f"{LABELS[ours]} {words} {LABELS[rival]} in all experiments.",
            *below(_joined(ours, *panels), _joined(rival, *panels)),
        )
        for ours in OURS
        for rival in RIVALS
    ]
