"""Published groups that are kept, so that a row at its deadline can join one of them.

A ring of the latest groups: the oldest is dropped when a new one needs its place. Some criteria
(entropy, recursive, all measured ones) can be broken by one more row. Under these a kept group
stores a bounded number of members, and accepts a row only if the criteria still hold; since the
window moves, the same members may fail later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import Box, box_of, set_box
from shoal.engine.kernels.predicate import Limits, any_measured, breakable, meets, needed

__all__ = ["KeptGroups", "best", "empty", "keep", "reusable", "reuse", "used_again"]

#: The room for members of a kept group, in multiples of the fewest subjects that a group needs.
ROOM = 4
#: The least room for members where groups are measured, since most have far more than the fewest.
MEASURED_ROOM = 64


#: A group: its loss and number, which values any of its rows lacks (bit d: attribute d), the row
#: count (or the number of the instant) when it was published or last renewed, and the number of
#: stored members.
GROUP = np.dtype(
    [("loss", "f8"), ("number", "i8"), ("gaps", "i8"), ("since", "i8"), ("n_members", "i8")]
)
MARKS = np.dtype([("oldest", "i8"), ("n_kept", "i8")])


class KeptGroups(NamedTuple):
    """The kept groups: boxes (attributes along the first axis), records, and members if stored."""

    lo: Floats
    hi: Floats
    groups: Records
    subject: Ints
    sensitive: Ints
    marks: Records


def empty(groups: int, n_quasi: int, n_sensitive: int, limits: Limits) -> KeptGroups:
    """Return an empty ring for ``groups`` groups."""
    room = ROOM * int(needed(limits)) if breakable(limits) else 0
    if any_measured(limits):
        room = max(room, MEASURED_ROOM)
    return KeptGroups(
        np.zeros((n_quasi, groups)),
        np.zeros((n_quasi, groups)),
        np.zeros(groups, GROUP),
        np.zeros((groups, room), np.int64),
        np.zeros((groups, room, n_sensitive), np.int64),
        np.zeros(1, MARKS),
    )


@kernel
def _put_member(kept: KeptGroups, at: int, i: int, subject: int, sensitive: Ints) -> None:
    kept.subject[at, i] = subject
    for j in range(len(sensitive)):
        kept.sensitive[at, i, j] = sensitive[j]


@on_demand
def keep(
    kept: KeptGroups, lo: Floats, hi: Floats, box: Box, since: int, subjects: Ints, sensitive: Ints
) -> None:
    """Keep a group that has just been published, unless it is too large or nothing is kept."""
    capacity = len(kept.groups)
    room = kept.subject.shape[1]
    if capacity == 0 or 0 < room < len(subjects):
        return
    at = (kept.marks["oldest"][0] + kept.marks["n_kept"][0]) % capacity
    if kept.marks["n_kept"][0] == capacity:
        kept.marks["oldest"][0] = (kept.marks["oldest"][0] + 1) % capacity
    else:
        kept.marks["n_kept"][0] += 1
    set_box(kept.lo, at, lo)
    set_box(kept.hi, at, hi)
    kept.groups["loss"][at] = box.loss
    kept.groups["number"][at] = box.group
    kept.groups["gaps"][at] = box.gaps
    kept.groups["since"][at] = since
    if room > 0:
        kept.groups["n_members"][at] = len(subjects)
        for i in range(len(subjects)):
            _put_member(kept, at, i, subjects[i], sensitive[i])


@kernel
def _sticking_out(kept: KeptGroups, lo: Floats, hi: Floats) -> Ints:
    """Return for each group the number of attributes in which it doesn't cover a box.

    A loop over all groups without a branch is several times faster than a loop over the attributes
    of each group that stops at the first misfit.
    """
    n = len(kept.groups)
    sides = np.zeros(n, np.int64)
    for d in range(len(lo)):
        low, high = lo[d], hi[d]
        for at in range(n):
            sides[at] += (kept.lo[d, at] > low) | (kept.hi[d, at] < high)
    return sides


@kernel
def reusable(
    kept: KeptGroups,
    limits: Limits,
    lo: Floats,
    hi: Floats,
    subject: int,
    sensitive: Ints,
    since: int,
) -> Ints:
    """Return the groups, oldest first, that cover a row and meet the limits together with it.

    Groups that were published, or last renewed, before ``since`` are too old.
    """
    found = np.empty(kept.marks["n_kept"][0], np.int64)
    n = 0
    room = kept.subject.shape[1]
    sticks_out = _sticking_out(kept, lo, hi)
    for i in range(kept.marks["n_kept"][0]):
        at = (kept.marks["oldest"][0] + i) % len(kept.groups)
        if sticks_out[at] > 0 or kept.groups["since"][at] < since:
            continue
        if room > 0:
            members = kept.groups["n_members"][at]
            if members == room:
                continue
            # The entry after the members is free: check the group as if the row had joined.
            _put_member(kept, at, members, subject, sensitive)
            joined = members + 1
            if not meets(limits, kept.subject[at, :joined], kept.sensitive[at, :joined]):
                continue
        found[n] = at
        n += 1
    return found[:n]


@kernel
def best(kept: KeptGroups, groups: Ints, loss: float) -> int:
    """Return the kept group that loses least, the oldest of several.

    Return -1 if none loses less than ``loss``.
    """
    least = -1
    for group in groups:
        if kept.groups["loss"][group] < loss:
            least, loss = group, kept.groups["loss"][group]
    return least


@kernel
def reuse(kept: KeptGroups, at: int, subject: int, sensitive: Ints) -> None:
    """Add a row to the members of a kept group."""
    if kept.subject.shape[1] > 0:
        _put_member(kept, at, kept.groups["n_members"][at], subject, sensitive)
        kept.groups["n_members"][at] += 1


@kernel
def used_again(kept: KeptGroups, at: int, window: int) -> tuple[Box, Floats, Floats]:
    """Return the box of a kept group for a row that joins it, with counts of 0.

    ``window`` is the one that the group was measured against together with this row.
    """
    group = kept.groups[at]
    again = Box(group["loss"], group["number"], 0, 0, group["gaps"], window)
    return again, box_of(kept.lo, at), box_of(kept.hi, at)
