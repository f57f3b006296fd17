"""Take the edges of boxes for people's exact values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.base import Attack
from shoal.attacks.predicates import isolates
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share
from shoal.spec.hierarchy import Range
from shoal.spec.schema import Quasi

__all__ = ["Edges"]

#: The lower and the upper bounds of sides.
Side: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


class Edges(Attack):
    """Take the edge of a box for the exact value of one of its people.

    - **Knows**: the release, and that a box is the smallest that holds its rows.
    - **Does**: takes a box, and of one number only its lower or upper edge, to the precision of its
      step. A success is exactly one person of the original there: their value is published as it
      is. Each attempt is another box.
    - **Bound**: none: k promises nothing about values. A ``step`` that is coarser than what is
      known about people makes an edge a place where many are.
    - **Baseline**: a value inside the same box, drawn at random. What edges add is the difference.
    """

    name: ClassVar[str] = "edges"
    has_control: ClassVar[bool] = False

    def misfit(self, setting: Setting) -> str | None:
        """Return why no box has edges, or None."""
        if (reason := super().misfit(setting)) is not None:
            return reason
        if not any(isinstance(each.domain, Range) for each in setting.schema.quasi):
            return "no quasi attribute is a number"
        return "midpoints have no edges" if setting.numeric == "midpoint" else None

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Try the edges of each number."""
        for d, attribute in enumerate(setting.schema.quasi):
            if not isinstance(attribute.domain, Range):
                continue
            random = setting.random(f"{self.name} {attribute.name}")
            step = attribute.domain.step or 0.0
            length = setting.boxes.hi[:, d] - setting.boxes.lo[:, d]
            # Between the edges there must be a value to compare with.
            wide = np.flatnonzero(np.isfinite(length) & (length > 2 * step))
            chosen = random.choice(wide, min(setting.n_targets, len(wide)), replace=False)
            lower = random.random(len(chosen)) < 0.5
            edge = _edge(setting, chosen, d, step, lower)
            inside = _inside(setting, chosen, d, step, random)
            at_edge, at_inside = _isolated(setting, chosen, d, edge, inside)
            yield AttackResult(
                self.name,
                f"boxes; edges of {attribute.name}",
                Share(int(at_edge.sum()), len(chosen)),
                baseline=float(at_inside.mean()) if len(chosen) else None,
                notes=_notes(attribute),
            )


def _edge(
    setting: Setting, chosen: NDArray[np.int64], d: int, step: float, lower: NDArray[np.bool_]
) -> Side:
    """Return the values that were rounded to an edge: down to the lower, up to the upper one."""
    lo, hi = setting.boxes.lo[chosen, d], setting.boxes.hi[chosen, d]
    begin = np.where(lower, lo, np.nextafter(hi - step, np.inf) if step else hi)
    end = np.where(lower, np.nextafter(lo + step, -np.inf) if step else lo, hi)
    return begin, end


def _inside(
    setting: Setting, chosen: NDArray[np.int64], d: int, step: float, random: np.random.Generator
) -> Side:
    """Return a step inside of each box, or a value where there are no steps."""
    lo, hi = setting.boxes.lo[chosen, d], setting.boxes.hi[chosen, d]
    share = random.random(len(chosen))
    if not step:
        value = lo + share * (hi - lo)
        return value, value
    n_steps = np.maximum(1, np.round((hi - lo) / step) - 1)
    begin = lo + step * (1 + np.floor(share * n_steps))
    return begin, np.nextafter(begin + step, -np.inf)


def _isolated(
    setting: Setting, chosen: NDArray[np.int64], d: int, *sides: Side
) -> Iterator[NDArray[np.bool_]]:
    """Yield for each kind of side which boxes with this side select exactly one person."""
    lo, hi = (
        np.tile(each[chosen], (len(sides), 1)) for each in (setting.boxes.lo, setting.boxes.hi)
    )
    lo[:, d], hi[:, d] = np.concatenate(sides, axis=1)
    # Who lacks the value isn't at an edge of it, whatever else a missing value may be.
    yield from isolates(setting, lo, hi, valued=d).reshape(len(sides), len(chosen))


def _notes(attribute: Quasi) -> tuple[str, ...]:
    domain = attribute.domain
    if isinstance(domain, Range) and domain.step is None:
        return (f"{attribute.name} has no step: each edge is somebody's exact value",)
    return ()
