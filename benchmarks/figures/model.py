"""What a figure is: panels of curves, and claims of the paper that the numbers bear out or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from benchmarks.figures.sweep import Cell

__all__ = ["Claim", "Curve", "Figure", "Panel", "rises"]

Verdict = Literal["holds", "holds in general", "doesn't hold", "can't be told"]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what the numbers here say to it."""

    paper: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Curve:
    """One line of a panel: a cell for each x of the panel."""

    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Panel:
    """One set of axes."""

    title: str
    x_label: str
    xs: tuple[float, ...]
    curves: tuple[Curve, ...]

    @property
    def suppressed(self) -> float:
        """The largest share of suppressed rows in any cell."""
        return max(cell.suppressed for curve in self.curves for cell in curve.cells)


@dataclass(frozen=True)
class Figure:
    """A figure of a paper, measured here."""

    name: str
    title: str
    setting: str
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]


def rises(cells: Sequence[Cell], *, falls: bool = False) -> tuple[Verdict, str]:
    """Whether the loss grows from cell to cell (or falls), and in numbers how.

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
    evidence = f"from {first.mean:.3f} to {last.mean:.3f}"
    if against:
        go = "goes" if against == 1 else "go"
        evidence += f"; {against} of {len(cells) - 1} steps {go} the other way"
    gain = sign * (last.mean - first.mean)
    noise = first.spread + last.spread
    if gain <= noise:
        return ("doesn't hold" if gain < -noise else "can't be told"), evidence
    return ("holds in general" if against else "holds"), evidence
