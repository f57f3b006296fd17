"""Compute tails of the binomial distribution, exact to rounding, for many probabilities at once.

Nothing here subtracts logarithms of factorials: for 10¹⁵ subjects they are so large that their
difference would have no correct digit.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.engine.kernels.arrays import Floats

__all__ = ["at_least", "pmf"]

#: Up to this many terms are summed from the first on.
FEW = 32
#: If both sides have more terms, the tail is integrated instead of summed.
MANY = 10_000
#: The sum ends when the next term is smaller, relative to the sum.
CLOSE = 1e-17
TINY, RARE = 1e-300, 1e-100
#: An integral ends where the density has fallen to exp(-DEEP) of its largest value.
DEEP = 40.0
NODES, WEIGHTS = np.polynomial.legendre.leggauss(96)
NODES, WEIGHTS = (NODES + 1.0) / 2.0, WEIGHTS / 2.0
#: Below this a series is more exact than a difference.
SMALL, TERMS = 0.1, 17
#: From here on Stirling's series is exact to rounding.
STIRLING = 16


def at_least(m: int, n: int, p: Floats) -> Floats:
    """Return P[B ≥ m] for B ~ Binomial(n, p), for each p.

    >>> at_least(1, 2, np.array([0.0, 0.5, 1.0])).tolist()
    [0.0, 0.75, 1.0]
    >>> at_least(10**14, 10**15, np.array([0.1])).round(6).tolist()
    [0.5]
    """
    if m <= 0:
        return np.ones_like(p)
    if m > n:
        return np.zeros_like(p)
    found: Floats = np.where(p >= 1.0, 1.0, 0.0)
    inner = (p > 0.0) & (p < 1.0)
    q = p[inner]
    found[inner] = 1.0 - pmf(n, q, m).sum(axis=0) if 1 < m <= FEW else _tail(m, n, q)
    return np.clip(found, 0.0, 1.0, out=found)


def pmf(n: int, p: Floats, n_terms: int) -> Floats:
    """Return P[B = j] for j from 0 to n_terms - 1, a row for each j.

    >>> pmf(2, np.array([0.5]), 4)[:, 0].round(9).tolist()
    [0.25, 0.5, 0.25, 0.0]
    """
    found = np.zeros((n_terms, len(p)))
    sure = p >= 1.0
    inside = np.where(sure | (p <= 0.0), 0.5, p)
    log_p, log_q = np.log(inside), np.log1p(-inside)
    # The logarithm of C(n, j) p^j, factor by factor: neither overflows.
    chosen = np.zeros(len(p))
    for j in range(min(n_terms, n + 1)):
        line = np.exp(chosen + (n - j) * log_q)
        found[j] = np.where(p <= 0.0, float(j == 0), np.where(sure, float(j == n), line))
        if j < n:
            chosen += math.log((n - j) / (j + 1)) + log_p
    return found


def _tail(m: int, n: int, p: Floats) -> Floats:
    """Return P[B ≥ m] for any m, from the term at m up, or from the one below it down."""
    if m == 1:
        none: Floats = -np.expm1(n * np.log1p(-p))
        return none
    # For smaller p the tail is 0, and squares of p must not underflow.
    p = np.maximum(p, RARE)
    q = 1.0 - p
    # Compute the smaller of the two tails.
    low = p < (m + 1.0) / (n + 3.0)
    term = _one_term(m, n, p, q)
    found = np.empty_like(p)
    if min(m, n - m) <= MANY:
        found[low] = _sum_up(m, n, term[low], p[low] / q[low])
        back = term[~low] * (m / (n - m + 1)) * (q[~low] / p[~low])
        found[~low] = 1.0 - _sum_up(n - m + 1, n, back, q[~low] / p[~low])
    else:
        # The tail equals that of a beta distribution with this density at p.
        density = m * term / p
        found[low] = density[low] * _integral(m, n - m + 1, p[low], q[low])
        found[~low] = 1.0 - density[~low] * _integral(n - m + 1, m, q[~low], p[~low])
    return found


def _one_term(m: int, n: int, p: Floats, q: Floats) -> Floats:
    """Return P[B = m] from the distance to the mean, so that no large numbers cancel."""
    if m == n:
        whole: Floats = np.exp(n * np.log(p))
        return whole
    mean, rest = n * p, n * q
    above = np.where(p <= 0.5, m - mean, rest - (n - m))
    away = mean * _convex(above / mean) + rest * _convex(-above / rest)
    front = math.sqrt(n / m / (n - m) / (2.0 * math.pi))
    found: Floats = front * np.exp(_stirling(n) - _stirling(m) - _stirling(n - m) - away)
    return found


def _sum_up(m: int, n: int, term: Floats, odds: Floats) -> Floats:
    """Return the sum of the terms from m on; ``term`` is the first."""
    total = term.copy()
    for j in range(m, n):
        term = term * ((n - j) / (j + 1)) * odds
        total += term
        if not (term > CLOSE * total).any():
            break
    return total


def _integral(a: int, b: int, x: Floats, y: Floats) -> Floats:
    """Return the integral of the density of Beta(a, b) from 0 to x = 1 - y, divided by it at x.

    Gauss's rule is exact enough: where both a and b are large, the density is smooth.
    """
    slope = (a - 1.0) / x - (b - 1.0) / y
    width = 1.0 / np.sqrt((a - 1.0) / x**2 + (b - 1.0) / y**2)
    # On the side of the smaller tail the density falls from x on, except close to the mode.
    steep = np.maximum(slope * width, 0.0)
    reach = np.minimum(width * (np.sqrt(steep**2 + 2.0 * DEEP) - steep), x)
    back = reach * NODES[:, None]
    fall = (a - 1.0) * _concave(-back / x) + (b - 1.0) * _concave(back / y) - slope * back
    area: Floats = reach * (WEIGHTS[:, None] * np.exp(fall)).sum(axis=0)
    return area


def _stirling(n: int) -> float:
    """Return the logarithm of n! minus that of Stirling's formula."""
    if n < STIRLING:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2.0 * math.pi)
    square = 1.0 / (float(n) * n)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / n


def _concave(u: Floats) -> Floats:
    """Return log(1 + u) - u."""
    series = np.zeros_like(u)
    small = np.where(np.abs(u) < SMALL, u, 0.0)
    for power in range(TERMS, 1, -1):
        series = small * series + (-1.0) ** (power + 1) / power
    # One side of a distribution may be empty: then u is -1.
    direct = np.log1p(np.maximum(u, TINY - 1.0)) - u
    return np.where(np.abs(u) < SMALL, series * small**2, direct)


def _convex(u: Floats) -> Floats:
    """Return (1 + u) log(1 + u) - u."""
    small = np.abs(u) < SMALL
    near = np.where(small, u, 0.0)
    direct = (1.0 + u) * np.log1p(np.maximum(u, TINY - 1.0)) - u
    return np.where(small, (1.0 + near) * _concave(near) + near**2, direct)
