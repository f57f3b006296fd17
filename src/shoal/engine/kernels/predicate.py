"""The privacy predicate: whether a set of rows may be published as one group.

Every algorithm uses this one. (The audit has its own, written independently.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels.array_tools import by_first, column, distinct, in_order, tally
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.measured import Measures, all_measured
from shoal.engine.kernels.window_counts import WindowCounts

__all__ = [
    "Limits",
    "any_diversity",
    "any_measured",
    "breakable",
    "count_subjects",
    "match",
    "meets",
    "needed",
    "varied",
]


#: One entry for each sensitive attribute. ``diverse`` is the l of every form of l-diversity (1:
#: none), ``entropy`` the l of the entropy form (0: none), ``c`` and ``l`` those of the recursive
#: form (c = 0: none).
DIVERSITY = np.dtype([("diverse", "i8"), ("entropy", "f8"), ("c", "f8"), ("l", "i8")])


class Limits(NamedTuple):
    """What a policy requires of a group, as numbers, and the window that it is measured against.

    The window is part of the state of a run: the caller of a kernel puts it into the limits.
    """

    k: int
    diversity: Records
    measures: Measures
    window: WindowCounts


@kernel
def any_diversity(limits: Limits) -> bool:
    """Whether any form of l-diversity is required."""
    for j in range(len(limits.diversity)):
        asked = limits.diversity[j]
        if asked["diverse"] > 1 or asked["entropy"] > 0.0 or asked["c"] > 0.0:
            return True
    return False


@kernel
def any_measured(limits: Limits) -> bool:
    """Whether any criterion is measured against a window."""
    return len(limits.measures.asked) > 0


@kernel
def breakable(limits: Limits) -> bool:
    """Whether one more row can break a criterion: a group can get less even, never less varied."""
    if any_measured(limits):
        return True
    for j in range(len(limits.diversity)):
        if limits.diversity["entropy"][j] > 0.0 or limits.diversity["c"][j] > 0.0:
            return True
    return False


@kernel
def needed(limits: Limits) -> int:
    """Return the fewest subjects with which a group can meet the limits."""
    most = limits.k
    for j in range(len(limits.diversity)):
        if limits.diversity["diverse"][j] > most:
            most = limits.diversity["diverse"][j]
    return most


@kernel
def count_subjects(subjects: Ints) -> int:
    """Return the number of different subjects."""
    return distinct(by_first(subjects))


@kernel
def _pairs(subject: Ints, value: Ints) -> tuple[Ints, Ints]:
    """Return the distinct (subject, value) pairs: where each subject's begin, and their values.

    Subjects and values are numbers given by `by_first`; the values of a subject come in the order
    in which they first appeared with it.
    """
    n = len(subject)
    n_subjects, n_values = distinct(subject), distinct(value)
    start = np.zeros(n_subjects + 1, np.int64)
    for i in range(n):
        start[subject[i] + 1] += 1
    for s in range(n_subjects):
        start[s + 1] += start[s]
    rows = np.empty(n, np.int64)
    fill = start[:-1].copy()
    for i in range(n):
        rows[fill[subject[i]]] = value[i]
        fill[subject[i]] += 1
    seen = np.full(n_values, -1, np.int64)
    kept = 0
    begin = 0
    for s in range(n_subjects):
        end = start[s + 1]
        start[s] = kept
        for i in range(begin, end):
            if seen[rows[i]] != s:
                seen[rows[i]] = s
                rows[kept] = rows[i]
                kept += 1
        begin = end
    start[n_subjects] = kept
    return start, rows[:kept]


@kernel
def match(subject: Ints, value: Ints, enough: int) -> Ints:
    """Pair different subjects with different values that they have, as many as possible.

    Return the subject paired with each value, or -1. Stop when ``enough`` pairs are found.
    Augmenting paths (Kuhn), depth first, without recursion.
    """
    start, values = _pairs(subject, value)
    n_subjects = len(start) - 1
    n_values = distinct(value)
    partner = np.full(n_values, -1, np.int64)
    visited = np.full(n_values, -1, np.int64)
    path = np.empty(n_subjects + 1, np.int64)
    edge = np.empty(n_subjects + 1, np.int64)
    found = 0
    for s in range(n_subjects):
        if found >= enough:
            break
        depth = 0
        path[0] = s
        edge[0] = start[s]
        while depth >= 0:
            if edge[depth] == start[path[depth] + 1]:
                depth -= 1
                continue
            v = values[edge[depth]]
            edge[depth] += 1
            if visited[v] == s:
                continue
            visited[v] = s
            if partner[v] < 0:
                for step in range(depth + 1):
                    partner[values[edge[step] - 1]] = path[step]
                found += 1
                break
            depth += 1
            path[depth] = partner[v]
            edge[depth] = start[path[depth]]
    return partner


@on_demand
def _even_enough(counts: Ints, entropy: float, c: float, l: int) -> bool:  # noqa: E741
    """Whether counts of l values or more meet the entropy and the recursive form, if required."""
    total = 0
    for count in counts:
        total += count
    if entropy > 0.0:
        h = 0.0
        for count in counts:
            p = count / total
            h -= p * math.log(p)
        # A tie at exactly log(l) must not fail by the last bit of a sum of logarithms.
        if h < math.log(entropy) - 1e-12:
            return False
    if c > 0.0:
        # The tail is what remains when the l - 1 largest counts are taken away.
        ascending = in_order(counts)
        if not ascending[-1] < c * ascending[: len(ascending) - l + 1].sum():
            return False
    return True


@kernel
def _varied(limits: Limits, j: int, subject: Ints, value: Ints) -> bool:
    """Whether there are enough people, each with a different value."""
    enough = limits.diversity["diverse"][j]
    if enough <= 1:
        return True
    found = 0
    for partner in match(subject, value, enough):
        if partner >= 0:
            found += 1
    return found >= enough


@kernel
def varied(limits: Limits, subjects: Ints, sensitive: Ints) -> bool:
    """Whether rows have the different values that every form of diversity requires.

    If all rows together don't, no part of them does.
    """
    subject = by_first(subjects)
    for j in range(sensitive.shape[1]):
        if not _varied(limits, j, subject, by_first(column(sensitive, j))):
            return False
    return True


@on_demand
def _diverse(limits: Limits, j: int, subject: Ints, value: Ints) -> bool:
    asked = limits.diversity[j]
    if not _varied(limits, j, subject, value):
        return False
    if asked["entropy"] > 0.0 or asked["c"] > 0.0:
        rows, people = tally(value), tally(_pairs(subject, value)[1])
        return _even_enough(rows, asked["entropy"], asked["c"], asked["l"]) and _even_enough(
            people, asked["entropy"], asked["c"], asked["l"]
        )
    return True


@kernel
def meets(limits: Limits, subjects: Ints, sensitive: Ints) -> bool:
    """Whether rows (their subjects, and their sensitive codes row by row) may be one group."""
    if len(subjects) < limits.k:
        return False
    subject = by_first(subjects)
    if distinct(subject) < limits.k:
        return False
    if any_diversity(limits):
        for j in range(sensitive.shape[1]):
            if not _diverse(limits, j, subject, by_first(column(sensitive, j))):
                return False
    if any_measured(limits):
        return all_measured(limits.measures, limits.window, sensitive)
    return True
