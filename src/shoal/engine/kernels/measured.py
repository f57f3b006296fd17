"""Check the criteria that are measured against a window: t-closeness, beta-likeness, disclosure.

The window itself meets all of them, and a union of groups that meet one meets it too (thesis, §3.6
and Lemma 4.1): so merging always succeeds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.distances import euclidean, jensen_shannon, variational
from shoal.engine.kernels.emd import Trees, ordered_emd, tree_emd
from shoal.engine.kernels.likeness import (
    SLACK,
    like,
    like_in_ranges,
    like_in_tree,
    numbers_of,
    undisclosed,
)
from shoal.engine.kernels.window_counts import WindowCounts, counted

__all__ = ["MEASURE", "Measures", "all_measured", "emd_of", "keeps"]

#: The kinds of criteria: those of `shoal.spec.criteria`; by the Earth Mover's Distance closeness is
#: of two kinds.
ORDERED, TREE, BASIC, ENHANCED, SEMANTIC, RANGES, DISCLOSURE = range(7)
EUCLIDEAN, VARIATIONAL, JENSEN_SHANNON = range(7, 10)
#: One entry for each criterion and sensitive attribute: ``bound`` is t, beta or delta.
MEASURE = np.dtype(
    [
        ("kind", "i8"),
        ("attribute", "i8"),
        ("bound", "f8"),
        ("level", "i8"),
        ("epsilon", "f8"),
        ("relative", "?"),
    ]
)


class Measures(NamedTuple):
    """The measured criteria, and the hierarchies of the sensitive attributes."""

    asked: Records
    trees: Trees


@kernel
def _emd(
    measures: Measures, i: int, values: Ints, counts: Ints, n: int, of: Ints, n_all: int
) -> tuple[float, float]:
    if measures.asked["kind"][i] == ORDERED:
        return ordered_emd(counts, n, of, n_all)
    j = measures.asked["attribute"][i]
    return tree_emd(measures.trees, j, values, counts, n, of, n_all)


@kernel
def emd_of(measures: Measures, window: WindowCounts, i: int, sensitive: Ints) -> float:
    """Return the distance of some rows from the window, for the i-th measure, a closeness."""
    j = measures.asked["attribute"][i]
    counts = counted(window, j, sensitive)
    if len(counts) == 0:
        return np.inf
    values, of = window.values[j, : window.n[j]], window.counts[j, : window.n[j]]
    moved, whole = _emd(measures, i, values, counts, len(sensitive), of, window.n_rows[0])
    return moved / whole


@on_demand
def _like_in_ranges(
    measures: Measures, i: int, values: Ints, counts: Ints, n: int, of: Ints, n_all: int
) -> bool:
    asked = measures.asked[i]
    return like_in_ranges(
        numbers_of(values),
        counts,
        n,
        of,
        n_all,
        asked["bound"],
        asked["epsilon"],
        asked["relative"],
    )


@on_demand
def _share_distance(kind: int, counts: Ints, n: int, of: Ints, n_all: int) -> float:
    """Return a distance for which all values are alike."""
    if kind == EUCLIDEAN:
        return euclidean(counts, n, of, n_all)
    if kind == VARIATIONAL:
        return variational(counts, n, of, n_all)
    return jensen_shannon(counts, n, of, n_all)


@kernel
def keeps(measures: Measures, window: WindowCounts, i: int, counts: Ints, n: int) -> bool:
    """Whether n rows with these counts of each value of the window meet the i-th measure."""
    asked = measures.asked[i]
    kind, j, bound = asked["kind"], asked["attribute"], asked["bound"]
    values, of = window.values[j, : window.n[j]], window.counts[j, : window.n[j]]
    n_all = window.n_rows[0]
    if kind in (ORDERED, TREE):
        moved, whole = _emd(measures, i, values, counts, n, of, n_all)
        return moved <= bound * whole * (1.0 + SLACK)
    if kind in (BASIC, ENHANCED):
        return like(counts, n, of, n_all, bound, kind == ENHANCED)
    if kind == SEMANTIC:
        return like_in_tree(measures.trees, j, values, counts, n, of, n_all, bound, asked["level"])
    if kind == RANGES:
        return _like_in_ranges(measures, i, values, counts, n, of, n_all)
    if kind >= EUCLIDEAN:
        return _share_distance(kind, counts, n, of, n_all) <= bound * (1.0 + SLACK)
    return undisclosed(counts, n, of, n_all, bound)


@on_demand
def all_measured(measures: Measures, window: WindowCounts, sensitive: Ints) -> bool:
    """Whether rows with these sensitive codes meet all measures."""
    before, counts = -1, np.empty(0, np.int64)
    for i in range(len(measures.asked)):
        j = measures.asked["attribute"][i]
        if j != before:
            before, counts = j, counted(window, j, sensitive)
            if len(counts) == 0:
                return False
        if not keeps(measures, window, i, counts, len(sensitive)):
            return False
    return True
