"""Figures 3 and 7: what is lost, and what it costs with the delay."""

from __future__ import annotations

from benchmarks.figures.axis import Axis
from benchmarks.figures.fast.settings import RIVALS, FastSizes, Setting, axes, run
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, below
from benchmarks.figures.sweep import Cell
from benchmarks.figures.trial import Ran
from shoal.metrics.cost import Cost

__all__ = ["figure_3", "figure_7"]

#: Whose losses are drawn; those with T_kc in rows are judged only, by the number of workers.
DRAWN = ("fads", "fast", "fads-long", "fads-arrived", "fast-arrived", "fads-long-arrived")
#: What the cost is reported for: the rival, and whether time is counted in rows of each worker.
COSTS = {
    "FADS": ("fads", True),
    "FAST": ("fast", True),
    "FADS with the rows of FAST, in rows": ("fads-long", False),
    "FAST, in rows": ("fast", False),
    "FADS, by arrival": ("fads-arrived", True),
    "FAST, by arrival": ("fast-arrived", True),
    "FADS with the delay of FAST, by arrival, in rows": ("fads-long-arrived", False),
    "FAST, by arrival, in rows": ("fast-arrived", False),
}


def figure_3(sizes: FastSizes) -> Figure:
    """Loss of FADS and FAST over five parameters."""
    panels = []
    everywhere: dict[str, list[Cell]] = {rival: [] for rival in DRAWN}
    for axis in axes(sizes).values():
        cells = {rival: _losses(sizes, axis, rival) for rival in DRAWN}
        for rival in DRAWN:
            everywhere[rival] += cells[rival]
        curves = tuple(Curve(RIVALS[rival].label, cells[rival]) for rival in DRAWN)
        panels.append(Panel(axis.title, axis.x_label, axis.xs, curves, log=axis.log))
    workers = axes(sizes)["workers"]
    return Figure(
        "3",
        "Average loss",
        _setting(sizes) + " Which parameters the paper varies, and over which values, isn't in "
        "its text. Attributes are in the paper's order.",
        tuple(panels),
        (
            Claim(
                "FAST publishes data with less information loss than FADS.",
                *below(everywhere["fast"], everywhere["fads"], _places(sizes)),
            ),
            Claim(
                "The same, with T_kc in rows, W·T_kc rows for FAST (for each number of workers).",
                *below(*(_losses(sizes, workers, rival) for rival in ("fast-rows", "fads-rows"))),
            ),
            Claim(
                "The same, where FADS may hold as many rows and keep groups as long as FAST.",
                *below(everywhere["fast"], everywhere["fads-long"]),
            ),
            Claim(
                "FAST publishes data with less information loss than FADS (by arrival).",
                *below(everywhere["fast-arrived"], everywhere["fads-arrived"], _places(sizes)),
            ),
            Claim(
                "The same, where FADS may hold rows and keep groups as long as FAST (by arrival).",
                *below(everywhere["fast-arrived"], everywhere["fads-long-arrived"]),
            ),
            Claim(
                "Rows held by count lose less than by arrival (FADS; ours).",
                *below(everywhere["fads"], everywhere["fads-arrived"], _places(sizes)),
            ),
        ),
        page="fast",
        source="the paper",
    )


def figure_7(sizes: FastSizes) -> Figure:
    """Cost of FADS and FAST over five parameters."""
    panels = []
    everywhere: dict[str, list[Reading]] = {label: [] for label in COSTS}
    for axis in axes(sizes).values():
        cells = {
            label: [
                Reading(
                    tuple(
                        _cost(
                            sizes,
                            ran,
                            one,
                            per_worker=per_worker and RIVALS[rival].algorithm == "fast",
                        )
                        for ran in run(sizes, one, rival).runs
                    )
                )
                for one in axis.settings
            ]
            for label, (rival, per_worker) in COSTS.items()
        }
        for label in COSTS:
            everywhere[label] += cells[label]
        panels.append(
            Panel(
                axis.title, axis.x_label, axis.xs,
                tuple(Curve(label, found) for label, found in cells.items()),
                what="Mean cost of all rows, suppressed ones with a loss of 1",
                axis="mean cost", log=axis.log,
            )
        )  # fmt: skip
    in_time = below(everywhere["FAST"], everywhere["FADS"], _places(sizes))
    in_rows = below(everywhere["FAST, in rows"], everywhere["FADS with the rows of FAST, in rows"])
    by_arrival = below(
        everywhere["FAST, by arrival"], everywhere["FADS, by arrival"], _places(sizes)
    )
    by_arrival_in_rows = below(
        everywhere["FAST, by arrival, in rows"],
        everywhere["FADS with the delay of FAST, by arrival, in rows"],
    )
    return Figure(
        "7",
        "Average cost",
        _setting(sizes) + f" Cost is loss × (1 + α)^delay with α = {sizes.alpha:g} (Definition 7). "
        "The delay is counted in the paper's time, a unit of which is W rows of FAST; and, for "
        "one and the same stream, in rows.",
        tuple(panels),
        (
            Claim("FAST produces less cost than FADS.", *in_time),
            Claim(
                "The same in rows of one stream, where FADS may hold as many rows as FAST.",
                *in_rows,
            ),
            Claim(
                "Each row is published faster than by FADS (here: the mean delay in rows, "
                "where FADS may hold as many rows as FAST).",
                *below(*(_delays(sizes, rival) for rival in ("fast", "fads-long"))),
            ),
            Claim("FAST produces less cost than FADS (by arrival).", *by_arrival),
            Claim(
                "The same in rows of one stream, where FADS may hold rows as long as FAST (by "
                "arrival).",
                *by_arrival_in_rows,
            ),
            Claim(
                "Each row is published faster than by FADS (by arrival; here: the mean delay in "
                "rows, where FADS may hold rows as long as FAST).",
                *below(*(_delays(sizes, one) for one in ("fast-arrived", "fads-long-arrived"))),
            ),
        ),
        page="fast",
        source="the paper",
        one_axis=False,
    )


def _losses(sizes: FastSizes, axis: Axis[Setting], rival: str) -> list[Cell]:
    return [run(sizes, one, rival).loss for one in axis.settings]


def _places(sizes: FastSizes) -> list[str]:
    return [place for axis in axes(sizes).values() for place in axis.places]


def _setting(sizes: FastSizes) -> str:
    return (
        f"{sizes.n_rows:,} rows of Adult of {sizes.rows:,} people (the paper has 33,178 rows), "
        f"k = {sizes.k}, {sizes.n_quasi} quasi attributes, δ = {sizes.delta}, T_kc = {sizes.age}, "
        f"W = {sizes.workers} workers, except for "
        "the varied parameter. FADS decides a row when δ rows are held, and each worker of FAST "
        "one when each has δ; groups are kept for T_kc rounds. By arrival FADS has a delay of δ "
        "rows and an age limit of T_kc rows, FAST of W·δ rows and W·T_kc rows."
    )


def _cost(sizes: FastSizes, ran: Ran, setting: Setting, *, per_worker: bool) -> float:
    waited = ran.waited / (setting.workers if per_worker else 1)
    published = ran.is_published
    cost = Cost(sizes.alpha)
    cost.add(ran.losses[published], waited[published], suppressed=waited[~published])
    return cost.with_suppressed or 0.0


def _delays(sizes: FastSizes, rival: str) -> list[Reading]:
    return [
        Reading(tuple(float(ran.waited.mean()) for ran in run(sizes, one, rival).runs), digits=1)
        for axis in axes(sizes).values()
        for one in axis.settings
    ]
