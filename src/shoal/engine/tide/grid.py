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
from shoal.engine.kernels.arrays import Floats, Ints, Records
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
    "take",
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
#: A side of a box: its ends, the node that covers it, whether some row lacks a value here, and
#: whether the latest row changed it.
SIDE = np.dtype([("lo", "i8"), ("hi", "i8"), ("node", "i8"), ("lacks", "?"), ("changed", "?")])
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


class Boxes(NamedTuple):
    """The boxes of groups: their sides by attribute, and their totals."""

    sides: Records
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
    return Boxes(np.zeros((n, n_quasi), SIDE), np.zeros(n, TOTAL))


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
    return GridRows(low, low if are_points else high, has_gaps)


@inlined
def ends_of(rows: GridRows, a: int, i: int) -> tuple[int, int]:
    """Return the ends of a side of a row as 64-bit numbers, as those of boxes are."""
    return int(rows.lo[a, i]) + 0, int(rows.hi[a, i]) + 0


@kernel
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


@kernel
def _loss(grid: Grid, a: int, lo: int, hi: int, node: int, lacks: bool) -> int:
    """Return the loss of one side of a box."""
    if lo > hi:
        return 0
    loss = hi - lo if grid.attributes["first_leaf"][a] < 0 else grid.nodes["loss"][node]
    return loss + grid.attributes["mixing"][a] if lacks else loss


@kernel
def begin(boxes: Boxes, g: int) -> None:
    """Make a box empty."""
    for a in range(boxes.sides.shape[1]):
        boxes.sides["lo"][g, a] = EMPTY
        boxes.sides["hi"][g, a] = -EMPTY
        boxes.sides["node"][g, a] = 0
        boxes.sides["lacks"][g, a] = False
    boxes.totals["loss"][g] = 0
    boxes.totals["count"][g] = 0


@kernel
def copy_box(source: Boxes, g: int, target: Boxes, h: int) -> None:
    """Copy a box."""
    for a in range(source.sides.shape[1]):
        target.sides["lo"][h, a] = source.sides["lo"][g, a]
        target.sides["hi"][h, a] = source.sides["hi"][g, a]
        target.sides["node"][h, a] = source.sides["node"][g, a]
        target.sides["lacks"][h, a] = source.sides["lacks"][g, a]
    target.totals["loss"][h] = source.totals["loss"][g]
    target.totals["count"][h] = source.totals["count"][g]


@kernel
def take(grid: Grid, boxes: Boxes, g: int, rows: GridRows, i: int) -> None:
    """Widen a box by a row, and mark which of its sides changed."""
    loss = 0
    for a in range(boxes.sides.shape[1]):
        lo, hi, node = boxes.sides["lo"][g, a], boxes.sides["hi"][g, a], boxes.sides["node"][g, a]
        lacks = boxes.sides["lacks"][g, a]
        low, high = ends_of(rows, a, i)
        changed = (not lacks) if low > high else (low < lo or high > hi)
        if changed:
            lo, hi, node = _joined(grid, a, lo, hi, node, low, high)
            lacks = lacks or low > high
            boxes.sides["lo"][g, a] = lo
            boxes.sides["hi"][g, a] = hi
            boxes.sides["node"][g, a] = node
            boxes.sides["lacks"][g, a] = lacks
        boxes.sides["changed"][g, a] = changed
        loss += _loss(grid, a, lo, hi, node, lacks)
    boxes.totals["loss"][g] = loss
    boxes.totals["count"][g] += 1


@kernel
def added(grid: Grid, boxes: Boxes, g: int, rows: GridRows, i: int) -> int:
    """Return how much more a box loses with one more row."""
    loss = 0
    for a in range(boxes.sides.shape[1]):
        low, high = ends_of(rows, a, i)
        lo, hi, node = _joined(
            grid, a, boxes.sides["lo"][g, a], boxes.sides["hi"][g, a], boxes.sides["node"][g, a],
            low, high,
        )  # fmt: skip
        loss += _loss(grid, a, lo, hi, node, boxes.sides["lacks"][g, a] or low > high)
    return loss - boxes.totals["loss"][g]


@kernel
def joint_loss(grid: Grid, boxes: Boxes, g: int, h: int) -> int:
    """Return the loss of two boxes joined."""
    loss = 0
    for a in range(boxes.sides.shape[1]):
        lo, hi, node = _joined(
            grid, a, boxes.sides["lo"][g, a], boxes.sides["hi"][g, a], boxes.sides["node"][g, a],
            boxes.sides["lo"][h, a], boxes.sides["hi"][h, a],
        )  # fmt: skip
        lacks = boxes.sides["lacks"][g, a] or boxes.sides["lacks"][h, a]
        loss += _loss(grid, a, lo, hi, node, lacks)
    return loss
