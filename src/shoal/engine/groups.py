"""Publish or suppress held rows."""

from __future__ import annotations

import numpy as np

from shoal.engine.decisions import GROUP, SUPPRESSED, Out, decide, write_box
from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import Box, Sides, hull, join, mean_loss
from shoal.engine.kernels.held import Held, forget, gather, people, window_of
from shoal.engine.kernels.predicate import Limits, count_subjects, meets
from shoal.engine.kernels.ring import wrap

__all__ = ["may_be_group", "publish", "shape", "suppress"]


@kernel
def shape(sides: Sides, shown: Sides, rows: Held, members: Ints) -> tuple[Box, Floats, Floats]:
    """Return the box of a group that has no number yet; without members its loss is infinite.

    It is the published box: which rows may join the group later must depend on public data only.
    """
    found = gather(rows, members)
    lo, hi, loss = np.empty(0), np.empty(0), np.inf
    if len(members) > 0:
        lo, hi = hull(sides, found.lo, found.hi, np.arange(len(members)))
        join(shown, lo, hi, lo, hi)
        loss = mean_loss(sides, lo, hi)
    gaps = 0
    for missing in found.gaps:
        gaps |= missing
    n_subjects = count_subjects(found.subjects)
    return Box(loss, -1, len(members), n_subjects, gaps, window_of(rows)), lo, hi


@kernel
def may_be_group(limits: Limits, rows: Held, positions: Ints) -> bool:
    """Whether held rows may be published as one group."""
    subjects, sensitive = people(rows, positions)
    return meets(limits, subjects, sensitive)


@kernel
def publish(sides: Sides, rows: Held, members: Ints, marks: Records, out: Out) -> None:
    """Publish held rows as the next group. ``marks`` count groups and instants."""
    group = marks["groups"][0]
    found, lo, hi = shape(sides, sides, rows, members)
    known = Box(found.loss, group, found.n_rows, found.n_subjects, found.gaps, found.window)
    box = write_box(out, lo, hi, known)
    for position in members:
        gaps = rows.rows["gaps"][wrap(position, len(rows.rows))]
        decide(out, position, GROUP, box, marks["instants"][0], gaps)
        forget(rows, position)
    marks["groups"][0] += 1


@kernel
def suppress(rows: Held, position: int, marks: Records, out: Out) -> None:
    """Suppress a held row."""
    gaps = rows.rows["gaps"][wrap(position, len(rows.rows))]
    decide(out, position, SUPPRESSED, -1, marks["instants"][0], gaps)
    forget(rows, position)
