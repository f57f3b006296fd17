"""Figures 6.4 to 6.7: loss and time over the advance, the window, t and the quasi attributes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, below
from benchmarks.figures.sabre.words import promise_text, times_as_fast, trends
from benchmarks.figures.sliding.settings import ALGORITHMS, LABELS, SlidingSizes, axes, run

__all__ = ["FIGURES"]

#: "Two orders of magnitude".
TWO_ORDERS = 100.0


class _Experiment(NamedTuple):
    """A figure: what is varied, and the trends that the thesis sees; whether they fall."""

    title: str
    key: str
    of_loss: tuple[str, bool] | None
    of_time: tuple[str, bool] | None
    #: Whether the thesis says here how many times the others are faster than tIncognito_W.
    orders: bool = False


_EXPERIMENTS = {
    "6.4": _Experiment(
        "Effect of the advance I", "advance", None,
        ("When I approaches ω, the elapsed time decreases", True), orders=True,
    ),
    "6.5": _Experiment(
        "Effect of the window ω", "window",
        ("As ω grows, the information loss is reduced", True),
        ("The elapsed time grows with ω", False),
    ),
    "6.6": _Experiment(
        "Effect of the closeness t", "t",
        ("When t increases, the information quality is improved", True), None,
    ),
    "6.7": _Experiment(
        "Effect of the QI", "n_quasi",
        ("The information quality degrades as a function of the QI size", False),
        ("More time is spent as the QI size grows", False),
    ),
}  # fmt: skip


def _figure(name: str, sizes: SlidingSizes) -> Figure:
    experiment = _EXPERIMENTS[name]
    axis = axes(sizes)[experiment.key]
    found = {one: [run(sizes, each, one) for each in axis.settings] for one in ALGORITHMS}
    lost = {one: [each.loss for each in cells] for one, cells in found.items()}
    took = {
        one: [Reading(tuple(ran.seconds for ran in each.runs)) for each in cells]
        for one, cells in found.items()
    }
    claims = [
        Claim(f"{words} (here: {LABELS[less]} before {LABELS[more]}).",
              *below(cells[less], cells[more], axis.places))
        for words, cells in (
            ("SABRE_W achieves the best information quality, followed by tMondrian_W and "
             "tIncognito_W", lost),
            ("SABRE_W is the fastest, followed by tMondrian_W and tIncognito_W", took),
        )
        for less, more in (ALGORITHMS[:2], ALGORITHMS[1:], ALGORITHMS[::2])
    ]  # fmt: skip
    if experiment.of_loss is not None:
        words, falls = experiment.of_loss
        claims += trends(words, lost, falls=falls, labels=LABELS)
    if experiment.of_time is not None:
        words, falls = experiment.of_time
        claims += trends(words, took, falls=falls, labels=LABELS)
    if experiment.orders:
        claims += [
            Claim(
                "SABRE_W and tMondrian_W are two orders of magnitude faster than tIncognito_W "
                f"(here: {LABELS[quick]}, at least {TWO_ORDERS:g} times).",
                *times_as_fast(took[quick], took["t-incognito-w"], TWO_ORDERS),
            )
            for quick in ALGORITHMS[:2]
        ]
    panels = (
        Panel(
            "(a) information loss", axis.x_label, axis.xs,
            tuple(Curve(LABELS[one], cells) for one, cells in lost.items()),
        ),
        Panel(
            "(b) time", axis.x_label, axis.xs,
            tuple(Curve(LABELS[one], cells) for one, cells in took.items()),
            what="Processor time of the engine in seconds", axis="seconds",
        ),
    )  # fmt: skip
    return Figure(
        name,
        experiment.title,
        f"{sizes.rows:,} rows, windows of {sizes.window:,} rows that advance by "
        f"{sizes.advance:,}, {sizes.n_quasi} quasi attributes, k = {sizes.k}, t = {sizes.t:g}, "
        "except for the varied parameter. "
        f"{promise_text(each for some in found.values() for each in some)}",
        panels,
        tuple(claims),
        page="sliding",
        one_axis=False,
    )


#: What makes each figure.
FIGURES: dict[str, Callable[[SlidingSizes], Figure]] = {
    name: partial(_figure, name) for name in _EXPERIMENTS
}
