"""The decisions of an engine, and the buffers into which kernels write them."""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import Box, Sides, join, mean_loss, row_loss, set_row
from shoal.engine.kernels.rng import shuffle
from shoal.engine.space import NO_TABLE
from shoal.engine.z.window import HIDDEN, MISSING

__all__ = [
    "ESTIMATE",
    "GROUP",
    "HIDDEN",
    "MISSING",
    "REUSE",
    "SUPPRESSED",
    "Decisions",
    "Out",
    "Outcome",
    "decide",
    "shuffle_groups",
    "shuffle_with_joins",
    "widen_boxes",
    "write_box",
    "write_losses",
]


NO_ROWS = np.empty(0, np.int64)
#: An estimate made before a row: the z before and after it, the number of subjects in the window,
#: the share of them that can't be told apart from k - 1 others, and the entropy of what they show.
ESTIMATE = np.dtype(
    [
        ("row", "i8"),
        ("time", "f8"),
        ("before", "i8"),
        ("z", "i8"),
        ("n_subjects", "i8"),
        ("share", "f8"),
        ("entropy", "f8"),
    ]
)
NO_ESTIMATES = np.empty(0, ESTIMATE)


class Outcome(enum.IntEnum):
    """The outcome of a row. The names are those of the trace."""

    group = 0
    reuse = 1
    suppressed = 2


#: The outcomes as plain numbers, for kernels.
GROUP, REUSE, SUPPRESSED = (outcome.value for outcome in Outcome)


class Decisions(NamedTuple):
    """What an engine decided, in the order of the decisions.

    The first eight arrays have one entry for each decided row: its position among the valid rows,
    its `Outcome`, the box it is published in (-1: none), the row count and the time at which it
    was decided (NaN without time), a number for the instant, which of its values are missing (bit
    d: quasi attribute d), and its loss: that of the box in the attributes where the row has values.
    The others have one entry for each box: its sides (an empty one is from infinity to minus
    infinity), its loss over the sides that it has, the number of its group, how many rows and
    subjects formed the group (0 for a box that is reused), which values any of them lacks, and the
    window that the group was measured against, as the number of rows up to its end (-1: none).
    The rows of one group are adjacent, in random order. Where rows that join kept groups leave in
    company, they are the last of their instant, in random order.

    Where each value is decided on its own there are no boxes. Then ``levels``, ``n_behind`` and
    ``z`` have one entry for each decided row: for each attribute the level at which it is published
    (or `HIDDEN` or `MISSING`) and the number of subjects behind it, and the z that applied.
    ``gaps`` isn't used. ``estimates`` has one entry for each estimate, see `ESTIMATE`.
    """

    rows: Ints
    outcomes: Ints
    boxes: Ints
    published: Ints
    published_s: Floats
    instants: Ints
    gaps: Ints
    losses: Floats
    lo: Floats
    hi: Floats
    loss: Floats
    groups: Ints
    n_rows: Ints
    n_subjects: Ints
    box_gaps: Ints
    windows: Ints
    levels: Ints = NO_TABLE
    n_behind: Ints = NO_TABLE
    z: Ints = NO_ROWS
    estimates: Records = NO_ESTIMATES

    def __repr__(self) -> str:
        # No sides of boxes: they are values of people.
        return f"Decisions({len(self.rows)} rows, {len(self.loss)} boxes)"


#: The records that a kernel writes: a decided row, a box, and the progress.
DECIDED = np.dtype(
    [
        ("row", "i8"),
        ("outcome", "i8"),
        ("box", "i8"),
        ("published", "i8"),
        ("published_s", "f8"),
        ("instant", "i8"),
        ("gaps", "i8"),
        ("loss", "f8"),
    ]
)
BOX = np.dtype(
    [
        ("loss", "f8"),
        ("group", "i8"),
        ("n_rows", "i8"),
        ("n_subjects", "i8"),
        ("gaps", "i8"),
        ("window", "i8"),
    ]
)
PROGRESS = np.dtype(
    [("n_decided", "i8"), ("n_boxes", "i8"), ("published", "i8"), ("published_s", "f8")]
)


class Out(NamedTuple):
    """The buffers into which a kernel writes its decisions."""

    decided: Records
    boxes: Records
    lo: Floats
    hi: Floats
    progress: Records

    @classmethod
    def room(cls, n: int, n_quasi: int, used: tuple[Records, Records] | None = None) -> Out:
        """Return buffers for at most n rows; ``used`` ones for decided rows and boxes, if they do.

        Fresh memory costs more than writing to it. The sides of boxes are always new, because
        `decisions` passes them on.
        """
        if used is None or len(used[0]) < n:
            used = np.empty(n, DECIDED), np.empty(n, BOX)
        decided, boxes = used
        lo, hi = np.empty((n, n_quasi)), np.empty((n, n_quasi))
        return cls(decided, boxes, lo, hi, np.zeros(1, PROGRESS))

    def decisions(self, order: Ints | None = None) -> Decisions:
        """Return what has been written, the decided rows in their order or in another one."""
        n, n_boxes = int(self.progress["n_decided"][0]), int(self.progress["n_boxes"][0])
        whole, fractions = np.empty((6, n), np.int64), np.empty((2, n))
        _decided_columns(self.decided, np.arange(n) if order is None else order, whole, fractions)
        rows, outcomes, boxes, published, instants, gaps = whole
        per_box, loss = np.empty((5, n_boxes), np.int64), np.empty(n_boxes)
        _box_columns(self.boxes, per_box, loss)
        groups, n_rows, n_subjects, box_gaps, windows = per_box
        return Decisions(
            rows, outcomes, boxes, published, fractions[0], instants, gaps, fractions[1],
            self.lo[:n_boxes], self.hi[:n_boxes], loss,
            groups, n_rows, n_subjects, box_gaps, windows,
        )  # fmt: skip


@kernel
def _decided_columns(decided: Records, order: Ints, whole: Ints, fractions: Floats) -> None:
    """Write the fields of decided rows as columns, which Arrow and other kernels need."""
    for i in range(len(order)):
        at = order[i]
        whole[0, i] = decided["row"][at]
        whole[1, i] = decided["outcome"][at]
        whole[2, i] = decided["box"][at]
        whole[3, i] = decided["published"][at]
        whole[4, i] = decided["instant"][at]
        whole[5, i] = decided["gaps"][at]
        fractions[0, i] = decided["published_s"][at]
        fractions[1, i] = decided["loss"][at]


@kernel
def _box_columns(boxes: Records, whole: Ints, loss: Floats) -> None:
    """Write the fields of boxes as columns."""
    for i in range(len(loss)):
        whole[0, i] = boxes["group"][i]
        whole[1, i] = boxes["n_rows"][i]
        whole[2, i] = boxes["n_subjects"][i]
        whole[3, i] = boxes["gaps"][i]
        whole[4, i] = boxes["window"][i]
        loss[i] = boxes["loss"][i]


@kernel
def decide(out: Out, row: int, outcome: int, box: int, instant: int, gaps: int) -> None:
    """Write the decision about a row; ``gaps`` says which of its values are missing."""
    i = out.progress["n_decided"][0]
    out.progress["n_decided"][0] += 1
    out.decided["row"][i] = row
    out.decided["outcome"][i] = outcome
    out.decided["box"][i] = box
    out.decided["published"][i] = out.progress["published"][0]
    out.decided["published_s"][i] = out.progress["published_s"][0]
    out.decided["instant"][i] = instant
    out.decided["gaps"][i] = gaps


@kernel
def write_box(out: Out, lo: Floats, hi: Floats, box: Box) -> int:
    """Write a box and return its number."""
    i = out.progress["n_boxes"][0]
    out.progress["n_boxes"][0] += 1
    set_row(out.lo, i, lo)
    set_row(out.hi, i, hi)
    out.boxes["loss"][i] = box.loss
    out.boxes["group"][i] = box.group
    out.boxes["n_rows"][i] = box.n_rows
    out.boxes["n_subjects"][i] = box.n_subjects
    out.boxes["gaps"][i] = box.gaps
    out.boxes["window"][i] = box.window
    return i


@kernel
def widen_boxes(shown: Sides, out: Out) -> None:
    """Widen boxes to the nodes that are published, and write the loss of those.

    Equal boxes stay equal, so that a reused box is published like its group.
    """
    for i in range(out.progress["n_boxes"][0]):
        lo, hi = out.lo[i], out.hi[i]
        join(shown, lo, hi, lo, hi)
        out.boxes["loss"][i] = mean_loss(shown, lo, hi)


@kernel
def write_losses(sides: Sides, out: Out) -> None:
    """Write the loss of each decided row, over the attributes in which it has a value."""
    for i in range(out.progress["n_decided"][0]):
        box, gaps = out.decided["box"][i], out.decided["gaps"][i]
        if box < 0:
            out.decided["loss"][i] = 1.0
        elif gaps == 0:
            out.decided["loss"][i] = out.boxes["loss"][box]
        else:
            out.decided["loss"][i] = row_loss(sides, out.lo[box], out.hi[box], gaps)


@kernel
def shuffle_groups(state: Ints, rows: Ints, boxes: Ints) -> None:
    """Shuffle the rows of each box, so that their order doesn't reveal who came first."""
    begin = 0
    for i in range(1, len(rows) + 1):
        if i == len(rows) or boxes[i] != boxes[begin] or boxes[begin] < 0:
            if boxes[begin] >= 0:
                shuffle(state, rows[begin:i])
            begin = i


@kernel
def shuffle_with_joins(
    state: Ints, rows: Ints, boxes: Ints, outcomes: Ints, instants: Ints
) -> None:
    """Shuffle the rows of each box, and move those that join kept groups to the end of an instant.

    These are shuffled among each other: their order must not reveal who came first, nor between
    which groups they were decided.
    """
    begin = 0
    for i in range(1, len(rows) + 1):
        if i == len(rows) or instants[i] != instants[begin]:
            # Instant by instant, so that the draws don't depend on how the stream is cut.
            shuffle_groups(state, rows[begin:i], boxes[begin:i])
            joins = np.empty(i - begin, np.int64)
            n, at = 0, begin
            for j in range(begin, i):
                if outcomes[j] == REUSE:
                    joins[n] = rows[j]
                    n += 1
                else:
                    rows[at] = rows[j]
                    at += 1
            shuffle(state, joins[:n])
            for j in range(n):
                rows[at + j] = joins[j]
            begin = i
