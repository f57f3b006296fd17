"""The active R-tree: leaves of rows that may leave together, in nodes by their position in space.

A node has up to `FAN_OUT` leaves, and the root has all nodes: two steps lead to a leaf, and each
scans boxes that are contiguous in memory. This module knows boxes only; the engine knows the rows
of a leaf.

Reference: A. Guttman, "R-trees: A Dynamic Index Structure for Spatial Searching", SIGMOD 1984.
Boxes are measured by their loss, not by their area, which is 0 if one side is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import inlined, kernel
from shoal.engine.kernels import counter
from shoal.engine.kernels.arrays import Floats, Ints, Records, staggered
from shoal.engine.kernels.boxes import (
    Sides,
    box_loss,
    box_of,
    boxes_at,
    join,
    joined_losses,
    set_box,
    widen_box,
)
from shoal.engine.rtree.node_split import halves

__all__ = [
    "FAN_OUT",
    "RTree",
    "Wanted",
    "add_leaf",
    "choose_node",
    "empty",
    "find_leaf",
    "find_leaf_anywhere",
    "grown",
    "nearest_leaf",
    "remove_leaf",
    "set_mature",
    "shrink_leaf",
    "split_node",
    "tidy_node",
    "widen_leaf",
]

#: The most leaves of a node; the fewest that a half gets in a split, and the fewest that a node may
#: be left with.
FAN_OUT = 64
LEAST = FAN_OUT * 2 // 5
FEWEST = FAN_OUT // 8

#: A leaf: its node, its place there, its serial number (-1: the leaf is free), its number of rows,
#: the positions of the first and the last of them, the number of rows at which a split is tried
#: next, and whether it may be published.
LEAF = np.dtype(
    [
        ("node", "i8"),
        ("place", "i8"),
        ("birth", "i8"),
        ("n_rows", "i8"),
        ("first", "i8"),
        ("last", "i8"),
        ("next_try", "i8"),
        ("mature", "?"),
    ]
)
#: A node: its serial number (-1: the node is free), and its number of leaves.
NODE = np.dtype([("birth", "i8"), ("n_leaves", "i8")])
#: The numbers of leaves and nodes, how many indices of each have ever been in use, how many of
#: these are free, the number of leaves that may be published, and the next serial number.
MARKS = np.dtype(
    [
        ("n_leaves", "i8"),
        ("leaf_numbers", "i8"),
        ("free_leaves", "i8"),
        ("n_nodes", "i8"),
        ("node_numbers", "i8"),
        ("free_nodes", "i8"),
        ("n_mature", "i8"),
        ("births", "i8"),
    ]
)


class RTree(NamedTuple):
    """The boxes of leaves and of nodes (attributes along the first axis), and their relations.

    A free leaf or node has an empty box with a loss of minus infinity, so that everything enlarges
    it infinitely. ``free`` and ``free_nodes`` are stacks of free indices.
    """

    lo: Floats
    hi: Floats
    loss: Floats
    leaves: Records
    free: Ints
    node_lo: Floats
    node_hi: Floats
    node_loss: Floats
    nodes: Records
    members: Ints
    free_nodes: Ints
    marks: Records


def empty(n_quasi: int, leaves: int) -> RTree:
    """Return an empty tree with room for ``leaves`` leaves."""
    # A node of few leaves is dissolved unless it is the only one; there is one more node during a
    # split or a dissolution.
    n_nodes = leaves // FEWEST + 4
    records, nodes = np.zeros(leaves, LEAF), np.zeros(n_nodes, NODE)
    records["birth"] = nodes["birth"] = -1
    return RTree(
        np.full((n_quasi, staggered(leaves)), np.inf),
        np.full((n_quasi, staggered(leaves)), -np.inf),
        np.full(leaves, -np.inf),
        records,
        np.zeros(leaves, np.int64),
        np.full((n_quasi, n_nodes), np.inf),
        np.full((n_quasi, n_nodes), -np.inf),
        np.full(n_nodes, -np.inf),
        nodes,
        np.zeros((n_nodes, FAN_OUT + 1), np.int64),
        np.zeros(n_nodes, np.int64),
        np.zeros(1, MARKS),
    )


def grown(tree: RTree, leaves: int) -> RTree:
    """Return the same tree with room for more leaves."""
    larger = empty(len(tree.lo), leaves)
    for before, after in zip(tree, larger, strict=True):
        after[tuple(slice(n) for n in before.shape)] = before
    return larger


# -- finding --------------------------------------------------------------------------------------


@kernel
def choose_node(sides: Sides, tree: RTree, lo: Floats, hi: Floats) -> int:
    """Return the node that a box enlarges least; of several the one that loses least; -1: none.

    Ties are broken by serial number, here and everywhere, since indices are reused.
    """
    n = tree.marks["node_numbers"][0]
    births, losses = tree.nodes["birth"], tree.node_loss
    joined = np.empty(n)
    joined_losses(sides, tree.node_lo, tree.node_hi, n, lo, hi, joined)
    best, least = -1, np.inf
    for c in range(n):
        gain = joined[c] - losses[c]
        if births[c] >= 0 and (
            gain < least or (gain == least and _before(losses, births, c, best))
        ):
            best, least = c, gain
    return best


class Wanted(NamedTuple):
    """A row that needs a leaf: its box and subject, and the most rows of a leaf."""

    lo: Floats
    hi: Floats
    subject: int
    most: int


@kernel
def find_leaf(sides: Sides, tree: RTree, counts: Records, node: int, row: Wanted) -> int:
    """Return the leaf of a node without the row's subject that the row enlarges least; -1: none."""
    members = tree.members[node, : tree.nodes["n_leaves"][node]]
    los, his = boxes_at(tree.lo, members), boxes_at(tree.hi, members)
    joined = np.empty(len(members))
    joined_losses(sides, los, his, len(members), row.lo, row.hi, joined)
    best = _least_enlarged(tree, members, joined, row.most)
    if best < 0 or counter.count(counts, best, row.subject) == 0:
        return best
    # Most subjects have one row, so that this is rare.
    for i in range(len(members)):
        if counter.count(counts, members[i], row.subject) > 0:
            joined[i] = np.inf
    return _least_enlarged(tree, members, joined, row.most)


@kernel
def _least_enlarged(tree: RTree, members: Ints, joined: Floats, most: int) -> int:
    """Return the leaf that is enlarged least, among those with fewer than ``most`` rows."""
    losses, births, n_rows = tree.loss, tree.leaves["birth"], tree.leaves["n_rows"]
    best, least = -1, np.inf
    for i in range(len(members)):
        leaf = members[i]
        gain = joined[i] - losses[leaf]
        if (gain < least or (gain == least and _before(losses, births, leaf, best))) and n_rows[
            leaf
        ] < most:
            best, least = leaf, gain
    return best


@kernel
def find_leaf_anywhere(sides: Sides, tree: RTree, counts: Records, row: Wanted) -> int:
    """Return the same over all nodes."""
    best, least = -1, np.inf
    # Every leaf has at most one row of a subject: a subject with as many rows as there are leaves
    # is in each of them.
    if counter.count(counts, counter.EVERYWHERE, row.subject) >= tree.marks["n_leaves"][0]:
        return best
    for node in range(tree.marks["node_numbers"][0]):
        if tree.nodes["birth"][node] < 0:
            continue
        leaf = find_leaf(sides, tree, counts, node, row)
        if leaf < 0:
            continue
        lo, hi = box_of(tree.lo, leaf), box_of(tree.hi, leaf)
        join(sides, lo, hi, row.lo, row.hi)
        gain = box_loss(sides, lo, hi) - tree.loss[leaf]
        if gain < least or (gain == least and _before(tree.loss, tree.leaves["birth"], leaf, best)):
            best, least = leaf, gain
    return best


@inlined
def _before(losses: Floats, births: Ints, one: int, other: int) -> bool:
    """Whether one loses less than another, or equally much and is older."""
    if losses[one] != losses[other]:
        return losses[one] < losses[other]
    return births[one] < births[other]


@kernel
def nearest_leaf(sides: Sides, tree: RTree, lo: Floats, hi: Floats, taken: Ints) -> int:
    """Return the leaf that loses least together with a box, without those already taken."""
    n = tree.marks["leaf_numbers"][0]
    joined = np.empty(n)
    joined_losses(sides, tree.lo, tree.hi, n, lo, hi, joined)
    births, nearest = tree.leaves["birth"], -1
    for leaf in range(n):
        if births[leaf] < 0 or taken[leaf]:
            continue
        if nearest < 0 or _before(joined, births, leaf, nearest):
            nearest = leaf
    return nearest


@inlined
def _covers(los: Floats, his: Floats, c: int, lo: Floats, hi: Floats) -> bool:
    for d in range(len(lo)):  # noqa: SIM110 - Numba compiles no generator expressions
        if lo[d] < los[d, c] or hi[d] > his[d, c]:
            return False
    return True


# -- leaves ---------------------------------------------------------------------------------------


@kernel
def add_leaf(tree: RTree, node: int, next_try: int) -> int:
    """Add a leaf without rows to a node (-1: to a new one); return the leaf.

    The node may be too large then: the caller splits it when the leaf has its box.
    """
    marks = tree.marks
    if marks["free_leaves"][0] > 0:
        marks["free_leaves"][0] -= 1
        leaf = tree.free[marks["free_leaves"][0]]
    else:
        leaf = marks["leaf_numbers"][0]
        marks["leaf_numbers"][0] += 1
    marks["n_leaves"][0] += 1
    tree.leaves["birth"][leaf] = marks["births"][0]
    marks["births"][0] += 1
    tree.leaves["n_rows"][leaf] = 0
    tree.leaves["first"][leaf] = -1
    tree.leaves["last"][leaf] = -1
    tree.leaves["next_try"][leaf] = next_try
    tree.leaves["mature"][leaf] = False
    _enter(tree, leaf, _add_node(tree) if node < 0 else node)
    return leaf


@kernel
def widen_leaf(sides: Sides, tree: RTree, leaf: int, lo: Floats, hi: Floats) -> bool:
    """Extend a leaf and its node to cover a box; return whether the leaf's box has changed."""
    # The first row may lack all values, and then no side would show the change.
    widens = tree.loss[leaf] == -np.inf or not _covers(tree.lo, tree.hi, leaf, lo, hi)
    if widens:
        widen_box(sides, tree.lo, tree.hi, tree.loss, leaf, lo, hi)
        # The node covers what the leaf was before, so that it is enough to cover the box.
        node = tree.leaves["node"][leaf]
        if tree.node_loss[node] == -np.inf or not _covers(tree.node_lo, tree.node_hi, node, lo, hi):
            widen_box(sides, tree.node_lo, tree.node_hi, tree.node_loss, node, lo, hi)
    return widens


@inlined
def set_mature(tree: RTree, leaf: int, mature: bool) -> None:
    """Say whether a leaf may be published."""
    if tree.leaves["mature"][leaf] != mature:
        tree.leaves["mature"][leaf] = mature
        tree.marks["n_mature"][0] += 1 if mature else -1


@kernel
def shrink_leaf(sides: Sides, tree: RTree, leaf: int, lo: Floats, hi: Floats) -> None:
    """Replace the box of a leaf by a smaller one, and fit its node to it."""
    set_box(tree.lo, leaf, lo)
    set_box(tree.hi, leaf, hi)
    tree.loss[leaf] = box_loss(sides, lo, hi)
    _fit_node(sides, tree, tree.leaves["node"][leaf])


@kernel
def remove_leaf(tree: RTree, leaf: int) -> int:
    """Remove a leaf; return its node, which needs `tidy_node` unless other leaves replace it."""
    marks = tree.marks
    node, place = tree.leaves["node"][leaf], tree.leaves["place"][leaf]
    tree.nodes["n_leaves"][node] -= 1
    last = tree.members[node, tree.nodes["n_leaves"][node]]
    tree.members[node, place] = last
    tree.leaves["place"][last] = place
    _empty(tree.lo, tree.hi, tree.loss, leaf)
    tree.leaves["birth"][leaf] = -1
    tree.leaves["n_rows"][leaf] = 0
    tree.free[marks["free_leaves"][0]] = leaf
    marks["free_leaves"][0] += 1
    marks["n_leaves"][0] -= 1
    return node


# -- nodes ----------------------------------------------------------------------------------------


@kernel
def split_node(sides: Sides, tree: RTree, node: int) -> None:
    """Split a node that has too many leaves."""
    if tree.nodes["n_leaves"][node] <= FAN_OUT:
        return
    members = tree.members[node, : tree.nodes["n_leaves"][node]].copy()
    half = halves(sides, boxes_at(tree.lo, members), boxes_at(tree.hi, members), LEAST)
    _remove_node(tree, node)
    first, second = _add_node(tree), _add_node(tree)
    for i in range(len(members)):
        _enter(tree, members[i], first if half[i] == 0 else second)
    _fit_node(sides, tree, first)
    _fit_node(sides, tree, second)


@kernel
def tidy_node(sides: Sides, tree: RTree, node: int) -> None:
    """Adjust a node that has lost a leaf.

    A node with few leaves is dissolved into others, unless it is the only one.
    """
    if tree.nodes["n_leaves"][node] == 0:
        _remove_node(tree, node)
        return
    if tree.nodes["n_leaves"][node] >= FEWEST or tree.marks["n_nodes"][0] == 1:
        _fit_node(sides, tree, node)
        return
    members = tree.members[node, : tree.nodes["n_leaves"][node]].copy()
    _remove_node(tree, node)
    for leaf in members:
        lo, hi = box_of(tree.lo, leaf), box_of(tree.hi, leaf)
        other = choose_node(sides, tree, lo, hi)
        _enter(tree, leaf, other)
        widen_box(sides, tree.node_lo, tree.node_hi, tree.node_loss, other, lo, hi)
        split_node(sides, tree, other)


@kernel
def _add_node(tree: RTree) -> int:
    marks = tree.marks
    if marks["free_nodes"][0] > 0:
        marks["free_nodes"][0] -= 1
        node = tree.free_nodes[marks["free_nodes"][0]]
    else:
        node = marks["node_numbers"][0]
        marks["node_numbers"][0] += 1
    marks["n_nodes"][0] += 1
    tree.nodes["birth"][node] = marks["births"][0]
    marks["births"][0] += 1
    return node


@kernel
def _remove_node(tree: RTree, node: int) -> None:
    _empty(tree.node_lo, tree.node_hi, tree.node_loss, node)
    tree.nodes["birth"][node] = -1
    tree.nodes["n_leaves"][node] = 0
    tree.free_nodes[tree.marks["free_nodes"][0]] = node
    tree.marks["free_nodes"][0] += 1
    tree.marks["n_nodes"][0] -= 1


@kernel
def _enter(tree: RTree, leaf: int, node: int) -> None:
    place = tree.nodes["n_leaves"][node]
    tree.members[node, place] = leaf
    tree.nodes["n_leaves"][node] += 1
    tree.leaves["node"][leaf] = node
    tree.leaves["place"][leaf] = place


@kernel
def _fit_node(sides: Sides, tree: RTree, node: int) -> None:
    """Recompute the box of a node from its leaves."""
    lo, hi = np.full(len(tree.lo), np.inf), np.full(len(tree.lo), -np.inf)
    for i in range(tree.nodes["n_leaves"][node]):
        leaf = tree.members[node, i]
        for d in range(len(lo)):
            lo[d] = min(lo[d], tree.lo[d, leaf])
            hi[d] = max(hi[d], tree.hi[d, leaf])
    join(sides, lo, hi, lo, hi)
    set_box(tree.node_lo, node, lo)
    set_box(tree.node_hi, node, hi)
    tree.node_loss[node] = box_loss(sides, lo, hi)


@kernel
def _empty(los: Floats, his: Floats, losses: Floats, c: int) -> None:
    for d in range(len(los)):
        los[d, c] = np.inf
        his[d, c] = -np.inf
    losses[c] = -np.inf
