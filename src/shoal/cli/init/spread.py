"""How the values of a column are spread: a robust range, how often values recur, and where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Spread"]

#: The quantiles between which nearly all numbers lie.
CENTRAL = (0.01, 0.99)
#: A number is an outlier if it is farther from the central ones than they are from each other.
FENCE = 1.0
#: A number that stands apart, such as 999 for unknown, may be in this share of the rows.
MOST_APART = 0.05
#: Fewer different numbers, or rows, than these have no outliers.
LEAST_NUMBERS, LEAST_ROWS = 10, 50
#: A value in more than this share of the rows isn't that of one person.
MOST_OF_ONE = 0.1
#: The most values whose frequencies are kept, to tell counts from codes.
MOST_FREQUENCIES = 60
#: A peak counts if it rises above the valleys beside it by this share of the highest one, and by
#: this many standard deviations of its count.
PROMINENCE, DEVIATIONS = 0.1, 3.0


@dataclass(frozen=True, slots=True)
class Spread:
    """How values are spread. Its repr shows no value of a person."""

    least: float = field(default=0, repr=False)
    most: float = field(default=0, repr=False)
    low: float = field(default=0, repr=False)
    """The lowest number that is no outlier."""
    high: float = field(default=0, repr=False)
    """The highest number that is no outlier."""
    outliers: tuple[tuple[float, int], ...] = field(default=(), repr=False)
    """The outliers, and how many rows have each."""
    top_share: float = 0
    """The share of the rows that have the most frequent value."""
    top_is_zero: bool = False
    """Whether the most frequent number is 0."""
    evenness: float = 0
    """How evenly rows are spread over the range, and over the different numbers.

    Both are cut into thirds, and the emptiest third is compared with the fullest. It is 1 if values
    recur equally often everywhere, as ids do, and near 0 if they are rare at an end, as
    measurements are.
    """
    n_peaks: int = 0
    """The number of peaks of the frequencies, in the order of the numbers; gaps are valleys."""
    density: float = 0
    """The share of the whole numbers between the lowest and the highest that occur."""
    round_share: float = 0
    """The share of the different numbers that are multiples of ten."""

    @classmethod
    def of_numbers(cls, distinct: Any, counts: Any) -> Spread:
        """Describe numbers, given the different ones in order and how often each occurs."""
        numbers = np.asarray(distinct, np.float64)
        n = int(counts.sum())
        low, high = _fences(numbers, counts)
        below, above = numbers < low, numbers > high
        inside = ~(below | above)
        top = int(np.argmax(counts))
        return cls(
            least=float(distinct[0].item()),
            most=float(distinct[-1].item()),
            low=float(numbers[inside][0]),
            high=float(numbers[inside][-1]),
            outliers=tuple(zip(numbers[~inside].tolist(), counts[~inside].tolist(), strict=True)),
            top_share=float(counts[top]) / n,
            top_is_zero=bool(numbers[top] == 0),
            evenness=_evenness(numbers[inside], counts[inside]),
            n_peaks=_n_peaks(_with_gaps(numbers, counts)) if len(counts) <= MOST_FREQUENCIES else 0,
            density=len(numbers) / (float(numbers[-1] - numbers[0]) + 1),
            round_share=float(np.mean(np.mod(numbers, 10) == 0)),
        )

    @classmethod
    def of_counts(cls, counts: Sequence[int]) -> Spread:
        """Describe values without order, given how often each occurs."""
        return cls(top_share=max(counts) / sum(counts)) if counts else cls()

    def n_outside(self, lo: float, hi: float) -> tuple[int, int]:
        """Return how many rows have an outlier below and above a range."""
        below = sum(n for number, n in self.outliers if number < lo)
        return below, sum(n for number, n in self.outliers if number > hi)


def _fences(numbers: Any, counts: Any) -> tuple[float, float]:
    """Return the lowest and the highest number that may be no outlier."""
    first, last = _without_apart(numbers, counts)
    inside = slice(first, last + 1)
    reached = np.cumsum(counts[inside]) / counts[inside].sum()
    kept = numbers[inside]
    low = float(kept[int(np.searchsorted(reached, CENTRAL[0]))])
    high = float(kept[min(int(np.searchsorted(reached, CENTRAL[1])), len(kept) - 1)])
    if counts.sum() < LEAST_ROWS or len(numbers) < LEAST_NUMBERS or high <= low:
        return float(numbers[0]), float(numbers[-1])
    reach = FENCE * (high - low)
    return max(low - reach, float(kept[0])), min(high + reach, float(kept[-1]))


def _without_apart(numbers: Any, counts: Any) -> tuple[int, int]:
    """Return the places of the first and last number, without those that stand far apart.

    A number stands apart if it is farther from its neighbour than all others are from each other.
    """
    first, last, most = 0, len(numbers) - 1, MOST_APART * counts.sum()
    while last - first >= LEAST_NUMBERS:
        up = numbers[last] - numbers[last - 1] > numbers[last - 1] - numbers[first]
        down = numbers[first + 1] - numbers[first] > numbers[last] - numbers[first + 1]
        if up and (most := most - counts[last]) >= 0:
            last -= 1
        elif down and (most := most - counts[first]) >= 0:
            first += 1
        else:
            break
    return first, last


def _evenness(numbers: Any, counts: Any) -> float:
    if len(counts) > LEAST_NUMBERS and counts.max() > MOST_OF_ONE * counts.sum():
        # One that stands for many says nothing about the others.
        others = np.arange(len(counts)) != np.argmax(counts)
        numbers, counts = numbers[others], counts[others]
    if len(counts) < 3:
        return 0.0
    by_number = [float(part.mean()) for part in np.array_split(counts, 3)]
    by_range, _ = np.histogram(numbers, bins=3, weights=counts)
    return min(min(part) / max(part) for part in (by_number, by_range.tolist()))


def _with_gaps(numbers: Any, counts: Any) -> Any:
    """Return how often numbers occur, with 0 for those in between that don't.

    Only of whole numbers that are near each other, and by the steps in which they come: of even
    numbers the odd ones aren't gaps.

    >>> _with_gaps(np.array([1, 2, 3, 6, 8]), np.array([9, 9, 9, 9, 9])).tolist()
    [9, 9, 9, 0, 0, 9, 0, 9]
    >>> _with_gaps(np.array([80, 82, 86]), np.array([9, 9, 9])).tolist()
    [9, 9, 0, 9]
    """
    steps = numbers - numbers[0]
    if len(numbers) < 2 or steps[-1] > MOST_FREQUENCIES**2 or np.any(np.mod(steps, 1)):
        return counts
    places = steps.astype(np.int64)
    places //= np.gcd.reduce(places)
    if places[-1] >= MOST_FREQUENCIES:
        return counts
    filled = np.zeros(places[-1] + 1, counts.dtype)
    filled[places] = counts
    return filled


def _n_peaks(counts: Any) -> int:
    """Return how many peaks rise above their valleys.

    >>> _n_peaks(np.array([50, 90, 70, 20])), _n_peaks(np.array([90, 10, 80, 0, 70]))
    (1, 3)
    """
    highest = float(counts.max())
    least = max(PROMINENCE * highest, DEVIATIONS * math.sqrt(highest))
    peaks, valley, top = 0, 0.0, float(counts[0])
    rising = True
    for count in map(float, counts[1:]):
        if rising:
            if count < top - least:
                peaks, valley, rising = peaks + 1, count, False
            top = max(top, count)
        elif count > valley + least:
            top, rising = count, True
        else:
            valley = min(valley, count)
    return peaks + rising
