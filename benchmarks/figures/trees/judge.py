"""What the groups of a run come to, counted anew from rows and boxes, with nothing of the engine.

A run that breaks its promise ends everything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.base import Decisions
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.space import Codes
from shoal.metrics import Cost
from shoal.spec.hierarchy import Hierarchy
from shoal.spec.schema import Schema

__all__ = ["SPAN", "Judged", "Promise", "judge", "penalties"]

#: Without a delay no row waits for more rows than this many times the capacity.
SPAN = 16
#: Losses are in floating point.
TOLERANCE = 1e-9


class Promise(NamedTuple):
    """What a run has to keep; 0 where there is no such bound."""

    k: int
    #: How many rows are held at most, and for how many rows one waits at most.
    capacity: int
    delay: int
    #: How much a row loses with each instant that it waits.
    alpha: float


class Judged(NamedTuple):
    """What was found. All averages are over published rows, and losses sums over attributes."""

    n_rows: int
    n_groups: int
    n_suppressed: int
    #: The uncertainty penalty, loss(T), and the information loss, cost(T), of Definition 3.
    penalty: float
    cost: float
    delay: float
    #: How many rows came when the capacity was used up, and how many groups left when the time of
    #: one of their rows was up.
    n_full: int
    n_due: int


def judge(
    schema: Schema, codes: Codes, promise: Promise, decisions: tuple[Decisions, ...]
) -> Judged:
    """Count and measure every group.

    Raises
    ------
    RuntimeError
        If a row isn't decided once, a group has fewer than k people, a box doesn't cover its rows
        or loses something else than was told, a row waits for too long or too many are held.
    """
    n = len(codes.subjects)
    decided = _joined(decisions, "rows")
    if not np.array_equal(np.sort(decided), np.arange(n)):
        raise RuntimeError("not every row was decided once")
    published = _joined(decisions, "published")
    waited = published - decided
    longest = promise.delay or SPAN * promise.capacity
    if longest and waited.max(initial=0) > longest:
        raise RuntimeError(f"a row waited for {waited.max()} rows")
    n_full = _full(published, promise.capacity, n) if promise.capacity else 0
    rows, groups, lost, lo, hi = _members(decisions)
    n_people = _n_people(groups, codes.subjects[rows])
    if len(n_people) and n_people.min() < promise.k:
        raise RuntimeError(f"a group has {n_people.min()} people")
    values = codes.values[rows]
    if not ((lo <= values) & (values <= hi)).all():
        raise RuntimeError("a box doesn't cover its rows")
    ours = penalties(schema, lo, hi)
    if not np.allclose(ours, len(schema.quasi) * lost, rtol=TOLERANCE, atol=TOLERANCE):
        raise RuntimeError("a box loses something else than the engine says")
    waits = waited[_is_published(decisions)]
    cost = Cost(promise.alpha, scale=len(schema.quasi))
    cost.add(lost, waits)
    n_due = len(set(groups[waits == promise.delay].tolist())) if promise.delay else 0
    return Judged(
        n, len(n_people), n - len(rows), float(ours.mean()), cost.published or 0.0,
        float(waits.mean()), n_full, n_due,
    )  # fmt: skip


def penalties(schema: Schema, lo: Floats, hi: Floats) -> Floats:
    """The uncertainty penalty of boxes (Definition 2): sides as shares of their domains, summed.

    >>> from shoal.spec.hierarchy import Range
    >>> from shoal.spec.schema import Quasi
    >>> tree = Hierarchy.flat(["a", "b", "c"])
    >>> schema = Schema(None, [Quasi("age", Range(0, 100)), Quasi("sex", tree)])
    >>> penalties(schema, np.array([[20.0, 0.0]]), np.array([[45.0, 1.0]])).tolist()
    [0.75]
    """
    widths = [
        max(1, len(quasi.domain) - 1)
        if isinstance(quasi.domain, Hierarchy)
        else quasi.domain.hi - quasi.domain.lo
        for quasi in schema.quasi
    ]
    total: Floats = ((hi - lo) / np.array(widths)).sum(axis=1)
    return total


def _full(published: Ints, capacity: int, n: int) -> int:
    """How many rows came when the capacity was used up."""
    gone = np.cumsum(np.bincount(published, minlength=n + 1))[:n]
    held = np.arange(1, n + 1) - gone
    if held.max(initial=0) > capacity:
        raise RuntimeError(f"{held.max()} rows were held")
    return int(np.count_nonzero(held[:-1] == capacity))


def _n_people(groups: Ints, subjects: Ints) -> Ints:
    """How many different people each group has."""
    pairs = np.unique(np.stack([groups, subjects]), axis=1)
    return np.unique(pairs[0], return_counts=True)[1]


def _joined(decisions: tuple[Decisions, ...], name: str) -> Ints:
    return np.concatenate([getattr(some, name) for some in decisions])


def _is_published(decisions: tuple[Decisions, ...]) -> Bools:
    return _joined(decisions, "boxes") >= 0


def _members(decisions: tuple[Decisions, ...]) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    """The published rows; the group, the loss and the box of each."""
    parts = []
    for some in decisions:
        out = some.boxes >= 0
        at = some.boxes[out]
        parts.append((some.rows[out], some.groups[at], some.losses[out], some.lo[at], some.hi[at]))
    rows, groups, lost, lo, hi = (np.concatenate(column) for column in zip(*parts, strict=True))
    return rows, groups, lost, lo, hi
