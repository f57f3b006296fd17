"""The counts of sensitive values in a window, with which those of a group are compared.

Values are codes in ascending order, by sensitive attribute; only those that occur in the window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Ints

__all__ = [
    "WindowCounts",
    "add_row",
    "counted",
    "empty_counts",
    "remove_row",
    "window_counts_of",
    "with_room",
]


class WindowCounts(NamedTuple):
    """The count of each value, attributes along the first axis.

    After the first ``n[j]`` values of attribute j there is room for more. ``n_rows`` has one entry.
    """

    values: Ints
    counts: Ints
    n: Ints
    n_rows: Ints


def empty_counts(n_sensitive: int, room: int = 0) -> WindowCounts:
    """Return the counts of a window without rows, with room for ``room`` different values."""
    return WindowCounts(
        np.zeros((n_sensitive, room), np.int64),
        np.zeros((n_sensitive, room), np.int64),
        np.zeros(n_sensitive, np.int64),
        np.zeros(1, np.int64),
    )


def with_room(window: WindowCounts, values: int) -> WindowCounts:
    """Return the same counts with room for ``values`` different values."""
    larger = empty_counts(len(window.n), values)
    used = window.values.shape[1]
    larger.values[:, :used], larger.counts[:, :used] = window.values, window.counts
    larger.n[:], larger.n_rows[:] = window.n, window.n_rows
    return larger


@kernel
def window_counts_of(sensitive: Ints) -> WindowCounts:
    """Return the counts of a window of some rows, given their sensitive codes row by row."""
    n_rows, n_sensitive = sensitive.shape
    values = np.zeros((n_sensitive, n_rows), np.int64)
    counts = np.zeros((n_sensitive, n_rows), np.int64)
    n = np.zeros(n_sensitive, np.int64)
    for j in range(n_sensitive):
        codes = np.empty(n_rows, np.int64)
        for i in range(n_rows):
            codes[i] = sensitive[i, j]
        codes.sort()
        for code in codes:
            if n[j] == 0 or values[j, n[j] - 1] != code:
                values[j, n[j]] = code
                n[j] += 1
            counts[j, n[j] - 1] += 1
    return WindowCounts(values, counts, n, np.array([n_rows], np.int64))


@kernel
def index_of(window: WindowCounts, j: int, code: int) -> int:
    """Return the index of a value, or where it would be inserted."""
    low, high = 0, window.n[j]
    while low < high:
        middle = (low + high) // 2
        if window.values[j, middle] < code:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def add_row(window: WindowCounts, sensitive: Ints) -> None:
    """Add a row to the window."""
    window.n_rows[0] += 1
    for j in range(len(sensitive)):
        at = index_of(window, j, sensitive[j])
        if at == window.n[j] or window.values[j, at] != sensitive[j]:
            for i in range(window.n[j], at, -1):
                window.values[j, i] = window.values[j, i - 1]
                window.counts[j, i] = window.counts[j, i - 1]
            window.values[j, at] = sensitive[j]
            window.counts[j, at] = 0
            window.n[j] += 1
        window.counts[j, at] += 1


@kernel
def remove_row(window: WindowCounts, sensitive: Ints) -> None:
    """Remove a row from the window."""
    window.n_rows[0] -= 1
    for j in range(len(sensitive)):
        at = index_of(window, j, sensitive[j])
        window.counts[j, at] -= 1
        if window.counts[j, at] == 0:
            window.n[j] -= 1
            for i in range(at, window.n[j]):
                window.values[j, i] = window.values[j, i + 1]
                window.counts[j, i] = window.counts[j, i + 1]


@kernel
def counted(window: WindowCounts, j: int, sensitive: Ints) -> Ints:
    """Count each value of the window in some rows; empty if the window lacks one of theirs."""
    counts = np.zeros(window.n[j], np.int64)
    for i in range(len(sensitive)):
        at = index_of(window, j, sensitive[i, j])
        if at == window.n[j] or window.values[j, at] != sensitive[i, j]:
            return np.empty(0, np.int64)
        counts[at] += 1
    return counts
