"""The family of algorithms that partition rows by which of their values are missing.

Rows of one partition have values in the same attributes. A row leaves with others of its partition
if there are enough; the algorithms differ in what they do otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from shoal.engine.deadlines import DueRowAnonymizer
from shoal.engine.jit import kernel
from shoal.engine.kernels import rng
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.kernels.boxes import box_of, shared_losses
from shoal.engine.kernels.held import people
from shoal.engine.kernels.neighbours import group_around, none
from shoal.engine.kernels.partitions import Partitions, partitions, spread, united
from shoal.engine.kernels.predicate import meets, needed
from shoal.engine.on_deadline import (
    NEVER,
    OnDeadlineEngine,
    OnDeadlineRules,
    OnDeadlineState,
    slot_of,
)
from shoal.engine.space import Space

__all__ = ["ByPartition", "PartitionEngine", "most_like", "whole_partitions"]


@dataclass(frozen=True, kw_only=True)
class ByPartition(DueRowAnonymizer):
    """An anonymizer that partitions rows, and keeps groups with little loss for reuse.

    Parameters
    ----------
    capacity
        The maximum number of held rows; 0: the policy's delay is the only bound. When one more
        arrives, the oldest row is due.
    kept
        The number of latest good groups that are kept for reuse; 0 for no reuse. A row that leaves
        alone into a kept group shows who it is to anyone who knows when it came.
    threshold
        A group is kept if it loses less than this.
    age
        The number of further rows for which a group is kept; None: as long as there is room.
    reuse
        Which of the kept groups that cover it a row joins.
    joins
        How rows join kept groups: together with enough others, or each alone.
    """

    kept: int = 0
    threshold: float = 0.5
    age: int | None = 2_000
    reuse: Literal["random", "best"] = "random"
    joins: Literal["together", "alone"] = "together"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._at_least(0, "kept")
        self._between(0, 1, "threshold")
        if self.age is not None:
            self._at_least(1, "age")
        self._one_of("reuse", ("random", "best"))
        self._one_of("joins", ("together", "alone"))


class PartitionEngine(OnDeadlineEngine):
    """One run of a `ByPartition` anonymizer."""

    def __init__(self, anonymizer: ByPartition, space: Space, seed: bytes) -> None:
        super().__init__(
            space, seed, capacity=anonymizer.capacity, n_kept=anonymizer.kept,
            reuse=anonymizer.reuse, joins=anonymizer.joins, threshold=anonymizer.threshold,
            age=NEVER if anonymizer.age is None else anonymizer.age,
        )  # fmt: skip


@kernel
def _distances(rules: OnDeadlineRules, state: OnDeadlineState, position: int) -> tuple[int, Floats]:
    """Return the slot of a row, and its distance to each row over the attributes both have."""
    slot, rows = slot_of(state, position), state.columns
    distance = np.empty(rows.marks["n"][0])
    lo, hi = box_of(rows.lo, slot), box_of(rows.hi, slot)
    shared_losses(rules.sides, rows.lo, rows.hi, len(distance), lo, hi, distance)
    return slot, distance


@kernel
def most_like(rules: OnDeadlineRules, state: OnDeadlineState, position: int) -> Ints:
    """Return a row and its nearest neighbours in the nearest partitions that have enough of them.

    (IDEA's clusteringInPartition is the case where the row's own partition has enough.)
    """
    slot, distance = _distances(rules, state, position)
    found = partitions(state.columns, slot)
    apart = spread(found)
    radius = 0.0
    while radius < np.inf:
        members = group_around(
            rules.limits, state.held, state.columns, slot, distance, apart, radius
        )
        if len(members) > 0:
            return members
        following = np.inf
        for other in found.apart:
            if radius < other < following:
                following = other
        radius = following
    return none()


@kernel
def whole_partitions(
    rules: OnDeadlineRules, state: OnDeadlineState, position: int, radius: float, at_random: bool
) -> Ints:
    """Return a row and its nearest neighbours in its partition, or all rows of several partitions.

    Rows nearer than ``radius`` make their partition more similar to that of the row (the
    R-likeness of K-VARP); with a radius of 0 there are none.
    """
    slot, distance = _distances(rules, state, position)
    found = partitions(state.columns, slot)
    apart = spread(found)
    members = group_around(rules.limits, state.held, state.columns, slot, distance, apart, 0.0)
    if len(members) > 0:
        return members
    n_near = np.zeros(len(found.apart), np.int64)
    for c in range(len(distance)):
        if found.of[c] >= 0 and distance[c] < radius:
            n_near[found.of[c]] += 1
    return _merged(rules, state, slot, found, n_near, at_random)


@kernel
def _merged(
    rules: OnDeadlineRules,
    state: OnDeadlineState,
    slot: int,
    found: Partitions,
    n_near: Ints,
    at_random: bool,
) -> Ints:
    """Merge the partition of a row with others until they can be a group; return all their rows.

    The partition with the most similar attributes comes first; of several, the one with the most
    rows near; of these, the one with the most rows; of these, a random one or the one with the
    oldest row.
    """
    chosen = np.zeros(len(found.apart), np.bool_)
    chosen[found.of[slot]] = True
    n_rows = found.n_rows[found.of[slot]]
    for _ in range(len(chosen) - 1):
        following = _following(state, found, n_near, chosen, at_random)
        chosen[following] = True
        n_rows += found.n_rows[following]
        if n_rows >= needed(rules.limits):
            positions = united(state.columns, found, chosen)
            subjects, sensitive = people(state.held, positions)
            if meets(rules.limits, subjects, sensitive):
                return positions
    return none()


@kernel
def _following(
    state: OnDeadlineState, found: Partitions, n_near: Ints, chosen: Bools, at_random: bool
) -> int:
    """Return the next partition to merge, among those that aren't chosen yet."""
    equal = np.empty(len(chosen), np.int64)
    n = 0
    for p in range(len(chosen)):
        if chosen[p]:
            continue
        if n > 0:
            q = equal[0]
            ahead = found.apart[q] - found.apart[p]
            if ahead == 0.0:
                ahead = n_near[p] - n_near[q]
            if ahead == 0.0:
                ahead = found.n_rows[p] - found.n_rows[q]
            if ahead < 0.0:
                continue
            if ahead > 0.0:
                n = 0
        equal[n] = p
        n += 1
    return equal[rng.below(state.rng, n)] if at_random and n > 1 else equal[0]
