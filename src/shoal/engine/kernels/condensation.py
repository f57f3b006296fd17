"""Rows condensed into groups: first by nearest neighbours, then row by row by nearest centroid.

A group that has grown to twice the people that it needs is split along the direction of its largest
spread (Aggarwal and Yu, 2004). A group keeps the sums of its points, so that a row that joins it
costs one distance to every centroid and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels import counter
from shoal.engine.kernels.array_tools import by_first, distinct, in_order, order_of, picked
from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import Sides, box_of
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.hilbert import centres, hilbert
from shoal.engine.kernels.nearest_heap import keep_nearest
from shoal.engine.kernels.parts import Parts, in_parts, parts_of
from shoal.engine.kernels.predicate import Limits, needed
from shoal.engine.kernels.principal_axis import principal_direction, scatter
from shoal.engine.kernels.rng import below

__all__ = ["condensed_parts"]

#: The numbers of rows and subjects of a group, and its first and last row.
GROUP = np.dtype([("n_rows", "i8"), ("n_subjects", "i8"), ("first", "i8"), ("last", "i8")])


class _Table(NamedTuple):
    """The rows as points (attributes along the first axis), and their numbered subjects.

    ``fewest`` is the number of subjects that a group needs.
    """

    points: Floats
    subjects: Ints
    fewest: int


class _Groups(NamedTuple):
    """Growing groups: sums and means of their points, and linked lists of their rows.

    ``counter`` counts the rows of each subject in each group; ``n`` is the number of groups.
    Attributes are along the first axis.
    """

    sums: Floats
    centroids: Floats
    heads: Records
    following: Ints
    counter: Records
    n: Ints


def condensed_parts(
    sides: Sides, limits: Limits, rows: RowArrays, history: int, random: Ints
) -> Parts:
    """Condense rows into parts, ordered along a space-filling curve.

    The first ``history`` rows are grouped together, the others join one by one. Where there are too
    few people for a group, all rows are one part.
    """
    n = len(rows.subjects)
    fewest = int(needed(limits))
    table = _Table(centres(sides, rows.lo, rows.hi), by_first(rows.subjects), fewest)
    # A group has at least ``fewest`` rows, unless there are too few people for a single one.
    groups = _empty(len(rows.lo), n, max(1, n // fewest))
    _condense(table, groups, min(history, n), random)
    n_groups = int(groups.n[0])
    keys = hilbert(sides, np.ascontiguousarray(groups.centroids[:, :n_groups]))
    part = _part_of(groups, np.argsort(keys, kind="stable"))
    order, starts = in_parts(part, n_groups)
    return parts_of(sides, rows, order, starts)


def _empty(n_quasi: int, n_rows: int, most: int) -> _Groups:
    return _Groups(
        np.zeros((n_quasi, most)),
        np.zeros((n_quasi, most)),
        np.zeros(most, GROUP),
        np.full(n_rows, -1),
        counter.empty(n_rows),
        np.zeros(1, np.int64),
    )


@kernel
def _condense(table: _Table, groups: _Groups, history: int, random: Ints) -> None:
    """Put all rows into groups."""
    far = np.empty(max(history, groups.centroids.shape[1]))
    for row in _from_history(table, groups, history, far, random):
        _join(table, groups, row, far)
    for row in range(history, len(table.subjects)):
        _join(table, groups, row, far)


@kernel
def _part_of(groups: _Groups, order: Ints) -> Ints:
    """Return the part of each row: the rank of its group in ``order``."""
    part = np.empty(len(groups.following), np.int64)
    for p in range(len(order)):
        for row in _members(groups, order[p]):
            part[row] = p
    return part


# -- the history ----------------------------------------------------------------------------------


@kernel
def _from_history(table: _Table, groups: _Groups, history: int, far: Floats, random: Ints) -> Ints:
    """Form groups of a random row and its nearest rows of other people; return the rest."""
    left, n_left = np.arange(history), history
    count = np.zeros(distinct(table.subjects), np.int64)
    n_subjects = 0
    for row in left:
        n_subjects += count[table.subjects[row]] == 0
        count[table.subjects[row]] += 1
    nearest, heap = np.empty(len(count), np.int64), np.empty(table.fewest, np.int64)
    while n_subjects >= table.fewest:
        first = left[below(random, n_left)]
        others = _neighbours(table, left[:n_left], first, far, nearest, heap)
        g = _new_group(groups)
        _put(table, groups, first, g)
        for row in others:
            _put(table, groups, row, g)
        # Close the gaps.
        kept, upcoming = 0, 0
        for place in range(n_left):
            row = left[place]
            is_other = upcoming < len(others) and others[upcoming] == row
            if is_other or row == first:
                upcoming += is_other
                count[table.subjects[row]] -= 1
                n_subjects -= count[table.subjects[row]] == 0
                continue
            left[kept] = row
            kept += 1
        n_left = kept
    return left[:n_left]


@kernel
def _neighbours(
    table: _Table, left: Ints, row: int, far: Floats, nearest: Ints, heap: Ints
) -> Ints:
    """Return the nearest rows of as many other people as a group needs, one of each, in order.

    At equal distance the earlier row is nearer.
    """
    n = len(left)
    for c in range(n):
        far[c] = 0.0
        nearest[table.subjects[left[c]]] = -1
    for a in range(len(table.points)):
        middle = table.points[a, row]
        for c in range(n):
            apart = table.points[a, left[c]] - middle
            far[c] += apart * apart
    for c in range(n):
        s = table.subjects[left[c]]
        if s != table.subjects[row] and (nearest[s] < 0 or far[c] < far[nearest[s]]):
            nearest[s] = c
    n_found = 0
    for c in range(n):
        if nearest[table.subjects[left[c]]] == c:
            n_found = keep_nearest(heap, n_found, table.fewest - 1, far, c)
    return picked(left, in_order(heap[:n_found]))


# -- single rows ----------------------------------------------------------------------------------


@kernel
def _join(table: _Table, groups: _Groups, row: int, far: Floats) -> None:
    """Add a row to the group with the nearest centroid, and split groups that are too large."""
    g = _nearest_group(table, groups, row, far) if groups.n[0] > 0 else _new_group(groups)
    _put(table, groups, row, g)
    first_new = groups.n[0]
    _cut_down(table, groups, g)
    while first_new < groups.n[0]:
        _cut_down(table, groups, first_new)
        first_new += 1


@kernel
def _nearest_group(table: _Table, groups: _Groups, row: int, far: Floats) -> int:
    """Return the group whose centroid is nearest; of equal ones the first."""
    n = groups.n[0]
    for g in range(n):
        far[g] = 0.0
    for a in range(len(table.points)):
        place, column = table.points[a, row], groups.centroids[a]
        for g in range(n):
            apart = column[g] - place
            far[g] += apart * apart
    best = 0
    for g in range(1, n):
        if far[g] < far[best]:
            best = g
    return best


@kernel
def _cut_down(table: _Table, groups: _Groups, g: int) -> None:
    """Split a group as long as it has enough people for both halves."""
    while groups.heads["n_subjects"][g] >= 2 * table.fewest:
        members = _along(table, groups, g)
        cut = _middle(picked(table.subjects, members), table.fewest)
        for row in members:
            counter.remove(groups.counter, g, table.subjects[row])
        groups.heads["n_rows"][g] = 0
        groups.heads["n_subjects"][g] = 0
        for a in range(len(groups.sums)):
            groups.sums[a, g] = 0.0
        upper = _new_group(groups)
        for i in range(len(members)):
            _put(table, groups, members[i], g if i < cut else upper)


@kernel
def _along(table: _Table, groups: _Groups, g: int) -> Ints:
    """Return the rows of a group sorted along the direction of their largest spread.

    The sort is stable. Rows that are all equal have no such direction, and stay in their order.
    """
    members = _members(groups, g)
    centroid = box_of(groups.centroids, g)
    direction = principal_direction(scatter(table.points, members, centroid))
    places = np.zeros(len(members))
    for a in range(len(direction)):
        for i in range(len(members)):
            places[i] += table.points[a, members[i]] * direction[a]
    return picked(members, order_of(places))


@kernel
def _middle(subjects: Ints, fewest: int) -> int:
    """Return the number of rows in the lower half: half of them, or as near as people allow.

    Of 2 x ``fewest`` people at least ``fewest`` come after the first rows of ``fewest`` others, so
    there is always such a place.
    """
    n = len(subjects)
    least = _until(by_first(subjects), fewest)
    most = n - _until(by_first(subjects[::-1].copy()), fewest)
    return max(least, min(n // 2, most))


@kernel
def _until(numbers: Ints, fewest: int) -> int:
    """Return the number of rows up to the first one of person number ``fewest``."""
    i = 0
    while numbers[i] < fewest - 1:
        i += 1
    return i + 1


# -- groups ---------------------------------------------------------------------------------------


@kernel
def _new_group(groups: _Groups) -> int:
    groups.n[0] += 1
    return groups.n[0] - 1


@kernel
def _put(table: _Table, groups: _Groups, row: int, g: int) -> None:
    """Append a row to a group."""
    each = groups.heads
    if each["n_rows"][g] == 0:
        each["first"][g] = row
    else:
        groups.following[each["last"][g]] = row
    each["last"][g] = row
    each["n_rows"][g] += 1
    each["n_subjects"][g] += counter.add(groups.counter, g, table.subjects[row])
    for a in range(len(groups.sums)):
        groups.sums[a, g] += table.points[a, row]
        groups.centroids[a, g] = groups.sums[a, g] / each["n_rows"][g]


@kernel
def _members(groups: _Groups, g: int) -> Ints:
    """Return the rows of a group, in the order in which they joined."""
    members = np.empty(groups.heads["n_rows"][g], np.int64)
    row = groups.heads["first"][g]
    for i in range(len(members)):
        members[i] = row
        row = groups.following[row]
    return members
