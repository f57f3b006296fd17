"""t-closeness: the distance of a group from its window, in four forms (thesis, §3.2 and §3.6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.audit.criteria.measured import SLACK, Counts, Judge, Measure, check_attributes
from shoal.audit.criteria.registry import checks
from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict
from shoal.spec.hierarchy import Domain, Hierarchy
from shoal.spec.policy import (
    Closeness,
    EuclideanCloseness,
    JensenShannonCloseness,
    TCloseness,
    VariationalCloseness,
)

__all__ = ["check", "euclidean", "jensen_shannon", "ordered", "tree", "variational"]

#: Takes the counts of groups and windows.
_Distance: TypeAlias = Callable[[Counts, Counts], NDArray[np.float64]]
#: Whole numbers of any length, where 64 bits might not be enough.
_Wholes: TypeAlias = NDArray[Any]
_ROOM = 2**62
#: How far off the sum of a divergence may be: its terms nearly cancel out where shares are equal.
_ROUNDING = 1e-14


@checks(TCloseness)
def check(evidence: Evidence, criterion: TCloseness) -> list[Verdict]:
    """Compare the Earth Mover's Distance of every group from its window with t."""

    def distance_of(domain: Domain | None, places: NDArray[np.float64]) -> _Distance:
        return partial(tree, _Tree(domain, places)) if isinstance(domain, Hierarchy) else ordered

    return _check(evidence, criterion, distance_of)


@checks(EuclideanCloseness)
def check_euclidean(evidence: Evidence, criterion: EuclideanCloseness) -> list[Verdict]:
    """Compare the Euclidean distance of every group from its window with t."""
    return _check(evidence, criterion, lambda domain, places: euclidean)


@checks(VariationalCloseness)
def check_variational(evidence: Evidence, criterion: VariationalCloseness) -> list[Verdict]:
    """Compare the variational distance of every group from its window with t."""
    return _check(evidence, criterion, lambda domain, places: variational)


@checks(JensenShannonCloseness)
def check_jensen_shannon(evidence: Evidence, criterion: JensenShannonCloseness) -> list[Verdict]:
    """Compare the root of the divergence of every group from its window with t."""
    return _check(evidence, criterion, lambda domain, places: jensen_shannon, _ROUNDING)


def _check(
    evidence: Evidence,
    criterion: Closeness,
    distance_of: Callable[[Domain | None, NDArray[np.float64]], _Distance],
    rounding: float = 0.0,
) -> list[Verdict]:
    """Compare distances with t; their squares may be off by ``rounding``."""
    t = criterion.t
    most = max(t * (1.0 + SLACK), math.sqrt(t**2 + rounding))

    def judge_of(domain: Domain | None, places: NDArray[np.float64]) -> Judge:
        distance = distance_of(domain, places)

        def judge(inside: Counts, beside: Counts) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
            found = distance(inside, beside)
            return found <= most, found

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


def euclidean(inside: Counts, beside: Counts) -> NDArray[np.float64]:
    """Return the Euclidean distances of the shares.

    >>> euclidean(np.array([[1, 0]]), np.array([[1, 1]])).round(4).tolist()
    [0.7071]
    """
    gaps = _shares(inside) - _shares(beside)
    return np.asarray(np.sqrt((gaps**2).sum(axis=1)), dtype=np.float64)


def variational(inside: Counts, beside: Counts) -> NDArray[np.float64]:
    """Return half of the sums of all differences of shares.

    >>> variational(np.array([[1, 0]]), np.array([[1, 1]])).tolist()
    [0.5]
    """
    extra, whole = _extra(inside, beside, most=1)
    return np.asarray(np.maximum(extra, 0).sum(axis=1) / whole, dtype=np.float64)


def jensen_shannon(inside: Counts, beside: Counts) -> NDArray[np.float64]:
    """Return the roots of the divergences in bits: of both sides from the middle of the two.

    >>> jensen_shannon(np.array([[3, 0]]), np.array([[0, 5]])).tolist()
    [1.0]
    """
    q, p = _shares(inside), _shares(beside)
    middle = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(one > 0, one * np.log2(one / middle), 0.0) for one in (p, q)]
    return np.asarray(np.sqrt(np.maximum(0.0, (terms[0] + terms[1]).sum(axis=1) / 2)))


def _shares(counts: Counts) -> NDArray[np.float64]:
    return np.asarray(counts / counts.sum(axis=1, keepdims=True), dtype=np.float64)


def _extra(inside: Counts, beside: Counts, *, most: int) -> tuple[_Wholes, _Wholes]:
    """Return the shares in groups minus those in windows, as numerators and a common denominator.

    ``most`` is the largest factor that a sum of them will be multiplied by.
    """
    n_inside, n_beside = inside.sum(axis=1), beside.sum(axis=1)
    largest = int(n_inside.max()) * int(n_beside.max()) * most
    wide: Any = np.int64 if largest < _ROOM else object
    n_inside, n_beside = n_inside.astype(wide), n_beside.astype(wide)
    extra = inside * n_beside[:, None] - beside * n_inside[:, None]
    return extra, n_inside * n_beside
