"""What a figure is: panels of curves, and claims of the paper that the numbers bear out or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np

from benchmarks.figures.sweep import Cell

__all__ = ["Claim", "Curve", "Figure", "Measured", "Panel", "Reading", "below", "rises"]

Verdict = Literal[
    "holds", "holds in general", "doesn't hold", "inconclusive", "met", "missed"
]  # fmt: skip


#: From here on a reading has no digits after its point.
LARGE = 1_000


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, or a target, and what the numbers here say to it."""

    paper: str
    verdict: Verdict
    evidence: str


class Measured(Protocol):
    """Something measured with several seeds."""

    @property
    def mean(self) -> float: ...
    @property
    def spread(self) -> float: ...
    @property
    def least(self) -> float: ...
    @property
    def most(self) -> float: ...
    def tell(self, value: float) -> str: ...


@dataclass(frozen=True)
class Reading:
    """Any number, measured with several seeds.

    >>> str(Reading((1.0, 2.0, 3.0), digits=1))
    '2.0 ± 1.0'
    >>> str(Reading((2.0,), digits=1))  # one seed has no spread to tell
    '2.0'
    """

    values: tuple[float, ...]
    digits: int = 3

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def spread(self) -> float:
        """Half of the distance between the least and the largest."""
        return (self.most - self.least) / 2

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def most(self) -> float:
        return max(self.values)

    def tell(self, value: float) -> str:
        """A value of this kind in figures."""
        return f"{value:,.{0 if self.mean >= LARGE else self.digits}f}"

    def __str__(self) -> str:
        text = self.tell(self.mean)
        return f"{text} ± {self.tell(self.spread)}" if len(self.values) > 1 else text


@dataclass(frozen=True)
class Curve:
    """One line of a panel: a cell for each x of the panel."""

    label: str
    cells: Sequence[Measured]


@dataclass(frozen=True)
class Panel:
    """One set of axes."""

    title: str
    x_label: str
    xs: tuple[float, ...]
    curves: tuple[Curve, ...]
    what: str = "Mean loss of published rows"
    axis: str = "mean information loss (0 to 1)"
    log: bool = False
    #: Measures that differ by orders of magnitude.
    log_y: bool = False

    @property
    def losses(self) -> list[Cell]:
        """All cells that tell losses, of published rows and of suppressed ones."""
        return [cell for curve in self.curves for cell in curve.cells if isinstance(cell, Cell)]

    @property
    def suppressed(self) -> float:
        """The largest share of suppressed rows in any cell."""
        return max(cell.suppressed for cell in self.losses)


@dataclass(frozen=True)
class Figure:
    """A figure of a paper, measured here."""

    name: str
    title: str
    setting: str
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]
    page: str = "castle"
    source: str = "the thesis"
    one_axis: bool = True
    heading: str = ""

    def __str__(self) -> str:
        return f"{self.heading or f'Figure {self.name}'}: {self.title}"


def rises(cells: Sequence[Measured], *, falls: bool = False) -> tuple[Verdict, str]:
    """Whether a measure grows from cell to cell (or falls), and in numbers how.

    A step counts against it if it goes the other way by more than the spread of both of its ends;
    the whole must go the right way by more than that.

    >>> from benchmarks.figures.sweep import Lost
    >>> steps = [Cell((Lost(x, x, 0.0),)) for x in (0.1, 0.3, 0.2, 0.4)]
    >>> rises(steps)
    ('holds in general', 'from 0.100 to 0.400; 1 of 3 steps goes the other way')
    >>> rises(steps, falls=True)[0]
    "doesn't hold"
    """
    sign = -1 if falls else 1
    first, last = cells[0], cells[-1]
    against = sum(
        sign * (after.mean - before.mean) < -(before.spread + after.spread)
        for before, after in pairwise(cells)
    )
    evidence = f"from {first.tell(first.mean)} to {last.tell(last.mean)}"
    if against:
        go = "goes" if against == 1 else "go"
        evidence += f"; {against} of {len(cells) - 1} steps {go} the other way"
    gain = sign * (last.mean - first.mean)
    noise = first.spread + last.spread
    if gain <= noise:
        return ("doesn't hold" if gain < -noise else "inconclusive"), evidence
    return ("holds in general" if against else "holds"), evidence


def below(
    ours: Sequence[Measured], others: Sequence[Measured], where: Sequence[str] = ()
) -> tuple[Verdict, str]:
    """Whether each of ours is less than the other in the same place, and in how many it is.

    As everywhere, a difference counts if it is larger than both spreads together. If the places
    have names, those are told where it isn't less.

    >>> def readings(*values):
    ...     return [Reading((value,)) for value in values]
    >>> below(readings(0.1, 0.2), readings(0.2, 0.4))
    ('holds', 'less in 2 of 2 (0.50 to 0.50 times)')
    >>> below(readings(0.1, 0.1, 0.3), readings(0.2, 0.2, 0.2), ["a", "b", "c"])
    ('holds in general', 'less in 2 of 3, more in 1 (0.50 to 1.50 times); more at c')
    """
    pairs = list(zip(ours, others, strict=True))
    alike = [abs(one.mean - other.mean) <= one.spread + other.spread for one, other in pairs]
    is_less = [one.mean < other.mean for one, other in pairs]
    less = [i for i in range(len(pairs)) if is_less[i] and not alike[i]]
    more = [i for i in range(len(pairs)) if not is_less[i] and not alike[i]]
    within = [i for i in range(len(pairs)) if alike[i]]
    evidence = f"less in {len(less)} of {len(pairs)}"
    if more:
        evidence += f", more in {len(more)}"
    if within:
        evidence += f", within the spreads in {len(within)}"
    ratios = [one.mean / other.mean for one, other in pairs if other.mean]
    if ratios:
        evidence += f" ({min(ratios):.2f} to {max(ratios):.2f} times)"
    for words, places in (("more at", more), ("within the spreads at", within)):
        if where and places:
            evidence += f"; {words} {', '.join(dict.fromkeys(where[i] for i in places))}"
    if len(less) == len(pairs):
        return "holds", evidence
    if 2 * len(less) > len(pairs):
        return "holds in general", evidence
    return ("doesn't hold" if 2 * len(more) > len(pairs) else "inconclusive"), evidence
