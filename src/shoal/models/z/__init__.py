"""Compute how likely z-anonymity is to give k-anonymity.

z-anonymity publishes an attribute at once if at least z subjects exposed it in the window. It
looks at one attribute at a time, so that the *set* of attributes that a subject publishes may still
be unique. This model computes the probability that at least k subjects have published the same set,
from the number of subjects, the rates at which they expose attributes, the window, z and k.

>>> scenario = Scenario.power_law(z=250)  # 1,000 subjects, 20 attributes
>>> round(exact(scenario), 3), round(entropy(scenario), 2), round(information_loss(scenario), 2)
(0.931, 4.84, 5.15)

N. Jha, L. Vassio, M. Trevisan, E. Leonardi, M. Mellia: Practical anonymization for data streams:
z-anonymity and relation with k-anonymity (Performance Evaluation 159, 2023).
"""

from __future__ import annotations

from shoal.models.z.approximate import Approximated, approximate
from shoal.models.z.bounds import Bounds, bounds, k_anonymity
from shoal.models.z.choice import (
    Choice,
    Point,
    best,
    candidate_windows,
    choose,
    curve,
    least_z,
    rising,
)
from shoal.models.z.classes import (
    ByClass,
    by_class,
    classes_of_activity,
    classes_of_interest,
    published_by_class,
)
from shoal.models.z.estimation import Estimate, estimate
from shoal.models.z.events import Events, n_in_window
from shoal.models.z.exact import exact
from shoal.models.z.measured import AnonymitySets, Measured
from shoal.models.z.probabilities import (
    entropy,
    exposed,
    information_loss,
    passed,
    published,
)
from shoal.models.z.scenario import MOST_SUBJECTS, Scenario, power_law_rates
from shoal.models.z.simulation import poisson_events, simulate, simulated_shares

__all__ = [
    "MOST_SUBJECTS",
    "AnonymitySets",
    "Approximated",
    "Bounds",
    "ByClass",
    "Choice",
    "Estimate",
    "Events",
    "Measured",
    "Point",
    "Scenario",
    "approximate",
    "best",
    "bounds",
    "by_class",
    "candidate_windows",
    "choose",
    "classes_of_activity",
    "classes_of_interest",
    "curve",
    "entropy",
    "estimate",
    "exact",
    "exposed",
    "information_loss",
    "k_anonymity",
    "least_z",
    "n_in_window",
    "passed",
    "poisson_events",
    "power_law_rates",
    "published",
    "published_by_class",
    "rising",
    "simulate",
    "simulated_shares",
]
