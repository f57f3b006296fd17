"""Names for the array types that kernels take and return, and how much an array grows."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Any1", "Bools", "Bytes", "Floats", "Ints", "Records", "power_of_two", "staggered"]

Any1: TypeAlias = NDArray[Any]
Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
# Structured arrays. Their fields are Any to a type checker, which would try all overloads of
# NumPy's indexing at each access to find that: half of the time of `make types`.
Records: TypeAlias = Any


def power_of_two(least: int) -> int:
    """Return the smallest power of two that is at least ``least``.

    >>> power_of_two(5), power_of_two(8)
    (8, 8)
    """
    return 1 << max(0, least - 1).bit_length()


def staggered(n: int) -> int:
    """Return how many columns a table with n of them should have, so that its lines don't collide.

    A cache has few places for addresses that are a large power of two apart. In a table of 8192
    columns the first numbers of all lines would compete for the same ones.

    >>> staggered(8192), staggered(8000)
    (8232, 8000)
    """
    return n + 40 if n % 256 == 0 else n
