"""How rows leave CASTLE: when the time of one is up, with its cluster or with several.

If there aren't enough rows, it joins a group that was kept.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.castle.clusters import close_clusters, leave_cluster, members, open_slots
from shoal.engine.castle.state import CastleRules, CastleState
from shoal.engine.decisions import GROUP, REUSE, SUPPRESSED, Out, decide, write_box
from shoal.engine.groups import may_be_group
from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels.array_tools import in_order, picked, picked_rows
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.boxes import (
    Box,
    box_loss,
    box_of,
    hull,
    join,
    joined_losses,
    mean_loss,
)
from shoal.engine.kernels.diverse_split import diverse_parts
from shoal.engine.kernels.held import forget, gather, window_of
from shoal.engine.kernels.joins import ALONE, ANY, ENOUGH, find_joins
from shoal.engine.kernels.kept_groups import keep, used_again
from shoal.engine.kernels.parts import in_parts
from shoal.engine.kernels.predicate import any_diversity, any_measured, count_subjects, needed
from shoal.engine.kernels.ring import wrap
from shoal.engine.kernels.split import by_subjects, repair_parts

__all__ = ["expire"]

#: At the end, fewer held subjects than this multiple of what a group needs are checked for being
#: too few for a group of their own.
REMAINDER = 16


# -- deadlines ------------------------------------------------------------------------------------


@kernel
def expire(rules: CastleRules, state: CastleState, position: int, at_end: bool, out: Out) -> None:
    """Decide a row whose time is up (thesis, delayConstraint)."""
    rows = state.held
    slot = rows.rows["cluster"][wrap(position, len(rows.rows))]
    slots = np.array([slot])
    enough = state.open.slots["n_subjects"][slot] >= rules.limits.k
    if not (enough and may_be_group(rules.limits, state.held, members(state, slots))):
        any_kept = state.kept.marks["n_kept"][0] > 0
        least = ENOUGH if rules.together else ALONE
        if any_kept and _reuse(rules, state, position, least, out):
            return
        slots = _merge(rules, state, slot)
        if len(slots) == 0:
            # The last resort is a kept group, with whatever company there is.
            last = rules.together and any_kept
            if not (last and _reuse(rules, state, position, ANY, out)):
                gaps = rows.rows["gaps"][wrap(position, len(rows.rows))]
                decide(out, position, SUPPRESSED, -1, state.marks["instants"][0], gaps)
                leave_cluster(rules, state, position)
            return
    _output(rules, state, _take_out(rules, state, slots, at_end), out)


@on_demand
def _reuse(rules: CastleRules, state: CastleState, due: int, least: int, out: Out) -> bool:
    """Let a row join a kept group, with others as its company; return whether it could."""
    rows, candidates = state.held, np.full(1, due)
    if least != ALONE:
        candidates = members(state, _small_slots(rules, state))
    positions, groups = find_joins(
        state.kept, rules.limits, rows, candidates, 0, rules.best, np.inf, least, state.rng
    )
    for i in range(len(positions)):
        shown, lo, hi = used_again(state.kept, groups[i], window_of(rows))
        box = write_box(out, lo, hi, shown)
        gaps = rows.rows["gaps"][wrap(positions[i], len(rows.rows))]
        decide(out, positions[i], REUSE, box, state.marks["instants"][0], gaps)
        leave_cluster(rules, state, positions[i])
    return len(positions) > 0


@kernel
def _small_slots(rules: CastleRules, state: CastleState) -> Ints:
    """Return the clusters that can't be a group: their rows would join kept groups if due."""
    slots, n = open_slots(state), 0
    for slot in slots:
        enough = state.open.slots["n_subjects"][slot] >= rules.limits.k
        if not (
            enough and may_be_group(rules.limits, state.held, members(state, np.full(1, slot)))
        ):
            slots[n] = slot
            n += 1
    return slots[:n]


@kernel
def _merge(rules: CastleRules, state: CastleState, slot: int) -> Ints:
    """Return a cluster and the nearest others that may be a group with it, or none if none may."""
    clusters = state.open
    n = len(clusters.slots)
    chosen = np.empty(state.marks["n_open"][0], np.int64)
    chosen[0] = slot
    n_chosen = 1
    taken = np.zeros(n, np.bool_)
    taken[slot] = True
    lo, hi = box_of(clusters.lo, slot), box_of(clusters.hi, slot)
    loss = clusters.loss[slot]
    joined = np.empty(n)
    if state.held.marks["n_subjects"][0] < rules.limits.k:
        return chosen[:0]
    if rules.hopeless and not may_be_group(
        rules.limits, state.held, members(state, open_slots(state))
    ):
        return chosen[:0]
    at_most = clusters.slots["n_subjects"][slot]
    while n_chosen < state.marks["n_open"][0]:
        joined_losses(rules.sides, clusters.lo, clusters.hi, n, lo, hi, joined)
        nearest = -1
        for c in range(n):
            if clusters.slots["birth"][c] < 0 or taken[c]:
                continue
            if (
                nearest < 0
                or joined[c] - loss < joined[nearest] - loss
                or (
                    joined[c] - loss == joined[nearest] - loss
                    and clusters.slots["birth"][c] < clusters.slots["birth"][nearest]
                )
            ):
                nearest = c
        taken[nearest] = True
        chosen[n_chosen] = nearest
        n_chosen += 1
        join(rules.sides, lo, hi, box_of(clusters.lo, nearest), box_of(clusters.hi, nearest))
        loss = box_loss(rules.sides, lo, hi)
        # A subject may lie in several clusters, so the sum is only an upper bound.
        at_most += clusters.slots["n_subjects"][nearest]
        if at_most >= rules.limits.k and may_be_group(
            rules.limits, state.held, members(state, chosen[:n_chosen])
        ):
            return chosen[:n_chosen]
    return chosen[:0]


@kernel
def _take_out(rules: CastleRules, state: CastleState, slots: Ints, at_end: bool) -> Ints:
    """Close clusters and return their rows.

    At the end of a stream, the rest of the rows is added if it can't be a group alone.
    """
    positions = members(state, slots)
    close_clusters(rules, state, slots, positions)
    few = REMAINDER * needed(rules.limits)
    if at_end and state.marks["n_open"][0] > 0 and state.held.marks["n_subjects"][0] < few:
        rest = open_slots(state)
        others = members(state, rest)
        everything = np.empty(len(positions) + len(others), np.int64)
        for i in range(len(positions)):
            everything[i] = positions[i]
        for i in range(len(others)):
            everything[len(positions) + i] = others[i]
        everything = in_order(everything)
        if not may_be_group(rules.limits, state.held, others) and may_be_group(
            rules.limits, state.held, everything
        ):
            close_clusters(rules, state, rest, others)
            return everything
    return positions


# -- groups ---------------------------------------------------------------------------------------


@kernel
def _output(rules: CastleRules, state: CastleState, positions: Ints, out: Out) -> None:
    """Publish rows as one group, or as several where there are enough (thesis, outputCluster)."""
    rows, limits = gather(state.held, positions), rules.limits
    part = np.zeros(len(positions), np.int64)
    n_parts = 1
    if count_subjects(rows.subjects) >= 2 * needed(limits):
        if any_diversity(limits):
            n_parts = diverse_parts(rules.sides, limits, state.rng, rows, part)
        else:
            n_parts = by_subjects(rules.sides, limits.k, state.rng, rows, part)
            if any_measured(limits):
                n_parts = repair_parts(rules.sides, limits, rows, part, n_parts)
    order, starts = in_parts(part, n_parts)
    for p in range(n_parts):
        members = order[starts[p] : starts[p + 1]]
        lo, hi = hull(rules.sides, rows.lo, rows.hi, members)
        # Which rows may join the group later must depend on the published box only.
        join(rules.shown, lo, hi, lo, hi)
        loss = box_loss(rules.sides, lo, hi)
        subjects, sensitive = picked(rows.subjects, members), picked_rows(rows.sensitive, members)
        n_subjects = count_subjects(subjects)
        group = state.marks["groups"][0]
        gaps = rows.gaps[members[0]]
        for member in members:
            gaps |= rows.gaps[member]
        mean = mean_loss(rules.sides, lo, hi)
        shown = Box(mean, group, len(members), n_subjects, gaps, window_of(state.held))
        box = write_box(out, lo, hi, shown)
        for member in members:
            decide(
                out, positions[member], GROUP, box, state.marks["instants"][0], rows.gaps[member]
            )
            forget(state.held, positions[member])
        _move_threshold(state, loss)
        if loss <= state.marks["threshold"][0] and len(state.kept.groups) > 0:
            since = out.progress["published"][0]
            keep(state.kept, lo, hi, shown, since, subjects, sensitive)
        state.marks["groups"][0] += 1


@kernel
def _move_threshold(state: CastleState, loss: float) -> None:
    """Set the threshold to the mean loss of the latest groups, summed from the oldest on."""
    recent, n = state.recent, state.marks["losses"][0]
    recent[n % len(recent)] = loss
    n += 1
    state.marks["losses"][0] = n
    total = 0.0
    for i in range(max(0, n - len(recent)), n):
        total += recent[i % len(recent)]
    state.marks["threshold"][0] = total / min(n, len(recent))
