"""A share of people, with the interval that it is known to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["Share", "wilson"]

#: The quantile of the normal distribution for intervals of 95 %.
Z95 = 1.959963984540054


def wilson(successes: float, attempts: int, z: float = Z95) -> tuple[float, float]:
    """Return the Wilson score interval of a share; from 0 to 1 where nothing was attempted.

    Successes may be a sum of probabilities: the interval is wider than needed then.

    >>> [round(end, 4) for end in wilson(15, 148)]
    [0.0624, 0.1605]
    """
    if attempts == 0:
        return 0.0, 1.0
    p, n = successes / attempts, attempts
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(max(0.0, p * (1 - p) / n + z * z / (4 * n * n)))
    # At the ends the interval begins or ends there exactly; rounding must not say otherwise.
    low = 0.0 if successes <= 0 else max(0.0, middle - half)
    high = 1.0 if successes >= n else min(1.0, middle + half)
    return low, high


@dataclass(frozen=True, slots=True)
class Share:
    """How many attempts succeeded.

    Parameters
    ----------
    successes
        The number of successes. Where an attacker guesses at random among rows that look alike, the
        sum of the probabilities of success.
    attempts
        The number of people attacked.
    exact
        Whether these are probabilities, and of everybody who could be attacked: neither a guess nor
        a sample of people leaves the share to chance.

    >>> Share(1, 4).rate
    0.25
    """

    successes: float
    attempts: int
    exact: bool = field(default=False, repr=False)

    @property
    def rate(self) -> float | None:
        """The share; None where nothing was attempted."""
        return self.successes / self.attempts if self.attempts else None

    @property
    def interval(self) -> tuple[float, float]:
        """The Wilson interval of 95 %; of an exact share nothing but the share."""
        if self.exact and self.rate is not None:
            return self.rate, self.rate
        return wilson(self.successes, self.attempts)

    def as_dict(self) -> dict[str, object]:
        """Return the figures as plain values, for JSON."""
        low, high = self.interval
        return {
            "successes": self.successes,
            "attempts": self.attempts,
            "rate": self.rate,
            "low": low,
            "high": high,
            "exact": self.exact,
        }
