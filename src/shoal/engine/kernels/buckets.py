"""Buckets of sensitive values: rows of one bucket are interchangeable when groups are filled.

For t-closeness (thesis, §3.4.1) values that are near each other share a bucket; the fewer buckets,
the farther a group can be from the window: by at most ``cost``. For beta-likeness (§4.3.1) values
that may be about equally frequent share one.

Everything is counted in rows, so that costs are whole numbers and ties are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import order_of
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.emd import Trees
from shoal.engine.kernels.likeness import SLACK

__all__ = ["Buckets", "by_order", "by_share", "by_tree", "one_bucket"]


class Buckets(NamedTuple):
    """The bucket of each value of the window (-1: no row has it), and properties of the buckets.

    ``sizes`` counts the rows of each. Distances are whole numbers, in units of 1 / ``whole``: two
    buckets are at most as far apart as their ``first`` and ``last`` values. ``cost`` is the most
    that moving earth inside the buckets may cost, in rows times distance.
    """

    of_value: Ints
    sizes: Ints
    first: Ints
    last: Ints
    cost: int
    whole: int


@kernel
def _numbered(of_value: Ints, counts: Ints, n: int, cost: int, whole: int) -> Buckets:
    """Return the buckets, numbered in the order of their first values."""
    number, found = np.full(n, -1, np.int64), 0
    sizes, first, last = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for v in range(len(of_value)):
        if of_value[v] < 0:
            continue
        if number[of_value[v]] < 0:
            number[of_value[v]] = found
            first[found] = v
            found += 1
        bucket = number[of_value[v]]
        of_value[v] = bucket
        sizes[bucket] += counts[v]
        last[bucket] = v
    return Buckets(of_value, sizes[:found], first[:found], last[:found], cost, whole)


@kernel
def one_bucket(counts: Ints) -> Buckets:
    """Return one bucket of all values."""
    of_value = np.zeros(len(counts), np.int64)
    for v in range(len(counts)):
        if counts[v] == 0:
            of_value[v] = -1
    return _numbered(of_value, counts, 1, 0, 1)


@kernel
def _most_saving(saves: Ints, since: Ints, n: int) -> int:
    """Return the bucket whose cut saves most; of equal ones the oldest."""
    chosen = 0
    for b in range(1, n):
        if saves[b] > saves[chosen] or (saves[b] == saves[chosen] and since[b] < since[chosen]):
            chosen = b
    return chosen


# -- t-closeness of numbers ------------------------------------------------------------------------


class _Sums(NamedTuple):
    """The values that occur, and the numbers of rows and sums of values before each."""

    values: Ints
    rows: Ints
    weighted: Ints


@kernel
def _summed(counts: Ints) -> _Sums:
    values = np.flatnonzero(counts)
    rows, weighted = np.zeros(len(values) + 1, np.int64), np.zeros(len(values) + 1, np.int64)
    for i in range(len(values)):
        rows[i + 1] = rows[i] + counts[values[i]]
        weighted[i + 1] = weighted[i] + counts[values[i]] * values[i]
    return _Sums(values, rows, weighted)


@kernel
def _interval_cost(sums: _Sums, begin: int, end: int) -> int:
    """Return the most that moving earth inside a bucket of consecutive values costs (Theorem 3.2).

    The sum of distances to one value is convex in that value, so it is largest at an end.
    """
    rows = sums.rows[end] - sums.rows[begin]
    weighted = sums.weighted[end] - sums.weighted[begin]
    to_first = weighted - rows * sums.values[begin]
    return max(to_first, rows * sums.values[end - 1] - weighted)


@kernel
def _best_cut(sums: _Sums, begin: int, end: int) -> tuple[int, int]:
    """Return the first cut of a bucket with the least cost of both halves, and that cost."""
    best, least = begin, -1
    for cut in range(begin + 1, end):
        cost = _interval_cost(sums, begin, cut) + _interval_cost(sums, cut, end)
        if least < 0 or cost < least:
            best, least = cut, cost
    return best, least


@kernel
def by_order(counts: Ints, t: float, spent: float) -> Buckets:
    """Return buckets of numbers: the one whose cut saves most is cut until the cost is below t.

    A part of t is ``spent`` already.
    """
    sums, n_rows = _summed(counts), 0
    m, whole = len(sums.values), max(len(counts) - 1, 1)
    for count in counts:
        n_rows += count
    begin, end = np.zeros(m, np.int64), np.full(m, m, np.int64)
    cut, saves, since = np.zeros(m, np.int64), np.zeros(m, np.int64), np.zeros(m, np.int64)
    cost, n = _interval_cost(sums, 0, m), 1
    cut[0], halves = _best_cut(sums, 0, m)
    saves[0] = cost - halves if m > 1 else -1
    while cost + spent * n_rows * whole >= t * n_rows * whole * (1.0 - SLACK):
        chosen = _most_saving(saves, since, n)
        if saves[chosen] < 0:
            break
        cost -= saves[chosen]
        begin[n], end[n] = cut[chosen], end[chosen]
        end[chosen] = cut[chosen]
        for b in (chosen, n):
            since[b] = 2 * n + (b == n)
            cut[b], halves = _best_cut(sums, begin[b], end[b])
            saves[b] = -1
            if halves >= 0:
                saves[b] = _interval_cost(sums, begin[b], end[b]) - halves
        n += 1
    of_value = np.full(len(counts), -1, np.int64)
    for b in range(n):
        for i in range(begin[b], end[b]):
            of_value[sums.values[i]] = b
    return _numbered(of_value, counts, n, cost, whole)


# -- t-closeness of categories ---------------------------------------------------------------------


class _Nodes(NamedTuple):
    """Of each node of a tree: its rows, its different values, and the fewest rows of one value."""

    first: int
    rows: Ints
    values: Ints
    fewest: Ints


@kernel
def _occupied(trees: Trees, j: int, values: Ints, counts: Ints) -> _Nodes:
    tree = trees.trees[j]
    first, n_nodes = tree["first_node"], tree["n_nodes"]
    rows, kinds = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    fewest = np.full(n_nodes, np.iinfo(np.int64).max, np.int64)
    for v in range(len(values)):
        if counts[v] > 0:
            node = trees.leaf_node[tree["first_leaf"] + values[v]] - first
            rows[node], kinds[node], fewest[node] = counts[v], 1, counts[v]
    for node in range(n_nodes - 1, 0, -1):
        parent = trees.nodes["parent"][first + node] - first
        rows[parent] += rows[node]
        kinds[parent] += kinds[node]
        fewest[parent] = min(fewest[parent], fewest[node])
    return _Nodes(first, rows, kinds, fewest)


@kernel
def _settled(trees: Trees, nodes: _Nodes, node: int) -> int:
    """Return the lowest node under a node that has all of its values."""
    last = len(nodes.rows)
    at = node + 1
    while at < last and nodes.values[node] > 0:
        # Children follow their parent; a child with all of its values is examined next.
        if trees.nodes["depth"][nodes.first + at] <= trees.nodes["depth"][nodes.first + node]:
            break
        parent = trees.nodes["parent"][nodes.first + at] - nodes.first
        if parent == node and nodes.values[at] == nodes.values[node]:
            node = at
        at += 1
    return node


@kernel
def _node_cost(trees: Trees, nodes: _Nodes, node: int) -> int:
    """Return the most that moving earth inside the bucket of a node costs (Theorem 3.2)."""
    return trees.nodes["height"][nodes.first + node] * (nodes.rows[node] - nodes.fewest[node])


@kernel
def _children(trees: Trees, nodes: _Nodes, node: int) -> Ints:
    """Return the children of a node that have rows, each as its lowest equivalent node."""
    found, n = np.empty(nodes.values[node], np.int64), 0
    if trees.nodes["height"][nodes.first + node] == 0:
        return found[:0]
    for at in range(node + 1, len(nodes.rows)):
        if trees.nodes["depth"][nodes.first + at] <= trees.nodes["depth"][nodes.first + node]:
            break
        if trees.nodes["parent"][nodes.first + at] - nodes.first == node and nodes.rows[at] > 0:
            found[n] = _settled(trees, nodes, at)
            n += 1
    return found[:n]


@kernel
def _saves(trees: Trees, nodes: _Nodes, node: int) -> int:
    """Return what cutting a node into its children saves; -1: it is a leaf."""
    saved, children = _node_cost(trees, nodes, node), _children(trees, nodes, node)
    for child in children:
        saved -= _node_cost(trees, nodes, child)
    return saved if len(children) > 0 else -1


@kernel
def by_tree(trees: Trees, j: int, values: Ints, counts: Ints, t: float, spent: float) -> Buckets:
    """Return buckets of categories: the best node is cut until the cost is below t."""
    nodes = _occupied(trees, j, values, counts)
    whole = max(trees.nodes["height"][nodes.first], 1)
    leaves = np.empty(max(nodes.values[0], 1), np.int64)
    saves, since, latest = np.empty(len(leaves), np.int64), np.zeros(len(leaves), np.int64), 1
    leaves[0], n = _settled(trees, nodes, 0), 1
    saves[0] = _saves(trees, nodes, leaves[0])
    cost = _node_cost(trees, nodes, leaves[0])
    all_rows = nodes.rows[0] * whole
    while cost + spent * all_rows >= t * all_rows * (1.0 - SLACK):
        chosen = _most_saving(saves, since, n)
        if saves[chosen] < 0:
            break
        cost -= saves[chosen]
        children = _children(trees, nodes, leaves[chosen])
        for i in range(len(children)):
            place = chosen if i == 0 else n
            leaves[place], since[place] = children[i], latest
            saves[place] = _saves(trees, nodes, children[i])
            n += i > 0
            latest += 1
    of_node = np.full(len(nodes.rows), -1, np.int64)
    for b in range(n):
        of_node[leaves[b]] = b
    for node in range(1, len(of_node)):
        # All nodes below a bucket belong to it.
        parent = trees.nodes["parent"][nodes.first + node] - nodes.first
        if of_node[node] < 0:
            of_node[node] = of_node[parent]
    of_value = np.full(len(counts), -1, np.int64)
    for v in range(len(counts)):
        if counts[v] > 0:
            leaf = trees.leaf_node[trees.trees["first_leaf"][j] + values[v]]
            of_value[v] = of_node[leaf - nodes.first]
    return _numbered(of_value, counts, n, cost, whole)


# -- beta-likeness ---------------------------------------------------------------------------------


@kernel
def by_share(counts: Ints, most: Floats, seen: Ints) -> tuple[Buckets, Floats]:
    """Return the fewest buckets whose rows may all have the bucket's least frequent value.

    ``most`` is the largest share of each value in a group; ``seen`` is the first row that has it,
    the only order that values of an open domain have. Return the largest share of each bucket too.
    Dynamic programming over the values by their largest share (thesis, Function DPpartition).
    """
    n_rows = 0
    for count in counts:
        n_rows += count
    values = np.flatnonzero(counts)
    by_row, shares = np.empty(len(values), np.int64), np.empty(len(values))
    for i in range(len(values)):
        by_row[i] = seen[values[i]]
    values = values[order_of(by_row)]
    in_order = values.copy()
    for i in range(len(values)):
        shares[i] = most[values[i]]
    values = values[order_of(shares)]
    m = len(values)
    fewest, begins = np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64)
    for end in range(1, m + 1):
        fewest[end], begins[end] = fewest[end - 1] + 1, end
        rows = counts[values[end - 1]]
        begin = end - 1
        while begin > 0:
            rows += counts[values[begin - 1]]
            if rows >= most[values[begin - 1]] * n_rows * (1.0 - SLACK):
                break
            if fewest[begin - 1] + 1 < fewest[end]:
                fewest[end], begins[end] = fewest[begin - 1] + 1, begin
            begin -= 1
    of_value = np.full(len(counts), -1, np.int64)
    end, n = m, 0
    while end > 0:
        for i in range(begins[end] - 1, end):
            of_value[values[i]] = n
        end = begins[end] - 1
        n += 1
    return _in_order_of_rows(of_value, counts, most, in_order, n)


@kernel
def _in_order_of_rows(
    of_value: Ints, counts: Ints, most: Floats, values: Ints, n: int
) -> tuple[Buckets, Floats]:
    """Return buckets numbered in the order of ``values``, and the largest share of each."""
    number, found = np.full(n, -1, np.int64), 0
    sizes, least = np.zeros(n, np.int64), np.full(n, np.inf)
    first, last = np.full(n, len(counts), np.int64), np.zeros(n, np.int64)
    for v in values:
        if number[of_value[v]] < 0:
            number[of_value[v]] = found
            found += 1
        of_value[v] = number[of_value[v]]
        sizes[of_value[v]] += counts[v]
        least[of_value[v]] = min(least[of_value[v]], most[v])
        first[of_value[v]] = min(first[of_value[v]], v)
        last[of_value[v]] = max(last[of_value[v]], v)
    return Buckets(of_value, sizes, first, last, 0, 1), least
