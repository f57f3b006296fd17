"""t-closeness: the Earth Mover's Distance of a group from its window (thesis, §3.2)."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.audit.criteria.measured import SLACK, Counts, Judge, Measure, check_attributes
from shoal.audit.criteria.registry import checks
from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict
from shoal.spec.hierarchy import Domain, Hierarchy
from shoal.spec.policy import TCloseness

__all__ = ["check", "ordered", "tree"]

#: Whole numbers of any length, where 64 bits might not be enough.
_Wholes: TypeAlias = NDArray[Any]
_ROOM = 2**62


@checks(TCloseness)
def check(evidence: Evidence, criterion: TCloseness) -> list[Verdict]:
    """Compare the distance of every group from its window with t."""
    t = criterion.t

    def judge_of(domain: Domain | None, places: NDArray[np.float64]) -> Judge:
        distance = ordered
        if isinstance(domain, Hierarchy):
            distance = partial(tree, _Tree(domain, places))

        def judge(inside: Counts, beside: Counts) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
            found = distance(inside, beside)
            return found <= t * (1.0 + SLACK), found

        return judge

    measure = Measure("closeness", ("t", t), f"farther than {t:g} from the window", judge_of)
    return check_attributes(evidence, criterion, measure)


def ordered(inside: Counts, beside: Counts) -> NDArray[np.float64]:
    """Return the distances for ordered values, whose distance is the number of values between them.

    >>> ordered(np.array([[2, 0, 0]]), np.array([[1, 1, 1]])).tolist()
    [0.5]
    """
    extra, whole = _extra(inside, beside, most=inside.shape[1])
    there = beside > 0
    work = np.where(there, np.abs(np.cumsum(extra, axis=1)), 0).sum(axis=1)
    # A single value can't be moved.
    apart = np.maximum(np.count_nonzero(there, axis=1) - 1, 1)
    return np.asarray(work / (whole * apart), dtype=np.float64)


class _Tree:
    """The nodes of a hierarchy in which some leaves occur, for the distance."""

    def __init__(self, hierarchy: Hierarchy, places: NDArray[np.float64]) -> None:
        parents = np.array(hierarchy.parents)
        heights = np.zeros(len(parents), dtype=np.int64)
        for node in range(len(parents) - 1, 0, -1):
            above = parents[node]
            heights[above] = max(heights[above], heights[node] + 1)
        first = np.searchsorted(places, hierarchy.lows)
        stop = np.searchsorted(places, hierarchy.highs, side="right")
        # Nothing moves to or from a node without any of the leaves.
        nodes = np.flatnonzero(stop > first)
        nodes = nodes[nodes > 0]
        nodes = nodes[np.argsort(parents[nodes], kind="stable")]
        self.first, self.stop = first[nodes], stop[nodes]
        above, self.starts = np.unique(parents[nodes], return_index=True)
        self.heights = heights[above]
        self.height = int(heights[0])


def tree(known: _Tree, inside: Counts, beside: Counts) -> NDArray[np.float64]:
    """Return the distances for categories: the height of the lowest common ancestor of two."""
    if not len(known.starts):
        return np.zeros(len(inside))
    extra, whole = _extra(inside, beside, most=known.height)
    total = np.zeros((len(extra), extra.shape[1] + 1), dtype=extra.dtype)
    np.cumsum(extra, axis=1, out=total[:, 1:])
    of_node = total[:, known.stop] - total[:, known.first]
    over = np.add.reduceat(np.maximum(of_node, 0), known.starts, axis=1)
    under = np.add.reduceat(np.maximum(-of_node, 0), known.starts, axis=1)
    work = (known.heights * np.minimum(over, under)).sum(axis=1)
    return np.asarray(work / (whole * known.height), dtype=np.float64)


def _extra(inside: Counts, beside: Counts, *, most: int) -> tuple[_Wholes, _Wholes]:
    """Return the shares in groups minus those in windows, as numerators and a common denominator.

    ``most`` is the largest factor that a sum of them will be multiplied by.
    """
    n_inside, n_beside = inside.sum(axis=1), beside.sum(axis=1)
    largest = int(n_inside.max(initial=0)) * int(n_beside.max(initial=0)) * max(most, 1)
    wide: Any = np.int64 if largest < _ROOM else object
    n_inside, n_beside = n_inside.astype(wide), n_beside.astype(wide)
    extra = inside * n_beside[:, None] - beside * n_inside[:, None]
    return extra, n_inside * n_beside
