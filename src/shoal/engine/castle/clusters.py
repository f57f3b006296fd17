"""The open clusters of CASTLE: which one a row joins, and how rows join and leave it.

Functions that the thesis names have its name in their description.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.castle.state import CastleRules, CastleState
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter
from shoal.engine.kernels.array_tools import in_order
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.boxes import box_loss, box_of, covers, join, set_box
from shoal.engine.kernels.held import forget
from shoal.engine.kernels.leaf_losses import fit, joined_by_leaf
from shoal.engine.kernels.ring import wrap

__all__ = [
    "best_selection",
    "close_clusters",
    "join_cluster",
    "leave_cluster",
    "members",
    "open_cluster",
    "open_slots",
]


@kernel
def best_selection(
    rules: CastleRules, state: CastleState, lo: Floats, hi: Floats, joined: Floats
) -> int:
    """Return the open cluster for a row, or -1 for a new one (thesis, bestSelection)."""
    clusters = state.open
    n = len(clusters.slots)
    if state.marks["n_open"][0] == 0:
        return -1
    joined_by_leaf(rules.sides, rules.by_leaf, clusters.lo, clusters.hi, lo, hi, joined)
    least = _least(joined, clusters.loss)
    best, within = -1, False
    for c in range(n):
        if joined[c] - clusters.loss[c] != least:
            continue
        fits = joined[c] <= state.marks["threshold"][0]
        if best < 0 or (fits and not within):
            best, within = c, fits
        elif fits == within and (
            clusters.slots["n_subjects"][c] < clusters.slots["n_subjects"][best]
            or (
                clusters.slots["n_subjects"][c] == clusters.slots["n_subjects"][best]
                and clusters.slots["birth"][c] < clusters.slots["birth"][best]
            )
        ):
            best = c
    if not within and state.marks["n_open"][0] < n:
        return -1
    return best


@kernel
def _least(joined: Floats, losses: Floats) -> float:
    """Return the least enlargement. (Four at a time, none of which waits for another.)"""
    n = len(joined)
    a = b = c = d = np.inf
    for i in range(0, n - 3, 4):
        a = min(a, joined[i] - losses[i])
        b = min(b, joined[i + 1] - losses[i + 1])
        c = min(c, joined[i + 2] - losses[i + 2])
        d = min(d, joined[i + 3] - losses[i + 3])
    for i in range(n - n % 4, n):
        a = min(a, joined[i] - losses[i])
    return min(min(a, b), min(c, d))


@kernel
def open_cluster(state: CastleState) -> int:
    """Open a cluster without rows; return its slot."""
    clusters = state.open
    slot = 0
    while clusters.slots["birth"][slot] >= 0:
        slot += 1
    clusters.slots["birth"][slot] = state.marks["births"][0]
    state.marks["n_open"][0] += 1
    state.marks["births"][0] += 1
    return slot


@kernel
def _free_slot(state: CastleState, slot: int) -> None:
    clusters = state.open
    for d in range(len(clusters.lo)):
        clusters.lo[d, slot] = np.inf
        clusters.hi[d, slot] = -np.inf
    clusters.loss[slot] = -np.inf
    clusters.slots["birth"][slot] = -1
    clusters.slots["n_subjects"][slot] = 0
    clusters.slots["first"][slot] = -1
    clusters.slots["last"][slot] = -1
    state.marks["n_open"][0] -= 1


@kernel
def join_cluster(rules: CastleRules, state: CastleState, slot: int) -> None:
    """Add the latest row to a cluster."""
    clusters, rows = state.open, state.held
    position = rows.marks["upcoming"][0] - 1
    at = wrap(position, len(rows.rows))
    # The first row sets the box of the slot, even if all of its values are missing.
    widens = clusters.slots["last"][slot] < 0
    if widens:
        clusters.slots["first"][slot] = position
    else:
        state.held.rows["following"][wrap(clusters.slots["last"][slot], len(rows.rows))] = position
    clusters.slots["last"][slot] = position
    _count_in(rules, state, slot, rows.rows["subject"][at])
    for d in range(len(clusters.lo)):
        if rows.lo[at, d] < clusters.lo[d, slot] or rows.hi[at, d] > clusters.hi[d, slot]:
            widens = True
    if widens:
        lo, hi = box_of(clusters.lo, slot), box_of(clusters.hi, slot)
        join(rules.sides, lo, hi, rows.lo[at], rows.hi[at])
        _set_box(rules, state, slot, lo, hi)


@kernel
def _count_in(rules: CastleRules, state: CastleState, slot: int, subject: int) -> None:
    """Count the subject of a row that joins a cluster, in it and among all that are held."""
    if rules.each_row or counter.add(state.counter, slot, subject):
        state.open.slots["n_subjects"][slot] += 1
    if rules.each_row or counter.add(state.counter, counter.EVERYWHERE, subject):
        state.held.marks["n_subjects"][0] += 1


@kernel
def _count_out(rules: CastleRules, state: CastleState, slot: int, subject: int) -> None:
    """Uncount the subject of a row that leaves a cluster."""
    if rules.each_row or counter.remove(state.counter, slot, subject):
        state.open.slots["n_subjects"][slot] -= 1
    if rules.each_row or counter.remove(state.counter, counter.EVERYWHERE, subject):
        state.held.marks["n_subjects"][0] -= 1


@kernel
def _set_box(rules: CastleRules, state: CastleState, slot: int, lo: Floats, hi: Floats) -> None:
    set_box(state.open.lo, slot, lo)
    set_box(state.open.hi, slot, hi)
    state.open.loss[slot] = box_loss(rules.sides, lo, hi)
    fit(rules.sides, rules.by_leaf, slot, lo, hi)


@kernel
def leave_cluster(rules: CastleRules, state: CastleState, position: int) -> None:
    """Remove a row from its cluster, and shrink the cluster's box to the others."""
    clusters, rows = state.open, state.held
    at = wrap(position, len(rows.rows))
    slot = rows.rows["cluster"][at]
    before, member = -1, clusters.slots["first"][slot]
    while member != position:
        before, member = member, rows.rows["following"][wrap(member, len(rows.rows))]
    if before < 0:
        clusters.slots["first"][slot] = rows.rows["following"][at]
    else:
        state.held.rows["following"][wrap(before, len(rows.rows))] = rows.rows["following"][at]
    if clusters.slots["last"][slot] == position:
        clusters.slots["last"][slot] = before
    _count_out(rules, state, slot, rows.rows["subject"][at])
    forget(rows, position)
    member = clusters.slots["first"][slot]
    if member < 0:
        _free_slot(state, slot)
        return
    first = wrap(member, len(rows.rows))
    lo, hi = rows.lo[first].copy(), rows.hi[first].copy()
    old_lo, old_hi = box_of(clusters.lo, slot), box_of(clusters.hi, slot)
    # Where the row didn't reach an end of a range, another row does; and in a large cluster a few
    # rows reach as far as all do. So the loop below rarely visits all of them.
    for d in range(len(lo)):
        if rules.sides.attributes["first_leaf"][d] < 0:
            if rows.lo[at, d] > old_lo[d]:
                lo[d] = old_lo[d]
            if rows.hi[at, d] < old_hi[d]:
                hi[d] = old_hi[d]
    while member >= 0 and not covers(lo, hi, old_lo, old_hi):
        at = wrap(member, len(rows.rows))
        if not covers(lo, hi, rows.lo[at], rows.hi[at]):
            join(rules.sides, lo, hi, rows.lo[at], rows.hi[at])
        member = state.held.rows["following"][at]
    _set_box(rules, state, slot, lo, hi)


@kernel
def members(state: CastleState, slots: Ints) -> Ints:
    """Return the positions of the rows of some clusters, in order of arrival."""
    n = 0
    for slot in slots:
        member = state.open.slots["first"][slot]
        while member >= 0:
            n += 1
            member = state.held.rows["following"][wrap(member, len(state.held.rows))]
    positions = np.empty(n, np.int64)
    n = 0
    for slot in slots:
        member = state.open.slots["first"][slot]
        while member >= 0:
            positions[n] = member
            n += 1
            member = state.held.rows["following"][wrap(member, len(state.held.rows))]
    return in_order(positions) if len(slots) > 1 else positions


@kernel
def open_slots(state: CastleState) -> Ints:
    """Return the slots of all open clusters."""
    slots = np.empty(state.marks["n_open"][0], np.int64)
    n = 0
    for slot in range(len(state.open.slots)):
        if state.open.slots["birth"][slot] >= 0:
            slots[n] = slot
            n += 1
    return slots


@kernel
def close_clusters(rules: CastleRules, state: CastleState, slots: Ints, positions: Ints) -> None:
    """Close clusters whose rows are given; the rows are still held."""
    for position in positions:
        row = state.held.rows[wrap(position, len(state.held.rows))]
        _count_out(rules, state, row["cluster"], row["subject"])
    for slot in slots:
        _free_slot(state, slot)
