"""What the figures share: panels for both bounds, and claims that are judged for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from benchmarks.figures.axis import Axis
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, Verdict
from benchmarks.figures.trees.settings import Bound, TreeSizes
from benchmarks.figures.trees.trial import LABELS, Found, Setting
from benchmarks.figures.trees.words import joint

__all__ = ["Kind", "Readings", "claims_of", "figure", "panel", "readings", "usual_text"]

Kind: TypeAlias = Literal["cost", "penalty", "delay", "seconds"]
#: A measure of some methods along an axis.
Readings: TypeAlias = dict[str, list[Reading]]

#: What is measured, and the words on its axis.
_WORDS: dict[Kind, tuple[str, str]] = {
    "cost": ("Information loss, cost(T)", "cost(T), sum over attributes"),
    "penalty": ("Uncertainty penalty, loss(T)", "loss(T), sum over attributes"),
    "delay": ("Mean delay in rows", "mean delay, rows"),
    "seconds": ("Processor time of the engine in seconds", "seconds"),
}
#: From here on the largest is so much more than the least that an axis shows orders of magnitude.
_FAR = 50.0


def readings(found: Mapping[str, Sequence[Found]], kind: Kind) -> Readings:
    """A measure of all methods."""
    return {name: [getattr(one, kind) for one in cells] for name, cells in found.items()}


def panel(
    bound: Bound, axis: Axis[Setting], found: Mapping[str, Sequence[Found]], kind: Kind
) -> Panel:
    """One measure under one bound."""
    of = readings(found, kind)
    means = [cell.mean for cells in of.values() for cell in cells]
    curves = tuple(Curve(LABELS[name], cells) for name, cells in of.items())
    far = kind == "cost" and max(means) > _FAR * min(means)
    return Panel(str(bound), axis.x_label, axis.xs, curves, *_WORDS[kind], log_y=far)


def claims_of(
    sentence: str,
    of: Mapping[Bound, Readings],
    names: Sequence[str],
    judged: Callable[[Readings, str], tuple[Verdict, str]],
) -> list[Claim]:
    """A sentence about some methods, judged under each bound."""
    return [
        Claim(f"{sentence} ({bound}).", *joint({LABELS[one]: judged(some, one) for one in names}))
        for bound, some in of.items()
    ]


def usual_text(sizes: TreeSizes) -> str:
    """What isn't varied."""
    return (
        f"SAL({sizes.rows:,}, {sizes.n_quasi}), k = {sizes.k}, α = {sizes.alpha:g}, "
        f"{sizes.samples:,} samples, except for the varied parameter."
    )


def figure(
    name: str, title: str, setting: str, panels: Sequence[Panel], claims: Sequence[Claim]
) -> Figure:
    """A figure of this page."""
    return Figure(
        name, title, setting, tuple(panels), tuple(claims), page="trees", source="the paper",
        one_axis=False,
    )  # fmt: skip
