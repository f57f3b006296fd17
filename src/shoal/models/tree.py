"""How many samples the R-trees need for an error: Theorem 3 of Zhou et al. (EDBT 2009).

A leaf's share of the latest rows is estimated by its share of the samples. The theorem gives the
order of the number of samples only, and its term for the probability lacks the factor 1 / error².
What is computed here follows from Hoeffding's inequality, with all constants: for one box, and with
a union bound for all boxes that rows of the window can tell apart.
"""

from __future__ import annotations

import math

from shoal.errors import ParameterError

__all__ = ["error_of", "samples_for"]


def samples_for(
    error: float, probability: float = 0.95, *, n_quasi: int = 0, window: int = 0
) -> int:
    """Return how many samples keep the error of a box's share within ``error``, so probably.

    With the number of quasi attributes and the rows of the window, of all boxes at once; without
    them, of a box that was chosen before the samples were drawn.

    >>> samples_for(0.025), samples_for(0.025, n_quasi=3, window=10_000)
    (2952, 45498)

    Raises
    ------
    ParameterError
        If the error or the probability doesn't lie between 0 and 1.
    """
    _share("error", error)
    return math.ceil(_logarithm(probability, n_quasi, window) / (2.0 * error * error))


def error_of(
    samples: int, probability: float = 0.95, *, n_quasi: int = 0, window: int = 0
) -> float:
    """Return the error that so many samples keep; the inverse of `samples_for`.

    >>> round(error_of(3_000), 4)
    0.0248
    """
    if samples < 1:
        raise ParameterError("samples", "must be at least 1", got=samples)
    return math.sqrt(_logarithm(probability, n_quasi, window) / (2.0 * samples))


def _logarithm(probability: float, n_quasi: int, window: int) -> float:
    """Return ln(2 N / delta), N the number of boxes that the rows of the window can tell apart.

    A side holds the rows between two of them in their order, or none.
    """
    _share("probability", probability)
    if n_quasi < 0 or window < 0 or (n_quasi > 0) != (window > 0):
        raise ParameterError("n_quasi, window", "must both be given, or none", got=None)
    sides = n_quasi * math.log(window * (window + 1) / 2 + 1) if n_quasi else 0.0
    return math.log(2.0 / (1.0 - probability)) + sides


def _share(key: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise ParameterError(key, "must lie between 0 and 1", got=value)
