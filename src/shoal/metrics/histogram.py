"""A histogram of bounded memory whose quantiles are exact for small whole numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Histogram"]

# Relative error of a quantile: a bucket from g**i to g**(i+1), with g = (1 + e) / (1 - e), is
# represented by the one number that is within e of both of its ends.
_ERROR = 0.01
_GROWTH = math.log1p(_ERROR) - math.log1p(-_ERROR)
_LEAST = 1e-9
_MOST = 1e18
_N_EXACT = 256
#: Whole numbers below this are counted before they are put into buckets.
_N_COUNTED = 65_536
_LOWEST = math.floor(math.log(_LEAST) / _GROWTH)
_N_BUCKETS = math.ceil(math.log(_MOST) / _GROWTH) - _LOWEST + 1


@functools.cache
def _representatives() -> NDArray[np.float64]:
    edges = np.exp((np.arange(_N_BUCKETS) + _LOWEST) * _GROWTH)
    return np.concatenate([np.arange(_N_EXACT), edges * (1 + _ERROR)])


@functools.lru_cache(maxsize=16)
def _places(bounds: tuple[float, ...]) -> NDArray[np.int64]:
    """Return, for each fine bucket, the first of these bounds that it doesn't exceed."""
    found: NDArray[np.int64] = np.searchsorted(np.array(bounds, np.float64), _representatives())
    return found


def _buckets_of(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bucket of each number, those below 256 that are whole first."""
    is_exact = (values < _N_EXACT) & (values == np.floor(values))
    whole = values[is_exact].astype(np.int64)
    cut = np.clip(values[~is_exact], _LEAST, _MOST)
    bucket = np.floor(np.log(cut) / _GROWTH).astype(np.int64) - _LOWEST
    found = np.empty(len(values), np.int64)
    found[is_exact] = whole
    found[~is_exact] = np.clip(bucket, 0, _N_BUCKETS - 1) + _N_EXACT
    return found


class Histogram:
    """Counts, mean, least, largest and quantiles of numbers from 0 up.

    The mean, the least and the largest are exact. A quantile is exact where it is a whole number
    below 256, and off by at most 1 % elsewhere (from 1e-9 to 1e18; beyond that it is cut).

    >>> waits = Histogram()
    >>> waits.add([3, 4, 5, 1000])
    >>> waits.count, waits.quantile(0.5), waits.largest
    (4, 4.0, 1000.0)
    >>> abs(waits.quantile(1.0) / 1000 - 1) <= 0.01
    True
    """

    __slots__ = ("_buckets", "_sum", "count", "largest", "least")

    def __init__(self) -> None:
        self._buckets = np.zeros(_N_EXACT + _N_BUCKETS, dtype=np.int64)
        self._sum = 0.0
        self.count = 0
        self.least: float | None = None
        """The smallest number so far, None if there is none."""
        self.largest: float | None = None
        """The largest number so far, None if there is none."""

    def add(self, numbers: ArrayLike) -> None:
        """Count numbers; they must be finite, and at least 0."""
        values = np.asarray(numbers)
        if values.size == 0:
            return
        if values.dtype.kind == "i" and values.min() >= 0 and values.max() < _N_COUNTED:
            self._add_counted(values)
            return
        values = values.astype(np.float64, copy=False)
        if not (np.all(np.isfinite(values)) and values.min() >= 0):
            raise ValueError("a histogram counts finite numbers from 0 up")
        self._spread(float(values.min()), float(values.max()))
        self.count += int(values.size)
        self._sum += float(values.sum())
        self._buckets += np.bincount(_buckets_of(values), minlength=len(self._buckets))

    def _add_counted(self, values: NDArray[np.int64]) -> None:
        """Count whole numbers of which most come again: each different one is looked at once."""
        counts = np.bincount(values)
        different = np.flatnonzero(counts)
        self._spread(float(different[0]), float(different[-1]))
        self.count += int(values.size)
        # Below 2**53 a sum of whole numbers is exact in any order.
        self._sum += float(different @ counts[different])
        np.add.at(self._buckets, _buckets_of(different.astype(np.float64)), counts[different])

    def merge(self, other: Histogram) -> None:
        """Count the numbers of another histogram, as if they had been added here."""
        if other.least is None or other.largest is None:
            return
        self._spread(other.least, other.largest)
        self.count += other.count
        self._sum += other._sum
        self._buckets += other._buckets

    def _spread(self, low: float, high: float) -> None:
        """Extend the range to the least and the largest of further numbers."""
        self.least = low if self.least is None else min(self.least, low)
        self.largest = high if self.largest is None else max(self.largest, high)

    @property
    def mean(self) -> float | None:
        """The mean, None if there is nothing."""
        return self._sum / self.count if self.count else None

    def quantile(self, share: float) -> float | None:
        """Return the least number that at least this share of all numbers doesn't exceed.

        None if there is nothing.
        """
        if self.least is None or self.largest is None:
            return None
        values = _representatives()
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(self._buckets[order])
        # Rounding must not push the rank of, say, a half of 2 beyond 1.
        rank = max(1, math.ceil(share * self.count - 1e-9))
        found = float(values[order][np.searchsorted(reached, rank)])
        return min(max(found, self.least), self.largest)

    def figures(self) -> dict[str, float | None]:
        """Return mean, median, 99th percentile and maximum; None where there is nothing."""
        return {
            "mean": self.mean,
            "p50": self.quantile(0.5),
            "p99": self.quantile(0.99),
            "max": self.largest,
        }

    def fold(self, bounds: Sequence[float]) -> tuple[int, ...]:
        """Return how many of the numbers are at most each of these bounds, which rise.

        Exact for whole numbers where the bound is at most 250; elsewhere a number within 1 % of a
        bound may be counted on either side of it.

        >>> numbers = Histogram()
        >>> numbers.add([3, 4, 5, 1000])
        >>> numbers.fold([4, 100, 10_000])
        (2, 3, 4)
        """
        place = _places(tuple(bounds))
        # Weights are doubles, which hold every count up to 2**53.
        counts = np.bincount(place, weights=self._buckets, minlength=len(bounds) + 1)
        return tuple(int(n) for n in np.cumsum(counts)[: len(bounds)])

    def state(self) -> dict[str, Any]:
        """Return all counts, exactly, as values that JSON can carry."""
        used = np.flatnonzero(self._buckets)
        return {
            "count": self.count,
            "sum": self._sum,
            "least": self.least,
            "largest": self.largest,
            "buckets": [used.tolist(), self._buckets[used].tolist()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace all counts by those of a state."""
        self.count, self._sum = state["count"], state["sum"]
        self.least, self.largest = state["least"], state["largest"]
        used, counts = state["buckets"]
        self._buckets[:] = 0
        self._buckets[np.asarray(used, dtype=np.int64)] = counts
