"""Rows that join kept groups, alone or in company.

A row that leaves alone shows who it is to anyone who knows when it came. In company, the rows that
join kept groups at one instant could be a group themselves: enough people, and diverse enough. As
the last resort a row takes along whoever can join as well, however few they are.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import Held, people
from shoal.engine.kernels.kept_groups import KeptGroups, best, reusable, reuse
from shoal.engine.kernels.predicate import Limits, meets, needed
from shoal.engine.kernels.ring import wrap
from shoal.engine.kernels.rng import below

__all__ = ["ALONE", "ANY", "ENOUGH", "find_joins"]

#: How much company a row needs: none is looked for, enough to be a group, or as much as there is.
ALONE, ENOUGH, ANY = 0, 1, 2


@kernel
def find_joins(
    kept: KeptGroups,
    limits: Limits,
    rows: Held,
    candidates: Ints,
    since: int,
    least_loss: bool,
    loss: float,
    least: int,
    random: Ints,
) -> tuple[Ints, Ints]:
    """Add the first candidate to a kept group, and others as its company.

    The company is one row of each further subject, in the order of the candidates, until all of
    them together meet the limits. Return the positions and the kept groups of these rows. ``least``
    says what is enough: `ALONE` looks for no company, `ENOUGH` returns nothing if there isn't
    enough of it, and leaves the kept groups as they were; `ANY` takes what there is.

    A row joins any group that it can, each equally likely; with ``least_loss`` the one that loses
    least, and the first candidate only one that loses less than ``loss``.
    """
    before = kept.groups["n_members"].copy()
    positions = np.empty(len(candidates), np.int64)
    groups = np.empty(len(candidates), np.int64)
    n, enough = 0, 1 if least == ALONE else needed(limits)
    for position in candidates:
        at = wrap(position, len(rows.rows))
        subject, sensitive = rows.rows["subject"][at], rows.sensitive[at]
        if _has_row_of(rows, positions[:n], subject):
            continue
        found = reusable(kept, limits, rows.lo[at], rows.hi[at], subject, sensitive, since)
        chosen = -1
        if least_loss:
            chosen = best(kept, found, loss if n == 0 else np.inf)
        elif len(found) > 0:
            chosen = found[below(random, len(found))]
        if chosen >= 0:
            reuse(kept, chosen, subject, sensitive)
            positions[n], groups[n] = position, chosen
            n += 1
            if n == enough:
                subjects, values = people(rows, positions[:n])
                if least == ALONE or meets(limits, subjects, values):
                    return positions[:n], groups[:n]
                enough += max(1, n // 8)
        elif n == 0:
            break
    if least == ANY:
        return positions[:n], groups[:n]
    # Members beyond the number of them are free entries: the number takes the joins back.
    for i in range(len(before)):
        kept.groups["n_members"][i] = before[i]
    return positions[:0], groups[:0]


@kernel
def _has_row_of(rows: Held, positions: Ints, subject: int) -> bool:
    for position in positions:
        if rows.rows["subject"][wrap(position, len(rows.rows))] == subject:
            return True
    return False
