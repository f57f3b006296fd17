"""k-anonymity and l-diversity, by their definitions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from shoal.spec.criteria import (
    Criterion,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
)
from shoal.testing.definitions.registry import Group, defines

__all__ = ["n_paired"]

#: How far a sum of logarithms may be from the exact value.
ROUNDING = 1e-9


@defines(KAnonymity)
def _anonymous(criterion: KAnonymity, group: Group) -> bool:
    return len(set(group.subjects)) >= criterion.k


@defines(LDiversity)
def _diverse(criterion: LDiversity, group: Group) -> bool:
    pairs = list(zip(group.subjects, group.values, strict=True))
    if n_paired(pairs) < criterion.needed:
        return False
    over_rows = Counter(value for _, value in pairs)
    over_people = Counter(value for _, value in set(pairs))
    return all(
        _even(criterion, sorted(counts.values(), reverse=True))
        for counts in (over_rows, over_people)
    )


def _even(criterion: Criterion, falling: Sequence[int]) -> bool:
    """Return whether counts, the largest first, are as even as a criterion asks."""
    if isinstance(criterion, EntropyLDiversity):
        total = sum(falling)
        entropy = -math.fsum(count / total * math.log(count / total) for count in falling)
        return entropy >= math.log(criterion.l) - ROUNDING
    if isinstance(criterion, RecursiveLDiversity):
        return falling[0] < Fraction(criterion.c) * sum(falling[criterion.needed - 1 :])
    return True


def n_paired(pairs: Iterable[tuple[int, int]]) -> int:
    """Return how many different subjects can be paired with different values of theirs.

    >>> n_paired([(1, 5), (1, 6), (2, 5)]), n_paired([(1, 5), (1, 6), (1, 7)])
    (2, 1)
    """
    values_of: dict[int, set[int]] = {}
    for subject, value in pairs:
        values_of.setdefault(subject, set()).add(value)
    owner: dict[int, int] = {}

    def pair(subject: int, tried: set[int]) -> bool:
        for value in sorted(values_of[subject] - tried):
            if value in tried:
                continue
            tried.add(value)
            if value not in owner or pair(owner[value], tried):
                owner[value] = subject
                return True
        return False

    return sum(pair(subject, set()) for subject in sorted(values_of))
