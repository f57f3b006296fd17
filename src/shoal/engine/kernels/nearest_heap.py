"""A bounded heap of the nearest rows, the farthest of them on top."""

from __future__ import annotations

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints

__all__ = ["keep_nearest"]


@kernel
def _farther(distance: Floats, a: int, b: int) -> bool:
    """Whether row a is farther than row b; at equal distance the later row is."""
    return distance[a] > distance[b] or (distance[a] == distance[b] and a > b)


@kernel
def keep_nearest(heap: Ints, n: int, most: int, distance: Floats, row: int) -> int:
    """Offer a row to a heap of n rows that keeps the ``most`` nearest; return its new length."""
    if n < most:
        i = n
        while i > 0 and _farther(distance, row, heap[(i - 1) // 2]):
            heap[i] = heap[(i - 1) // 2]
            i = (i - 1) // 2
        heap[i] = row
        return n + 1
    if most == 0 or _farther(distance, row, heap[0]):
        return n
    i = 0
    while True:
        child = 2 * i + 1
        if child + 1 < n and _farther(distance, heap[child + 1], heap[child]):
            child += 1
        if child >= n or not _farther(distance, heap[child], row):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = row
    return n
