"""A maximum matching of subjects and values."""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = ["matching"]


def matching(pairs: Iterable[tuple[int, int]], enough: float = math.inf) -> int:
    """Return the largest number of (subject, value) pairs without a common subject or value.

    Each value looks for an augmenting path, breadth first. Subjects met by a search that failed can
    never be freed, so they aren't visited again.

    Parameters
    ----------
    pairs
        Who has which value.
    enough
        Stop as soon as this many are matched.

    One person with three values counts for one of them only:

    >>> matching([(1, 10), (1, 11), (1, 12), (2, 10)])
    2
    """
    subjects_of: dict[int, list[int]] = {}
    for subject, value in pairs:
        subjects_of.setdefault(value, []).append(subject)
    value_of: dict[int, int] = {}
    subject_of: dict[int, int] = {}
    closed: set[int] = set()
    for start in subjects_of:
        if len(value_of) >= enough:
            break
        asked_by: dict[int, int] = {}
        queue = [start]
        free: int | None = None
        for value in queue:
            for subject in subjects_of[value]:
                if subject in asked_by or subject in closed:
                    continue
                asked_by[subject] = value
                if subject not in value_of:
                    free = subject
                    break
                queue.append(value_of[subject])
            if free is not None:
                break
        if free is None:
            closed.update(asked_by)
        while free is not None:
            value = asked_by[free]
            left = subject_of.get(value)
            value_of[free], subject_of[value] = value, free
            free = left
    return len(value_of)
