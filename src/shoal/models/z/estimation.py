"""Estimate the parameters of the model from events: the number of subjects and their rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.engine.kernels.arrays import Bools, Ints
from shoal.errors import ParameterError
from shoal.models.z.events import Events
from shoal.models.z.measured import windows_of
from shoal.models.z.scenario import Scenario

__all__ = ["Estimate", "estimate"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The parameters of a sample, for windows of one length.

    Parameters
    ----------
    window
        How long a window is.
    n_windows
        How many complete windows the sample has.
    n_seen
        How many distinct subjects they have.
    n_subjects
        How many subjects expose something in a window, on average.
    rates
        How often a subject exposes each attribute, the most frequent first.
    """

    window: float
    n_windows: int
    n_seen: int
    n_subjects: int
    rates: tuple[float, ...]

    @property
    def n_attributes(self) -> int:
        """How many attributes were exposed."""
        return len(self.rates)

    def scenario(self, z: int, k: int) -> Scenario:
        """Return the scenario with these parameters."""
        return Scenario(self.n_subjects, self.rates, self.window, z, k)


def estimate(events: Events, window: float) -> Estimate:
    """Estimate the parameters of the model from a sample.

    The model needs only the probability that a subject exposes an attribute in a window. It is
    counted in the windows of the sample and converted to the rate of a Poisson process. So a
    subject that exposes the same attribute a hundred times in a minute counts once.

    >>> from shoal.models.z import Scenario, poisson_events
    >>> events = poisson_events(Scenario.power_law(), seed=1, windows=40)
    >>> found = estimate(events, window=12)
    >>> found.n_windows, found.n_subjects, found.n_attributes
    (40, 1000, 20)
    >>> [round(rate, 2) for rate in found.rates[:4]]
    [0.2, 0.1, 0.07, 0.05]

    Raises
    ------
    ParameterError
        If the sample is shorter than a window, or nobody exposes anything in a complete one.
    """
    if not window > 0:
        raise ParameterError("window", "must be above 0", got=window)
    windows, n_windows = windows_of(events, window)
    if n_windows < 1:
        unit = "rows" if events.in_rows else "seconds"
        raise ParameterError(
            "window", f"is longer than the sample, which spans {events.span:,.12g} {unit}",
            got=f"{window:,.12g}", fix="Take a shorter window, or a larger sample",
        )  # fmt: skip
    kept = windows < n_windows
    windows, subjects = windows[kept], events.subjects[kept]
    attributes = events.attributes[kept]
    n_active = int(_first(windows, subjects).sum())
    if not n_active:
        raise ParameterError(
            "window", "has nothing to count: nobody exposes anything in a complete one",
            got=f"{window:,.12g}", fix="Take a shorter window, or a larger sample",
        )  # fmt: skip
    once = _first(windows, subjects, attributes)
    exposures = np.sort(np.bincount(attributes[once]))[::-1]
    share = exposures[exposures > 0] / n_active
    # A share of 1 would be an infinite rate: at most all subjects but a half.
    share = np.minimum(share, 1.0 - 0.5 / n_active)
    rates = -np.log1p(-share) / window
    return Estimate(
        window, n_windows, len(np.unique(subjects)), max(1, round(n_active / n_windows)),
        tuple(rates.tolist()),
    )  # fmt: skip


def _first(*columns: Ints) -> Bools:
    """Return which rows are the first of equal ones."""
    order = np.lexsort(columns)
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = False
    for column in columns:
        is_first[1:] |= np.diff(column[order]) != 0
    found = np.empty(len(order), np.bool_)
    found[order] = is_first
    return found
