"""The held rows: a ring of arrays, indexed by position.

A row's index in the ring is its position modulo the length, a power of two. All positions between
the oldest held row and the newest fit in it at any time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels import recent_rows
from shoal.engine.kernels.arrays import Floats, Ints, Records, power_of_two
from shoal.engine.kernels.recent_rows import RecentRows, add
from shoal.engine.kernels.ring import wrap

__all__ = [
    "Arrival",
    "Held",
    "RowArrays",
    "due_at",
    "empty",
    "forget",
    "gather",
    "grown",
    "is_held",
    "people",
    "positions_of",
    "put",
    "window_of",
]

SMALLEST = 256


#: A row: its subject and time, which of its values are missing (bit d: attribute d), the cluster it
#: belongs to (-1: the row isn't held), and the position of the next row in that cluster (-1: none).
ROW = np.dtype(
    [("subject", "i8"), ("time", "f8"), ("gaps", "i8"), ("cluster", "i8"), ("following", "i8")]
)
#: The position of the next row, the oldest held position, the numbers of held rows and of different
#: subjects among them, the latest time of all, and the latest time of a row.
MARKS = np.dtype(
    [
        ("upcoming", "i8"),
        ("oldest", "i8"),
        ("n_rows", "i8"),
        ("n_subjects", "i8"),
        ("now", "f8"),
        ("arrived", "f8"),
    ]
)


class Held(NamedTuple):
    """The box, the sensitive codes and the record of each row, and the marks of the ring.

    ``recent`` holds the rows of the policy's window, decided ones included.
    """

    lo: Floats
    hi: Floats
    sensitive: Ints
    rows: Records
    marks: Records
    recent: RecentRows


def empty(n_quasi: int, n_sensitive: int, capacity: int = SMALLEST, window: int = 0) -> Held:
    """Return an empty ring, with a window of ``window`` rows (0: nothing is measured)."""
    rows, marks = np.zeros(capacity, ROW), np.zeros(1, MARKS)
    rows["cluster"] = -1
    marks["now"] = marks["arrived"] = -np.inf
    return Held(
        np.zeros((capacity, n_quasi)),
        np.zeros((capacity, n_quasi)),
        np.zeros((capacity, n_sensitive), np.int64),
        rows,
        marks,
        recent_rows.empty(n_sensitive, window),
    )


def grown(held: Held, span: int) -> Held:
    """Return the same rows in a ring with room for ``span`` consecutive positions."""
    larger = empty(held.lo.shape[1], held.sensitive.shape[1], power_of_two(span))
    positions = np.arange(held.marks["oldest"][0], held.marks["upcoming"][0])
    source, target = positions % len(held.rows), positions % len(larger.rows)
    for before, after in zip(held[:4], larger[:4], strict=True):
        after[target] = before[source]
    larger.marks[:] = held.marks
    return larger._replace(recent=held.recent)


class Arrival(NamedTuple):
    """A row that arrives."""

    lo: Floats
    hi: Floats
    subject: int
    sensitive: Ints
    time: float
    gaps: int


@kernel
def put(held: Held, row: Arrival, cluster: int) -> int:
    """Take in the next row and return its position."""
    position = held.marks["upcoming"][0]
    at = wrap(position, len(held.rows))
    for d in range(len(row.lo)):
        held.lo[at, d] = row.lo[d]
        held.hi[at, d] = row.hi[d]
    for j in range(len(row.sensitive)):
        held.sensitive[at, j] = row.sensitive[j]
    held.rows["subject"][at] = row.subject
    held.rows["time"][at] = row.time
    held.rows["gaps"][at] = row.gaps
    held.rows["cluster"][at] = cluster
    held.rows["following"][at] = -1
    add(held.recent, position, row.sensitive)
    held.marks["upcoming"][0] += 1
    held.marks["n_rows"][0] += 1
    return position


@kernel
def forget(held: Held, position: int) -> None:
    """Remove a decided row, and move the beginning of the ring to the oldest held row."""
    held.rows["cluster"][wrap(position, len(held.rows))] = -1
    held.marks["n_rows"][0] -= 1
    oldest = held.marks["oldest"][0]
    while (
        oldest < held.marks["upcoming"][0]
        and held.rows["cluster"][wrap(oldest, len(held.rows))] < 0
    ):
        oldest += 1
    held.marks["oldest"][0] = oldest


@kernel
def is_held(held: Held, position: int) -> bool:
    """Whether the row at a position, which must have arrived, is held."""
    if position < held.marks["oldest"][0]:
        return False
    return held.rows["cluster"][wrap(position, len(held.rows))] >= 0


@kernel
def positions_of(held: Held) -> Ints:
    """Return the positions of all held rows, oldest first."""
    positions = np.empty(held.marks["n_rows"][0], np.int64)
    n = 0
    for position in range(held.marks["oldest"][0], held.marks["upcoming"][0]):
        if is_held(held, position):
            positions[n] = position
            n += 1
    return positions


@kernel
def window_of(held: Held) -> int:
    """Return the current window, as the number of rows up to its end; -1: none."""
    return held.marks["upcoming"][0] if held.recent.span[0] > 0 else -1


@kernel
def due_at(held: Held, seconds: float) -> float:
    """Return when the oldest held row has waited for ``seconds``; infinity if nothing is held."""
    if held.marks["n_rows"][0] == 0:
        return np.inf
    return held.rows["time"][wrap(held.marks["oldest"][0], len(held.rows))] + seconds


class RowArrays(NamedTuple):
    """Rows copied out of the ring or out of a table: boxes with attributes along the first axis."""

    lo: Floats
    hi: Floats
    subjects: Ints
    sensitive: Ints
    gaps: Ints


@kernel
def people(held: Held, positions: Ints) -> tuple[Ints, Ints]:
    """Return the subjects and the sensitive codes of some rows."""
    subjects = np.empty(len(positions), np.int64)
    sensitive = np.empty((len(positions), held.sensitive.shape[1]), np.int64)
    for i in range(len(positions)):
        at = wrap(positions[i], len(held.rows))
        subjects[i] = held.rows["subject"][at]
        for j in range(held.sensitive.shape[1]):
            sensitive[i, j] = held.sensitive[at, j]
    return subjects, sensitive


@kernel
def gather(held: Held, positions: Ints) -> RowArrays:
    """Return copies of some rows."""
    d = held.lo.shape[1]
    lo, hi = np.empty((d, len(positions))), np.empty((d, len(positions)))
    gaps = np.empty(len(positions), np.int64)
    are_points = True
    for i in range(len(positions)):
        at = wrap(positions[i], len(held.rows))
        gaps[i] = held.rows["gaps"][at]
        for j in range(d):
            lo[j, i] = held.lo[at, j]
            hi[j, i] = held.hi[at, j]
            are_points = are_points and lo[j, i] == hi[j, i]
    subjects, sensitive = people(held, positions)
    # Most rows are points: one array for both sides halves the memory to read.
    return RowArrays(lo, lo if are_points else hi, subjects, sensitive, gaps)
