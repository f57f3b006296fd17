"""Which sides the rows of each group need, beside those of its published box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.audit.evidence import Evidence
from shoal.audit.trace import GROUP, Trace
from shoal.spec.hierarchy import Hierarchy, Range

__all__ = ["Needed", "needed_sides"]

_SLACK = 1e-9
Floats = NDArray[np.float64]
#: The lower and the upper end of one side, by group; NaN where there is none.
Ends = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, repr=False)
class Needed:
    """The published sides of groups, and those that the rows need.

    Parameters
    ----------
    n_rows
        Of each group: how many rows were released together.
    sides
        By attribute: the published ends, and the needed ones.
    n_wider
        How many groups have a side that is wider than needed.
    """

    n_rows: NDArray[np.int64]
    sides: dict[str, tuple[Ends, Ends]]
    n_wider: int

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return len(self.n_rows)


def needed_sides(evidence: Evidence, trace: Trace) -> Needed | None:
    """Return the sides of groups, or None if the original isn't known.

    Where a missing value is any value, a row that lacks it needs the whole domain. A midpoint
    doesn't say how wide a side is, so that numbers aren't compared.
    """
    if evidence.original is None:
        return None
    lines, positions = evidence.originals
    lines = lines[positions >= 0]
    chosen = np.flatnonzero(trace.outcome[lines] == GROUP)
    seq = trace.seq[lines[chosen]]
    number, group = np.unique(trace.group[lines[chosen]], return_inverse=True)
    n_rows = np.bincount(group, minlength=len(number))
    is_wider = np.zeros(len(number), dtype=np.bool_)
    sides: dict[str, tuple[Ends, Ends]] = {}
    domains = {attribute.name: attribute.sided for attribute in evidence.schema.quasi}
    for side in evidence.sides:
        domain = domains[side.name]
        if isinstance(domain, Range) and evidence.numeric == "midpoint":
            continue
        values = evidence.published_values[side.name][chosen]
        label = _ends(side.lo[seq], side.hi[seq], group, len(number))
        least, most = _ends(values, values, group, len(number))
        if isinstance(domain, Hierarchy):
            need = _covered(domain, least, most)
        else:
            need = _snapped(domain, least, label[0], -1), _snapped(domain, most, label[1], 1)
        if evidence.policy.missing == "extended":
            lacks = np.bincount(group[np.isnan(values)], minlength=len(number)) > 0
            need = np.where(lacks, label[0], need[0]), np.where(lacks, label[1], need[1])
        sides[side.name] = label, need
        is_wider |= (need[0] > label[0]) | (need[1] < label[1])
    return Needed(n_rows, sides, int(np.count_nonzero(is_wider)))


def _ends(lo: Floats, hi: Floats, group: NDArray[np.int64], n_groups: int) -> Ends:
    """Return the least and the largest known value of each group; NaN where there is none."""
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(n_groups))
    if not n_groups:
        return np.empty(0), np.empty(0)
    return np.fmin.reduceat(lo[order], starts), np.fmax.reduceat(hi[order], starts)


def _covered(tree: Hierarchy, least: Floats, most: Floats) -> Ends:
    """Return the interval of the lowest node above the codes of each group."""
    known = ~(np.isnan(least) | np.isnan(most))
    lo, hi = np.full(len(least), np.nan), np.full(len(most), np.nan)
    pairs, which = np.unique(
        np.column_stack((least[known], most[known])).astype(np.int64), axis=0, return_inverse=True
    )
    nodes = [tree.cover(int(low), int(high)) for low, high in pairs]
    ends = np.array([(tree.lows[node], tree.highs[node]) for node in nodes], dtype=np.float64)
    lo[known], hi[known] = ends.reshape(-1, 2)[which.ravel()].T
    return lo, hi


def _snapped(domain: Range, value: Floats, label: Floats, way: int) -> Floats:
    """Return the ends that values need: the next multiple of the step, or the published end.

    ``way`` is -1 for lower ends and 1 for upper ones.
    """
    if domain.step is None:
        need = value
    else:
        steps = value / domain.step
        near = np.round(steps)
        away = np.floor(steps) if way < 0 else np.ceil(steps)
        # A value that is a multiple but for rounding is its own end.
        on_step = np.abs(steps - near) <= _SLACK * np.maximum(1.0, np.abs(steps))
        need = np.where(on_step, near, away) * domain.step
    need = np.clip(need, domain.lo, domain.hi)
    same = np.abs(need - label) <= _SLACK * np.maximum(1.0, np.abs(label))
    return np.where(same, label, need)
