"""Fill groups with rows that are near each other, a given number of each bucket.

Along the curve: among rows that are near on a space-filling curve. By distance: the nearest rows of
all, at the cost of a scan of all rows for every group (thesis, §3.4.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import order_of, picked
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.nearest_heap import keep_nearest
from shoal.engine.kernels.parts import in_parts
from shoal.engine.kernels.rng import below

__all__ = ["BucketOrder", "along_curve", "bucket_order", "by_distance"]


class BucketOrder(NamedTuple):
    """Rows bucket by bucket, in the order of the curve; where each bucket begins (and the end)."""

    rows: Ints
    starts: Ints
    keys: Ints


@kernel
def bucket_order(bucket: Ints, n_buckets: int, keys: Ints) -> BucketOrder:
    """Sort rows by bucket and by key."""
    order = order_of(keys)
    places, starts = in_parts(picked(bucket, order), n_buckets)
    rows = picked(order, places)
    return BucketOrder(rows, starts, picked(keys, rows))


@kernel
def _ends(sizes: Ints) -> Ints:
    """Return where each group begins (and the end)."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    for g in range(len(sizes)):
        n = 0
        for b in range(sizes.shape[1]):
            n += sizes[g, b]
        starts[g + 1] = starts[g] + n
    return starts


@kernel
def _still(pointer: Ints, place: int) -> int:
    """Follow pointers over empty places to the next full one, with path compression."""
    end = place
    while pointer[end] != end:
        end = pointer[end]
    while pointer[place] != end:
        pointer[place], place = end, pointer[place]
    return end


@kernel
def _first_from(keys: Ints, begin: int, end: int, key: int) -> int:
    """Return the first place whose key isn't smaller."""
    while begin < end:
        middle = (begin + end) // 2
        if keys[middle] < key:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def _random_bucket(left: Ints, random: Ints) -> int:
    """Return a random bucket that isn't empty."""
    n = 0
    for rows in left:
        n += rows > 0
    chosen, b = below(random, n), -1
    while chosen >= 0:
        b += 1
        chosen -= left[b] > 0
    return b


@kernel
def _random_place(ordered: BucketOrder, left: Ints, behind: Ints, random: Ints) -> int:
    """Return a full place: the next one, cyclically, from a random place of a random bucket."""
    b = _random_bucket(left, random)
    begin, end = ordered.starts[b], ordered.starts[b + 1]
    place = _still(behind, begin + below(random, end - begin))
    return place if place < end else _still(behind, begin)


@kernel
def _seen(ordered: BucketOrder, b: int, key: int, most: int, behind: Ints, before: Ints) -> Ints:
    """Return the places of a bucket that are nearest to a key along the curve, nearest first.

    At equal distance the one before comes first.
    """
    begin, end = ordered.starts[b], ordered.starts[b + 1]
    middle = _first_from(ordered.keys, begin, end, key)
    right = _still(behind, middle)
    # ``before`` is shifted by one: place p has the index p + 1.
    left = _still(before, middle) - 1
    most = min(most, end - begin)
    places, n = np.empty(most, np.int64), 0
    while n < most:
        if left >= begin and (
            right >= end or key - ordered.keys[left] <= ordered.keys[right] - key
        ):
            places[n] = left
            left = _still(before, left) - 1
        elif right < end:
            places[n] = right
            right = _still(behind, right + 1)
        else:
            break
        n += 1
    return places[:n]


@kernel
def along_curve(
    ordered: BucketOrder, sizes: Ints, centres: Floats, look: int, random: Ints
) -> tuple[Ints, Ints]:
    """Fill each group with rows of every bucket that are near a random row.

    For each row taken, ``look`` rows that are near along the curve are candidates; the nearest of
    all candidates are taken, at equal distance the nearest along the curve. Return the rows of
    groups, and where each begins.
    """
    starts, n = _ends(sizes), len(ordered.rows)
    # An empty place points to the next one; there is one more place before and after all.
    behind, before = np.arange(n + 1), np.arange(n + 1)
    left = ordered.starts[1:] - ordered.starts[:-1]
    order, at = np.empty(n, np.int64), 0
    far, heap = np.empty(n), np.empty(n, np.int64)
    # Places that are adjacent in a bucket are adjacent in memory.
    points = np.empty((n, len(centres)))
    for place in range(n):
        for a in range(len(centres)):
            points[place, a] = centres[a, ordered.rows[place]]
    for g in range(len(sizes)):
        around = _random_place(ordered, left, behind, random)
        key = ordered.keys[around]
        for b in range(len(left)):
            most = sizes[g, b]
            if most == 0:
                continue
            seen = _seen(ordered, b, key, look * most, behind, before)
            taken = 0
            for c in range(len(seen)):
                far[c] = _apart(points, seen[c], around) if look > 1 else 0.0
                taken = keep_nearest(heap, taken, most, far, c)
            for c in np.sort(heap[:taken]):
                place = seen[c]
                order[at] = ordered.rows[place]
                at += 1
                behind[place], before[place + 1] = place + 1, place
            left[b] -= most
    return order, starts


@kernel
def _apart(points: Floats, one: int, other: int) -> float:
    """Return the square of the distance between two points."""
    far = 0.0
    for a in range(points.shape[1]):
        apart = points[one, a] - points[other, a]
        far += apart * apart
    return far


@kernel
def by_distance(
    ordered: BucketOrder, sizes: Ints, centres: Floats, random: Ints
) -> tuple[Ints, Ints]:
    """Fill each group with the rows of every bucket that are nearest to a random row.

    Centres have attributes along the first axis; at equal distance the first along the curve is
    taken. Return the rows of groups, and where each begins.
    """
    starts, n = _ends(sizes), len(ordered.rows)
    n_buckets = sizes.shape[1]
    rows, fill = ordered.rows.copy(), ordered.starts[1:].copy()
    order, at = np.empty(n, np.int64), 0
    far = np.empty(n)
    for g in range(len(sizes)):
        b = _random_bucket(fill - ordered.starts[:-1], random)
        around = rows[ordered.starts[b] + below(random, fill[b] - ordered.starts[b])]
        for b in range(n_buckets):
            begin, end, most = ordered.starts[b], fill[b], sizes[g, b]
            if most == 0:
                continue
            taken = _nearest_rows(rows, begin, end, centres, around, most, far)
            for place in taken:
                order[at] = rows[place]
                at += 1
            # Close the gaps.
            kept, upcoming = begin, 0
            for place in range(begin, end):
                if upcoming < len(taken) and taken[upcoming] == place:
                    upcoming += 1
                    continue
                rows[kept] = rows[place]
                kept += 1
            fill[b] = kept
    return order, starts


@kernel
def _nearest_rows(
    rows: Ints, begin: int, end: int, centres: Floats, around: int, most: int, far: Floats
) -> Ints:
    """Return the places of the rows of a bucket that are nearest to a row, in order."""
    for place in range(begin, end):
        far[place - begin] = 0.0
    for a in range(len(centres)):
        middle = centres[a, around]
        for place in range(begin, end):
            apart = centres[a, rows[place]] - middle
            far[place - begin] += apart * apart
    heap, n = np.empty(most, np.int64), 0
    for c in range(end - begin):
        if n < most or far[c] < far[heap[0]]:
            n = keep_nearest(heap, n, most, far, c)
    return np.sort(heap[:n]) + begin
