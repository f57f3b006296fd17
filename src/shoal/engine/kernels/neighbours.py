"""The group around a row: it and its nearest rows of other subjects, as few as the promise needs.

Where only k is asked, a group has exactly k rows of k subjects; else a group that doesn't meet the
limits takes in the next nearest rows until it does. It grows by an eighth at a time, so that all
looks together cost as much as a few looks at the largest group.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import by_first, in_order, order_of, picked
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.held import Held, people
from shoal.engine.kernels.held_columns import HeldColumns
from shoal.engine.kernels.nearest_heap import keep_nearest
from shoal.engine.kernels.predicate import (
    Limits,
    any_diversity,
    any_measured,
    breakable,
    meets,
    needed,
)

__all__ = ["group_around", "none"]

#: A group that doesn't meet the limits grows by one row in so many.
GROWTH = 8


@kernel
def none() -> Ints:
    """No rows."""
    return np.empty(0, np.int64)


@kernel
def _nearest(
    columns: HeldColumns, slot: int, distance: Floats, apart: Floats, radius: float, most: int
) -> Ints:
    """The nearest rows of other subjects, nearest first; at the same distance the earlier one."""
    slots, subject = columns.slots, columns.slots["subject"][slot]
    heap = np.empty(most, np.int64)
    n, limit = 0, np.inf
    for c in range(columns.marks["n"][0]):
        # Most rows are too far, so that is told first.
        if distance[c] > limit or apart[c] > radius:
            continue
        if slots["position"][c] < 0 or slots["subject"][c] == subject:
            continue
        n = keep_nearest(heap, n, most, distance, c)
        if n == most and most > 0:
            limit = distance[heap[0]]
    near = in_order(heap[:n])
    keys = np.empty(n)
    for i in range(n):
        keys[i] = distance[near[i]]
    return picked(near, order_of(keys))


@kernel
def _first_of_each(columns: HeldColumns, near: Ints) -> Ints:
    """Only the first row of each subject."""
    number = by_first(picked(columns.slots["subject"], near))
    first = np.empty(len(near), np.int64)
    n = 0
    for i in range(len(near)):
        if number[i] == n:
            first[n] = near[i]
            n += 1
    return first[:n]


@kernel
def _members(columns: HeldColumns, slot: int, near: Ints, n: int) -> Ints:
    """The positions of a row and n - 1 near ones, in order."""
    positions = np.empty(n, np.int64)
    positions[0] = columns.slots["position"][slot]
    for i in range(n - 1):
        positions[i + 1] = columns.slots["position"][near[i]]
    return in_order(positions)


@kernel
def group_around(
    limits: Limits,
    held: Held,
    columns: HeldColumns,
    slot: int,
    distance: Floats,
    apart: Floats,
    radius: float,
) -> Ints:
    """The positions of a group around the row in a slot, in order; none if there is no group.

    Rows that are farther ``apart`` than a radius aren't looked at. Where one more row can break
    what is asked, that all rows together don't meet the limits tells nothing of fewer: the group
    grows through them all.
    """
    fewest, judged = needed(limits), any_diversity(limits) or any_measured(limits)
    n, tried, most = fewest, 0, fewest - 1
    while True:
        rows = _nearest(columns, slot, distance, apart, radius, most)
        near = _first_of_each(columns, rows)
        is_all = len(rows) < most
        while is_all or len(near) + 1 >= n:
            if len(near) + 1 < n:
                n = len(near) + 1
                if n < fewest or n == tried:
                    return none()
            positions = _members(columns, slot, near, n)
            if not judged:
                return positions
            subjects, sensitive = people(held, positions)
            if meets(limits, subjects, sensitive):
                return positions
            tried = n
            n += max(1, n // GROWTH)
            if not is_all and not breakable(limits):
                # More rows never hurt: if all together aren't diverse, no part of them is. So look
                # at all of them at once, and then go on growing.
                is_all = True
                rows = _nearest(columns, slot, distance, apart, radius, columns.marks["n"][0])
                near = _first_of_each(columns, rows)
                subjects, sensitive = people(held, _members(columns, slot, near, len(near) + 1))
                if not meets(limits, subjects, sensitive):
                    return none()
        most = 2 * max(most, n)
