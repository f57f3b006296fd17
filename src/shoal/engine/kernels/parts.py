"""Rows cut into parts: the candidates for groups, and the repair of parts that break the promise.

A part that breaks the promise is merged with its nearest one until it doesn't (thesis, §3.6 and
§4.3.4); merging never makes a measured criterion worse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels.array_tools import in_order, picked, picked_rows
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.kernels.boxes import Sides, box_loss, join, set_row
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.predicate import Limits, meets

__all__ = ["Parts", "in_parts", "may_leave", "parts_of", "repaired"]

#: The nearest part is searched among this many parts before and after, so that the time for a table
#: grows linearly with its rows.
NEAR = 64
#: A part of at least MANY rows is checked again only when it has grown by 1 / GROWTH.
MANY, GROWTH = 1024, 16


class Parts(NamedTuple):
    """The rows of all parts, part after part; where each begins (and the end); and their boxes.

    Parts that are adjacent in this order should be near each other.
    """

    rows: Ints
    starts: Ints
    lo: Floats
    hi: Floats


@kernel
def in_parts(part: Ints, n_parts: int) -> tuple[Ints, Ints]:
    """Return the rows sorted by part, and where each part begins (and the end)."""
    starts = np.zeros(n_parts + 1, np.int64)
    for p in part:
        starts[p + 1] += 1
    for p in range(n_parts):
        starts[p + 1] += starts[p]
    fill = starts[:-1].copy()
    rows = np.empty(len(part), np.int64)
    for i in range(len(part)):
        rows[fill[part[i]]] = i
        fill[part[i]] += 1
    return rows, starts


@kernel
def parts_of(sides: Sides, rows: RowArrays, order: Ints, starts: Ints) -> Parts:
    """Return parts with the boxes of their rows."""
    n, d = len(starts) - 1, len(rows.lo)
    lo, hi = np.full((n, d), np.inf), np.full((n, d), -np.inf)
    for p in range(n):
        for i in order[starts[p] : starts[p + 1]]:
            for a in range(d):
                lo[p, a] = min(lo[p, a], rows.lo[a, i])
                hi[p, a] = max(hi[p, a], rows.hi[a, i])
        join(sides, lo[p], hi[p], lo[p], hi[p])
    return Parts(order, starts, lo, hi)


class _Chain(NamedTuple):
    """A linked list of parts, and the rows of each part as a linked list."""

    before: Ints
    behind: Ints
    first_row: Ints
    last_row: Ints
    following: Ints
    n_rows: Ints


@kernel
def _chained(parts: Parts) -> _Chain:
    n = len(parts.starts) - 1
    following = np.full(len(parts.rows), -1, np.int64)
    first, last, count = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for p in range(n):
        begin, end = parts.starts[p], parts.starts[p + 1]
        for at in range(begin, end - 1):
            following[parts.rows[at]] = parts.rows[at + 1]
        first[p], last[p], count[p] = parts.rows[begin], parts.rows[end - 1], end - begin
    return _Chain(np.arange(n) - 1, np.arange(n) + 1, first, last, following, count)


@kernel
def _members(chain: _Chain, p: int) -> Ints:
    members = np.empty(chain.n_rows[p], np.int64)
    row = chain.first_row[p]
    for i in range(len(members)):
        members[i] = row
        row = chain.following[row]
    return members


@kernel
def may_leave(limits: Limits, rows: RowArrays, members: Ints) -> bool:
    """Whether some rows may be published as one group."""
    return meets(limits, picked(rows.subjects, members), picked_rows(rows.sensitive, members))


@kernel
def _added_loss(sides: Sides, lo: Floats, hi: Floats, p: int, q: int) -> float:
    """Return how much more part p loses together with part q."""
    low, high = lo[p].copy(), hi[p].copy()
    before = box_loss(sides, low, high)
    join(sides, low, high, lo[q], hi[q])
    return box_loss(sides, low, high) - before


@kernel
def _nearest(sides: Sides, chain: _Chain, lo: Floats, hi: Floats, p: int, barred: Bools) -> int:
    """Return the part with which p loses least, among those near it in the list, or -1."""
    n, best, least = len(chain.before), -1, np.inf
    left, right = chain.before[p], chain.behind[p]
    for _ in range(NEAR):
        if left >= 0:
            added = _added_loss(sides, lo, hi, p, left)
            if not barred[left] and (added < least or (added == least and left < best)):
                best, least = left, added
            left = chain.before[left]
        if right < n:
            added = _added_loss(sides, lo, hi, p, right)
            if not barred[right] and added < least:
                best, least = right, added
            right = chain.behind[right]
    return best


@kernel
def _merge(sides: Sides, chain: _Chain, lo: Floats, hi: Floats, p: int, q: int) -> None:
    """Merge part q into part p."""
    join(sides, lo[p], hi[p], lo[q], hi[q])
    chain.following[chain.last_row[p]] = chain.first_row[q]
    chain.last_row[p] = chain.last_row[q]
    chain.n_rows[p] += chain.n_rows[q]
    chain.n_rows[q] = 0
    if chain.before[q] >= 0:
        chain.behind[chain.before[q]] = chain.behind[q]
    if chain.behind[q] < len(chain.before):
        chain.before[chain.behind[q]] = chain.before[q]


@on_demand
def _grow(
    sides: Sides, limits: Limits, rows: RowArrays, chain: _Chain, lo: Floats, hi: Floats, p: int,
    barred: Bools,
) -> bool:  # fmt: skip
    """Merge a part with its nearest one until it may leave; return whether it may."""
    enough = 0
    while True:
        q = _nearest(sides, chain, lo, hi, p, barred)
        if q >= 0:
            _merge(sides, chain, lo, hi, p, q)
        if q < 0 or chain.n_rows[p] >= enough:
            if may_leave(limits, rows, _members(chain, p)):
                return True
            if chain.n_rows[p] >= MANY:
                enough = chain.n_rows[p] + chain.n_rows[p] // GROWTH
        if q < 0:
            return False


@kernel
def repaired(sides: Sides, limits: Limits, rows: RowArrays, parts: Parts) -> tuple[Parts, Ints]:
    """Return the parts that may leave, and the rows that are in none of them.

    A part that may not is merged with its nearest one until it may. Where not even all rows
    together may leave, merging could use up every part: then parts that may leave aren't merged.
    """
    chain = _chained(parts)
    lo, hi = parts.lo.copy(), parts.hi.copy()
    n = len(chain.n_rows)
    fails, barred = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    any_fails = False
    for p in range(n):
        fails[p] = not may_leave(limits, rows, parts.rows[parts.starts[p] : parts.starts[p + 1]])
        any_fails = any_fails or fails[p]
    if any_fails and not may_leave(limits, rows, parts.rows):
        for p in range(n):
            barred[p] = not fails[p]
    for p in range(n):
        if fails[p] and chain.n_rows[p] > 0:
            fails[p] = not _grow(sides, limits, rows, chain, lo, hi, p, barred)
    return _gathered(chain, lo, hi, fails)


@kernel
def _gathered(chain: _Chain, lo: Floats, hi: Floats, fails: Bools) -> tuple[Parts, Ints]:
    """Return the parts that don't fail, and the rows of the others."""
    n = len(chain.n_rows)
    order = np.empty(len(chain.following), np.int64)
    starts = np.zeros(n + 1, np.int64)
    n_kept, at, n_lost = 0, 0, 0
    kept_lo, kept_hi = np.empty_like(lo), np.empty_like(hi)
    for p in range(n):
        if chain.n_rows[p] == 0:
            continue
        members = _members(chain, p)
        if fails[p]:
            n_lost += len(members)
            # Rows that may not leave are put after all others.
            for i in range(len(members)):
                order[len(order) - n_lost + i] = members[i]
            continue
        for i in range(len(members)):
            order[at + i] = members[i]
        at += len(members)
        starts[n_kept + 1] = at
        set_row(kept_lo, n_kept, lo[p])
        set_row(kept_hi, n_kept, hi[p])
        n_kept += 1
    return (
        Parts(order[:at], starts[: n_kept + 1], kept_lo[:n_kept], kept_hi[:n_kept]),
        in_order(order[at:]),
    )
