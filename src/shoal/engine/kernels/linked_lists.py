"""Rows in places: each place is a chain of held rows, in the order in which they joined it.

A place is a record with its ``n_rows`` and the positions of its ``first`` and its ``last`` row; the
chain goes by the ``following`` of the rows (see `shoal.engine.kernels.held`).
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import inlined
from shoal.engine.kernels.arrays import Ints, Records

__all__ = ["append", "members"]


@inlined
def members(rows: Records, places: Records, place: int) -> Ints:
    """The positions of the rows of a place."""
    mask, following = len(rows) - 1, rows["following"]
    positions = np.empty(places["n_rows"][place], np.int64)
    position = places["first"][place]
    for i in range(len(positions)):
        positions[i] = position
        position = following[position & mask]
    return positions


@inlined
def append(rows: Records, places: Records, position: int, place: int) -> None:
    """Put a row at the end of a place."""
    mask = len(rows) - 1
    rows["cluster"][position & mask] = place
    rows["following"][position & mask] = -1
    if places["n_rows"][place] == 0:
        places["first"][place] = position
    else:
        rows["following"][places["last"][place] & mask] = position
    places["last"][place] = position
    places["n_rows"][place] += 1
