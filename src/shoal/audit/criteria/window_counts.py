"""How often each value occurs in a window, for any window of a stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["WindowCounts", "repeats"]

# The least number of changes between two instants at which all counts are kept.
_FEWEST = 1024


class WindowCounts:
    """The counts of values in every window of a number of rows.

    A row counts from its arrival until that number of rows has come after it. Where repeated rows
    count once, a row doesn't count before the earlier one has left. So a window's counts are the
    sum of all changes up to its end; sums are kept at some instants.

    Parameters
    ----------
    values
        The position of each row's value among all values, by arrival.
    n_values
        How many values there are.
    rows
        How many rows a window has; None if it has all of them.
    earlier
        For each row the latest earlier one that it repeats, -1: none. None: every row is counted.

    >>> tallies = WindowCounts(np.array([0, 1, 1, 2]), 3, rows=2)
    >>> tallies.at(np.array([1, 3])).tolist()
    [[1, 0, 0], [0, 2, 0]]
    """

    def __init__(
        self,
        values: NDArray[np.int64],
        n_values: int,
        *,
        rows: int | None,
        earlier: NDArray[np.int64] | None = None,
    ) -> None:
        n = len(values)
        length = n if rows is None else min(rows, n)
        row = np.arange(n, dtype=np.int64)
        since = row + 1
        if earlier is not None:
            since = np.where(earlier < 0, since, np.maximum(row, earlier + length) + 1)
        at = np.concatenate([since, row + length + 1])
        order = np.argsort(at, kind="stable")
        order = order[at[order] <= n]
        self._at = at[order]
        self._values = values[order % n] if n else values
        self._comes = order < n
        self._n_values = n_values
        self._step = max(_FEWEST, n_values)
        starts = range(0, len(order), self._step)
        changes = [self._changes(start, start + self._step) for start in starts]
        self._sums = np.cumsum([np.zeros(n_values, dtype=np.int64), *changes], axis=0)

    def at(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts of the windows with these ends, one line for each."""
        counts = np.empty((len(ends), self._n_values), dtype=np.int64)
        for i, stop in enumerate(np.searchsorted(self._at, ends, side="right").tolist()):
            kept = stop // self._step
            counts[i] = self._sums[kept] + self._changes(kept * self._step, stop)
        return counts

    def _changes(self, start: int, stop: int) -> NDArray[np.int64]:
        comes, values = self._comes[start:stop], self._values[start:stop]
        came = np.bincount(values[comes], minlength=self._n_values)
        return came - np.bincount(values[~comes], minlength=self._n_values)


def repeats(*keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each row the latest earlier one with the same keys, -1 where there is none.

    >>> repeats(np.array([5, 5, 5]), np.array([1, 2, 1])).tolist()
    [-1, -1, 0]
    """
    order = np.lexsort(keys)
    earlier = np.full(len(order), -1, dtype=np.int64)
    same = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for key in keys:
        same &= key[order[1:]] == key[order[:-1]]
    earlier[order[1:][same]] = order[:-1][same]
    return earlier
