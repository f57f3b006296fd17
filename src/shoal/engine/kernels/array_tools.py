"""Small functions on arrays: number, count, find, select and sort.

NumPy has them all, but Numba compiles each of its sorts, masks and counts again into every kernel
that uses them: together they took more than half of the time of a first start. These compile in a
fraction of it.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.counter import home
from shoal.engine.kernels.ring import wrap

__all__ = [
    "by_first",
    "column",
    "distinct",
    "in_order",
    "is_ascending",
    "nth_smallest",
    "order_of",
    "picked",
    "picked_rows",
    "tally",
    "where",
]


@kernel
def is_ascending(keys: Ints) -> bool:
    """Whether each key is larger than the one before, as the rows of a stream are by position."""
    for i in range(1, len(keys)):  # noqa: SIM110 - Numba compiles no generator expressions
        if keys[i] <= keys[i - 1]:
            return False
    return True


@kernel
def by_first(keys: Ints) -> Ints:
    """Number the distinct keys 0, 1, … in order of their first appearance."""
    n = len(keys)
    if is_ascending(keys):
        return np.arange(n)
    capacity = 2
    while capacity < 2 * n:
        capacity *= 2
    known = np.full(capacity, -1, np.int64)
    first = np.empty(n, np.int64)
    number = np.empty(n, np.int64)
    following = 0
    for i in range(n):
        at = home(0, keys[i], capacity)
        while known[at] >= 0 and first[known[at]] != keys[i]:
            at = wrap(at + 1, capacity)
        if known[at] < 0:
            known[at] = following
            first[following] = keys[i]
            following += 1
        number[i] = known[at]
    return number


@kernel
def distinct(numbers: Ints) -> int:
    """Return how many different numbers there are in a result of `by_first`."""
    most = -1
    for number in numbers:
        if number > most:
            most = number
    return most + 1


@kernel
def tally(numbers: Ints) -> Ints:
    """Count how often each number occurs."""
    counts = np.zeros(distinct(numbers), np.int64)
    for number in numbers:
        counts[number] += 1
    return counts


@kernel
def where(numbers: Ints, wanted: int) -> Ints:
    """Return the indices of a number, in order."""
    places = np.empty(len(numbers), np.int64)
    n = 0
    for i in range(len(numbers)):
        if numbers[i] == wanted:
            places[n] = i
            n += 1
    return places[:n]


@kernel
def picked(numbers: Ints, places: Ints) -> Ints:
    """Return the numbers at some indices."""
    found = np.empty(len(places), np.int64)
    for i in range(len(places)):
        found[i] = numbers[places[i]]
    return found


@kernel
def picked_rows(table: Ints, places: Ints) -> Ints:
    """Return the rows of a table at some indices."""
    found = np.empty((len(places), table.shape[1]), np.int64)
    for i in range(len(places)):
        for j in range(table.shape[1]):
            found[i, j] = table[places[i], j]
    return found


@kernel
def column(table: Ints, j: int) -> Ints:
    """Return a copy of a column of a table."""
    found = np.empty(len(table), np.int64)
    for i in range(len(table)):
        found[i] = table[i, j]
    return found


@kernel
def order_of(keys: Floats | Ints) -> Ints:
    """Return the indices that sort the keys, stably (merge sort)."""
    n = len(keys)
    order, other = np.arange(n), np.empty(n, np.int64)
    width = 1
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            a, b = begin, middle
            for i in range(begin, end):
                if a < middle and (b >= end or keys[order[a]] <= keys[order[b]]):
                    other[i] = order[a]
                    a += 1
                else:
                    other[i] = order[b]
                    b += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def nth_smallest(keys: Floats, n: int, wanted: int) -> float:
    """Return the number that is at ``wanted`` if the first n are sorted; they are reordered."""
    low, high = 0, n - 1
    while low < high:
        pivot = keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return keys[wanted]


@kernel
def in_order(numbers: Ints) -> Ints:
    """Return the numbers in ascending order (each below 2**53)."""
    return picked(numbers, order_of(numbers.astype(np.float64)))
