"""Groups that were published and are kept, so that a row which is due can join one of them.

A ring of the latest ones: the oldest is forgotten when a new one needs its place. Some criteria
(entropy, recursive, all that is measured) can be broken by one more row; under these a kept group
remembers its members, has room for a bounded number of them, and takes a row in only if the
criteria still hold. Measured against a window that moves, the same members may hold no longer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints, Records
from shoal.engine.kernels.boxes import Box, box_of, set_box
from shoal.engine.kernels.predicate import Limits, any_measured, breakable, meets, needed

__all__ = ["KeptGroups", "best", "empty", "keep", "reusable", "reuse", "used_again"]

#: Members that a kept group has room for, in multiples of the fewest subjects a group needs.
ROOM = 4
#: Where groups are measured, most have far more rows than the fewest: the least room for members.
MEASURED_ROOM = 64


#: A group: its loss and number, which values any of its rows misses (bit d: attribute d), the row
#: count when it was published or last renewed, and how many members are remembered.
GROUP = np.dtype(
    [("loss", "f8"), ("number", "i8"), ("gaps", "i8"), ("since", "i8"), ("n_members", "i8")]
)
MARKS = np.dtype([("oldest", "i8"), ("n_kept", "i8")])


class KeptGroups(NamedTuple):
    """Boxes of the kept groups, attributes along the first axis; what is known of them; and their
    members where these matter.
    """

    lo: Floats
    hi: Floats
    groups: Records
    subject: Ints
    sensitive: Ints
    marks: Records


def empty(groups: int, n_quasi: int, n_sensitive: int, limits: Limits) -> KeptGroups:
    """A ring for so many groups."""
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


@kernel
def keep(
    kept: KeptGroups, lo: Floats, hi: Floats, box: Box, since: int, subjects: Ints, sensitive: Ints
) -> None:
    """Keep a group that has just been published, if there is room for it at all."""
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
    """In how many attributes a box isn't within that of each group.

    A loop over all groups without a branch is several times faster than one over the attributes of
    a group that ends at the first which doesn't fit.
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
    """The groups, oldest first, that cover a row and still meet the limits when it joins.

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
            # The place behind the members is free: look at the group as if the row had joined.
            _put_member(kept, at, members, subject, sensitive)
            joined = members + 1
            if not meets(limits, kept.subject[at, :joined], kept.sensitive[at, :joined]):
                continue
        found[n] = at
        n += 1
    return found[:n]


@kernel
def best(kept: KeptGroups, groups: Ints, loss: float) -> int:
    """Of some kept groups the one that loses least, the oldest of several.

    It is -1 if none loses less than ``loss``; each loses less than infinity.
    """
    least = -1
    for group in groups:
        if kept.groups["loss"][group] < loss:
            least, loss = group, kept.groups["loss"][group]
    return least


@kernel
def reuse(kept: KeptGroups, at: int, subject: int, sensitive: Ints) -> None:
    """A row joins a kept group."""
    if kept.subject.shape[1] > 0:
        _put_member(kept, at, kept.groups["n_members"][at], subject, sensitive)
        kept.groups["n_members"][at] += 1


@kernel
def used_again(kept: KeptGroups, at: int, window: int) -> tuple[Box, Floats, Floats]:
    """The box of a kept group for a row that joins it: no further rows have formed it.

    The window is the one that the group was measured against with this row.
    """
    group = kept.groups[at]
    again = Box(group["loss"], group["number"], 0, 0, group["gaps"], window)
    return again, box_of(kept.lo, at), box_of(kept.hi, at)
