"""The held rows on the grid, side by side: one array for each attribute, with holes.

A search goes through all of them. A row that leaves is a hole until there are many; then the rows
move together, in their order of arrival.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Records
from shoal.engine.kernels.held import Held
from shoal.engine.kernels.ring import wrap
from shoal.engine.tide.grid import Fixed, GridRows

__all__ = ["Columns", "append", "close_holes", "grown", "no_columns", "remove", "rows_of"]

#: Holes are closed when one slot in this many is one.
HOLES = 4

#: A row: its position (-1: it has left) and subject, its price, and whether it isn't a point.
SLOT = np.dtype([("position", "i8"), ("subject", "i8"), ("price", "i8"), ("wide", "?")])
#: The number of slots in use, of holes among them, of rows that aren't points, and of rows that
#: lack a value.
MARKS = np.dtype([("n", "i8"), ("n_holes", "i8"), ("n_wide", "i8"), ("n_gaps", "i8")])


class Columns(NamedTuple):
    """The ends of rows by attribute and slot, what else is known of each, and the marks.

    The slot of a held row is its ``following`` in the ring.
    """

    lo: Fixed
    hi: Fixed
    slots: Records
    marks: Records


def no_columns(n_quasi: int, capacity: int) -> Columns:
    """Return columns without rows."""
    return Columns(
        np.zeros((n_quasi, capacity), np.int32),
        np.zeros((n_quasi, capacity), np.int32),
        np.zeros(capacity, SLOT),
        np.zeros(1, MARKS),
    )


def grown(columns: Columns, capacity: int) -> Columns:
    """Return the same rows with more room."""
    larger = no_columns(len(columns.lo), capacity)
    n = int(columns.marks["n"][0])
    larger.lo[:, :n], larger.hi[:, :n] = columns.lo[:, :n], columns.hi[:, :n]
    larger.slots[:n], larger.marks[:] = columns.slots[:n], columns.marks
    return larger


@kernel
def append(columns: Columns, rows: Held, row: GridRows, position: int, price: int) -> None:
    """Add a row; ``row`` has it alone."""
    if columns.marks["n"][0] == len(columns.slots):
        close_holes(columns, rows, 1)
    at, slot = wrap(position, len(rows.rows)), columns.marks["n"][0]
    is_wide = False
    for a in range(len(columns.lo)):
        columns.lo[a, slot] = row.lo[a, 0]
        columns.hi[a, slot] = row.hi[a, 0]
        is_wide = is_wide or row.lo[a, 0] != row.hi[a, 0]
    columns.slots["position"][slot] = position
    columns.slots["subject"][slot] = rows.rows["subject"][at]
    columns.slots["price"][slot] = price
    columns.slots["wide"][slot] = is_wide
    columns.marks["n"][0] += 1
    columns.marks["n_wide"][0] += is_wide
    columns.marks["n_gaps"][0] += row.has_gaps
    rows.rows["following"][at] = slot


@kernel
def remove(columns: Columns, rows: Held, position: int) -> None:
    """Remove a held row."""
    slot = rows.rows["following"][wrap(position, len(rows.rows))]
    columns.slots["position"][slot] = -1
    columns.marks["n_holes"][0] += 1
    columns.marks["n_wide"][0] -= columns.slots["wide"][slot]
    for a in range(len(columns.lo)):
        if columns.lo[a, slot] > columns.hi[a, slot]:
            columns.marks["n_gaps"][0] -= 1
            break


@kernel
def close_holes(columns: Columns, rows: Held, holes: int) -> None:
    """Move the rows together if at least one slot in so many is a hole."""
    n = columns.marks["n"][0]
    if columns.marks["n_holes"][0] * holes < n:
        return
    kept = np.empty(n, np.int64)
    m = 0
    for slot in range(n):
        if columns.slots["position"][slot] >= 0:
            kept[m] = slot
            m += 1
    for a in range(len(columns.lo)):
        for slot in range(m):
            columns.lo[a, slot] = columns.lo[a, kept[slot]]
            columns.hi[a, slot] = columns.hi[a, kept[slot]]
    for slot in range(m):
        columns.slots[slot] = columns.slots[kept[slot]]
        at = wrap(columns.slots["position"][slot], len(rows.rows))
        rows.rows["following"][at] = slot
    columns.marks["n"][0] = m
    columns.marks["n_holes"][0] = 0


@kernel
def rows_of(columns: Columns) -> GridRows:
    """Return the rows; those in holes are of no use."""
    hi = columns.lo if columns.marks["n_wide"][0] == 0 else columns.hi
    return GridRows(columns.lo, hi, columns.marks["n_gaps"][0] > 0)
