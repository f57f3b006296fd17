"""The group around a row: the row and its nearest rows of other subjects, as few as possible.

Where only k is promised, a group has exactly k rows of k subjects. Otherwise a group that doesn't
meet the limits takes in the next nearest rows until it does. It grows by an eighth at a time, so
that all checks together cost as much as a few checks of the largest group.
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

#: A group that doesn't meet the limits grows by this fraction (1 / GROWTH).
GROWTH = 8


@kernel
def none() -> Ints:
    """Return an empty array of rows."""
    return np.empty(0, np.int64)


@kernel
def _nearest(
    columns: HeldColumns, slot: int, distance: Floats, apart: Floats, radius: float, most: int
) -> Ints:
    """Return the nearest rows of other subjects, nearest first; at equal distance the earlier."""
    slots, subject = columns.slots, columns.slots["subject"][slot]
    heap = np.empty(most, np.int64)
    n, limit = 0, np.inf
    for c in range(columns.marks["n"][0]):
        # Most rows are too far, so that is checked first.
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
    """Return only the first row of each subject."""
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
    """Return the positions of a row and of n - 1 near rows, in order."""
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
    """Return the positions of a group around the row in a slot, in order; none if there is none.

    Rows that are farther ``apart`` than ``radius`` aren't considered. Where one more row can break
    a criterion, fewer rows may meet the limits although all together don't: then every size is
    tried as the group grows.
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
                # More rows never hurt here: if all together aren't diverse, no part of them is. So
                # check all of them at once, and then continue growing.
                is_all = True
                rows = _nearest(columns, slot, distance, apart, radius, columns.marks["n"][0])
                near = _first_of_each(columns, rows)
                subjects, sensitive = people(held, _members(columns, slot, near, len(near) + 1))
                if not meets(limits, subjects, sensitive):
                    return none()
        most = 2 * max(most, n)
