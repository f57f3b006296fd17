"""The held rows once more, column by column and without holes, for a look at all of them at once.

A ring (`held`) finds a row by its position; distances from one row to all others want each
attribute in a piece of memory of its own. Rows lie in slots in order of arrival; what has left
leaves a hole (position -1), and holes are closed before they matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Records
from shoal.engine.kernels.held import Held
from shoal.engine.kernels.ring import wrap

__all__ = ["HeldColumns", "append", "close_holes", "empty", "grown", "remove"]

#: A row: its position (-1: a hole), its subject, and in which attributes its side is empty.
SLOT = np.dtype([("position", "i8"), ("subject", "i8"), ("gaps", "i8")])
#: How many slots are in use, how many of them are holes, and how many rows aren't points.
MARKS = np.dtype([("n", "i8"), ("n_holes", "i8"), ("n_wide", "i8")])
#: Holes are closed when there are more than one in so many slots.
DENSE = 8


class HeldColumns(NamedTuple):
    """Boxes of rows, attributes along the first axis, and whose they are."""

    lo: Floats
    hi: Floats
    slots: Records
    marks: Records


def empty(n_quasi: int, capacity: int) -> HeldColumns:
    """Room for rows, with nothing in it."""
    return HeldColumns(
        np.zeros((n_quasi, capacity)),
        np.zeros((n_quasi, capacity)),
        np.zeros(capacity, SLOT),
        np.zeros(1, MARKS),
    )


def grown(columns: HeldColumns, capacity: int) -> HeldColumns:
    """The same rows with more room."""
    larger = empty(len(columns.lo), capacity)
    n = len(columns.slots)
    larger.lo[:, :n], larger.hi[:, :n] = columns.lo, columns.hi
    larger.slots[:n], larger.marks[:] = columns.slots, columns.marks
    return larger


@kernel
def append(columns: HeldColumns, held: Held, position: int) -> None:
    """Take over a row that was just put; the ring remembers its slot."""
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
    """A row leaves."""
    slot = held.rows["following"][wrap(position, len(held.rows))]
    columns.slots["position"][slot] = -1
    columns.marks["n_holes"][0] += 1
    for d in range(len(columns.lo)):
        if columns.lo[d, slot] != columns.hi[d, slot]:
            columns.marks["n_wide"][0] -= 1
            return


@kernel
def close_holes(columns: HeldColumns, held: Held, dense: int) -> None:
    """Close the holes if there are more than one in ``dense`` slots (0: in any case)."""
    n, n_holes = columns.marks["n"][0], columns.marks["n_holes"][0]
    if n_holes * dense <= n and dense > 0:
        return
    slots = columns.slots
    for d in range(len(columns.lo)):
        to = 0
        for slot in range(n):
            # A hole is overwritten by the next row, so that there is nothing to decide.
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
