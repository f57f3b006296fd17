"""Approximate p_k-anon by a sum over the likeliest sets of attributes (Appendix B).

Attributes that hardly anybody publishes count as never published. The sets of the others are a
tree: its root is the likeliest set, and a child differs from its parent in one more attribute. The
tree is pruned below sets that are too unlikely. The probability of all visited sets is the *mass*;
the result is too small by at most 1 minus the mass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shoal.engine.kernels.arrays import Floats
from shoal.errors import ParameterError
from shoal.models.z.probabilities import published
from shoal.models.z.scenario import Scenario
from shoal.models.z.tails import at_least

__all__ = ["Approximated", "approximate", "approximate_of"]

#: The factor by which the threshold is lowered until the mass is reached.
FINER = 0.25
#: Probabilities with a smaller logarithm are 0 in floating point.
NOTHING = -700.0


@dataclass(frozen=True, slots=True)
class Approximated:
    """An approximation of p_k-anon from the likeliest sets.

    Parameters
    ----------
    probability
        The part of p_k-anon that is certain.
    mass
        The probability of all visited sets.
    theta_1, theta_2
        The thresholds used: attributes that fewer than theta_1 subjects publish on average are
        left out, and sets less likely than theta_2 / 2^n_attributes.
    n_attributes, n_realizations
        How many attributes and sets were left.
    """

    probability: float
    mass: float
    theta_1: float
    theta_2: float
    n_attributes: int
    n_realizations: int

    @property
    def lower(self) -> float:
        """A lower bound of p_k-anon."""
        return self.probability

    @property
    def upper(self) -> float:
        """An upper bound of p_k-anon."""
        return min(1.0, self.probability + max(0.0, 1.0 - self.mass))


def approximate(
    scenario: Scenario, *, mass: float = 0.98, theta_1: float = 1.0, most: int = 2_000_000
) -> Approximated:
    """Approximate the probability that a subject is k-anonymous.

    Parameters
    ----------
    scenario
        What is modelled.
    mass
        The probability that the visited sets should have; theta_2 is chosen to reach it.
    theta_1
        The first theta_1 to try. It is halved while the attributes that it leaves out have more
        than half of the probability that may be missing.
    most
        The largest number of sets to visit. If they don't reach the mass, ``lower`` and ``upper``
        are far apart; `bounds` is better then.

    >>> found = approximate(Scenario.power_law())
    >>> found.mass >= 0.98, found.lower <= 0.42469 <= found.upper  # exact: 0.42469
    (True, True)
    """
    if not 0.0 < mass < 1.0:
        raise ParameterError("approximate.mass", "must lie between 0 and 1", got=mass)
    if most < 1:
        raise ParameterError("approximate.most", "must be at least 1", got=most)
    return approximate_of(
        published(scenario), scenario.n_subjects, scenario.k,
        mass=mass, theta_1=theta_1, most=most,
    )  # fmt: skip


def approximate_of(
    publication: Floats, n_subjects: int, k: int, *, mass: float, theta_1: float, most: int
) -> Approximated:
    """Approximate it from the probabilities p_Y of the attributes."""
    theta_1, effective, log_left = _effective(publication, n_subjects, mass, theta_1)
    likelier = np.maximum(effective, 1.0 - effective)
    # How much less likely a set becomes if it differs in this attribute. The least likely changes
    # come first: few sets with several of them are left, so there is little to multiply.
    changes = np.sort((1.0 - likelier) / likelier)
    log_root = log_left + float(np.log(likelier).sum())
    root = math.exp(log_root) if log_root > NOTHING else 0.0
    threshold, sets = 1.0, np.ones(1)
    while root * float(sets.sum()) < mass and root > 0.0:
        finer = _tree(changes, threshold * FINER, most)
        if finer is None or len(sets) == 2 ** len(changes):
            break
        threshold, sets = threshold * FINER, finer
    log_2 = (log_root + math.log(threshold)) / math.log(2.0) + len(effective)
    likely = root * sets
    share = float((likely * at_least(k - 1, n_subjects - 1, likely)).sum())
    return Approximated(
        min(share, 1.0), min(float(likely.sum()), 1.0), theta_1,
        math.exp2(log_2) if log_2 < 1000.0 else math.inf, len(effective), len(sets),
    )  # fmt: skip


def _effective(
    publication: Floats, n_subjects: int, mass: float, theta_1: float
) -> tuple[float, Floats, float]:
    """Return theta_1, the attributes to visit, and the log-probability that no other is there."""
    enough = 1.0 - (1.0 - mass) / 2.0
    while True:
        is_effective = publication >= theta_1 / n_subjects
        left = float(np.prod(1.0 - publication[~is_effective]))
        if left >= enough:
            return theta_1, publication[is_effective], math.log(left)
        theta_1 /= 2.0


def _tree(changes: Floats, threshold: float, most: int) -> Floats | None:
    """Return the sets above a threshold, relative to the likeliest; None if there are too many."""
    sets = np.ones(1)
    for change in changes:
        changed = sets[sets * change >= threshold] * change
        if len(sets) + len(changed) > most:
            return None
        if len(changed):
            sets = np.concatenate([sets, changed])
    return sets
