"""What the kernels of z-anonymity share: how far a window goes back, and where a run stands."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Ints

__all__ = [
    "DONE",
    "HIDDEN",
    "LEAST",
    "LOOK",
    "MISSING",
    "PLACE",
    "ROOM",
    "ZCells",
    "ZWindow",
    "slot_of",
]

#: Why the kernel has stopped: it is through, it needs room, or it is time for an estimate.
DONE, ROOM, LOOK = 0, 1, 2
#: The rung of a value that isn't published, and of one that isn't there.
HIDDEN, MISSING = -1, -2
#: Tables have room for at least so many.
LEAST = 64
#: No window is looked at more often than this.
FARTHEST = 2.0**60

PLACE = np.dtype(
    [
        # The position of the next row, the latest time, and the clock of the first row.
        ("upcoming", "i8"),
        ("now", "f8"),
        ("begin", "f8"),
        # The estimate that was made last, and the z in force.
        ("slot", "i8"),
        ("z", "i8"),
    ]
)


class ZWindow(NamedTuple):
    """The window: how far it goes back, in seconds or rows, and how often it is looked at.

    ``back`` is how much older than the latest an exposure may be: of so many rows the row itself is
    one. A step of 0 is never.
    """

    seconds: bool
    length: float
    back: float
    step: float


class ZCells(NamedTuple):
    """What is decided about a batch: for each cell its rung and those behind it; z by row."""

    levels: Ints
    crowds: Ints
    z: Ints
    times: NDArray[np.float64]


@kernel
def slot_of(clock: float, begin: float, reach: ZWindow) -> int:
    """Which look at the window a time belongs to; below 0: none yet."""
    if reach.step == 0.0:
        return -1
    # Times beyond counting are all of one slot: floor would overflow, compiled or not.
    return math.floor(min((clock - begin - reach.length) / reach.step, FARTHEST))
