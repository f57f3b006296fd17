"""Figures 3 to 5: the decaying factor, and the length of the stream."""

from __future__ import annotations

from benchmarks.figures.model import Claim, Figure, rises
from benchmarks.figures.trees.settings import TreeSizes, axes
from benchmarks.figures.trees.shown import Kind, claims_of, figure, panel, readings, usual_text
from benchmarks.figures.trees.trial import ALGORITHMS, LABELS, Trials
from benchmarks.figures.trees.words import ABOUT, BENT, LITTLE, about, joint, less, linear, stable

__all__ = ["figure_3", "figure_4", "figure_5"]

#: What the full method takes in place of the density-aware one (§5.1.2).
TIMES_OF_FULL = 7.0


def figure_3(sizes: TreeSizes) -> Figure:
    """The decaying factor."""
    axis, trials = axes(sizes)["alpha"], Trials(sizes.seeds)
    names = ("tree-density",)
    found = {
        bound: trials.along(axes(sizes, bound=bound)["alpha"].settings, names)
        for bound in sizes.bounds
    }
    kinds: tuple[Kind, ...] = ("penalty", "delay")
    penalty, delay = (
        {bound: readings(some, kind) for bound, some in found.items()} for kind in kinds
    )
    claims = claims_of(
        "The larger α, the smaller the publishing delay", delay, names,
        lambda of, one: rises(of[one], falls=True),
    ) + claims_of(
        "α controls the tradeoff between penalty and delay; here: with α the penalty rises",
        penalty, names, lambda of, one: rises(of[one]),
    )  # fmt: skip
    return figure(
        "3", "Effect of α",
        f"The density-aware method on SAL({sizes.alpha_rows:,}, {sizes.n_quasi}), k = {sizes.k}, "
        f"{sizes.samples:,} samples. {trials}",
        [panel(bound, axis, some, kind) for kind in kinds for bound, some in found.items()],
        claims,
    )  # fmt: skip


def figure_4(sizes: TreeSizes) -> Figure:
    """The run time of the four methods."""
    axis, trials = axes(sizes)["rows"], Trials(sizes.few_seeds)
    found = trials.along(axis.settings, ALGORITHMS)
    took = readings(found, "seconds")
    claims = [
        Claim(
            "The run time is linear in the number of rows (here: up to "
            f"{BENT:.0%} of its rise off a straight line).",
            *joint({LABELS[name]: linear(axis.xs, cells) for name, cells in took.items()}),
        ),
        Claim(
            "The minimum-delay method and the basic method are quite close to each other (here: "
            f"the basic one takes as long, within a factor of {ABOUT:g}).",
            *about(took["tree-basic"], took["min-delay"], 1.0),
        ),
        Claim(
            "The run time of the density-aware method is quite short, too (here: that of the basic "
            f"one, within a factor of {ABOUT:g}).",
            *about(took["tree-density"], took["tree-basic"], 1.0),
        ),
        Claim(
            f"The full method is about {TIMES_OF_FULL:g} times slower than the density-aware one "
            f"(here: within a factor of {ABOUT:g}).",
            *about(took["tree-full"], took["tree-density"], TIMES_OF_FULL),
        ),
    ]
    return figure(
        "4", "Run time",
        f"{usual_text(sizes)} Processor time of the engine alone, from codes to decisions, "
        f"compiled beforehand. The paper measured C++ on another machine. {trials}",
        [panel(sizes.paper, axis, found, "seconds")],
        claims,
    )  # fmt: skip


def figure_5(sizes: TreeSizes) -> Figure:
    """Cost, penalty and delay over the length of the stream."""
    axis, trials = axes(sizes)["rows"], Trials(sizes.seeds)
    found = {
        bound: trials.along(axes(sizes, bound=bound)["rows"].settings, ALGORITHMS)
        for bound in (sizes.paper, sizes.wide, sizes.tight)
    }
    kinds: dict[Kind, str] = {
        "cost": "information loss", "penalty": "uncertainty penalty", "delay": "publishing delay",
    }  # fmt: skip
    of = {
        kind: {bound: readings(some, kind) for bound, some in found.items()} for kind in kinds
    }  # fmt: skip
    claims = []
    for kind, words in kinds.items():
        claims += claims_of(
            f"The average {words} is stable; here: up to {LITTLE:.0%} apart", of[kind], ALGORITHMS,
            lambda some, one: stable(some[one]),
        )  # fmt: skip
    for kind in ("cost", "penalty"):
        words = kinds[kind]
        claims += claims_of(
            f"In {words} the full method is the best; here: less than the others", of[kind],
            ALGORITHMS[:-1], lambda some, one: less(some["tree-full"], some[one]),
        )  # fmt: skip
        claims += claims_of(
            f"In {words} the minimum-delay method is the worst; here: the others are less",
            of[kind], ALGORITHMS[1:],
            lambda some, one: less(some[one], some["min-delay"]),
        )  # fmt: skip
        claims += claims_of(
            f"In {words} the density-aware method improves the basic one", of[kind],
            ALGORITHMS[2:3], lambda some, one: less(some[one], some["tree-basic"]),
        )  # fmt: skip
    claims += claims_of(
        "The minimum-delay method has the smallest delay; here: less than the others",
        of["delay"], ALGORITHMS[1:],
        lambda some, one: less(some["min-delay"], some[one]),
    )  # fmt: skip
    claims += claims_of(
        "The full and the density-aware method have slightly longer delays than the basic one; "
        "here: its is less", of["delay"], ALGORITHMS[2:],
        lambda some, one: less(some["tree-basic"], some[one]),
    )  # fmt: skip
    return figure(
        "5", "Scalability", f"{usual_text(sizes)} {trials}",
        [panel(bound, axis, some, kind) for kind in kinds for bound, some in found.items()],
        claims,
    )  # fmt: skip
