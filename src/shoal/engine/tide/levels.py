"""Sensitive values by level: each value, and what is above it, so that shares can be compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import by_first, column, order_of
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.measured import ORDERED, RANGES, Measures
from shoal.engine.tide.grid import Fixed
from shoal.engine.tide.grow import Rules

__all__ = ["Levels", "levels_of"]

#: Numbers are cut into 2, 4, … 2**FINEST blocks.
FINEST = 8


class Levels(NamedTuple):
    """The values of rows, and what is above them, by level and row: the finest level is the last.

    They are numbers, another for each value or node of each level; ``n`` is how many there are.
    """

    nodes: Fixed
    n: int


@kernel
def levels_of(rules: Rules, sensitive: Ints) -> Levels:
    """Return the levels of the first measured value of each row; none if nothing is measured.

    Numbers are cut into blocks, each level into twice as many; those that differ by much are in
    different blocks of more levels. Categories have the levels of their tree, or one without it.
    """
    measures, j = rules.limits.measures, rules.measured
    if j < 0:
        return Levels(np.empty((0, 0), np.int32), 0)
    values = column(sensitive, j)
    is_ordered = False
    for i in range(len(measures.asked)):
        if measures.asked["attribute"][i] == j:
            is_ordered = measures.asked["kind"][i] in (ORDERED, RANGES)
            break
    if is_ordered:
        return _blocks(values)
    return _ancestors(measures, values, j)


@kernel
def _blocks(values: Ints) -> Levels:
    nodes = np.empty((FINEST, len(values)), np.int32)
    order, first = order_of(values), 0
    for place in range(len(order)):
        if values[order[place]] != values[order[first]]:
            first = place
        for level in range(FINEST):
            n_blocks = 2 << level
            nodes[level, order[place]] = n_blocks - 2 + first * n_blocks // len(order)
    return Levels(nodes, (2 << FINEST) - 2)


@kernel
def _ancestors(measures: Measures, values: Ints, j: int) -> Levels:
    trees = measures.trees
    height = 1
    if trees.trees["n_nodes"][j] > 0:
        height = max(1, trees.nodes["height"][trees.trees["first_node"][j]])
    nodes = np.empty((height, len(values)), np.int32)
    if trees.trees["n_nodes"][j] == 0:
        number = by_first(values)
        for i in range(len(values)):
            nodes[0, i] = number[i]
        return Levels(nodes, len(values))
    first = trees.trees["first_node"][j]
    for i in range(len(values)):
        node = trees.leaf_node[trees.trees["first_leaf"][j] + values[i]]
        for level in range(height - 1, -1, -1):
            # A leaf that isn't at the bottom is on all levels below.
            nodes[level, i] = node - first
            if trees.nodes["depth"][node] > level:
                node = trees.nodes["parent"][node]
    return Levels(nodes, trees.trees["n_nodes"][j])
