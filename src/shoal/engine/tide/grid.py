"""Rows and boxes in whole numbers: losses in fixed point, so that every CPU decides alike.

A number is its distance from the lowest one, a category its leaf. Sums of whole numbers don't
depend on their order, so that a compiler may add them in any.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.engine.jit import inlined, kernel
from shoal.engine.kernels.arrays import Bools, Floats, Ints, Records
from shoal.engine.kernels.boxes import Sides

__all__ = [
    "EMPTY",
    "SCALE",
    "WHOLE",
    "Boxes",
    "Fixed",
    "Grid",
    "GridRows",
    "added",
    "begin",
    "boxes_for",
    "copy_box",
    "ends_of",
    "grid_of",
    "grid_rows",
    "joint_loss",
    "side_of",
    "take",
    "take_first",
    "widen",
]

Fixed: TypeAlias = NDArray[np.int32]

#: The loss of a row that lost everything. All sums of losses of one box stay far below 2**30.
SCALE = 1 << 26
#: All of a loss, as a share.
WHOLE = 256
#: A group of rows of which some lack a value counts 1 / MIXING of the attribute's weight as lost.
#: With a half, rows that lack the same are together at any price; with an eighth, rows that lack
#: much are taken to fill the groups of complete ones, which they don't hide.
MIXING = 4
#: An empty side is from EMPTY to -EMPTY.
EMPTY = 1 << 29

#: An attribute: the lowest number, the loss of a length of 1 and that of the whole range; or its
#: first leaf (-1: a number); what it costs a group that some of its rows have a value here and
#: others lack it, since such rows hide each other less than it seems; and how much the loss of a
#: category counts where a group grows (`WHOLE`: all of it).
ATTRIBUTE = np.dtype(
    [
        ("lowest", "f8"),
        ("unit", "f8"),
        ("span", "i8"),
        ("first_leaf", "i8"),
        ("mixing", "i8"),
        ("share", "i8"),
    ]
)
#: A node of a tree: the leaves under it, its loss, and its parent (a root is its own).
NODE = np.dtype([("lo", "i8"), ("hi", "i8"), ("loss", "i8"), ("parent", "i8")])
#: The loss of a box, and the number of its rows.
TOTAL = np.dtype([("loss", "i8"), ("count", "i8")])


class Grid(NamedTuple):
    """The quasi attributes in whole numbers."""

    attributes: Records
    leaf_node: Ints
    nodes: Records


class GridRows(NamedTuple):
    """Rows with attributes along the first axis; ``hi`` is ``lo`` itself where all are points."""

    lo: Fixed
    hi: Fixed
    has_gaps: bool
    are_points: bool


class Boxes(NamedTuple):
    """The boxes of groups, with attributes along the first axis, and their totals.

    A side has its ends, the node that covers it, whether some row lacks a value here, and whether
    the latest row changed it.
    """

    lo: Fixed
    hi: Fixed
    node: Fixed
    lacks: Bools
    changed: Bools
    totals: Records


def grid_of(sides: Sides) -> Grid:
    """Return the attributes in whole numbers."""
    attributes, nodes = np.zeros(len(sides.attributes), ATTRIBUTE), np.zeros(len(sides.nodes), NODE)
    attributes["lowest"] = sides.attributes["lowest"]
    attributes["unit"] = sides.attributes["unit"] * SCALE
    attributes["span"] = np.floor(sides.attributes["weight"] * SCALE)
    attributes["share"] = WHOLE
    attributes["first_leaf"] = sides.attributes["first_leaf"]
    attributes["mixing"] = np.floor(sides.attributes["weight"] * (SCALE // MIXING))
    for field in ("lo", "hi", "parent"):
        nodes[field] = sides.nodes[field]
    nodes["loss"] = np.floor(sides.nodes["loss"] * SCALE)
    return Grid(attributes, sides.leaf_node, nodes)


@kernel
def boxes_for(n: int, n_quasi: int) -> Boxes:
    """Return room for n boxes."""
    shape = (n_quasi, n)
    return Boxes(
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.bool_),
        np.zeros(shape, np.bool_),
        np.zeros(n, TOTAL),
    )


@kernel
def grid_rows(grid: Grid, lo: Floats, hi: Floats) -> GridRows:
    """Return rows in whole numbers, given their boxes (attributes along the first axis)."""
    d, n = lo.shape
    low, high = np.empty((d, n), np.int32), np.empty((d, n), np.int32)
    has_gaps, are_points = False, True
    for a in range(d):
        lowest, unit = grid.attributes["lowest"][a], grid.attributes["unit"][a]
        is_number = grid.attributes["first_leaf"][a] < 0
        for i in range(n):
            if lo[a, i] > hi[a, i]:
                low[a, i], high[a, i] = EMPTY, -EMPTY
                has_gaps = True
            elif is_number:
                low[a, i] = math.floor((lo[a, i] - lowest) * unit)
                high[a, i] = math.floor((hi[a, i] - lowest) * unit)
            else:
                low[a, i], high[a, i] = int(lo[a, i]), int(hi[a, i])
            are_points = are_points and low[a, i] == high[a, i]
    return GridRows(low, low if are_points else high, has_gaps, are_points)


@inlined
def ends_of(rows: GridRows, a: int, i: int) -> tuple[int, int]:
    """Return the ends of a side of a row as 64-bit numbers."""
    return int(rows.lo[a, i]) + 0, int(rows.hi[a, i]) + 0


@inlined
def side_of(boxes: Boxes, a: int, g: int) -> tuple[int, int, int]:
    """Return the ends and the node of a side of a box as 64-bit numbers."""
    return int(boxes.lo[a, g]) + 0, int(boxes.hi[a, g]) + 0, int(boxes.node[a, g]) + 0


@inlined
def _joined(
    grid: Grid, a: int, lo: int, hi: int, node: int, low: int, high: int
) -> tuple[int, int, int]:
    """Return the ends and the node of a side joined with an interval."""
    if low > high:
        return lo, hi, node
    first_leaf = grid.attributes["first_leaf"][a]
    if first_leaf < 0:
        return min(lo, low), max(hi, high), 0
    if lo > hi:
        node = grid.leaf_node[first_leaf + low]
    while grid.nodes["lo"][node] > low or grid.nodes["hi"][node] < high:
        node = grid.nodes["parent"][node]
    return grid.nodes["lo"][node], grid.nodes["hi"][node], node


@inlined
def _loss(grid: Grid, a: int, lo: int, hi: int, node: int, lacks: bool) -> int:
    """Return the loss of one side of a box."""
    if lo > hi:
        return 0
    loss = hi - lo if grid.attributes["first_leaf"][a] < 0 else grid.nodes["loss"][node]
    return loss + grid.attributes["mixing"][a] if lacks else loss


@kernel
def begin(boxes: Boxes, g: int) -> None:
    """Make a box empty."""
    for a in range(len(boxes.lo)):
        boxes.lo[a, g] = EMPTY
        boxes.hi[a, g] = -EMPTY
        boxes.node[a, g] = 0
        boxes.lacks[a, g] = False
    boxes.totals["loss"][g] = 0
    boxes.totals["count"][g] = 0


@kernel
def copy_box(source: Boxes, g: int, target: Boxes, h: int) -> None:
    """Copy a box."""
    for a in range(len(source.lo)):
        target.lo[a, h] = source.lo[a, g]
        target.hi[a, h] = source.hi[a, g]
        target.node[a, h] = source.node[a, g]
        target.lacks[a, h] = source.lacks[a, g]
    target.totals["loss"][h] = source.totals["loss"][g]
    target.totals["count"][h] = source.totals["count"][g]


@kernel
def take(grid: Grid, boxes: Boxes, g: int, rows: GridRows, i: int) -> bool:
    """Widen a box by a row, as `widen` does it."""
    return widen(grid, boxes, g, rows, i)


@inlined
def widen(grid: Grid, boxes: Boxes, g: int, rows: GridRows, i: int) -> bool:
    """Widen a box by a row; return whether any side changed, and mark which ones if so.

    It is copied into its callers: growth does this for each row.
    """
    any_changed = rows.has_gaps
    for a in range(len(boxes.lo)):
        any_changed |= (rows.lo[a, i] < boxes.lo[a, g]) | (rows.hi[a, i] > boxes.hi[a, g])
    boxes.totals["count"][g] += 1
    if not any_changed:
        return False
    more, any_changed = 0, False
    for a in range(len(boxes.lo)):
        low, high = rows.lo[a, i], rows.hi[a, i]
        lacks = boxes.lacks[a, g]
        changed = (not lacks) if low > high else (low < boxes.lo[a, g] or high > boxes.hi[a, g])
        boxes.changed[a, g] = changed
        if not changed:
            continue
        any_changed = True
        lo, hi, node = side_of(boxes, a, g)
        low, high = ends_of(rows, a, i)
        more -= _loss(grid, a, lo, hi, node, lacks)
        lo, hi, node = _joined(grid, a, lo, hi, node, low, high)
        lacks = lacks or low > high
        more += _loss(grid, a, lo, hi, node, lacks)
        boxes.lo[a, g] = lo
        boxes.hi[a, g] = hi
        boxes.node[a, g] = node
        boxes.lacks[a, g] = lacks
    boxes.totals["loss"][g] += more
    return any_changed


@kernel
def take_first(grid: Grid, boxes: Boxes, g: int, rows: GridRows, n: int) -> None:
    """Make a box of the first n rows: the same as if it took one after the other."""
    begin(boxes, g)
    loss = 0
    for a in range(len(boxes.lo)):
        low, high = np.int32(EMPTY), np.int32(-EMPTY)
        for i in range(n):
            low = min(low, rows.lo[a, i])
        for i in range(n):
            high = max(high, rows.hi[a, i])
        lacks = False
        if rows.has_gaps:
            for i in range(n):
                lacks = lacks or rows.lo[a, i] > rows.hi[a, i]
        lo, hi, node = side_of(boxes, a, g)
        lo, hi, node = _joined(grid, a, lo, hi, node, int(low) + 0, int(high) + 0)
        loss += _loss(grid, a, lo, hi, node, lacks)
        boxes.lo[a, g] = lo
        boxes.hi[a, g] = hi
        boxes.node[a, g] = node
        boxes.lacks[a, g] = lacks
    boxes.totals["loss"][g] = loss
    boxes.totals["count"][g] = n


@kernel
def added(grid: Grid, boxes: Boxes, g: int, rows: GridRows, i: int) -> int:
    """Return how much more a box loses with one more row."""
    loss = 0
    for a in range(len(boxes.lo)):
        low, high = ends_of(rows, a, i)
        lo, hi, node = side_of(boxes, a, g)
        lo, hi, node = _joined(grid, a, lo, hi, node, low, high)
        loss += _loss(grid, a, lo, hi, node, boxes.lacks[a, g] or low > high)
    return loss - boxes.totals["loss"][g]


@kernel
def joint_loss(grid: Grid, boxes: Boxes, g: int, h: int) -> int:
    """Return the loss of two boxes joined."""
    loss = 0
    for a in range(len(boxes.lo)):
        lo, hi, node = side_of(boxes, a, g)
        low, high, _ = side_of(boxes, a, h)
        lo, hi, node = _joined(grid, a, lo, hi, node, low, high)
        loss += _loss(grid, a, lo, hi, node, boxes.lacks[a, g] or boxes.lacks[a, h])
    return loss
