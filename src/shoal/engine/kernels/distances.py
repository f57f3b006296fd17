"""Distances between the values of a group and those of its window in which all values are alike.

They know neither an order nor a hierarchy (thesis, §3.6). Counts are those of n rows and of the
n_all rows of the window, value by value. The distance of a union of two groups is at most that of
the farther of them: two are norms, and the Jensen-Shannon divergence is convex.
"""

from __future__ import annotations

import math

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Ints

__all__ = ["euclidean", "jensen_shannon", "variational"]


@kernel
def euclidean(counts: Ints, n: int, of: Ints, n_all: int) -> float:
    """Return √Σ(q - p)²."""
    total = 0.0
    for i in range(len(of)):
        extra = float(counts[i] * n_all - of[i] * n)
        total += extra * extra
    return math.sqrt(total) / (float(n) * n_all)


@kernel
def variational(counts: Ints, n: int, of: Ints, n_all: int) -> float:
    """Return ½Σ|q - p|."""
    total = 0.0
    for i in range(len(of)):
        total += float(abs(counts[i] * n_all - of[i] * n))
    return total / (2.0 * n * n_all)


@kernel
def jensen_shannon(counts: Ints, n: int, of: Ints, n_all: int) -> float:
    """Return the root of ½Σ p log2(p / m) + ½Σ q log2(q / m), where m is (p + q) / 2.

    It is exactly 0 where all shares are equal. Elsewhere the divergence is exact to about 1e-15, so
    that roots below 1e-7 are rounding.
    """
    total = 0.0
    for i in range(len(of)):
        here, there = float(counts[i] * n_all), float(of[i] * n)
        both = here + there
        part = 0.0
        if here > 0.0:
            part += here * math.log(2.0 * here / both)
        if there > 0.0:
            part += there * math.log(2.0 * there / both)
        total += part
    divergence = total / (2.0 * n * n_all * math.log(2.0))
    return math.sqrt(divergence) if divergence > 0.0 else 0.0
