"""Linked lists of held rows, one for each place (a cluster or a leaf), in the order of joining.

A place is a record with its ``n_rows`` and the positions of its ``first`` and its ``last`` row; the
links are the ``following`` of the rows (see `shoal.engine.kernels.held`).
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import inlined
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.ring import wrap

__all__ = ["append", "members"]


@inlined
def members(rows: Records, places: Records, place: int) -> Ints:
    """Return the positions of the rows of a place."""
    following = rows["following"]
    positions = np.empty(places["n_rows"][place], np.int64)
    position = places["first"][place]
    for i in range(len(positions)):
        positions[i] = position
        position = following[wrap(position, len(rows))]
    return positions


@inlined
def append(rows: Records, places: Records, position: int, place: int) -> None:
    """Append a row to a place."""
    rows["cluster"][wrap(position, len(rows))] = place
    rows["following"][wrap(position, len(rows))] = -1
    if places["n_rows"][place] == 0:
        places["first"][place] = position
    else:
        rows["following"][wrap(places["last"][place], len(rows))] = position
    places["last"][place] = position
    places["n_rows"][place] += 1
