"""The state of a run of FAST, a round, and what a worker has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.decisions import Out
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.held import Held
from shoal.engine.kernels.held_columns import HeldColumns
from shoal.engine.kernels.kept_groups import KeptGroups

__all__ = ["CLOCK", "PENDING", "ROUND", "Crew", "FastState", "Round", "Worker"]

#: Up to which position rows have been dealt to workers; when the last round was, and how long one
#: is estimated to take, in seconds (NaN: not known).
CLOCK = np.dtype([("dealt", "i8"), ("last_round", "f8"), ("estimate", "f8")])

#: Decisions of a worker that are counted and not yet written down: how many rows and boxes, where
#: the first of each belongs, and their instant.
PENDING = np.dtype(
    [("n_rows", "i8"), ("n_boxes", "i8"), ("row", "i8"), ("box", "i8"), ("instant", "i8")]
)
#: A `Round` as a record, where all workers find it; but for whether it is the last.
ROUND = np.dtype(
    [
        ("dealt", "i8"),
        ("begin", "i8"),
        ("published", "i8"),
        ("now", "f8"),
        ("moment", "i8"),
        ("following", "i8"),
        ("until", "f8"),
        ("full", "?"),
    ]
)


class FastState(NamedTuple):
    """The whole state of a run of FAST. Columns and draws have workers along the first axis."""

    held: Held
    columns: HeldColumns
    kept: KeptGroups
    marks: Records
    clock: Records
    rng: Ints
    draws: Ints


class Round(NamedTuple):
    """A round: the position from which on rows are new to their workers, and the position of the
    first row of the batch; the row count and the time of the round, and by which moment groups get
    older; the position and the estimated time of the next one; whether there is no room for another
    row, and whether this round is the last.
    """

    dealt: int
    begin: int
    published: int
    now: float
    moment: int
    following: int
    until: float
    full: bool
    at_end: bool


class Crew(NamedTuple):
    """What all workers have while a batch is decided, along the first axis; see `Worker`.

    ``asked`` is the round that is open, ``gate`` says how far its workers are (see
    `shoal.engine.fast.crew`).
    """

    kept: KeptGroups
    out: Out
    pending: Records
    places: Ints
    left: Ints
    n_left: Ints
    asked: Records
    gate: Ints


class Worker(NamedTuple):
    """One worker: its number, its rows, its copy of the kept groups, its random state; then its
    decisions in a round, the place of the kept group of each box, and the rows it left to all.
    """

    number: int
    columns: HeldColumns
    kept: KeptGroups
    draws: Ints
    out: Out
    places: Ints
    left: Ints
    n_left: Ints
