"""Partitions: the held rows by which of their values are missing.

Rows of one partition have values in the same attributes. The distance of two partitions depends on
their sets of attributes alone (Jaccard), the distance of two rows on their values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import by_first, distinct, in_order
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.kernels.held_columns import HeldColumns

__all__ = ["Partitions", "attribute_distance", "partitions", "spread", "united"]


class Partitions(NamedTuple):
    """The partition of each slot (-1: a hole), and the distance and row count of each partition.

    Partitions are in the order of their oldest rows; distances are from the partition of one row.
    """

    of: Ints
    apart: Floats
    n_rows: Ints


@kernel
def _count(bits: int) -> int:
    """Return the number of bits that are set."""
    n = 0
    while bits > 0:
        bits &= bits - 1
        n += 1
    return n


@kernel
def attribute_distance(n_quasi: int, gaps: int, other: int) -> float:
    """Return one minus the share of common attributes among those that either has (Jaccard)."""
    either = n_quasi - _count(gaps & other)
    if either == 0:
        return 0.0
    return 1.0 - (n_quasi - _count(gaps | other)) / either


@kernel
def partitions(columns: HeldColumns, slot: int) -> Partitions:
    """Return the partitions of all held rows, with distances from that of the row in a slot."""
    slots, n, d = columns.slots, columns.marks["n"][0], len(columns.lo)
    keys = np.empty(n, np.int64)
    n_held = 0
    for c in range(n):
        if slots["position"][c] >= 0:
            keys[n_held] = slots["gaps"][c]
            n_held += 1
    number = by_first(keys[:n_held])
    n_partitions = distinct(number)
    of, apart = np.full(n, -1), np.empty(n_partitions)
    n_rows = np.zeros(n_partitions, np.int64)
    i = 0
    for c in range(n):
        if slots["position"][c] >= 0:
            of[c] = number[i]
            if n_rows[of[c]] == 0:
                gaps, other = slots["gaps"][slot], slots["gaps"][c]
                apart[of[c]] = attribute_distance(d, gaps, other)
            n_rows[of[c]] += 1
            i += 1
    return Partitions(of, apart, n_rows)


@kernel
def spread(found: Partitions) -> Floats:
    """Return the distance of the partition of each slot; infinity for a hole."""
    apart = np.empty(len(found.of))
    for c in range(len(apart)):
        apart[c] = found.apart[found.of[c]] if found.of[c] >= 0 else np.inf
    return apart


@kernel
def united(columns: HeldColumns, found: Partitions, chosen: Bools) -> Ints:
    """Return the positions of all rows of some partitions, in order."""
    positions = np.empty(len(found.of), np.int64)
    n = 0
    for c in range(len(found.of)):
        if found.of[c] >= 0 and chosen[found.of[c]]:
            positions[n] = columns.slots["position"][c]
            n += 1
    return in_order(positions[:n])
