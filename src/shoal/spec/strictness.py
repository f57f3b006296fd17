"""Compare two policies: does one promise at least as much as the other?

Only what is certain counts as stricter. Promises that can't be compared, such as two forms of
l-diversity or t against another window, count as weaker.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from shoal.spec.criteria import (
    BetaLikeness,
    Closeness,
    Criterion,
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    ZAnonymity,
)
from shoal.spec.policy import Delay, Policy, Window

__all__ = ["PROMISES", "Direction", "direction", "implies"]

#: How a part of a policy changes: it promises at least as much, or maybe less; it promises nothing
#: and may change; or it can't, since what was published looks otherwise.
Direction = Literal["stricter", "weaker", "neutral", "never"]

#: For each criterion, its parameters of which more is stricter, and those of which less is.
_MORE: dict[type[Criterion], tuple[str, ...]] = {
    KAnonymity: ("k",),
    ZAnonymity: ("z",),
    LDiversity: ("l",),
}
_LESS: dict[type[Criterion], tuple[str, ...]] = {
    RecursiveLDiversity: ("c",),
    Closeness: ("t",),
    BetaLikeness: ("beta",),
    DeltaDisclosure: ("delta",),
}
#: The keys of a policy that promise something about each published group or value.
PROMISES = ("k", "z", "l", "t", "beta", "disclosure")


def direction(key: str, former: Policy, now: Policy) -> Direction | None:
    """Return how one key of a policy changes; None if it means the same as before.

    >>> direction("k", Policy(KAnonymity(10)), Policy(KAnonymity(20)))
    'stricter'
    >>> direction("k", Policy(KAnonymity(10)), Policy(KAnonymity(5)))
    'weaker'
    """
    if key in PROMISES:
        then = [criterion for criterion in former.criteria if criterion.key == key]
        there = [criterion for criterion in now.criteria if criterion.key == key]
        if set(then) == set(there):
            return None
        if key == "z" and former.per_value != now.per_value:
            return "never"
        kept = all(any(implies(criterion, old) for criterion in there) for old in then)
        return "stricter" if kept else "weaker"
    if getattr(former, key) == getattr(now, key):
        return None
    if key == "delay":
        return "stricter" if _is_sooner(now.delay, former.delay) else "weaker"
    if key == "window":
        return _window(former, now)
    # How rows with missing values are published is a part of how the output looks; how late rows
    # may come promises nothing.
    return "never" if key == "missing" else "neutral"


def implies(criterion: Criterion, other: Criterion) -> bool:
    """Whether whatever keeps one criterion surely keeps the other, against the same window.

    >>> from shoal.spec.criteria import DistinctLDiversity
    >>> implies(DistinctLDiversity(3), DistinctLDiversity(2, attribute="diagnosis"))
    True
    """
    if criterion == other:
        return True
    if type(criterion) is not type(other):
        return False
    more = {name for kind, names in _MORE.items() if isinstance(criterion, kind) for name in names}
    less = {name for kind, names in _LESS.items() if isinstance(criterion, kind) for name in names}
    for field in dataclasses.fields(criterion):
        own, asked = getattr(criterion, field.name), getattr(other, field.name)
        if field.name in more:
            holds = own >= asked
        elif field.name in less:
            holds = own <= asked
        elif field.name == "attribute":
            holds = own is None or own == asked
        else:
            holds = own == asked
        if not holds:
            return False
    # A class of somebody else may mean anything by its parameters.
    return bool(more or less) and type(criterion).__module__ == Criterion.__module__


def _is_sooner(delay: Delay | None, former: Delay | None) -> bool:
    """Whether no row may be held for longer than before."""
    if former is None:
        return True
    if delay is None:
        return False
    return _within(delay.rows, former.rows) and (
        former.seconds is None
        or (_within(delay.seconds, former.seconds) and delay.clock == former.clock)
    )


def _within(bound: float | None, former: float | None) -> bool:
    return former is None or (bound is not None and bound <= former)


def _window(former: Policy, now: Policy) -> Direction:
    """Return how a window changes: a value that is frequent in a part of it is so in all of it."""
    if former.window == "all" or now.window == "all":
        return "never"
    if not former.measured and not former.z:
        # Nothing was measured against it.
        return "neutral"
    then, there = former.window, now.window
    assert isinstance(then, Window)
    if former.z and now.z and isinstance(there, Window):
        if then.seconds is None:
            shorter = there.seconds is None and there.rows <= then.rows
        else:
            shorter = there.seconds is not None and there.seconds <= then.seconds
        return "stricter" if shorter else "weaker"
    return "weaker"
