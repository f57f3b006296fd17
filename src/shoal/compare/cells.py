"""What is compared: algorithms under policies, each pair a cell of the grid."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from shoal.engine.base import Anonymizer
from shoal.spec.policy import Criterion, Policy

__all__ = ["Cell", "Promise", "cells_of", "label_of", "promise_of"]

#: What a policy promises, by the key of the job file; a number, or words where there are several.
Promise = dict[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Cell:
    """An algorithm under a policy; ``repeat`` counts runs of it under other seeds, from 0."""

    anonymizer: Anonymizer
    policy: Policy
    repeat: int = 0

    @property
    def label(self) -> str:
        """The name of the algorithm, with the knobs that differ from their defaults."""
        return label_of(self.anonymizer)

    @property
    def promise(self) -> Promise:
        """What is promised, by key."""
        return promise_of(self.policy)


def cells_of(policies: Sequence[Policy], anonymizers: Sequence[Anonymizer]) -> list[Cell]:
    """Return all pairs, by algorithm first; none of them twice."""
    pairs = [Cell(anonymizer, policy) for anonymizer in anonymizers for policy in policies]
    return list(dict.fromkeys(pairs))


def label_of(anonymizer: Anonymizer) -> str:
    """Return the name of an algorithm, with the knobs that differ from their defaults.

    >>> from shoal.algorithms import Castle
    >>> label_of(Castle()), label_of(Castle(clusters=20))
    ('castle', 'castle(clusters=20)')
    """
    knobs = [
        f"{field.name}={getattr(anonymizer, field.name)}"
        for field in dataclasses.fields(anonymizer)
        if getattr(anonymizer, field.name) != field.default
    ]
    return anonymizer.name + (f"({', '.join(knobs)})" if knobs else "")


def promise_of(policy: Policy) -> Promise:
    """Return what a policy promises, by the keys of the job file.

    >>> from shoal.spec.policy import Delay, DistinctLDiversity, EntropyLDiversity, KAnonymity
    >>> promise_of(Policy(KAnonymity(5), DistinctLDiversity(3), delay=Delay(rows=100)))
    {'k': 5, 'l': 3, 'delay': 100}
    >>> promise_of(Policy(EntropyLDiversity(2, "illness"), delay=Delay(rows=100, seconds=30)))
    {'l': 'entropy 2 of illness', 'delay': '100 rows, 30 s'}
    """
    found: dict[str, list[int | float | str]] = {}
    for criterion in policy.criteria:
        found.setdefault(criterion.key, []).append(_value_of(criterion))
    promise: Promise = {
        key: values[0] if len(values) == 1 else "; ".join(map(str, values))
        for key, values in found.items()
    }
    if policy.delay is not None:
        rows, seconds = policy.delay.rows, policy.delay.seconds
        parts = [] if rows is None else [f"{rows} rows"]
        parts += [] if seconds is None else [f"{seconds:g} s"]
        promise["delay"] = ", ".join(parts) if rows is None or seconds is not None else rows
    return promise


def _value_of(criterion: Criterion) -> int | float | str:
    """Return the number of a criterion, in words if it is of a certain form or attribute."""
    fields = {f.name: getattr(criterion, f.name) for f in dataclasses.fields(criterion)}
    attribute = fields.pop("attribute", None)
    number: int | float = next(iter(fields.values()), 0)
    if attribute is None and (criterion.default or not criterion.form):
        return number
    words = (
        f"{criterion.form} {number}" if criterion.form and not criterion.default else f"{number}"
    )
    return words if attribute is None else f"{words} of {attribute}"
