"""What the kernels of z-anonymity share: the policy's window, and the progress of a run."""

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
    "ZDecisions",
    "ZWindow",
    "slot_of",
]

#: Why the kernel has stopped: all rows are decided, it needs room, or an estimate is due.
DONE, ROOM, LOOK = 0, 1, 2
#: The level of a value that isn't published, and of one that is missing.
HIDDEN, MISSING = -1, -2
#: The least room of a table.
LEAST = 64
#: The largest number of an estimate.
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
    """The window in seconds or rows, and how often an estimate is made.

    ``back`` is how much older than the latest an exposure may be: of a window of n rows the latest
    row is one. A step of 0: no estimates.
    """

    seconds: bool
    length: float
    back: float
    step: float


class ZDecisions(NamedTuple):
    """The decisions about a batch: the level and the subjects behind it by row and attribute; z."""

    levels: Ints
    n_behind: Ints
    z: Ints
    times: NDArray[np.float64]


@kernel
def slot_of(clock: float, begin: float, window: ZWindow) -> int:
    """Return the number of the latest estimate that is due at a time; below 0: none yet."""
    if window.step == 0.0:
        return -1
    # Very late times are all of one slot: otherwise floor would overflow.
    return math.floor(min((clock - begin - window.length) / window.step, FARTHEST))
