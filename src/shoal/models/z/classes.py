"""Model subjects of several classes, each with its own rates (§6 of the paper).

The paper draws B_{i,c,a}, how many of class i have exposed attribute a, with the probability of
class c; it is that of class i here. Its sum over all combinations of counts is a convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.engine.kernels.arrays import Floats
from shoal.errors import JobError, ParameterError, Problem
from shoal.models.z.exact import realizations
from shoal.models.z.probabilities import exposed
from shoal.models.z.scenario import Scenario
from shoal.models.z.tails import pmf

__all__ = [
    "ByClass",
    "by_class",
    "classes_of_activity",
    "classes_of_interest",
    "published_by_class",
]


@dataclass(frozen=True, slots=True)
class ByClass:
    """The results for each class, and for all subjects.

    Parameters
    ----------
    n_subjects
        How many there are in each class.
    probabilities
        p_k-anon of each class.
    entropy
        The entropy of a published set if the class of its subject isn't known, in nats.
    """

    n_subjects: tuple[int, ...]
    probabilities: tuple[float, ...]
    entropy: float

    @property
    def overall(self) -> float:
        """p_k-anon of a subject of any class."""
        return float(np.average(self.probabilities, weights=self.n_subjects))


def by_class(classes: Sequence[Scenario]) -> ByClass:
    """Return the probability that a subject is k-anonymous, for each class.

    The classes have the same attributes, window, z and k.

    >>> half = Scenario.power_law(500, 10, z=200)
    >>> found = by_class([half, half])
    >>> from shoal.models.z import exact
    >>> one = exact(Scenario.power_law(1000, 10, z=200))
    >>> found.overall == found.probabilities[0], abs(found.overall - one) < 1e-9
    (True, True)
    """
    publication = published_by_class(classes)
    sizes = [one.n_subjects for one in classes]
    share, entropy = np.zeros(len(classes)), 0.0
    for parts in zip(*(realizations(line) for line in publication), strict=True):
        likely = np.average(parts, axis=0, weights=sizes)
        entropy -= float((likely * np.log(np.where(likely > 0.0, likely, 1.0))).sum())
        for c, part in enumerate(parts):
            share[c] += float((part * _shared(classes, parts, c)).sum())
    found = tuple(float(min(one, 1.0)) for one in share)
    return ByClass(tuple(sizes), found, entropy)


def published_by_class(classes: Sequence[Scenario]) -> Floats:
    """Return p_Y, the probability that a subject publishes an attribute, a row for each class."""
    _check(classes)
    exposure = np.array([exposed(one.rates, one.window) for one in classes])
    z = classes[0].z
    passed = np.array([_passed(classes, exposure, c, z) for c in range(len(classes))])
    found: Floats = exposure * passed
    return found


def _passed(classes: Sequence[Scenario], exposure: Floats, c: int, z: int) -> Floats:
    """Return p_O of a class: the probability that z - 1 others, of any class, have exposed it."""
    if z == 1:
        return np.ones(exposure.shape[1])
    lines = [pmf(one.n_subjects - (i == c), exposure[i], z - 1) for i, one in enumerate(classes)]
    found = np.empty(exposure.shape[1])
    for a in range(len(found)):
        fewer = lines[0][:, a]
        for line in lines[1:]:
            fewer = np.convolve(fewer, line[:, a])[: z - 1]
        found[a] = 1.0 - fewer.sum()
    return np.clip(found, 0.0, 1.0)


def _shared(classes: Sequence[Scenario], parts: Sequence[Floats], c: int) -> Floats:
    """Return the probability that k - 1 others, of any class, have published a set."""
    n_terms = classes[0].k - 1
    if n_terms == 0:
        return np.ones(len(parts[0]))
    fewer = np.zeros((n_terms, len(parts[0])))
    fewer[0] = 1.0
    for i, one in enumerate(classes):
        line = pmf(one.n_subjects - (i == c), parts[i], n_terms)
        fewer = np.array([(fewer[: j + 1] * line[j::-1]).sum(axis=0) for j in range(n_terms)])
    found: Floats = np.clip(1.0 - fewer.sum(axis=0), 0.0, 1.0)
    return found


def _check(classes: Sequence[Scenario]) -> None:
    if not classes:
        raise ParameterError("classes", "must be at least one", got=0)
    first = classes[0]
    problems = [
        Problem(f"classes.{name}", "must be the same in all classes")
        for name in ("window", "z", "k", "n_attributes")
        if any(getattr(one, name) != getattr(first, name) for one in classes)
    ]
    if problems:
        raise JobError(problems)


def classes_of_activity(
    scenario: Scenario, imbalance: float, *, n_first: int | None = None
) -> tuple[Scenario, Scenario]:
    """Return two classes; the second is ``imbalance`` times as active as the first (§6.1).

    The total rate is unchanged. The first class has half of the subjects, or ``n_first``.

    >>> idle, busy = classes_of_activity(Scenario.power_law(), 3.0)
    >>> idle.rates[0], busy.rates[0]
    (0.1, 0.30000000000000004)
    """
    if imbalance < 0:
        raise ParameterError("imbalance", "must be at least 0", got=imbalance)
    first, second = _halves(scenario, n_first)
    scale = scenario.n_subjects / (first + imbalance * second)
    return (
        _scaled(scenario, first, np.full(scenario.n_attributes, scale)),
        _scaled(scenario, second, np.full(scenario.n_attributes, imbalance * scale)),
    )


def classes_of_interest(
    scenario: Scenario, separation: float, *, n_first: int | None = None
) -> tuple[Scenario, Scenario]:
    """Return two classes with different interests (§6.2): 0 is no difference, 1 nothing shared.

    Attributes of even rank are exposed η times as often by the first class, and 1 - η times by
    the second; those of odd rank conversely (Table 3). The separation is 2η - 1.

    >>> one, other = classes_of_interest(Scenario.power_law(n_attributes=2), 1.0)
    >>> one.rates, other.rates
    ((0.0, 0.1), (0.2, 0.0))
    """
    if not -1.0 <= separation <= 1.0:
        raise ParameterError("separation", "must lie between -1 and 1", got=separation)
    first, second = _halves(scenario, n_first)
    eta = (1.0 + separation) / 2.0
    even = np.arange(1, scenario.n_attributes + 1) % 2 == 0
    return (
        _scaled(scenario, first, np.where(even, eta, 1.0 - eta)),
        _scaled(scenario, second, np.where(even, 1.0 - eta, eta)),
    )


def _halves(scenario: Scenario, n_first: int | None) -> tuple[int, int]:
    first = scenario.n_subjects // 2 if n_first is None else n_first
    if not 1 <= first < scenario.n_subjects:
        raise ParameterError(
            "n_first",
            "must leave at least one subject for each class",
            got=f"{first} of {scenario.n_subjects}",
        )
    return first, scenario.n_subjects - first


def _scaled(scenario: Scenario, n_subjects: int, scale: Floats) -> Scenario:
    rates = tuple((np.array(scenario.rates) * scale).tolist())
    return replace(scenario, n_subjects=n_subjects, rates=rates)
