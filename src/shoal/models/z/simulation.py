"""Simulate subjects that follow the model, and Algorithm 1 (Appendix C)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.engine.kernels.arrays import Floats
from shoal.models.z.events import Events
from shoal.models.z.measured import Measured
from shoal.models.z.scenario import Scenario

__all__ = ["poisson_events", "simulate", "simulated_shares"]


def poisson_events(scenario: Scenario, seed: int, *, windows: int = 2) -> Events:
    """Draw the events of some windows: each subject exposes each attribute at its rate.

    >>> events = poisson_events(Scenario.power_law(100), seed=0)
    >>> len(events), bool((np.diff(events.clock) >= 0).all()), bool(events.clock[-1] < 24)
    (1749, True, True)
    """
    rng = np.random.default_rng(seed)
    length = windows * scenario.window
    rates = np.array(scenario.rates)
    counts = rng.poisson(rates * length * scenario.n_subjects)
    attributes = np.repeat(np.arange(len(rates)), counts)
    n = len(attributes)
    clock = rng.uniform(0.0, length, n)
    subjects = rng.integers(0, scenario.n_subjects, n)
    order = np.argsort(clock, kind="stable")
    return Events(clock[order], subjects[order], attributes[order], begin=0.0, end=length)


def simulate(scenario: Scenario, seed: int) -> Measured:
    """Simulate two windows and measure the second; in the first, counts only grow.

    >>> run = simulate(Scenario.power_law(), seed=0)
    >>> [round(run.anonymity_sets(z).share(2), 2) for z in (1, 150, 300)]
    [0.18, 0.41, 0.98]
    """
    return Measured(poisson_events(scenario, seed), scenario.window, scenario.n_subjects)


def simulated_shares(scenario: Scenario, seeds: Sequence[int]) -> Floats:
    """Return the share of k-anonymous subjects for each seed, silent ones included."""
    return np.array(
        [simulate(scenario, seed).anonymity_sets(scenario.z).share(scenario.k) for seed in seeds]
    )
