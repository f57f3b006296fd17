"""A spatial index of the held rows: small boxes of rows, most of which a search can skip.

A search finds the same rows as a scan of all of them would, whatever the boxes are: a box is
skipped only if nothing in it can be near enough. So an index isn't part of the state, and can be
discarded at any time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import in_order, order_of
from shoal.engine.kernels.arrays import Floats, Ints, Records, staggered
from shoal.engine.kernels.boxes import Sides, box_loss, distances_from, least_losses
from shoal.engine.kernels.held import Held, is_held
from shoal.engine.kernels.held_columns import HeldColumns
from shoal.engine.kernels.nearest_heap import keep_nearest
from shoal.engine.kernels.ring import wrap

__all__ = ["Index", "empty", "is_worth_it", "nearest", "refresh"]

#: With fewer rows, in total or for each person that a group needs, a scan is faster: many rows
#: leave with each search then, and the index would have to be rebuilt often.
LEAST, LEAST_EACH = 16_384, 2_048
#: The number of rows in a box.
LEAF = 128
#: The index is rebuilt when one row in this many has arrived since.
FRESH = 4
#: The number of pairs of rows by which the attribute to cut is chosen.
PAIRS = 32

#: The number of rows in the index, and the position of the first later row.
MARKS = np.dtype([("n", "i8"), ("later", "i8")])


class Index(NamedTuple):
    """The rows box by box, their sides and positions, and the sides of the boxes.

    Attributes are along the first axis. A box with a row that lacks a value in some attribute is
    infinite there.
    """

    lo: Floats
    hi: Floats
    positions: Ints
    low: Floats
    high: Floats
    marks: Records


def empty(n_quasi: int, capacity: int) -> Index:
    """Return an empty index with room for ``capacity`` rows."""
    n_boxes = -(-capacity // LEAF)
    return Index(
        np.zeros((n_quasi, staggered(capacity))),
        np.zeros((n_quasi, staggered(capacity))),
        np.zeros(capacity, np.int64),
        np.zeros((n_quasi, n_boxes)),
        np.zeros((n_quasi, n_boxes)),
        np.zeros(1, MARKS),
    )


# -- building it -----------------------------------------------------------------------------------


@kernel
def is_worth_it(columns: HeldColumns, fewest: int) -> bool:
    """Whether an index is faster than a scan, if a group needs at least ``fewest`` people."""
    n = columns.marks["n"][0]
    return n >= LEAST and n >= LEAST_EACH * fewest


@kernel
def refresh(index: Index, sides: Sides, held: Held, columns: HeldColumns) -> None:
    """Rebuild the index if too many rows aren't in it."""
    n = columns.marks["n"][0]
    if FRESH * (n - _first_later(index, columns)) <= n:
        return
    slots, n_rows = np.empty(n, np.int64), 0
    for slot in range(n):
        if columns.slots["position"][slot] >= 0:
            slots[n_rows] = slot
            n_rows += 1
    _arrange(sides, columns, slots[:n_rows])
    for i in range(n_rows):
        index.positions[i] = columns.slots["position"][slots[i]]
    for d in range(len(columns.lo)):
        for i in range(n_rows):
            index.lo[d, i] = columns.lo[d, slots[i]]
            index.hi[d, i] = columns.hi[d, slots[i]]
        for box in range(-(-n_rows // LEAF)):
            low, high = np.inf, -np.inf
            for i in range(box * LEAF, min((box + 1) * LEAF, n_rows)):
                if index.lo[d, i] > index.hi[d, i]:
                    low, high = -np.inf, np.inf
                low, high = min(low, index.lo[d, i]), max(high, index.hi[d, i])
            index.low[d, box], index.high[d, box] = low, high
    index.marks["n"][0] = n_rows
    index.marks["later"][0] = held.marks["upcoming"][0]


@kernel
def _arrange(sides: Sides, columns: HeldColumns, slots: Ints) -> None:
    """Order slots so that the rows of a box are similar: halve recursively, down to a box."""
    begins, ends = np.empty(64, np.int64), np.empty(64, np.int64)
    begins[0], ends[0] = 0, len(slots)
    n_left = 1
    keys = np.empty(len(slots))
    while n_left > 0:
        n_left -= 1
        begin, end = begins[n_left], ends[n_left]
        if end - begin <= LEAF:
            continue
        middle = begin + (end - begin + LEAF) // (2 * LEAF) * LEAF
        d = _widest(sides, columns, slots, begin, end)
        for i in range(begin, end):
            keys[i] = columns.lo[d, slots[i]]
        _halve(slots, keys, begin, end, middle)
        begins[n_left], ends[n_left] = begin, middle
        begins[n_left + 1], ends[n_left + 1] = middle, end
        n_left += 2


@kernel
def _widest(sides: Sides, columns: HeldColumns, slots: Ints, begin: int, end: int) -> int:
    """Return the attribute in which pairs of rows lose most."""
    n_quasi = len(columns.lo)
    lo, hi = np.full(n_quasi, np.inf), np.full(n_quasi, -np.inf)
    step = (end - begin) // (PAIRS + 1)
    widest, most = 0, 0.0
    for d in range(n_quasi):
        lost = 0.0
        for i in range(begin, begin + PAIRS * step, step):
            a, b = slots[i], slots[i + step]
            lo[d] = min(columns.lo[d, a], columns.lo[d, b])
            hi[d] = max(columns.hi[d, a], columns.hi[d, b])
            lost += box_loss(sides, lo, hi)
        lo[d], hi[d] = np.inf, -np.inf
        if lost > most:
            widest, most = d, lost
    return widest


@kernel
def _halve(slots: Ints, keys: Floats, begin: int, end: int, middle: int) -> None:
    """Move the smallest keys of a range before its middle (quickselect)."""
    low, high = begin, end - 1
    while low < high:
        pivot = keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                slots[i], slots[j] = slots[j], slots[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


# -- using it --------------------------------------------------------------------------------------


@kernel
def _first_later(index: Index, columns: HeldColumns) -> int:
    """Return the first slot from which on all rows arrived after the index was built."""
    first = columns.marks["n"][0]
    while first > 0:
        position = columns.slots["position"][first - 1]
        if 0 <= position < index.marks["later"][0]:
            break
        first -= 1
    return first


@kernel
def nearest(
    index: Index, sides: Sides, held: Held, columns: HeldColumns, slot: int, most: int
) -> tuple[Ints, Floats]:
    """Return the slots, in order, of the nearest rows of other subjects, and their distances.

    At equal distance the earlier row is nearer. The index must have been built of these rows.
    """
    n, n_quasi = columns.marks["n"][0], len(columns.lo)
    subject = columns.slots["subject"][slot]
    lo, hi = np.empty(n_quasi), np.empty(n_quasi)
    for d in range(n_quasi):
        lo[d], hi[d] = columns.lo[d, slot], columns.hi[d, slot]
    distance, heap = np.empty(n), np.empty(most, np.int64)
    n_found, limit = 0, np.inf
    # Rows that aren't in the index are the last slots.
    first = _first_later(index, columns)
    later, wide = distance[first:], columns.marks["n_wide"][0] > 0
    distances_from(sides, columns.lo, columns.hi, first, len(later), lo, hi, wide, later)
    for c in range(first, n):
        if distance[c] > limit or columns.slots["position"][c] < 0:
            continue
        if columns.slots["subject"][c] != subject:
            n_found = keep_nearest(heap, n_found, most, distance, c)
            if n_found == most:
                limit = distance[heap[0]]
    n_boxes = -(-index.marks["n"][0] // LEAF)
    least = np.empty(n_boxes)
    least_losses(sides, index.low, index.high, n_boxes, lo, hi, least)
    inside = np.empty(LEAF)
    for box in order_of(least):
        if least[box] > limit:
            break
        begin = box * LEAF
        n_inside = min(LEAF, index.marks["n"][0] - begin)
        distances_from(sides, index.lo, index.hi, begin, n_inside, lo, hi, wide, inside)
        for i in range(n_inside):
            if inside[i] > limit or not is_held(held, index.positions[begin + i]):
                continue
            c = held.rows["following"][wrap(index.positions[begin + i], len(held.rows))]
            if columns.slots["subject"][c] != subject:
                distance[c] = inside[i]
                n_found = keep_nearest(heap, n_found, most, distance, c)
                if n_found == most:
                    limit = distance[heap[0]]
    found = in_order(heap[:n_found])
    far = np.empty(n_found)
    for i in range(n_found):
        far[i] = distance[found[i]]
    return found, far
