"""Compute p_k-anon exactly, as a sum over all sets of attributes (Equation 5)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.engine.kernels.arrays import Floats
from shoal.errors import ParameterError
from shoal.models.z.probabilities import published
from shoal.models.z.scenario import Scenario
from shoal.models.z.tails import at_least

__all__ = ["MOST_ATTRIBUTES", "exact", "exact_of", "realizations"]

#: This many attributes take some seconds; each further one doubles the time.
MOST_ATTRIBUTES = 24
#: All sets of this many attributes are in memory at once.
AT_ONCE = 18


def exact(scenario: Scenario) -> float:
    """Return the probability that a subject is k-anonymous in what is published in a window.

    That is: at least k - 1 others have published the same set of attributes, maybe the empty one.

    >>> round(exact(Scenario.power_law(z=250)), 2)
    0.93

    Raises
    ------
    ParameterError
        If there are more than 24 attributes; `bounds` and `approximate` take any number.
    """
    return exact_of(published(scenario), scenario.n_subjects, scenario.k)


def exact_of(publication: Floats, n_subjects: int, k: int) -> float:
    """Compute it from the probabilities p_Y of the attributes."""
    total = 0.0
    for part in realizations(publication):
        total += float((part * at_least(k - 1, n_subjects - 1, part)).sum())
    return min(total, 1.0)


def realizations(publication: Floats) -> Iterator[Floats]:
    """Yield the probabilities of all sets of attributes (Equation 4), in parts that fit in memory.

    Set number i has attribute a if its bit a is set.

    >>> [part.tolist() for part in realizations(np.array([0.25, 1.0]))]
    [[0.0, 0.0, 0.75, 0.25]]
    """
    if len(publication) > MOST_ATTRIBUTES:
        raise ParameterError(
            "exact",
            f"takes at most {MOST_ATTRIBUTES} attributes, since it visits all their sets",
            got=len(publication),
            fix="Use bounds, or approximate",
        )
    inner, outer = publication[:AT_ONCE], publication[AT_ONCE:]
    block = _products(inner)
    for weight in _products(outer):
        yield block * weight


def _products(publication: Floats) -> Floats:
    found = np.ones(1)
    for p in publication:
        found = np.concatenate([found * (1.0 - p), found * p])
    return found
