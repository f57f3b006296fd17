"""Tails of the binomial distribution, exact to rounding, for many probabilities at once."""

from __future__ import annotations

import math

import numpy as np

from shoal.kernels.arrays import Floats

__all__ = ["at_least", "pmf"]

#: Up to so many terms are summed; beyond that the continued fraction is quicker.
FEW = 32
#: The continued fraction has converged when a step changes it by less.
CLOSE = 1e-15
#: It takes about the square root of n steps.
MOST_STEPS = 100_000
TINY = 1e-300


def at_least(m: int, n: int, p: Floats) -> Floats:
    """P[B ≥ m] for B ~ Binomial(n, p), for each p.

    >>> at_least(1, 2, np.array([0.0, 0.5, 1.0])).tolist()
    [0.0, 0.75, 1.0]
    """
    if m <= 0:
        return np.ones_like(p)
    if m > n:
        return np.zeros_like(p)
    found: Floats = np.where(p >= 1.0, 1.0, 0.0)
    inner = (p > 0.0) & (p < 1.0)
    q = p[inner]
    found[inner] = 1.0 - _sum_below(m, n, q) if 1 < m <= FEW else _by_fraction(m, n, q)
    return np.clip(found, 0.0, 1.0, out=found)


def pmf(n: int, p: Floats, n_terms: int) -> Floats:
    """P[B = j] for j from 0 to n_terms - 1, a row for each j.

    >>> pmf(2, np.array([0.5]), 4)[:, 0].round(9).tolist()
    [0.25, 0.5, 0.25, 0.0]
    """
    found = np.zeros((n_terms, len(p)))
    if n_terms == 0:
        return found
    sure = p >= 1.0
    inside = np.where(sure | (p <= 0.0), 0.5, p)
    log_p, log_q = np.log(inside), np.log1p(-inside)
    for j in range(min(n_terms, n + 1)):
        line = np.exp(_log_choose(n, j) + j * log_p + (n - j) * log_q)
        found[j] = np.where(p <= 0.0, float(j == 0), np.where(sure, float(j == n), line))
    return found


def _log_choose(n: int, j: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1)


def _sum_below(m: int, n: int, p: Floats) -> Floats:
    below: Floats = pmf(n, p, m).sum(axis=0)
    return below


def _by_fraction(m: int, n: int, p: Floats) -> Floats:
    """The regularized incomplete beta function I_p(m, n - m + 1), which is this tail."""
    if m == 1:
        none: Floats = -np.expm1(n * np.log1p(-p))
        return none
    a, b = float(m), float(n - m + 1)
    # The fraction converges fast below the mean alone; above it the other tail is computed.
    low = p < (a + 1.0) / (a + b + 2.0)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    weight = np.exp(front + a * np.log(p) + b * np.log1p(-p))
    found = np.empty_like(p)
    found[low] = weight[low] * _fraction(a, b, p[low]) / a
    found[~low] = 1.0 - weight[~low] * _fraction(b, a, 1.0 - p[~low]) / b
    return found


def _fraction(a: float, b: float, x: Floats) -> Floats:
    """The continued fraction of the incomplete beta function, from its front (Lentz's way)."""
    c = np.ones_like(x)
    d = 1.0 / _nonzero(1.0 - (a + b) * x / (a + 1.0))
    value = d.copy()
    for step in range(1, MOST_STEPS):
        even = step * (b - step) / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) / ((a + 2 * step) * (a + 2 * step + 1))
        for factor in (even, odd):
            d = 1.0 / _nonzero(1.0 + factor * x * d)
            c = _nonzero(1.0 + factor * x / c)
            change = c * d
            value = value * change
        if not len(x) or np.abs(change - 1.0).max() < CLOSE:
            break
    return value


def _nonzero(values: Floats) -> Floats:
    return np.where(np.abs(values) < TINY, TINY, values)
