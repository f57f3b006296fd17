"""The input of the model: the number of subjects, their rates, the window, z and k."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shoal.engine.kernels.arrays import Floats
from shoal.errors import JobError, Problem

__all__ = ["MOST_SUBJECTS", "Scenario", "power_law_rates"]

#: Up to this many subjects all results are exact to rounding.
MOST_SUBJECTS = 10**15


@dataclass(frozen=True, slots=True)
class Scenario:
    """A stream as the model sees it, and the parameters of the promise.

    Each subject exposes each attribute by an independent Poisson process; the rates are the same
    for all subjects (§3.2 of the paper).

    Parameters
    ----------
    n_subjects
        U, the number of subjects; at most 10¹⁵.
    rates
        λ, how often a subject exposes each attribute, in a unit of time.
    window
        Δt, how far back z-anonymity counts, in the same unit; pseudonyms live as long.
    z
        An attribute is published if at least z subjects exposed it in the window.
    k
        How many subjects should have published the same set of attributes.

    The default of `power_law` is the paper's Table 2:

    >>> scenario = Scenario.power_law()
    >>> scenario.n_subjects, scenario.n_attributes, scenario.window, scenario.z, scenario.k
    (1000, 20, 12.0, 150, 2)
    """

    n_subjects: int
    rates: tuple[float, ...]
    window: float
    z: int
    k: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "rates", tuple(float(rate) for rate in self.rates))
        problems = [
            Problem(f"Scenario.{name}", "must be a whole number of at least 1", str(value))
            for name, value in (("n_subjects", self.n_subjects), ("z", self.z), ("k", self.k))
            if value < 1
        ]
        if self.n_subjects > MOST_SUBJECTS:
            what = f"must be at most {MOST_SUBJECTS:,}, up to which the model is exact"
            problems.append(Problem("Scenario.n_subjects", what, f"{self.n_subjects:,}"))
        if not (math.isfinite(self.window) and self.window > 0):
            problems.append(
                Problem("Scenario.window", "must be a finite number above 0", str(self.window))
            )
        if not self.rates:
            problems.append(Problem("Scenario.rates", "names no attribute"))
        wrong = sum(not (math.isfinite(rate) and rate >= 0) for rate in self.rates)
        if wrong:
            what = "must be finite numbers of at least 0"
            problems.append(Problem("Scenario.rates", what, f"{wrong} that aren't"))
        if problems:
            raise JobError(problems)

    @classmethod
    def power_law(
        cls,
        n_subjects: int = 1000,
        n_attributes: int = 20,
        *,
        rate: float = 0.2,
        exponent: float = 1.0,
        window: float = 12.0,
        z: int = 150,
        k: int = 2,
    ) -> Scenario:
        """Return a scenario in which attribute r has the rate ``rate / r^exponent``."""
        rates = power_law_rates(n_attributes, rate=rate, exponent=exponent)
        return cls(n_subjects, tuple(rates.tolist()), window, z, k)

    @property
    def n_attributes(self) -> int:
        """A, the number of attributes."""
        return len(self.rates)


def power_law_rates(n_attributes: int, *, rate: float = 0.2, exponent: float = 1.0) -> Floats:
    """Return rates that fall with the rank of an attribute.

    >>> power_law_rates(4).round(4).tolist()
    [0.2, 0.1, 0.0667, 0.05]
    """
    ranks = np.arange(1, n_attributes + 1, dtype=np.float64)
    found: Floats = rate / ranks**exponent
    return found
