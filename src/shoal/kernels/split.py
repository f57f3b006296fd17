"""Cut a cluster that is more than large enough into groups, each large enough by itself.

`by_subjects` is the thesis' split^k, `by_values` its split^l (§5.5). Both take the rows of the
cluster in order of arrival, attributes along the first axis, and number the part of each row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal._jit import kernel
from shoal.kernels.arrays import Floats, Ints
from shoal.kernels.boxes import Sides, box_loss, join, joined_losses
from shoal.kernels.criteria import Limits, by_first, match, meets, needed
from shoal.kernels.nearest import keep_nearest
from shoal.kernels.rng import below

__all__ = ["by_subjects", "by_values", "mend_parts"]


class Parts(NamedTuple):
    """The boxes of parts, attributes along the first axis, and their losses."""

    lo: Floats
    hi: Floats
    loss: Floats


@kernel
def _boxes(sides: Sides, los: Floats, his: Floats, part: Ints, n_parts: int) -> Parts:
    parts = Parts(
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
        _widen(sides, parts, p, parts.lo[:, p].copy(), parts.hi[:, p].copy())
    return parts


@kernel
def _widen(sides: Sides, parts: Parts, p: int, lo: Floats, hi: Floats) -> None:
    """Let a part take in a box."""
    part_lo, part_hi = parts.lo[:, p].copy(), parts.hi[:, p].copy()
    join(sides, part_lo, part_hi, lo, hi)
    parts.lo[:, p] = part_lo
    parts.hi[:, p] = part_hi
    parts.loss[p] = box_loss(sides, part_lo, part_hi)


@kernel
def _place(sides: Sides, los: Floats, his: Floats, part: Ints, n_parts: int, rows: Ints) -> None:
    """Give rows, in turn, to the part that each enlarges least."""
    parts = _boxes(sides, los, his, part, n_parts)
    joined = np.empty(n_parts)
    for i in rows:
        lo, hi = los[:, i].copy(), his[:, i].copy()
        joined_losses(sides, parts.lo, parts.hi, n_parts, lo, hi, joined)
        best = 0
        for p in range(1, n_parts):
            if joined[p] - parts.loss[p] < joined[best] - parts.loss[best]:
                best = p
        _widen(sides, parts, best, lo, hi)
        part[i] = best


@kernel
def mend_parts(
    sides: Sides, limits: Limits, los: Floats, his: Floats,
    subjects: Ints, sensitive: Ints, part: Ints, n_parts: int,
) -> int:  # fmt: skip
    """Merge every part that doesn't meet the limits with its nearest one, until all do.

    The rows as a whole meet the limits, so the worst end is one part.
    """
    p = 0
    while n_parts > 1 and p < n_parts:
        members = np.flatnonzero(part == p)
        if meets(limits, subjects[members], sensitive[members]):
            p += 1
            continue
        parts = _boxes(sides, los, his, part, n_parts)
        lo, hi = parts.lo[:, p].copy(), parts.hi[:, p].copy()
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
        # Parts before this one were fine, unless it was one of them that took it in.
        p = min(p, nearest)
    return n_parts


@kernel
def by_subjects(
    sides: Sides, k: int, rng: Ints, los: Floats, his: Floats, subjects: Ints, part: Ints
) -> int:
    """Cut into parts of k different subjects each, around randomly chosen rows.

    A part is a row and the nearest rows of k - 1 other subjects. Rows of one subject may differ,
    so each subject is represented by whichever of its rows is nearest. Rows that are left when
    fewer than k subjects are, join the part that they enlarge least.
    """
    bucket = by_first(subjects)
    n_buckets = bucket.max() + 1
    left = np.bincount(bucket)
    nearest = np.empty(n_buckets, np.int64)
    chosen = np.empty(k, np.int64)
    part[:] = -1
    n_parts = 0
    full = n_buckets
    # What is looked at: copies of the boxes, packed anew whenever half of the rows are placed.
    rows, near_lo, near_hi = np.arange(len(subjects)), los, his
    distance = np.empty(len(subjects))
    n_left = len(subjects)
    while full >= k:
        if 2 * n_left < len(rows):
            rows = rows[part[rows] < 0]
            near_lo, near_hi = los[:, rows], his[:, rows]
        n = len(rows)
        # The draw counts the buckets that still have rows, in order of first arrival.
        draw = below(rng, full)
        seed_bucket = 0
        while left[seed_bucket] == 0 or draw > 0:
            if left[seed_bucket] > 0:
                draw -= 1
            seed_bucket += 1
        seed = 0
        while bucket[rows[seed]] != seed_bucket or part[rows[seed]] >= 0:
            seed += 1
        lo, hi = near_lo[:, seed].copy(), near_hi[:, seed].copy()
        joined_losses(sides, near_lo, near_hi, n, lo, hi, distance)
        nearest[:] = -1
        for i in range(n):
            b = bucket[rows[i]]
            if part[rows[i]] < 0 and (nearest[b] < 0 or distance[i] < distance[nearest[b]]):
                nearest[b] = i
        n_chosen = 0
        for b in range(n_buckets):
            if left[b] > 0 and b != seed_bucket:
                n_chosen = keep_nearest(chosen, n_chosen, k - 1, distance, nearest[b])
        chosen[k - 1] = seed
        for i in chosen:
            part[rows[i]] = n_parts
            left[bucket[rows[i]]] -= 1
        n_left -= k
        n_parts += 1
        full = 0
        for b in range(n_buckets):
            if left[b] > 0:
                full += 1
    _place(sides, los, his, part, n_parts, np.flatnonzero(part < 0))
    return n_parts


@kernel
def _representatives(subject: Ints, value: Ints, enough: int) -> Ints:
    """One row for each subject, such that their values are as different as they need be."""
    n_subjects = subject.max() + 1
    wanted = np.full(n_subjects, -1, np.int64)
    partners = match(subject, value, enough)
    for v in range(len(partners)):
        if partners[v] >= 0:
            wanted[partners[v]] = v
    rows = np.full(n_subjects, -1, np.int64)
    for i in range(len(subject)):
        s = subject[i]
        if rows[s] < 0 and (wanted[s] < 0 or wanted[s] == value[i]):
            rows[s] = i
    return rows


@kernel
def _seats(n_in: Ints, total: int, parts: int, first: int, l: int, seats: Ints) -> None:  # noqa: E741
    """Share the seats of a part out over buckets, as whole numbers near their proportions.

    The bucket of the first row has its seat; l - 1 others get one each, the largest first; every
    further seat goes to whichever bucket is furthest below its share.
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


@kernel
def by_values(
    sides: Sides, limits: Limits, rng: Ints, los: Floats, his: Floats,
    subjects: Ints, sensitive: Ints, part: Ints,
) -> int:  # fmt: skip
    """Cut into parts whose sensitive values are mixed as in the whole.

    Each subject is represented by one row. Representatives lie in buckets by their value, and
    every part takes from each bucket in proportion: at least l different values, and
    max(k, l) different subjects. Representatives that are left join the part that they enlarge
    least. All rows of a subject follow the one that represents it: in two groups at once, the
    values that both have in common would be the subject's.
    """
    j = 0
    for other in range(1, len(limits.diversity)):
        if limits.diversity["diverse"][other] > limits.diversity["diverse"][j]:
            j = other
    l = limits.diversity["diverse"][j]  # noqa: E741
    in_part = needed(limits)
    subject = by_first(subjects)
    value = by_first(np.ascontiguousarray(sensitive[:, j]))
    chosen = np.sort(_representatives(subject, value, l))
    bucket = by_first(value[chosen])
    n_in = np.bincount(bucket)
    n_buckets = len(n_in)
    seats = np.empty(n_buckets, np.int64)
    d = los.shape[0]
    lo, hi = np.empty(d), np.empty(d)
    distance = np.empty(len(subjects))
    part[:] = -1
    n_parts = 0
    total = len(chosen)
    full = n_buckets
    while full >= l and total >= in_part:
        draw = below(rng, full)
        first = 0
        while n_in[first] == 0 or draw > 0:
            if n_in[first] > 0:
                draw -= 1
            first += 1
        seed = 0
        while bucket[seed] != first or part[chosen[seed]] >= 0:
            seed += 1
        _seats(n_in, total, in_part, first, l, seats)
        lo[:] = los[:, chosen[seed]]
        hi[:] = his[:, chosen[seed]]
        part[chosen[seed]] = n_parts
        taken = 1
        for b in range(n_buckets):
            share = seats[b] - 1 if b == first else seats[b]
            if share <= 0:
                continue
            rows = chosen[(bucket == b) & (part[chosen] < 0)]
            joined_losses(sides, los, his, len(subjects), lo, hi, distance)
            order = np.argsort(distance[rows] - box_loss(sides, lo, hi), kind="mergesort")
            for i in range(share):
                row = rows[order[i]]
                part[row] = n_parts
                join(sides, lo, hi, los[:, row].copy(), his[:, row].copy())
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
    by_bucket = chosen[np.argsort(bucket, kind="mergesort")]
    _place(sides, los, his, part, n_parts, by_bucket[part[by_bucket] < 0])
    home = np.empty(subject.max() + 1, np.int64)
    for row in chosen:
        home[subject[row]] = part[row]
    for i in range(len(subject)):
        part[i] = home[subject[i]]
    return n_parts
