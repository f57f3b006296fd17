"""Split a large cluster into groups, each large enough on its own.

`by_subjects` is the thesis' split^k, `by_values` its split^l (§5.5). Both take the rows of the
cluster in order of arrival, and write the number of the part of each row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels.array_tools import (
    by_first,
    column,
    distinct,
    order_of,
    picked,
    picked_rows,
    tally,
    where,
)
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.kernels.boxes import (
    Sides,
    box_loss,
    box_of,
    boxes_at,
    join,
    joined_losses,
    widen_box,
)
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.nearest_heap import keep_nearest
from shoal.engine.kernels.predicate import Limits, match, meets, needed
from shoal.engine.kernels.rng import below
from shoal.engine.kernels.split_rows import cut_by_rows

__all__ = ["by_subjects", "by_values", "part_boxes", "repair_parts"]


class SplitGroups(NamedTuple):
    """The boxes of the parts of a split, attributes along the first axis, and their losses."""

    lo: Floats
    hi: Floats
    loss: Floats


@kernel
def part_boxes(sides: Sides, rows: RowArrays, part: Ints, n_parts: int) -> SplitGroups:
    """Return the boxes of the parts; a row of part -1 is in none."""
    los, his = rows.lo, rows.hi
    parts = SplitGroups(
        np.full((los.shape[0], n_parts), np.inf),
        np.full((los.shape[0], n_parts), -np.inf),
        np.empty(n_parts),
    )
    for d in range(los.shape[0]):
        for i in range(len(part)):
            p = part[i]
            if p >= 0:
                parts.lo[d, p] = min(parts.lo[d, p], los[d, i])
                parts.hi[d, p] = max(parts.hi[d, p], his[d, i])
    for p in range(n_parts):
        lo, hi = box_of(parts.lo, p), box_of(parts.hi, p)
        widen_box(sides, parts.lo, parts.hi, parts.loss, p, lo, hi)
    return parts


@kernel
def _place(sides: Sides, rows: RowArrays, part: Ints, n_parts: int, chosen: Ints) -> None:
    """Add rows, one after another, to the part that each enlarges least."""
    parts = part_boxes(sides, rows, part, n_parts)
    joined = np.empty(n_parts)
    for i in chosen:
        lo, hi = box_of(rows.lo, i), box_of(rows.hi, i)
        joined_losses(sides, parts.lo, parts.hi, n_parts, lo, hi, joined)
        best = 0
        for p in range(1, n_parts):
            if joined[p] - parts.loss[p] < joined[best] - parts.loss[best]:
                best = p
        widen_box(sides, parts.lo, parts.hi, parts.loss, best, lo, hi)
        part[i] = best


@kernel
def repair_parts(sides: Sides, limits: Limits, rows: RowArrays, part: Ints, n_parts: int) -> int:
    """Merge every part that doesn't meet the limits with its nearest one, until all do.

    The rows as a whole meet the limits, so the worst end is one part.
    """
    p = 0
    while n_parts > 1 and p < n_parts:
        members = where(part, p)
        sensitive = picked_rows(rows.sensitive, members)
        if meets(limits, picked(rows.subjects, members), sensitive):
            p += 1
            continue
        parts = part_boxes(sides, rows, part, n_parts)
        lo, hi = box_of(parts.lo, p), box_of(parts.hi, p)
        joined = np.empty(n_parts)
        joined_losses(sides, parts.lo, parts.hi, n_parts, lo, hi, joined)
        nearest = -1
        for q in range(n_parts):
            if q != p and (
                nearest < 0 or joined[q] - parts.loss[p] < joined[nearest] - parts.loss[p]
            ):
                nearest = q
        for i in range(len(part)):
            if part[i] == p:
                part[i] = nearest
            if part[i] > p:
                part[i] -= 1
        n_parts -= 1
        # Parts before this one were checked, unless it was merged into one of them.
        p = min(p, nearest)
    return n_parts


@kernel
def _nth_full(left: Ints, n: int) -> int:
    """Return the n-th, from 0, of the buckets that still have rows, in order of first arrival."""
    bucket = 0
    while left[bucket] == 0 or n > 0:
        if left[bucket] > 0:
            n -= 1
        bucket += 1
    return bucket


@kernel
def _choose(
    several: Bools, bucket: Ints, seen: Ints, part: Ints, seed: int,
    distance: Floats, limit: float, chosen: Ints,
) -> int:  # fmt: skip
    """Find the nearest free rows of different subjects, without the seed's and within ``limit``.

    Write them as a heap into all but the last entry of ``chosen``; return their number.
    """
    most = len(chosen) - 1
    if most == 0:
        return 0
    n_chosen = 0
    nearest = np.full(len(several), -1, np.int64)
    for i in range(len(seen)):
        # Most rows are too far, so that is checked first.
        if distance[i] > limit or part[seen[i]] >= 0 or bucket[seen[i]] == seed:
            continue
        b = bucket[seen[i]]
        if several[b]:
            # Of a subject with several rows only the nearest is taken.
            if nearest[b] < 0 or distance[i] < distance[nearest[b]]:
                nearest[b] = i
            continue
        n_chosen = keep_nearest(chosen, n_chosen, most, distance, i)
        if n_chosen == most:
            limit = distance[chosen[0]]
    for b in range(len(nearest)):
        if nearest[b] >= 0:
            n_chosen = keep_nearest(chosen, n_chosen, most, distance, nearest[b])
    return n_chosen


@kernel
def _by_several(sides: Sides, k: int, rng: Ints, rows: RowArrays, bucket: Ints, part: Ints) -> int:
    """Cut as `by_subjects` does, where subjects, whose numbers are given, have several rows."""
    left = tally(bucket)
    full = len(left)
    several = left > 1
    chosen = np.zeros(k, np.int64)
    distance = np.empty(len(bucket))
    guess = np.inf
    n_parts = 0
    # The candidates: copies of the boxes, repacked whenever half of the rows are placed.
    seen, near_lo, near_hi = np.arange(len(bucket)), rows.lo, rows.hi
    n_left = len(bucket)
    while full >= k:
        if 2 * n_left < len(seen):
            seen = where(part, -1)
            are_points = near_lo is near_hi
            near_lo = boxes_at(rows.lo, seen)
            near_hi = near_lo if are_points else boxes_at(rows.hi, seen)
        seed_bucket = _nth_full(left, below(rng, full))
        seed = 0
        while bucket[seen[seed]] != seed_bucket or part[seen[seed]] >= 0:
            seed += 1
        lo, hi = box_of(near_lo, seed), box_of(near_hi, seed)
        joined_losses(sides, near_lo, near_hi, len(seen), lo, hi, distance)
        # The last part's radius is a good guess of this one's. If it is too small, search again.
        n_chosen = _choose(several, bucket, seen, part, seed_bucket, distance, guess, chosen)
        if n_chosen < k - 1:
            n_chosen = _choose(several, bucket, seen, part, seed_bucket, distance, np.inf, chosen)
        if k > 1:
            guess = 1.25 * distance[chosen[0]]
        chosen[k - 1] = seed
        for i in chosen:
            part[seen[i]] = n_parts
            left[bucket[seen[i]]] -= 1
            if left[bucket[seen[i]]] == 0:
                full -= 1
        n_left -= k
        n_parts += 1
    return n_parts


@on_demand
def by_subjects(sides: Sides, k: int, rng: Ints, rows: RowArrays, part: Ints) -> int:
    """Cut into parts of k different subjects each, around randomly chosen rows.

    A part is a row and the nearest rows of k - 1 other subjects. Rows of one subject may differ,
    so that each subject is represented by its nearest row. When fewer than k subjects are left,
    the remaining rows join the part that they enlarge least.
    """
    bucket = by_first(rows.subjects)
    part[:] = -1
    if distinct(bucket) == len(bucket):
        n_parts = cut_by_rows(sides, k, rng, rows, part)
    else:
        n_parts = _by_several(sides, k, rng, rows, bucket, part)
    _place(sides, rows, part, n_parts, where(part, -1))
    return n_parts


@kernel
def _representatives(subject: Ints, value: Ints, enough: int) -> Ints:
    """Return one row of each subject, in order of arrival, with ``enough`` different values."""
    wanted = np.full(distinct(subject), -1, np.int64)
    partners = match(subject, value, enough)
    for v in range(len(partners)):
        if partners[v] >= 0:
            wanted[partners[v]] = v
    rows = np.empty(len(wanted), np.int64)
    n = 0
    for i in range(len(subject)):
        s = subject[i]
        if wanted[s] == -1 or wanted[s] == value[i]:
            rows[n] = i
            n += 1
            wanted[s] = -2
    return rows


@kernel
def _seats(n_in: Ints, total: int, parts: int, first: int, l: int, seats: Ints) -> None:  # noqa: E741
    """Distribute the seats of a part over buckets, as whole numbers near their proportions.

    The bucket of the first row has one seat; l - 1 others get one each, the largest first; every
    further seat goes to the bucket that is furthest below its share.
    """
    seats[:] = 0
    seats[first] = 1
    for _ in range(l - 1):
        largest = -1
        for b in range(len(n_in)):
            if seats[b] == 0 and n_in[b] > 0 and (largest < 0 or n_in[b] > n_in[largest]):
                largest = b
        seats[largest] = 1
    for _ in range(parts - l):
        poorest = -1
        lack = 0.0
        for b in range(len(n_in)):
            if seats[b] < n_in[b]:
                short = parts * n_in[b] / total - seats[b]
                if poorest < 0 or short > lack:
                    poorest, lack = b, short
        seats[poorest] += 1


@on_demand
def by_values(sides: Sides, limits: Limits, rng: Ints, rows: RowArrays, part: Ints) -> int:
    """Cut into parts whose sensitive values are mixed as in the whole.

    Each subject is represented by one row. Representatives are put into buckets by their value,
    and every part takes from each bucket in proportion: at least l different values, and
    max(k, l) different subjects. The remaining representatives join the part that they enlarge
    least. All rows of a subject join its representative: if they were in two groups at once, the
    values that both have in common would reveal the subject's.
    """
    j = 0
    for other in range(1, len(limits.diversity)):
        if limits.diversity["diverse"][other] > limits.diversity["diverse"][j]:
            j = other
    l = limits.diversity["diverse"][j]  # noqa: E741
    in_part = needed(limits)
    subject = by_first(rows.subjects)
    value = by_first(column(rows.sensitive, j))
    chosen = _representatives(subject, value, l)
    bucket = by_first(picked(value, chosen))
    n_in = tally(bucket)
    n_buckets = len(n_in)
    seats = np.empty(n_buckets, np.int64)
    distance, enlargement = np.empty(len(subject)), np.empty(len(chosen))
    part[:] = -1
    n_parts = 0
    total = len(chosen)
    full = n_buckets
    while full >= l and total >= in_part:
        first = _nth_full(n_in, below(rng, full))
        seed = 0
        while bucket[seed] != first or part[chosen[seed]] >= 0:
            seed += 1
        _seats(n_in, total, in_part, first, l, seats)
        lo, hi = box_of(rows.lo, chosen[seed]), box_of(rows.hi, chosen[seed])
        part[chosen[seed]] = n_parts
        taken = 1
        for b in range(n_buckets):
            share = seats[b] - 1 if b == first else seats[b]
            if share <= 0:
                continue
            here = where(bucket, b)
            joined_losses(sides, rows.lo, rows.hi, len(subject), lo, hi, distance)
            loss = box_loss(sides, lo, hi)
            for i in range(len(here)):
                # Rows that are placed already come last, after all that are free.
                row = chosen[here[i]]
                enlargement[i] = distance[row] - loss if part[row] < 0 else np.inf
            for i in order_of(enlargement[: len(here)])[:share]:
                row = chosen[here[i]]
                part[row] = n_parts
                join(sides, lo, hi, box_of(rows.lo, row), box_of(rows.hi, row))
                taken += 1
        full = 0
        total -= taken
        for b in range(n_buckets):
            n_in[b] -= seats[b]
            if n_in[b] > 0:
                full += 1
        n_parts += 1
    if n_parts == 0:
        part[:] = 0
        return 1
    left = np.empty(total, np.int64)
    n_left = 0
    for b in range(n_buckets):
        for i in where(bucket, b):
            if part[chosen[i]] < 0:
                left[n_left] = chosen[i]
                n_left += 1
    _place(sides, rows, part, n_parts, left)
    home = np.empty(distinct(subject), np.int64)
    for row in chosen:
        home[subject[row]] = part[row]
    for i in range(len(subject)):
        part[i] = home[subject[i]]
    return n_parts
