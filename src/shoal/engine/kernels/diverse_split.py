"""Split a large cluster where diversity is promised: plainly if that is enough, else by values.

The thesis always splits by values under l-diversity (§5.5.2). Most parts of a plain split are
diverse anyway, and their boxes are smaller.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import by_first, distinct, picked, picked_rows, where
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.boxes import Sides
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.predicate import Limits, meets, needed
from shoal.engine.kernels.split import by_subjects, by_values, part_boxes, repair_parts

__all__ = ["diverse_parts"]


@kernel
def diverse_parts(sides: Sides, limits: Limits, rng: Ints, rows: RowArrays, part: Ints) -> int:
    """Cut into parts that all meet the limits; the rows as a whole must meet them.

    If a part of the plain split doesn't meet the limits, the split by values is made as well, and
    after the parts of both were repaired the one of less loss is taken, of equal ones that of
    more parts.
    """
    n_parts = _by_whole_subjects(sides, limits, rng, rows, part)
    if _all_meet(limits, rows, part, n_parts):
        return n_parts
    mixed = np.empty(len(part), np.int64)
    n_mixed = by_values(sides, limits, rng, rows, mixed)
    n_parts = repair_parts(sides, limits, rows, part, n_parts)
    n_mixed = repair_parts(sides, limits, rows, mixed, n_mixed)
    loss, loss_mixed = _loss(sides, rows, part, n_parts), _loss(sides, rows, mixed, n_mixed)
    if loss_mixed < loss or (loss_mixed == loss and n_mixed > n_parts):
        part[:] = mixed
        return n_mixed
    return n_parts


@kernel
def _by_whole_subjects(sides: Sides, limits: Limits, rng: Ints, rows: RowArrays, part: Ints) -> int:
    """Cut as `by_subjects` does, each subject being one row: the box around all of its rows.

    If they were in two groups at once, the values that both have in common would reveal the
    subject's.
    """
    subject = by_first(rows.subjects)
    n_subjects = distinct(subject)
    if n_subjects == len(subject):
        return by_subjects(sides, needed(limits), rng, rows, part)
    chosen = np.empty(n_subjects, np.int64)
    n = 0
    for i in range(len(subject)):
        # Subjects are numbered in order of their first row.
        if subject[i] == n:
            chosen[n] = i
            n += 1
    around = part_boxes(sides, rows, subject, n_subjects)
    people = RowArrays(
        around.lo,
        around.hi,
        picked(rows.subjects, chosen),
        picked_rows(rows.sensitive, chosen),
        picked(rows.gaps, chosen),
    )
    home = np.empty(n_subjects, np.int64)
    n_parts = by_subjects(sides, needed(limits), rng, people, home)
    for i in range(len(subject)):
        part[i] = home[subject[i]]
    return n_parts


@kernel
def _all_meet(limits: Limits, rows: RowArrays, part: Ints, n_parts: int) -> bool:
    for p in range(n_parts):
        members = where(part, p)
        sensitive = picked_rows(rows.sensitive, members)
        if not meets(limits, picked(rows.subjects, members), sensitive):
            return False
    return True


@kernel
def _loss(sides: Sides, rows: RowArrays, part: Ints, n_parts: int) -> float:
    """Return the loss of all rows in the boxes of their parts, added in order of arrival."""
    parts = part_boxes(sides, rows, part, n_parts)
    total = 0.0
    for p in part:
        total += parts.loss[p]
    return total
