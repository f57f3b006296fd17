"""What boxes lose on a side together with a leaf of its tree, in a table: nothing is climbed.

A clustering compares every row that arrives with the same boxes, of which one at most has changed
since the row before. So it pays to know, for each leaf, what every box would lose on that side with
a row that has this leaf. A row's loss with all boxes is then a sum of a few lines of the table.

The table follows from the boxes: it isn't part of the state, and can be filled again at any time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import inlined, kernel
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.boxes import Sides, add_lengths, add_nodes, box_of, cover

__all__ = ["LeafLosses", "empty", "fit", "fit_all", "joined_by_leaf"]

#: The table has no tree with more numbers than this. (Half a megabyte, as much as a processor has
#: near at hand.) Such a tree is climbed.
MOST = 1 << 16


class LeafLosses(NamedTuple):
    """For each leaf a line with the loss of each box on that side, joined with the leaf.

    ``first`` is the line of the first leaf of each attribute (-1: not in the table); ``lo`` and
    ``hi`` are the boxes that the table is filled for (attributes along the first axis).
    """

    first: Ints
    table: Floats
    lo: Floats
    hi: Floats


def empty(sides: Sides, n_boxes: int) -> LeafLosses:
    """Return a table for as many boxes, all of them empty."""
    attributes = sides.attributes
    n_leaves = np.where(attributes["first_leaf"] < 0, 0, attributes["highest"].astype(np.int64) + 1)
    n_leaves[n_leaves * n_boxes > MOST] = 0
    first = np.where(n_leaves > 0, np.cumsum(n_leaves) - n_leaves, -1)
    table, shape = np.empty((int(n_leaves.sum()), n_boxes)), (len(attributes), n_boxes)
    for line, leaf, n in zip(first, attributes["first_leaf"], n_leaves, strict=True):
        # An empty side joined with a leaf is the leaf.
        table[line : line + n] = sides.nodes["loss"][sides.leaf_node[leaf : leaf + n], None]
    return LeafLosses(first, table, np.full(shape, np.inf), np.full(shape, -np.inf))


@kernel
def fit(sides: Sides, known: LeafLosses, c: int, lo: Floats, hi: Floats) -> None:
    """Fill the table for a box that has changed."""
    for d in range(len(lo)):
        before_lo, before_hi = known.lo[d, c], known.hi[d, c]
        if lo[d] == before_lo and hi[d] == before_hi:
            continue
        known.lo[d, c], known.hi[d, c] = lo[d], hi[d]
        if known.first[d] >= 0:
            widened = lo[d] <= before_lo <= before_hi <= hi[d]
            _fill(sides, d, known.table, known.first[d], c, lo[d], hi[d], widened)


@kernel
def fit_all(sides: Sides, known: LeafLosses, los: Floats, his: Floats) -> None:
    """Fill the table for many boxes (attributes along the first axis)."""
    for c in range(los.shape[1]):
        fit(sides, known, c, box_of(los, c), box_of(his, c))


@kernel
def _fill(
    sides: Sides, d: int, table: Floats, first: int, c: int, lo: float, hi: float, widened: bool
) -> None:
    """Write what a side of a box loses with each leaf of its tree.

    If it was only widened, leaves outside of it need the same nodes as before.
    """
    nodes, own = sides.nodes, sides.attributes["first_leaf"][d]
    if lo > hi:
        for leaf in range(np.int64(sides.attributes["highest"][d]) + 1):
            table[first + leaf, c] = nodes["loss"][sides.leaf_node[own + leaf]]
        return
    node = cover(sides, d, lo, hi)
    begin, end = np.int64(nodes["lo"][node]), np.int64(nodes["hi"][node]) + 1
    for leaf in range(begin, end):
        table[first + leaf, c] = nodes["loss"][node]
    while not widened and nodes["parent"][node] != node:
        node = nodes["parent"][node]
        low, high = np.int64(nodes["lo"][node]), np.int64(nodes["hi"][node]) + 1
        for leaf in range(low, begin):
            table[first + leaf, c] = nodes["loss"][node]
        for leaf in range(end, high):
            table[first + leaf, c] = nodes["loss"][node]
        begin, end = low, high


@kernel
def joined_by_leaf(
    sides: Sides, known: LeafLosses, los: Floats, his: Floats, lo: Floats, hi: Floats, out: Floats
) -> None:
    """Write the loss of each box joined with one box, as `joined_losses` does, bit for bit.

    The table must have been filled for the boxes, but for those that are free.
    """
    n = len(out)
    for c in range(n):
        out[c] = 0.0
    first_leaf, units = sides.attributes["first_leaf"], sides.attributes["unit"]
    d = 0
    while d < len(lo):
        if first_leaf[d] < 0:
            add_lengths(units[d], d, los, his, 0, n, lo[d], hi[d], out)
        elif _are_lines(known.first, lo, hi, d, 4):
            a, b = known.first[d] + np.int64(lo[d]), known.first[d + 1] + np.int64(lo[d + 1])
            e = known.first[d + 2] + np.int64(lo[d + 2])
            f = known.first[d + 3] + np.int64(lo[d + 3])
            _add_lines(known.table, a, b, e, f, out)
            d += 3
        elif _are_lines(known.first, lo, hi, d, 1):
            _add_line(known.table, known.first[d] + np.int64(lo[d]), out)
        else:
            add_nodes(sides, d, los, his, 0, n, lo[d], hi[d], out)
        d += 1


@inlined
def _are_lines(first: Ints, lo: Floats, hi: Floats, d: int, n: int) -> bool:
    """Whether the next n attributes are in the table, and the box is a leaf there."""
    if d + n > len(lo):
        return False
    for i in range(d, d + n):  # noqa: SIM110 - Numba compiles no generator expressions
        if first[i] < 0 or lo[i] != hi[i]:
            return False
    return True


@kernel
def _add_lines(table: Floats, a: int, b: int, e: int, f: int, out: Floats) -> None:
    """Add four lines, in this order."""
    for c in range(len(out)):
        out[c] = (((out[c] + table[a, c]) + table[b, c]) + table[e, c]) + table[f, c]


@kernel
def _add_line(table: Floats, line: int, out: Floats) -> None:
    """Add a line. (A loop in a larger function wouldn't be vectorized.)"""
    for c in range(len(out)):
        out[c] += table[line, c]
