"""Figures 3 to 5: the decaying factor, and the length of the stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.figures.burel.settings import hardly_changes
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, below, rises
from benchmarks.figures.trees.settings import TreeSizes, axes
from benchmarks.figures.trees.trial import ALGORITHMS, LABELS, Found, Trials
from benchmarks.figures.trees.words import about, linear

__all__ = ["COST", "DELAY", "PENALTY", "curves", "figure_3", "figure_4", "figure_5", "usual_text"]

#: What is measured and the words on its axis.
COST = ("Information loss, cost(T)", "cost(T), sum over attributes")
PENALTY = ("Uncertainty penalty, loss(T)", "loss(T), sum over attributes")
DELAY = ("Mean delay in rows", "rows")

#: What the full method takes in place of the density-aware one (§5.1.2).
TIMES_OF_FULL = 7.0


def figure_3(sizes: TreeSizes) -> Figure:
    """The decaying factor."""
    axis, trials = axes(sizes)["alpha"], Trials(sizes.seeds)
    found = {"tree-density": trials.along(axis.settings, "tree-density")}
    penalty = [one.penalty for one in found["tree-density"]]
    delay = [one.delay for one in found["tree-density"]]
    panels = (
        Panel("(a)", axis.x_label, axis.xs, curves(found, "penalty"), *PENALTY),
        Panel("(b)", axis.x_label, axis.xs, curves(found, "delay"), *DELAY),
    )
    claims = (
        Claim("The larger α, the smaller the publishing delay.", *rises(delay, falls=True)),
        Claim(
            "α controls the tradeoff between penalty and delay (here: with α the penalty rises).",
            *rises(penalty),
        ),
    )
    return Figure(
        "3", "Effect of α",
        f"The density-aware method on SAL({sizes.alpha_rows:,}, {sizes.n_quasi}), k = {sizes.k}, "
        f"{sizes.samples:,} samples. {trials}",
        panels, claims, page="trees", source="the paper", one_axis=False,
    )  # fmt: skip


def figure_4(sizes: TreeSizes) -> Figure:
    """The run time of the four methods."""
    axis, trials = axes(sizes)["rows"], Trials(sizes.seeds)
    found = {name: trials.along(axis.settings, name) for name in ALGORITHMS}
    took = {name: [one.seconds for one in cells] for name, cells in found.items()}
    panel = Panel(
        f"by {axis.name}", axis.x_label, axis.xs, curves(found, "seconds"),
        "Processor time of the engine in seconds", "seconds",
    )  # fmt: skip
    claims = [
        Claim(
            f"The run time is linear in the number of rows ({LABELS[name]}).",
            *linear(axis.xs, cells),
        )
        for name, cells in took.items()
    ]
    claims += [
        Claim(
            "The minimum-delay method and the basic method are quite close to each other (here: "
            "the basic one takes about as long).",
            *about(took["tree-basic"], took["min-delay"], 1.0),
        ),
        Claim(
            "The run time of the density-aware method is quite short, too (here: about that of "
            "the basic one).",
            *about(took["tree-density"], took["tree-basic"], 1.0),
        ),
        Claim(
            f"The full method is about {TIMES_OF_FULL:g} times slower than the density-aware one.",
            *about(took["tree-full"], took["tree-density"], TIMES_OF_FULL),
        ),
    ]
    return Figure(
        "4", "Run time",
        f"{usual_text(sizes)} Processor time of the engine alone, from codes to decisions, "
        f"compiled beforehand. The paper measured C++ on another machine. {trials}",
        (panel,), tuple(claims), page="trees", source="the paper",
    )  # fmt: skip


def figure_5(sizes: TreeSizes) -> Figure:
    """Cost, penalty and delay over the length of the stream."""
    axis, trials = axes(sizes)["rows"], Trials(sizes.seeds)
    found = {name: trials.along(axis.settings, name) for name in ALGORITHMS}
    kinds = (
        ("(a)", "information loss", "cost", COST),
        ("(b)", "uncertainty penalty", "penalty", PENALTY),
        ("(c)", "publishing delay", "delay", DELAY),
    )
    panels = tuple(
        Panel(title, axis.x_label, axis.xs, curves(found, kind), *words)
        for title, _, kind, words in kinds
    )
    claims = [
        Claim(f"The average {words} is stable ({LABELS[name]}).", *hardly_changes(cells))
        for _, words, kind, _ in kinds
        for name, cells in _readings(found, kind).items()
    ]
    for _, words, kind, _ in kinds[:2]:
        of = _readings(found, kind)
        claims += [
            Claim(
                f"In {words} the full method is the best (here: less than {LABELS[other]}).",
                *below(of["tree-full"], of[other], axis.places),
            )
            for other in ALGORITHMS[:-1]
        ]
        claims += [
            Claim(
                f"In {words} the minimum-delay method is the worst (here: more than "
                f"{LABELS[other]}).",
                *below(of[other], of["min-delay"], axis.places),
            )
            for other in ALGORITHMS[1:-1]
        ]
        claims.append(
            Claim(
                f"The density-aware method improves the basic one ({words}).",
                *below(of["tree-density"], of["tree-basic"], axis.places),
            )
        )
    delay = _readings(found, "delay")
    claims += [
        Claim(
            f"The minimum-delay method has the smallest delay (here: less than {LABELS[other]}).",
            *below(delay["min-delay"], delay[other], axis.places),
        )
        for other in ALGORITHMS[1:]
    ]
    claims += [
        Claim(
            "The full and the density-aware method have slightly longer delays than the basic one "
            f"(here: {LABELS['tree-basic']} less than {LABELS[other]}).",
            *below(delay["tree-basic"], delay[other], axis.places),
        )
        for other in ALGORITHMS[2:]
    ]
    return Figure(
        "5", "Scalability", f"{usual_text(sizes)} {trials}", panels, tuple(claims), page="trees",
        source="the paper", one_axis=False,
    )  # fmt: skip


def usual_text(sizes: TreeSizes) -> str:
    """What isn't varied."""
    return (
        f"SAL({sizes.rows:,}, {sizes.n_quasi}), k = {sizes.k}, α = {sizes.alpha:g}, "
        f"{sizes.samples:,} samples, but for what is varied."
    )


def curves(found: Mapping[str, Sequence[Found]], kind: str) -> tuple[Curve, ...]:
    """A measure of all methods."""
    return tuple(Curve(LABELS[name], cells) for name, cells in _readings(found, kind).items())


def _readings(found: Mapping[str, Sequence[Found]], kind: str) -> dict[str, list[Reading]]:
    return {name: [getattr(one, kind) for one in cells] for name, cells in found.items()}
