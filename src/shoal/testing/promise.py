"""Whether a group keeps a policy, straight from the definitions, in plain slow Python.

It shares no code with `shoal.engine.kernels.predicate`, which it is to catch when that is wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from shoal.spec.policy import (
    Criterion,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    Measured,
    Policy,
    RecursiveLDiversity,
)
from shoal.spec.schema import Schema
from shoal.testing.measures import keeps

__all__ = ["broken", "n_paired"]

#: How far a sum of logarithms may be from the truth.
ROUNDING = 1e-9


def broken(
    policy: Policy,
    schema: Schema,
    subjects: Sequence[int],
    sensitive: Sequence[Sequence[int]],
    window: Sequence[Sequence[int]] = (),
) -> str | None:
    """The criterion that rows, as one group, break; None if they keep the whole policy.

    ``sensitive`` has the codes of each row, ``window`` those of each row that the group is measured
    against. Other criteria than those of `shoal.spec.criteria` aren't looked at.

    >>> from shoal.spec.hierarchy import Range
    >>> from shoal.spec.policy import DistinctLDiversity
    >>> from shoal.spec.schema import Quasi, Sensitive
    >>> schema = Schema("person", [Quasi("age", Range(0, 9))], [Sensitive("illness")])
    >>> policy = Policy(KAnonymity(2), DistinctLDiversity(2))
    >>> broken(policy, schema, [1, 1, 2], [[5], [6], [5]])
    >>> broken(policy, schema, [1, 2, 3], [[5], [5], [5]])
    'distinct l-diversity of illness'
    >>> broken(policy, schema, [1, 1, 1], [[5], [6], [7]])
    'k-anonymity'
    """
    for criterion in policy.criteria:
        if isinstance(criterion, KAnonymity):
            if len(set(subjects)) < criterion.k:
                return criterion.name
        elif isinstance(criterion, LDiversity | Measured):
            for j, attribute in enumerate(schema.sensitive):
                if criterion.attribute not in (None, attribute.name):
                    continue
                values = [row[j] for row in sensitive]
                if isinstance(criterion, LDiversity):
                    kept = _diverse(criterion, list(zip(subjects, values, strict=True)))
                else:
                    latest = [row[j] for row in window]
                    kept = keeps(criterion, attribute.domain, values, latest)
                if not kept:
                    return f"{criterion.name} of {attribute.name}"
    return None


def _diverse(criterion: LDiversity, pairs: Sequence[tuple[int, int]]) -> bool:
    if n_paired(pairs) < criterion.needed:
        return False
    over_rows = Counter(value for _, value in pairs)
    over_people = Counter(value for _, value in set(pairs))
    return all(
        _even(criterion, sorted(counts.values(), reverse=True))
        for counts in (over_rows, over_people)
    )


def _even(criterion: Criterion, falling: Sequence[int]) -> bool:
    """Whether counts, the largest first, are as even as a criterion asks."""
    if isinstance(criterion, EntropyLDiversity):
        total = sum(falling)
        entropy = -math.fsum(count / total * math.log(count / total) for count in falling)
        return entropy >= math.log(criterion.l) - ROUNDING
    if isinstance(criterion, RecursiveLDiversity):
        return falling[0] < Fraction(criterion.c) * sum(falling[criterion.needed - 1 :])
    return True


def n_paired(pairs: Iterable[tuple[int, int]]) -> int:
    """How many different subjects can be paired with different values of theirs.

    >>> n_paired([(1, 5), (1, 6), (2, 5)]), n_paired([(1, 5), (1, 6), (1, 7)])
    (2, 1)
    """
    values_of: dict[int, set[int]] = {}
    for subject, value in pairs:
        values_of.setdefault(subject, set()).add(value)
    owner: dict[int, int] = {}

    def settle(subject: int, tried: set[int]) -> bool:
        for value in sorted(values_of[subject] - tried):
            if value in tried:
                continue
            tried.add(value)
            if value not in owner or settle(owner[value], tried):
                owner[value] = subject
                return True
        return False

    return sum(settle(subject, set()) for subject in sorted(values_of))
