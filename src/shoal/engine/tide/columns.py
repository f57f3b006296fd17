"""The held rows on the grid, side by side: one array for each attribute, with holes.

A search goes through all of them. A row that leaves is a hole until there are many; then the rows
move together, in their order of arrival.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.held import Held
from shoal.engine.kernels.ring import wrap
from shoal.engine.tide.grid import Fixed, GridRows

__all__ = ["Columns", "append", "close_holes", "grown", "no_columns", "remove", "rows_of"]

#: Holes are closed when one slot in this many is one.
HOLES = 4

#: The number of slots in use, of holes among them, of rows that aren't points, and of rows that
#: lack a value.
MARKS = np.dtype([("n", "i8"), ("n_holes", "i8"), ("n_wide", "i8"), ("n_gaps", "i8")])


class Columns(NamedTuple):
    """The ends of rows by attribute and slot, their positions, subjects and prices, and the marks.

    The position of a row that has left is -1. The slot of a held row is its ``following`` in the
    ring.
    """

    lo: Fixed
    hi: Fixed
    positions: Ints
    subjects: Ints
    prices: Fixed
    marks: Records


def no_columns(n_quasi: int, capacity: int) -> Columns:
    """Return columns without rows."""
    return Columns(
        np.zeros((n_quasi, capacity), np.int32),
        np.zeros((n_quasi, capacity), np.int32),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int32),
        np.zeros(1, MARKS),
    )


def grown(columns: Columns, capacity: int) -> Columns:
    """Return the same rows with more room."""
    larger = no_columns(len(columns.lo), capacity)
    n = int(columns.marks["n"][0])
    larger.lo[:, :n], larger.hi[:, :n] = columns.lo[:, :n], columns.hi[:, :n]
    larger.positions[:n], larger.subjects[:n] = columns.positions[:n], columns.subjects[:n]
    larger.prices[:n], larger.marks[:] = columns.prices[:n], columns.marks
    return larger


@kernel
def append(columns: Columns, rows: Held, row: GridRows, position: int, price: int) -> None:
    """Add a row; ``row`` has it alone."""
    if columns.marks["n"][0] == len(columns.positions):
        close_holes(columns, rows, 1)
    at, slot = wrap(position, len(rows.rows)), columns.marks["n"][0]
    for a in range(len(columns.lo)):
        columns.lo[a, slot] = row.lo[a, 0]
        columns.hi[a, slot] = row.hi[a, 0]
    columns.positions[slot] = position
    columns.subjects[slot] = rows.rows["subject"][at]
    columns.prices[slot] = price
    columns.marks["n"][0] += 1
    _count(columns, slot, 1)
    rows.rows["following"][at] = slot


@kernel
def _count(columns: Columns, slot: int, change: int) -> None:
    """Count a row that isn't a point or lacks a value, or count it no longer."""
    is_wide, has_gap = False, False
    for a in range(len(columns.lo)):
        is_wide = is_wide or columns.lo[a, slot] != columns.hi[a, slot]
        has_gap = has_gap or columns.lo[a, slot] > columns.hi[a, slot]
    columns.marks["n_wide"][0] += change if is_wide else 0
    columns.marks["n_gaps"][0] += change if has_gap else 0


@kernel
def remove(columns: Columns, rows: Held, position: int) -> None:
    """Remove a held row."""
    slot = rows.rows["following"][wrap(position, len(rows.rows))]
    columns.positions[slot] = -1
    columns.marks["n_holes"][0] += 1
    _count(columns, slot, -1)


@kernel
def close_holes(columns: Columns, rows: Held, holes: int) -> None:
    """Move the rows together if at least one slot in this many is a hole."""
    n = columns.marks["n"][0]
    if columns.marks["n_holes"][0] * holes < n:
        return
    kept = np.empty(n, np.int64)
    m = 0
    for slot in range(n):
        if columns.positions[slot] >= 0:
            kept[m] = slot
            m += 1
    for a in range(len(columns.lo)):
        for slot in range(m):
            columns.lo[a, slot] = columns.lo[a, kept[slot]]
            columns.hi[a, slot] = columns.hi[a, kept[slot]]
    for slot in range(m):
        columns.positions[slot] = columns.positions[kept[slot]]
        columns.subjects[slot] = columns.subjects[kept[slot]]
        columns.prices[slot] = columns.prices[kept[slot]]
        rows.rows["following"][wrap(columns.positions[slot], len(rows.rows))] = slot
    columns.marks["n"][0] = m
    columns.marks["n_holes"][0] = 0


@kernel
def rows_of(columns: Columns) -> GridRows:
    """Return the rows; those in holes are of no use."""
    are_points = columns.marks["n_wide"][0] == 0
    hi = columns.lo if are_points else columns.hi
    return GridRows(columns.lo, hi, columns.marks["n_gaps"][0] > 0, are_points)
