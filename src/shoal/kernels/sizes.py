"""How many rows of each bucket a group takes: all rows, halved for as long as halves may be groups.

Thesis, Function ECSize with Procedure dichotomize (§3.4.2) and Function biSplit (§4.3.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal._jit import kernel
from shoal.kernels.arrays import Floats, Ints
from shoal.kernels.buckets import Buckets
from shoal.kernels.emd import Trees
from shoal.kernels.likeness import SLACK

__all__ = ["Rule", "distance", "group_sizes", "is_fair"]


class Rule(NamedTuple):
    """What a group of so many rows of each bucket must obey.

    It has at least ``fewest`` rows; of each bucket at most a share of ``most`` (Theorem 4.1); and
    moving earth between the buckets and inside of them costs at most ``t`` (Theorem 3.4). Distances
    are by the hierarchy of attribute j, or by order where j is -1.
    """

    buckets: Buckets
    most: Floats
    t: float
    fewest: int
    trees: Trees
    values: Ints
    j: int


@kernel
def distance(rule: Rule, one: int, other: int) -> int:
    """The largest distance between a value of one bucket and one of another."""
    first = min(rule.buckets.first[one], rule.buckets.first[other])
    last = max(rule.buckets.last[one], rule.buckets.last[other])
    if rule.j < 0:
        return last - first
    tree, nodes = rule.trees.trees[rule.j], rule.trees.nodes
    # Nodes are in pre-order: the lowest common ancestor of two leaves is found by climbing from the
    # deeper one, again and again.
    a = rule.trees.leaf_node[tree["first_leaf"] + rule.values[first]]
    b = rule.trees.leaf_node[tree["first_leaf"] + rule.values[last]]
    while a != b:
        if nodes["depth"][a] >= nodes["depth"][b]:
            a = nodes["parent"][a]
        else:
            b = nodes["parent"][b]
    return nodes["height"][a]


@kernel
def moved(rule: Rule, taken: Ints, n: int) -> int:
    """What it costs to move earth between buckets, in rows of the group times all rows.

    Excess goes to deficits in the order of the buckets. That is a way to move it, so the cheapest
    way costs no more.
    """
    n_all = 0
    for size in rule.buckets.sizes:
        n_all += size
    extra = np.empty(len(taken), np.int64)
    for b in range(len(taken)):
        extra[b] = taken[b] * n_all - rule.buckets.sizes[b] * n
    cost, source, target = 0, 0, 0
    while True:
        while source < len(extra) and extra[source] <= 0:
            source += 1
        while target < len(extra) and extra[target] >= 0:
            target += 1
        if source == len(extra) or target == len(extra):
            return cost
        flow = min(extra[source], -extra[target])
        cost += flow * distance(rule, source, target)
        extra[source] -= flow
        extra[target] += flow


@kernel
def is_fair(rule: Rule, taken: Ints) -> bool:
    """Whether a group may take so many rows of each bucket, whatever their values are."""
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
    cost = moved(rule, taken, n) + rule.buckets.cost * n
    return cost <= rule.t * n * n_all * rule.buckets.whole * (1.0 + SLACK)


@kernel
def group_sizes(rule: Rule) -> Ints:
    """The rows that each group takes of each bucket: all of them, halved as long as both halves
    are fair. Halves are rounded up on the left; the left one comes first.
    """
    n_buckets, n_all = len(rule.buckets.sizes), 0
    for size in rule.buckets.sizes:
        n_all += size
    room = 64
    stack, found = np.empty((room, n_buckets), np.int64), np.empty((room, n_buckets), np.int64)
    stack[0] = rule.buckets.sizes
    n_stack, n = 1, 0
    left, right = np.empty(n_buckets, np.int64), np.empty(n_buckets, np.int64)
    while n_stack > 0:
        n_stack -= 1
        for b in range(n_buckets):
            left[b] = (stack[n_stack, b] + 1) // 2
            right[b] = stack[n_stack, b] - left[b]
        if is_fair(rule, left) and is_fair(rule, right):
            stack[n_stack], stack[n_stack + 1] = right, left
            n_stack += 2
            continue
        if n == len(found):
            larger = np.empty((2 * n, n_buckets), np.int64)
            larger[:n] = found
            found = larger
        found[n] = stack[n_stack]
        n += 1
    return found[:n]
