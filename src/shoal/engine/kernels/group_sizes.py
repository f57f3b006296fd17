"""The number of rows that each group takes of each bucket: all rows, halved while halves are valid.

Thesis, Function ECSize with Procedure dichotomize (§3.4.2) and Function biSplit (§4.3.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.buckets import Buckets
from shoal.engine.kernels.emd import Trees
from shoal.engine.kernels.likeness import SLACK

__all__ = ["SizeRule", "group_sizes", "is_fair", "moved"]


class SizeRule(NamedTuple):
    """The bounds on the numbers of rows that a group takes of each bucket.

    A group has at least ``fewest`` rows; of each bucket at most a share of ``most`` (Theorem 4.1);
    and moving earth between the buckets and inside of them costs at most ``t`` (Theorem 3.4), of
    which some is ``spent``. Distances are by the hierarchy of attribute j, or by order if j is -1.
    """

    buckets: Buckets
    most: Floats
    t: float
    spent: float
    fewest: int
    trees: Trees
    values: Ints
    j: int


@kernel
def _moved_in_order(buckets: Buckets, extra: Ints) -> float:
    """Return the cost of moving excess to deficits where buckets are intervals, in order.

    The farthest values of two buckets are as far apart as their middles and half of both lengths.
    Lengths cost the same however earth is moved, and along a line it is best moved in order.
    """
    cost, source, target = 0.0, 0, 0
    while True:
        while source < len(extra) and extra[source] <= 0:
            source += 1
        while target < len(extra) and extra[target] >= 0:
            target += 1
        if source == len(extra) or target == len(extra):
            return cost
        flow = min(extra[source], -extra[target])
        first = min(buckets.first[source], buckets.first[target])
        last = max(buckets.last[source], buckets.last[target])
        cost += float(flow) * (last - first)
        extra[source] -= flow
        extra[target] += flow


@kernel
def _moved_in_tree(rule: SizeRule, extra: Ints) -> float:
    """Return the cost of moving excess to deficits where buckets are subtrees.

    As for single values (see `tree_emd`), with a bucket for a leaf: what is moved between two
    buckets passes their lowest common ancestor.
    """
    tree, nodes = rule.trees.trees[rule.j], rule.trees.nodes
    first, n_nodes = tree["first_node"], tree["n_nodes"]
    sums = np.zeros(n_nodes, np.int64)
    for b in range(len(extra)):
        sums[_ancestor(rule, rule.buckets.first[b], rule.buckets.last[b]) - first] = extra[b]
    more, less = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    cost = 0.0
    for node in range(n_nodes - 1, -1, -1):
        cost += float(nodes["height"][first + node]) * min(more[node], less[node])
        parent = nodes["parent"][first + node] - first
        if parent == node:
            continue
        sums[parent] += sums[node]
        if sums[node] > 0:
            more[parent] += sums[node]
        else:
            less[parent] -= sums[node]
    return cost


@kernel
def _ancestor(rule: SizeRule, one: int, other: int) -> int:
    """Return the lowest common ancestor of two values of the window."""
    nodes, first_leaf = rule.trees.nodes, rule.trees.trees["first_leaf"][rule.j]
    a = rule.trees.leaf_node[first_leaf + rule.values[one]]
    b = rule.trees.leaf_node[first_leaf + rule.values[other]]
    while a != b:
        if nodes["depth"][a] >= nodes["depth"][b]:
            a = nodes["parent"][a]
        else:
            b = nodes["parent"][b]
    return a


@kernel
def moved(rule: SizeRule, taken: Ints, n: int) -> float:
    """Return the cost of moving earth between buckets, in rows of the group times all rows."""
    n_all = 0
    for size in rule.buckets.sizes:
        n_all += size
    extra = np.empty(len(taken), np.int64)
    for b in range(len(taken)):
        extra[b] = taken[b] * n_all - rule.buckets.sizes[b] * n
    if rule.j < 0:
        return _moved_in_order(rule.buckets, extra)
    return _moved_in_tree(rule, extra)


@kernel
def is_fair(rule: SizeRule, taken: Ints) -> bool:
    """Whether a group may take these numbers of rows of each bucket, whatever their values are."""
    n, n_all = 0, 0
    for b in range(len(taken)):
        n += taken[b]
        n_all += rule.buckets.sizes[b]
    if n == 0 or n < rule.fewest:
        return False
    for b in range(len(taken)):
        if taken[b] > rule.most[b] * n * (1.0 + SLACK):
            return False
    if not np.isfinite(rule.t):
        return True
    cost = moved(rule, taken, n) + float(rule.buckets.cost) * n
    whole = float(n) * n_all * rule.buckets.whole
    return cost + rule.spent * whole <= rule.t * whole * (1.0 + SLACK)


@kernel
def set_counts(table: Ints, i: int, counts: Ints) -> None:
    """Write a row of a table. (Assigning a slice takes seconds to compile.)"""
    for b in range(len(counts)):
        table[i, b] = counts[b]


@kernel
def group_sizes(rule: SizeRule) -> Ints:
    """Return the rows that each group takes of each bucket.

    All rows are halved as long as both halves are fair. The left half is rounded up, and is first.
    """
    n_buckets, n_all = len(rule.buckets.sizes), 0
    for size in rule.buckets.sizes:
        n_all += size
    room = 64
    stack, found = np.empty((room, n_buckets), np.int64), np.empty((room, n_buckets), np.int64)
    set_counts(stack, 0, rule.buckets.sizes)
    n_stack, n = 1, 0
    left, right = np.empty(n_buckets, np.int64), np.empty(n_buckets, np.int64)
    while n_stack > 0:
        n_stack -= 1
        for b in range(n_buckets):
            left[b] = (stack[n_stack, b] + 1) // 2
            right[b] = stack[n_stack, b] - left[b]
        if is_fair(rule, left) and is_fair(rule, right):
            set_counts(stack, n_stack, right)
            set_counts(stack, n_stack + 1, left)
            n_stack += 2
            continue
        if n == len(found):
            larger = np.empty((2 * n, n_buckets), np.int64)
            for g in range(n):
                set_counts(larger, g, found[g])
            found = larger
        set_counts(found, n, stack[n_stack])
        n += 1
    return found[:n]
