"""Boxes in code space: the node that covers an interval, the loss of a box, the joint loss of two.

A side without any value is empty: from infinity to minus infinity. It loses nothing, covers
nothing but another empty side, and is covered by every side.

Every loss in the package is computed here, side by side in the order of the attributes, so that
equal boxes have equal losses to the last bit and ties can be detected by ``==``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel, specialized
from shoal.engine.kernels.arrays import Floats, Ints, Records

__all__ = [
    "Box",
    "Sides",
    "add_lengths",
    "add_nodes",
    "box_loss",
    "box_of",
    "boxes_at",
    "cover",
    "covers",
    "distances_from",
    "hull",
    "join",
    "joined_losses",
    "joined_losses_from",
    "least_losses",
    "mean_loss",
    "points",
    "row_loss",
    "set_box",
    "set_row",
    "shared_losses",
    "widen_box",
]


#: One entry for each quasi attribute. ``weight`` is its share of the whole loss and ``unit`` the
#: loss of a length of 1; ``step`` and ``per_unit`` are those of `Range`, 0 where there is none;
#: ``first_leaf`` is -1 for a number.
ATTRIBUTE = np.dtype(
    [
        ("lowest", "f8"),
        ("highest", "f8"),
        ("step", "f8"),
        ("per_unit", "f8"),
        ("unit", "f8"),
        ("weight", "f8"),
        ("first_leaf", "i8"),
    ]
)
#: One entry for each node of each tree, in pre-order; a root is its own parent.
NODE = np.dtype([("lo", "f8"), ("hi", "f8"), ("loss", "f8"), ("parent", "i8")])


class Sides(NamedTuple):
    """The quasi attributes as arrays: ranges of numbers, and the nodes of all trees.

    Losses are weighted; all weights add up to 1. (Few, structured arrays, since the time to compile
    a kernel grows with the number of its arguments.)
    """

    attributes: Records
    leaf_node: Ints
    nodes: Records


class Box(NamedTuple):
    """The properties of a box beside its sides.

    Its loss, the number of its group, the numbers of rows and subjects that formed it (0 where it
    is reused), which values any of them lacks, and the window that it was measured against (-1:
    none).
    """

    loss: float
    group: int
    n_rows: int
    n_subjects: int
    gaps: int
    window: int = -1


@kernel
def box_of(boxes: Floats, c: int) -> Floats:
    """Return one box of many (attributes along the first axis).

    Loops instead of slices, here and elsewhere: Numba compiles a check of the shapes, with its
    error message, into every assignment of one array to another.
    """
    box = np.empty(len(boxes))
    for d in range(len(boxes)):
        box[d] = boxes[d, c]
    return box


@kernel
def boxes_at(boxes: Floats, chosen: Ints) -> Floats:
    """Return some of many boxes (attributes along the first axis), contiguously."""
    some = np.empty((len(boxes), len(chosen)))
    for d in range(len(boxes)):
        for i in range(len(chosen)):
            some[d, i] = boxes[d, chosen[i]]
    return some


@kernel
def set_box(boxes: Floats, c: int, box: Floats) -> None:
    """Write one box of many (attributes along the first axis)."""
    for d in range(len(boxes)):
        boxes[d, c] = box[d]


@kernel
def set_row(table: Floats, i: int, row: Floats) -> None:
    """Write a row of a table."""
    for j in range(len(row)):
        table[i, j] = row[j]


@kernel
def cover(sides: Sides, d: int, lo: float, hi: float) -> int:
    """Return the lowest node of tree d whose leaves include the codes from lo to hi."""
    node = sides.leaf_node[sides.attributes["first_leaf"][d] + np.int64(lo)]
    while sides.nodes["hi"][node] < hi:
        node = sides.nodes["parent"][node]
    return node


@kernel
def _side_loss(sides: Sides, d: int, lo: float, hi: float) -> float:
    """Return the weighted loss of one side of a box."""
    if lo > hi:
        return 0.0
    if sides.attributes["first_leaf"][d] < 0:
        return (hi - lo) * sides.attributes["unit"][d]
    return sides.nodes["loss"][cover(sides, d, lo, hi)]


@kernel
def box_loss(sides: Sides, lo: Floats, hi: Floats) -> float:
    """Return the weighted loss of a box, between 0 and 1."""
    loss = 0.0
    first_leaf, units = sides.attributes["first_leaf"], sides.attributes["unit"]
    for d in range(len(lo)):
        if first_leaf[d] < 0:
            length = hi[d] - lo[d]
            loss += (length if length > 0.0 else 0.0) * units[d]
        else:
            loss += _side_loss(sides, d, lo[d], hi[d])
    return loss


@kernel
def row_loss(sides: Sides, lo: Floats, hi: Floats, gaps: int) -> float:
    """Return the loss of a row in a box, over the attributes in which the row has a value.

    Bit d of ``gaps`` says that the row has none in attribute d.
    """
    if gaps == 0:
        return box_loss(sides, lo, hi)
    loss = 0.0
    weight = 0.0
    for d in range(len(lo)):
        if (gaps >> d) & 1 == 0:
            loss += _side_loss(sides, d, lo[d], hi[d])
            weight += sides.attributes["weight"][d]
    return loss / weight if weight > 0.0 else 0.0


@kernel
def mean_loss(sides: Sides, lo: Floats, hi: Floats) -> float:
    """Return the loss of a box over its sides that aren't empty."""
    gaps = 0
    for d in range(len(lo)):
        if lo[d] > hi[d]:
            gaps |= 1 << d
    return row_loss(sides, lo, hi, gaps)


@kernel
def covers(outer_lo: Floats, outer_hi: Floats, lo: Floats, hi: Floats) -> bool:
    """Whether the first box contains the second."""
    for d in range(len(lo)):  # noqa: SIM110 - Numba compiles no generator expressions
        if lo[d] < outer_lo[d] or hi[d] > outer_hi[d]:
            return False
    return True


@kernel
def join(sides: Sides, lo: Floats, hi: Floats, other_lo: Floats, other_hi: Floats) -> None:
    """Widen a box, in place, to the published box that covers it and another one."""
    first_leaf = sides.attributes["first_leaf"]
    for d in range(len(lo)):
        if other_lo[d] < lo[d]:
            lo[d] = other_lo[d]
        if other_hi[d] > hi[d]:
            hi[d] = other_hi[d]
        if first_leaf[d] >= 0 and lo[d] <= hi[d]:
            node = cover(sides, d, lo[d], hi[d])
            lo[d] = sides.nodes["lo"][node]
            hi[d] = sides.nodes["hi"][node]


@kernel
def widen_box(
    sides: Sides, los: Floats, his: Floats, losses: Floats, c: int, lo: Floats, hi: Floats
) -> None:
    """Widen one of many boxes (attributes along the first axis) by another, and update its loss."""
    loss = 0.0
    first_leaf, units = sides.attributes["first_leaf"], sides.attributes["unit"]
    for d in range(len(lo)):
        low, high = los[d, c], his[d, c]
        if lo[d] < low:
            low = lo[d]
        if hi[d] > high:
            high = hi[d]
        if first_leaf[d] < 0:
            length = high - low
            loss += (length if length > 0.0 else 0.0) * units[d]
        elif low <= high:
            node = cover(sides, d, low, high)
            low, high = sides.nodes["lo"][node], sides.nodes["hi"][node]
            loss += sides.nodes["loss"][node]
        los[d, c], his[d, c] = low, high
    losses[c] = loss


@kernel
def hull(sides: Sides, los: Floats, his: Floats, members: Ints) -> tuple[Floats, Floats]:
    """Return the box that covers some of many boxes (attributes along the first axis)."""
    lo, hi = box_of(los, members[0]), box_of(his, members[0])
    for d in range(len(lo)):
        for i in members:
            if los[d, i] < lo[d]:
                lo[d] = los[d, i]
            if his[d, i] > hi[d]:
                hi[d] = his[d, i]
    join(sides, lo, hi, lo, hi)
    return lo, hi


@kernel
def _climb(sides: Sides, node: int) -> tuple[float, float, float, int]:
    """Return the interval of a node, and the loss and the number of its parent.

    A root has no parent: its interval is infinite, so that nothing lies outside.
    """
    parent = sides.nodes["parent"][node]
    if parent == node:
        return -np.inf, np.inf, sides.nodes["loss"][node], node
    return sides.nodes["lo"][node], sides.nodes["hi"][node], sides.nodes["loss"][parent], parent


@specialized
def add_lengths(
    unit: float, d: int, los: Floats, his: Floats, first: int, n: int, low: float, high: float,
    out: Floats,
) -> None:  # fmt: skip
    """For n boxes from ``first`` on, add the loss of their sides joined with one interval.

    The loop has no branches, so that the compiler vectorizes it. (To pass a slice of the boxes, or
    a field of the attributes, would be simpler but slower.) It has to know that ``first`` is 0,
    where it is: what may be negative is an index from the end, and each number is fetched alone.
    """
    for c in range(n):
        a = los[d, first + c] if los[d, first + c] < low else low
        b = his[d, first + c] if his[d, first + c] > high else high
        length = b - a
        out[c] += (length if length > 0.0 else 0.0) * unit


@specialized
def add_nodes(
    sides: Sides, d: int, los: Floats, his: Floats, first: int, n: int, low: float, high: float,
    out: Floats,
) -> None:  # fmt: skip
    """The same in a tree, which is climbed from the node of the interval, mostly in one pass.

    A side that isn't under a node needs at least the parent of the node.
    """
    if low > high:
        for c in range(n):
            out[c] += _side_loss(sides, d, los[d, first + c], his[d, first + c])
        return
    node = cover(sides, d, low, high)
    v0 = sides.nodes["loss"][node]
    a1, b1, v1, node = _climb(sides, node)
    if sides.nodes["parent"][node] == node:
        for c in range(n):
            out[c] += v1 if (los[d, first + c] < a1) | (his[d, first + c] > b1) else v0
        return
    a2, b2, v2, node = _climb(sides, node)
    if sides.nodes["parent"][node] == node:
        for c in range(n):
            a, b = los[d, first + c], his[d, first + c]
            v = v1 if (a < a1) | (b > b1) else v0
            out[c] += v2 if (a < a2) | (b > b2) else v
        return
    a3, b3, v3, node = _climb(sides, node)
    if sides.nodes["parent"][node] == node:
        for c in range(n):
            a, b = los[d, first + c], his[d, first + c]
            v = v1 if (a < a1) | (b > b1) else v0
            v = v2 if (a < a2) | (b > b2) else v
            out[c] += v3 if (a < a3) | (b > b3) else v
        return
    a4, b4, v4, node = _climb(sides, node)
    if sides.nodes["parent"][node] == node:
        for c in range(n):
            a, b = los[d, first + c], his[d, first + c]
            v = v1 if (a < a1) | (b > b1) else v0
            v = v2 if (a < a2) | (b > b2) else v
            v = v3 if (a < a3) | (b > b3) else v
            out[c] += v4 if (a < a4) | (b > b4) else v
        return
    side = np.empty(n)
    for c in range(n):
        a, b = los[d, first + c], his[d, first + c]
        v = v1 if (a < a1) | (b > b1) else v0
        v = v2 if (a < a2) | (b > b2) else v
        v = v3 if (a < a3) | (b > b3) else v
        side[c] = v4 if (a < a4) | (b > b4) else v
    while sides.nodes["parent"][node] != node:
        a1, b1, v1, node = _climb(sides, node)
        for c in range(n):
            outside = (los[d, first + c] < a1) | (his[d, first + c] > b1)
            side[c] = v1 if outside else side[c]
    for c in range(n):
        out[c] += side[c]


@kernel
def joined_losses(
    sides: Sides, los: Floats, his: Floats, n: int, lo: Floats, hi: Floats, out: Floats
) -> None:
    """Write the loss of each of n boxes (attributes along the first axis) joined with one box.

    Every clustering spends most of its time here.
    """
    joined_losses_from(sides, los, his, 0, n, lo, hi, out)


@specialized
def joined_losses_from(
    sides: Sides, los: Floats, his: Floats, first: int, n: int, lo: Floats, hi: Floats, out: Floats
) -> None:
    """The same for the n boxes from ``first`` on."""
    for c in range(n):
        out[c] = 0.0
    first_leaf, units = sides.attributes["first_leaf"], sides.attributes["unit"]
    for d in range(len(lo)):
        if first_leaf[d] < 0:
            add_lengths(units[d], d, los, his, first, n, lo[d], hi[d], out)
        else:
            add_nodes(sides, d, los, his, first, n, lo[d], hi[d], out)


@kernel
def least_losses(
    sides: Sides, los: Floats, his: Floats, n: int, lo: Floats, hi: Floats, out: Floats
) -> None:
    """Write for each of n boxes a lower bound of the distance of one box from anything in it.

    Everything in a box has a value wherever the box isn't infinite. Each term is at most that of
    `distances_from`, and so is the sum, to the last bit.
    """
    for c in range(n):
        out[c] = 0.0
    for d in range(len(lo)):
        low, high = lo[d], hi[d]
        if low > high:
            continue
        if sides.attributes["first_leaf"][d] < 0:
            unit = sides.attributes["unit"][d]
            for c in range(n):
                b = los[d, c] if los[d, c] > high else high
                a = his[d, c] if his[d, c] < low else low
                out[c] += (b - a) * unit
            continue
        node = cover(sides, d, low, high)
        for c in range(n):
            out[c] += sides.nodes["loss"][_reaching(sides, node, los[d, c], his[d, c])]


@kernel
def _reaching(sides: Sides, node: int, low: float, high: float) -> int:
    """Return the first node, from ``node`` upwards, that has a code of an interval under it."""
    while sides.nodes["hi"][node] < low or sides.nodes["lo"][node] > high:
        node = sides.nodes["parent"][node]
    return node


@specialized
def distances_from(
    sides: Sides, los: Floats, his: Floats, first: int, n: int, lo: Floats, hi: Floats,
    wide: bool, out: Floats,
) -> None:  # fmt: skip
    """Write the distances of n rows, from ``first`` on, from one row: their joint losses.

    A side that only one of the two has counts as lost completely. Otherwise rows that lack nearly
    all values would be nearest to everybody, and hide nobody. Where no row is ``wide``, all are
    points, and one array for both sides halves the memory to read.
    """
    if not wide:
        joined_losses_from(sides, los, los, first, n, lo, lo, out)
        return
    side = np.empty(n)
    for c in range(n):
        out[c] = 0.0
    for d in range(len(lo)):
        share, has = sides.attributes["weight"][d], lo[d] <= hi[d]
        for c in range(n):
            side[c] = 0.0
        if has and sides.attributes["first_leaf"][d] < 0:
            unit = sides.attributes["unit"][d]
            add_lengths(unit, d, los, his, first, n, lo[d], hi[d], side)
        elif has:
            add_nodes(sides, d, los, his, first, n, lo[d], hi[d], side)
        for c in range(n):
            both = (los[d, first + c] <= his[d, first + c]) == has
            out[c] += side[c] if both else share


@kernel
def shared_losses(
    sides: Sides, los: Floats, his: Floats, n: int, lo: Floats, hi: Floats, out: Floats
) -> None:
    """Write the mean loss of each of n boxes joined with one box, over the sides that both have.

    It is 1, the largest distance, where they have none in common.
    """
    weight, side = np.zeros(n), np.empty(n)
    for c in range(n):
        out[c] = 0.0
    for d in range(len(lo)):
        if lo[d] > hi[d]:
            continue
        for c in range(n):
            side[c] = 0.0
        if sides.attributes["first_leaf"][d] < 0:
            add_lengths(sides.attributes["unit"][d], d, los, his, 0, n, lo[d], hi[d], side)
        else:
            add_nodes(sides, d, los, his, 0, n, lo[d], hi[d], side)
        share = sides.attributes["weight"][d]
        for c in range(n):
            has = los[d, c] <= his[d, c]
            out[c] += side[c] if has else 0.0
            weight[c] += share if has else 0.0
    for c in range(n):
        out[c] = out[c] / weight[c] if weight[c] > 0.0 else 1.0


@kernel
def points(sides: Sides, values: Floats, extended: bool, lo: Floats, hi: Floats) -> None:
    """Write the box of each single row: numbers widened to the step, categories as they are.

    Where a value is missing, the side is the whole domain if it is ``extended``, else empty.
    """
    n = values.shape[0]
    # A few rows at a time, which stay in the cache for all attributes.
    for begin in range(0, n, 256):
        end = min(n, begin + 256)
        for d in range(values.shape[1]):
            step, per = sides.attributes["step"][d], sides.attributes["per_unit"][d]
            lowest, highest = sides.attributes["lowest"][d], sides.attributes["highest"][d]
            widened = sides.attributes["first_leaf"][d] < 0 and step > 0.0
            for i in range(begin, end):
                value = values[i, d]
                if math.isnan(value):
                    lo[i, d] = lowest if extended else np.inf
                    hi[i, d] = highest if extended else -np.inf
                    continue
                lo[i, d] = value
                hi[i, d] = value
                if widened:
                    if per > 0.0:
                        low, high = math.floor(value * per) / per, math.ceil(value * per) / per
                    else:
                        low, high = math.floor(value / step) * step, math.ceil(value / step) * step
                    if low < value:
                        lo[i, d] = low if low > lowest else lowest
                    if high > value:
                        hi[i, d] = high if high < highest else highest
