"""Figures 3.7 to 3.11 and 3.14: loss, time and real closeness."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from benchmarks.figures.axis import Axis
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
    flat,
    not_uniform,
    promise_text,
    setting_text,
    times_as_fast,
    trends,
    widens,
)
from benchmarks.figures.sweep import Cell

__all__ = [
    "figure_3_7", "figure_3_8", "figure_3_9", "figure_3_10", "figure_3_11", "figure_3_14",
]  # fmt: skip

#: What SABRE-AK takes at most, in seconds (§3.5.1, of 100,000 rows).
QUICK = 4.0
#: "Two orders of magnitude".
TWO_ORDERS = 100.0


def losses(
    sizes: SabreSizes, axis: Axis[Setting], algorithms: Sequence[str] = ALGORITHMS
) -> dict[str, list[Cell]]:
    """What each algorithm loses along an axis."""
    return {
        algorithm: [run(sizes, one, algorithm).loss for one in axis.settings]
        for algorithm in algorithms
    }


def seconds(sizes: SabreSizes, axis: Axis[Setting]) -> dict[str, list[Reading]]:
    """How long each algorithm takes along an axis."""
    return {
        algorithm: [
            Reading(tuple(ran.seconds for ran in run(sizes, one, algorithm).runs))
            for one in axis.settings
        ]
        for algorithm in ALGORITHMS
    }


def closenesses(sizes: SabreSizes, axis: Axis[Setting]) -> dict[str, list[Reading]]:
    """How close to the table the worst group of each algorithm is, along an axis."""
    return {
        algorithm: [
            Reading(tuple(ran.judged.closeness for ran in run(sizes, one, algorithm).runs))
            for one in axis.settings
        ]
        for algorithm in ALGORITHMS
    }


def curves(found: dict[str, list[Cell]] | dict[str, list[Reading]]) -> tuple[Curve, ...]:
    return tuple(Curve(LABELS[algorithm], cells) for algorithm, cells in found.items())


def _panels(
    axis: Axis[Setting], lost: dict[str, list[Cell]], took: dict[str, list[Reading]]
) -> tuple[Panel, ...]:
    return (
        Panel("(a) information loss", axis.x_label, axis.xs, curves(lost)),
        Panel(
            "(b) time", axis.x_label, axis.xs, curves(took),
            what="Processor time of the engine in seconds", axis="seconds",
        ),
    )  # fmt: skip


def _figure(
    sizes: SabreSizes,
    name: str,
    title: str,
    panels: tuple[Panel, ...],
    claims: Sequence[Claim],
    *keys: str,
    algorithms: Sequence[str] = ALGORITHMS,
) -> Figure:
    """A figure along the axes with these keys."""
    settings = [one for key in keys for one in axes(sizes)[key].settings]
    promise = promise_text(run(sizes, one, name_) for one in settings for name_ in algorithms)
    return Figure(
        name,
        title,
        f"{setting_text(sizes)} {promise}",
        panels,
        tuple(claims),
        page="sabre",
        one_axis=False,
    )


def figure_3_7(sizes: SabreSizes) -> Figure:
    """Loss and time over t."""
    axis = axes(sizes)["t"]
    lost, took = losses(sizes, axis), seconds(sizes, axis)
    claims = [
        *trends("The information quality is improved as t grows", lost, falls=True),
        *_superior(lost, axis),
        Claim(
            "SABRE-KNN is slightly better than SABRE-AK.",
            *below(lost["sabre-knn"], lost["sabre-ak"], axis.places),
        ),
        *(
            Claim(
                f"SABRE-AK is the most efficient (here: faster than {LABELS[rival]}).",
                *below(took["sabre-ak"], took[rival], axis.places),
            )
            for rival in ALGORITHMS
            if rival != "sabre-ak"
        ),
        Claim(
            f"In all cases SABRE-AK takes no more than {QUICK:g} seconds (there: 100,000 rows).",
            "holds" if all(cell.most <= QUICK for cell in took["sabre-ak"]) else "doesn't hold",
            f"at most {max(cell.most for cell in took['sabre-ak']):.3f} s",
        ),
        *(
            Claim(
                f"SABRE-AK and tMondrian are two orders of magnitude faster than {LABELS[slow]} "
                f"(here: {LABELS[quick]}, at least {TWO_ORDERS:g} times).",
                *times_as_fast(took[quick], took[slow], TWO_ORDERS),
            )
            for slow in ("sabre-knn", "t-incognito")
            for quick in ("sabre-ak", "t-mondrian")
        ),
    ]
    return _figure(
        sizes, "3.7", "Effect of the closeness t", _panels(axis, lost, took), claims, "t"
    )


def figure_3_8(sizes: SabreSizes) -> Figure:
    """Loss and time over the number of quasi attributes."""
    axis = axes(sizes)["n_quasi"]
    lost, took = losses(sizes, axis), seconds(sizes, axis)
    order = ("sabre-ak", "t-mondrian", "t-incognito", "sabre-knn")
    claims = [
        *trends("The information quality worsens as the QI grows", lost),
        *_superior(lost, axis),
        *(
            Claim(
                "The information quality gap widens as the QI increases (here: between "
                f"{LABELS[ours]} and {LABELS[rival]}).",
                *widens(lost[ours], lost[rival]),
            )
            for ours in OURS
            for rival in RIVALS
        ),
        *(
            Claim(
                "SABRE-AK is the fastest, followed by tMondrian, tIncognito and SABRE-KNN (here: "
                f"{LABELS[quick]} before {LABELS[slow]}).",
                *below(took[quick], took[slow], axis.places),
            )
            for quick, slow in pairwise(order)
        ),
    ]
    return _figure(sizes, "3.8", "Effect of the QI", _panels(axis, lost, took), claims, "n_quasi")


def figure_3_9(sizes: SabreSizes) -> Figure:
    """Loss and time over the number of rows."""
    axis = axes(sizes)["rows"]
    lost, took = losses(sizes, axis), seconds(sizes, axis)
    claims = [
        *(
            Claim(
                f"The data size has no much effect on the information quality ({LABELS[one]}).",
                *flat(lost[one]),
            )
            for one in ALGORITHMS
            if one != "t-incognito"
        ),
        *trends("The elapsed time increases as the table grows", took),
        *(
            Claim(
                f"SABRE-AK and tMondrian remain superior (here: {LABELS[quick]} is faster than "
                f"{LABELS[slow]}).",
                *below(took[quick], took[slow], axis.places),
            )
            for quick in ("sabre-ak", "t-mondrian")
            for slow in ("sabre-knn", "t-incognito")
        ),
    ]
    return _figure(
        sizes, "3.9", "Effect of the number of rows", _panels(axis, lost, took), claims, "rows"
    )


def figure_3_10(sizes: SabreSizes) -> Figure:
    """The real closeness of the worst group, over t and the number of quasi attributes."""
    panels, claims = [], []
    for letter, key in (("a", "t"), ("b", "n_quasi")):
        axis = axes(sizes)[key]
        real = closenesses(sizes, axis)
        panels.append(
            Panel(
                f"({letter}) {axis.name}", axis.x_label, axis.xs, curves(real),
                what="Closeness of the worst group", axis="closeness of the worst group",
            )
        )  # fmt: skip
        promised = [Reading((one.t,)) for one in axis.settings]
        claims += [
            Claim(
                f"The real difference is smaller than t ({LABELS[one]}, over {axis.name}).",
                *below(real[one], promised, axis.places),
            )
            for one in ALGORITHMS
        ]
        claims += [
            Claim(
                "SABRE and tIncognito achieve consistently smaller real difference than tMondrian "
                f"({LABELS[one]}, over {axis.name}).",
                *below(real[one], real["t-mondrian"], axis.places),
            )
            for one in (*OURS, "t-incognito")
        ]
    return _figure(sizes, "3.10", "Real closeness", tuple(panels), claims, "t", "n_quasi")


def figure_3_11(sizes: SabreSizes) -> Figure:
    """Loss and time over k."""
    axis = axes(sizes)["k"]
    lost, took = losses(sizes, axis), seconds(sizes, axis)
    rising = {one: lost[one] for one in ALGORITHMS if one != "t-incognito"}
    claims = [
        *trends("A larger k results in higher information loss", rising),
        Claim("The behavior of tIncognito is not uniform.", *not_uniform(lost["t-incognito"])),
    ]
    return _figure(sizes, "3.11", "Effect of k", _panels(axis, lost, took), claims, "k")


def figure_3_14(sizes: SabreSizes) -> Figure:
    """Loss over the fanout of trees over the classes of the salary."""
    axis = axes(sizes)["fanout"]
    lost = losses(sizes, axis, OURS)
    claims = [
        *(
            Claim(
                f"The information quality does not change uniformly with the fanout "
                f"({LABELS[one]}).",
                *not_uniform(lost[one]),
            )
            for one in OURS
        ),
        *trends("A smaller fanout tends to preserve more information", lost),
    ]
    panel = Panel("information loss", axis.x_label, axis.xs, curves(lost), log=True)
    return _figure(
        sizes, "3.14", "Effect of the fanout", (panel,), claims, "fanout", algorithms=OURS
    )


def _superior(lost: dict[str, list[Cell]], axis: Axis[Setting]) -> list[Claim]:
    words = "provides superior information quality compared to"
    return [
        Claim(
            f"{LABELS[ours]} {words} {LABELS[rival]}.",
            *below(lost[ours], lost[rival], axis.places),
        )
        for ours in OURS
        for rival in RIVALS
    ]
