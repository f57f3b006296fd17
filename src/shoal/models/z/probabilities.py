"""Compute the probabilities of one attribute of one subject, and the entropy of all.

For each attribute the model has three probabilities (§3.2 of the paper):

- `exposed`, p_X: a subject exposes it in a window at least once (Equation 1);
- `passed`, p_O: when it is exposed, at least z - 1 others have exposed it, too (Equation 3);
- `published`, p_Y = p_X · p_O: a subject publishes it in a window.

The last one treats all exposures in a window as one: whether they pass is decided once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.engine.kernels.arrays import Floats
from shoal.models.z.scenario import Scenario
from shoal.models.z.tails import at_least

__all__ = ["entropy", "entropy_of", "exposed", "information_loss", "passed", "published"]


def exposed(rates: Sequence[float] | Floats, window: float) -> Floats:
    """Return p_X, the probability that a subject exposes an attribute in a window (Equation 1).

    >>> exposed([0.2, 0.1], window=12).round(3).tolist()
    [0.909, 0.699]
    """
    found: Floats = -np.expm1(-np.asarray(rates, np.float64) * window)
    return found


def passed(n_subjects: int, exposure: Floats, z: int) -> Floats:
    """Return p_O, the probability that what is exposed is published (Equation 3).

    The subject that exposes it is one of the z, so z - 1 others are enough.

    >>> passed(1000, np.array([0.1, 0.15, 0.2]), 150).round(3).tolist()
    [0.0, 0.544, 1.0]
    """
    return at_least(z - 1, n_subjects - 1, exposure)


def published(scenario: Scenario) -> Floats:
    """Return p_Y, the probability that a subject publishes an attribute in a window, for each.

    >>> published(Scenario.power_law(z=1)).round(3).tolist()[:3]
    [0.909, 0.699, 0.551]
    >>> float(published(Scenario.power_law(z=1001)).max())
    0.0
    """
    exposure = exposed(scenario.rates, scenario.window)
    return exposure * passed(scenario.n_subjects, exposure, scenario.z)


def entropy_of(publication: Floats) -> float:
    """Return the entropy of a published set, in nats, if attributes are independent.

    Then the sum over all 2^A sets (Equation 6) is a sum over A attributes.

    >>> round(entropy_of(np.array([0.5, 0.5, 1.0])) / float(np.log(2)), 9)
    2.0
    """
    p = publication[(publication > 0.0) & (publication < 1.0)]
    total = float((p * np.log(p) + (1.0 - p) * np.log1p(-p)).sum())
    # Adding 0 avoids -0.0.
    return -total + 0.0


def entropy(scenario: Scenario) -> float:
    """Return the entropy of what a subject publishes in a window, in nats (Equation 6)."""
    return entropy_of(published(scenario))


def information_loss(scenario: Scenario) -> float:
    """Return the entropy of exposed sets minus that of published ones, in nats (§4.2).

    >>> information_loss(Scenario.power_law(z=1))
    0.0
    >>> round(information_loss(Scenario.power_law(z=150)), 2)
    1.95
    """
    return entropy_of(exposed(scenario.rates, scenario.window)) - entropy(scenario)
