"""Whether groups keep a promise about sensitive values, judged from counts alone.

Nothing here is shared with the kernels: shares are counted anew, and each bound is written down
from its definition. Distances and disclosure come from `shoal.metrics`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.metrics.closeness import Exposure, group_exposure
from shoal.spec.hierarchy import Domain
from shoal.spec.policy import (
    DeltaDisclosure,
    EnhancedLikeness,
    Measured,
    RangeLikeness,
    TCloseness,
)

__all__ = ["Judged", "judged", "largest_delta", "runs_within"]

#: What the last digit of a product may be off by.
TOLERANCE = 1e-9


class Judged(NamedTuple):
    """How much the groups of a run tell, and how many of them break the promise."""

    exposure: Exposure
    n_broken: int


def judged(
    groups: Ints, sensitive: Ints, table: Ints, domain: Domain | None, promise: Measured
) -> Judged:
    """Measure all groups of a table against it.

    ``groups`` and ``sensitive`` tell the group of each published row and the code of its value,
    ``table`` the codes of all rows.
    """
    found = group_exposure(groups, sensitive, table, domain)
    if isinstance(promise, TCloseness):
        broken = found.closeness > promise.t * (1 + TOLERANCE)
    elif isinstance(promise, DeltaDisclosure):
        broken = ~(found.disclosure < promise.delta * (1 + TOLERANCE))
    else:
        broken = _unlike(groups, sensitive, table, promise)
    return Judged(found.worst(), int(np.count_nonzero(broken)))


def _unlike(groups: Ints, sensitive: Ints, table: Ints, promise: Measured) -> Bools:
    """Which groups have a value, or a run of values, more often than enhanced likeness allows."""
    values, counts = np.unique(table, return_counts=True)
    _, at = np.unique(groups, return_inverse=True)
    place = np.searchsorted(values, sensitive)
    tally = np.zeros((at.max() + 1, len(values)))
    np.add.at(tally, (at, place), 1.0)
    shares = tally / tally.sum(axis=1, keepdims=True)
    if isinstance(promise, RangeLikeness):
        # Codes of numbers that aren't negative are the bits of the numbers.
        runs = runs_within(values.view(np.float64), promise.epsilon)
    elif isinstance(promise, EnhancedLikeness):
        runs = [(v, v + 1) for v in range(len(values))]
    else:
        raise TypeError(f"{promise.name} isn't judged here")
    broken = np.zeros(len(tally), bool)
    for begin, end in runs:
        p = counts[begin:end].sum() / len(table)
        most = (1 + min(promise.beta, -math.log(p))) * p
        broken |= shares[:, begin:end].sum(axis=1) > most * (1 + TOLERANCE)
    return broken


def runs_within(numbers: Floats, epsilon: float) -> list[tuple[int, int]]:
    """All runs of consecutive numbers, first and behind the last, that are no longer than epsilon.

    >>> runs_within(np.array([1.0, 2.0, 4.0]), 2)
    [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    """
    return [
        (begin, end + 1)
        for begin in range(len(numbers))
        for end in range(begin, len(numbers))
        if numbers[end] - numbers[begin] <= epsilon
    ]


def largest_delta(table: Ints, beta: float, epsilon: float = 0.0) -> float:
    """With delta-disclosure of this, enhanced likeness holds for all runs within epsilon.

    The thesis (§4.4.2) gives it for single values: delta = ln(1 + min(beta, -ln p)) for the largest
    p. The same argument holds for runs of values, with the largest share of one.

    >>> codes = np.array([0.0, 0.0, 1.0, 2.0]).view(np.int64)
    >>> round(math.exp(largest_delta(codes, beta=4)) - 1, 3), round(-math.log(0.5), 3)
    (0.693, 0.693)
    """
    values, counts = np.unique(table, return_counts=True)
    runs = runs_within(values.view(np.float64), epsilon)
    most = max(int(counts[begin:end].sum()) for begin, end in runs) / len(table)
    return math.log1p(min(beta, -math.log(most)))
