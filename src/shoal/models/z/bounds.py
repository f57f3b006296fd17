"""Bounds of p_k-anon for any number of attributes, in bounded work.

Whether a set of attributes has company depends on its probability alone, and the logarithm of
that is a sum of independent terms: that of the likeliest set, less something for each attribute
in which a set differs from it. So there is no need to list sets. The distribution of that sum
is found attribute by attribute on a grid, once with all terms rounded up and once down: the truth
lies between.
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

#: Sets that fewer than so many of all subjects are expected to publish have no company.
NEGLIGIBLE = 1e-9
#: Attributes that change their likelier state less often than this, all together, don't count.
RARE = 1e-9
#: Up to so many attributes the sum over all sets is quick, and exact.
FEW = 16


@dataclass(frozen=True, slots=True)
class Bounds:
    """A probability that lies between two numbers."""

    lower: float
    upper: float

    @property
    def middle(self) -> float:
        """The number between both."""
        return (self.lower + self.upper) / 2.0


def k_anonymity(scenario: Scenario) -> Bounds:
    """The probability that a subject is k-anonymous in what is published in a window.

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
    """Bounds of the same, by rounding.

    Parameters
    ----------
    scenario
        What is modelled.
    step
        How wide a cell of the grid is, in the logarithm of a probability. A smaller one takes
        longer and brings the bounds closer to each other.

    >>> found = bounds(Scenario.power_law())
    >>> found.lower <= 0.42469 <= found.upper, found.upper - found.lower < 0.003
    (True, True)
    """
    return bounds_of(published(scenario), scenario.n_subjects, scenario.k, step=step)


def bounds_of(publication: Floats, n_subjects: int, k: int, *, step: float = 0.002) -> Bounds:
    """The same from the probabilities p_Y of the attributes."""
    if k == 1:
        return Bounds(1.0, 1.0)
    rarer = np.sort(np.minimum(publication, 1.0 - publication))
    n_left_out = int(np.searchsorted(np.cumsum(rarer), RARE))
    missing, kept = float(rarer[:n_left_out].sum()), rarer[n_left_out:]
    log_root = float(np.log1p(-rarer).sum())
    # All sets beyond the grid are too unlikely to have company.
    reach = log_root + math.log(n_subjects / NEGLIGIBLE)
    if reach <= 0.0:
        most = math.exp(log_root)
        return Bounds(0.0, min(1.0, _company(np.array([most]), n_subjects, k)[0] + missing))
    n_cells = math.ceil(reach / step) + 1
    likely = np.exp(log_root - step * np.arange(n_cells + 1))
    company = _company(likely, n_subjects, k)
    # Cells are counted in floating point before they are whole numbers: a term may be very large.
    cells = np.minimum((np.log1p(-kept) - np.log(kept)) / step, n_cells)
    below = _spread(kept, np.ceil(cells).astype(np.int64), n_cells)
    above = _spread(kept, np.floor(cells).astype(np.int64), n_cells)
    # What isn't on the grid is at most as likely as its last cell.
    beyond = max(0.0, 1.0 - float(above.sum())) * float(company[-1])
    lower = float(below @ company[:-1]) - missing
    upper = float(above @ company[:-1]) + beyond + missing
    return Bounds(max(0.0, min(lower, 1.0)), max(0.0, min(upper, 1.0)))


def _company(likely: Floats, n_subjects: int, k: int) -> Floats:
    """The probability that a set has been published by k - 1 others."""
    return at_least(k - 1, n_subjects - 1, likely)


def _spread(rarer: Floats, shifts: Ints, n_cells: int) -> Floats:
    """How probability is spread over the cells, if each attribute may add its shift."""
    found = np.zeros(n_cells)
    found[0] = 1.0
    # A cell beyond the grid isn't needed, and as yet empty ones needn't be looked at.
    filled = 1
    for p, shift in zip(rarer.tolist(), shifts.tolist(), strict=True):
        upto = min(n_cells, filled + shift)
        moved = found[: max(0, upto - shift)] * p
        found[:filled] *= 1.0 - p
        if shift < n_cells:
            found[shift:upto] += moved
            filled = max(filled, upto)
    return found
