"""A column-wise copy of the held rows, for computations over all of them.

A ring (`held`) finds a row by its position; distances from one row to all others need each
attribute contiguous in memory. Rows lie in slots in order of arrival; a row that leaves leaves a
hole (position -1), and holes are closed before there are many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Records, staggered
from shoal.engine.kernels.held import Held
from shoal.engine.kernels.ring import wrap

__all__ = ["HeldColumns", "append", "close_holes", "empty", "grown", "remove"]

#: A slot: the position of its row (-1: a hole), its subject, and in which attributes it is empty.
SLOT = np.dtype([("position", "i8"), ("subject", "i8"), ("gaps", "i8")])
#: The number of slots in use, of holes among them, and of rows that aren't points.
MARKS = np.dtype([("n", "i8"), ("n_holes", "i8"), ("n_wide", "i8")])
#: Holes are closed when more than one slot in this many is a hole.
DENSE = 8


class HeldColumns(NamedTuple):
    """The boxes of held rows, attributes along the first axis, and their slots."""

    lo: Floats
    hi: Floats
    slots: Records
    marks: Records


def empty(n_quasi: int, capacity: int) -> HeldColumns:
    """Return empty columns with room for ``capacity`` rows."""
    return HeldColumns(
        np.zeros((n_quasi, staggered(capacity))),
        np.zeros((n_quasi, staggered(capacity))),
        np.zeros(capacity, SLOT),
        np.zeros(1, MARKS),
    )


def grown(columns: HeldColumns, capacity: int) -> HeldColumns:
    """Return the same rows with more room."""
    larger = empty(len(columns.lo), capacity)
    n = len(columns.slots)
    larger.lo[:, :n], larger.hi[:, :n] = columns.lo[:, :n], columns.hi[:, :n]
    larger.slots[:n], larger.marks[:] = columns.slots, columns.marks
    return larger


@kernel
def append(columns: HeldColumns, held: Held, position: int) -> None:
    """Append a row that was just put, and store its slot in the ring."""
    if columns.marks["n"][0] == len(columns.slots):
        close_holes(columns, held, 0)
    at, slot = wrap(position, len(held.rows)), columns.marks["n"][0]
    wide, gaps = False, 0
    for d in range(len(columns.lo)):
        columns.lo[d, slot] = held.lo[at, d]
        columns.hi[d, slot] = held.hi[at, d]
        wide = wide or held.lo[at, d] != held.hi[at, d]
        if held.lo[at, d] > held.hi[at, d]:
            gaps |= 1 << d
    columns.slots["position"][slot] = position
    columns.slots["subject"][slot] = held.rows["subject"][at]
    columns.slots["gaps"][slot] = gaps
    held.rows["following"][at] = slot
    columns.marks["n"][0] += 1
    columns.marks["n_wide"][0] += wide


@kernel
def remove(columns: HeldColumns, held: Held, position: int) -> None:
    """Turn the slot of a row into a hole."""
    slot = held.rows["following"][wrap(position, len(held.rows))]
    columns.slots["position"][slot] = -1
    columns.marks["n_holes"][0] += 1
    for d in range(len(columns.lo)):
        if columns.lo[d, slot] != columns.hi[d, slot]:
            columns.marks["n_wide"][0] -= 1
            return


@kernel
def close_holes(columns: HeldColumns, held: Held, dense: int) -> None:
    """Close the holes if more than one slot in ``dense`` is a hole (0: in any case)."""
    n, n_holes = columns.marks["n"][0], columns.marks["n_holes"][0]
    if n_holes * dense <= n and dense > 0:
        return
    slots = columns.slots
    for d in range(len(columns.lo)):
        to = 0
        for slot in range(n):
            # A hole is overwritten by the next row, so that the loop needs no branch.
            columns.lo[d, to] = columns.lo[d, slot]
            columns.hi[d, to] = columns.hi[d, slot]
            to += slots["position"][slot] >= 0
    to = 0
    for slot in range(n):
        if slots["position"][slot] >= 0:
            slots["position"][to] = slots["position"][slot]
            slots["subject"][to] = slots["subject"][slot]
            slots["gaps"][to] = slots["gaps"][slot]
            held.rows["following"][wrap(slots["position"][slot], len(held.rows))] = to
            to += 1
    columns.marks["n"][0] = to
    columns.marks["n_holes"][0] = 0
