"""Compute bounds of p_k-anon for any number of attributes, in bounded time.

Whether others publish the same set of attributes depends only on the probability of the set, whose
logarithm is a sum of independent terms: that of the likeliest set, less a term for each attribute
in which a set differs from it. So sets needn't be listed. The distribution of the sum is computed
attribute by attribute on a grid, once with all terms rounded up and once rounded down; the exact
value lies between the two results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shoal.engine.kernels.arrays import Floats, Ints
from shoal.models.z.exact import exact_of
from shoal.models.z.probabilities import published
from shoal.models.z.scenario import Scenario
from shoal.models.z.tails import at_least

__all__ = ["Bounds", "bounds", "bounds_of", "k_anonymity"]

#: Sets that fewer subjects than this are expected to publish are published by nobody else.
NEGLIGIBLE = 1e-9
#: Attributes are left out if the probability that any is in its rarer state is below this.
RARE = 1e-9
#: Up to this many attributes, the exact sum over all sets is fast.
FEW = 16


@dataclass(frozen=True, slots=True)
class Bounds:
    """A probability that lies between two numbers."""

    lower: float
    upper: float

    @property
    def middle(self) -> float:
        """The mean of both."""
        return (self.lower + self.upper) / 2.0


def k_anonymity(scenario: Scenario) -> Bounds:
    """Return the probability that a subject is k-anonymous in what is published in a window.

    Exact for few attributes; for many, bounds that are close.

    >>> few = k_anonymity(Scenario.power_law(n_attributes=10, z=250))
    >>> few.lower == few.upper
    True
    >>> many = k_anonymity(Scenario.power_law(n_attributes=5000, z=250))
    >>> many.upper - many.lower < 0.01
    True
    """
    publication = published(scenario)
    if len(publication) <= FEW:
        found = exact_of(publication, scenario.n_subjects, scenario.k)
        return Bounds(found, found)
    return bounds_of(publication, scenario.n_subjects, scenario.k)


def bounds(scenario: Scenario, *, step: float = 0.002) -> Bounds:
    """Return bounds of that probability for any number of attributes.

    Parameters
    ----------
    scenario
        What is modelled.
    step
        The width of a grid cell, in the logarithm of a probability. A smaller one takes longer
        and gives closer bounds.

    >>> found = bounds(Scenario.power_law())
    >>> found.lower <= 0.42469 <= found.upper, found.upper - found.lower < 0.003
    (True, True)
    """
    return bounds_of(published(scenario), scenario.n_subjects, scenario.k, step=step)


def bounds_of(publication: Floats, n_subjects: int, k: int, *, step: float = 0.002) -> Bounds:
    """Compute bounds from the probabilities p_Y of the attributes."""
    if k == 1:
        return Bounds(1.0, 1.0)
    rarer = np.sort(np.minimum(publication, 1.0 - publication))
    n_left_out = int(np.searchsorted(np.cumsum(rarer), RARE))
    missing, kept = float(rarer[:n_left_out].sum()), rarer[n_left_out:]
    log_root = float(np.log1p(-rarer).sum())
    # Sets beyond the grid are too unlikely to be published twice.
    reach = log_root + math.log(n_subjects / NEGLIGIBLE)
    if reach <= 0.0:
        most = math.exp(log_root)
        return Bounds(0.0, min(1.0, _shared(np.array([most]), n_subjects, k)[0] + missing))
    n_cells = math.ceil(reach / step) + 1
    likely = np.exp(log_root - step * np.arange(n_cells + 1))
    shared = _shared(likely, n_subjects, k)
    # Clipped before the conversion to integers: a term may be very large.
    cells = np.minimum((np.log1p(-kept) - np.log(kept)) / step, n_cells)
    below = _distribution(kept, np.ceil(cells).astype(np.int64), n_cells)
    above = _distribution(kept, np.floor(cells).astype(np.int64), n_cells)
    # Sets beyond the grid are at most as likely as its last cell.
    beyond = max(0.0, 1.0 - float(above.sum())) * float(shared[-1])
    lower = float(below @ shared[:-1]) - missing
    upper = float(above @ shared[:-1]) + beyond + missing
    return Bounds(max(0.0, min(lower, 1.0)), max(0.0, min(upper, 1.0)))


def _shared(likely: Floats, n_subjects: int, k: int) -> Floats:
    """Return the probability that k - 1 others have published a set, for each set."""
    return at_least(k - 1, n_subjects - 1, likely)


def _distribution(rarer: Floats, shifts: Ints, n_cells: int) -> Floats:
    """Return the distribution over cells of a sum in which each attribute adds its shift or 0."""
    found = np.zeros(n_cells)
    found[0] = 1.0
    # Only the cells filled so far, and those on the grid, need work.
    filled = 1
    for p, shift in zip(rarer.tolist(), shifts.tolist(), strict=True):
        upto = min(n_cells, filled + shift)
        moved = found[: max(0, upto - shift)] * p
        found[:filled] *= 1.0 - p
        if shift < n_cells:
            found[shift:upto] += moved
            filled = max(filled, upto)
    return found
