"""Split boxes into two separate halves: Guttman's quadratic split of a node.

Reference: A. Guttman, "R-trees: A Dynamic Index Structure for Spatial Searching", SIGMOD 1984,
§3.5.2; with the loss of boxes instead of their area, which is 0 if one side is.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.boxes import (
    Sides,
    box_loss,
    box_of,
    join,
    joined_losses,
    joined_losses_from,
)

__all__ = ["halves"]


@kernel
def halves(sides: Sides, los: Floats, his: Floats, least: int) -> Ints:
    """Return the half, 0 or 1, of each of two or more boxes (attributes along the first axis).

    Each half gets at least ``least`` boxes; there must be at least twice as many.
    """
    n = los.shape[1]
    half = np.full(n, -1, np.int64)
    first, second = _seeds(sides, los, his)
    half[first], half[second] = 0, 1
    lo, hi = box_of(los, first), box_of(his, first)
    other_lo, other_hi = box_of(los, second), box_of(his, second)
    loss, other_loss = box_loss(sides, lo, hi), box_loss(sides, other_lo, other_hi)
    joined, other_joined = np.empty(n), np.empty(n)
    joined_losses(sides, los, his, n, lo, hi, joined)
    joined_losses(sides, los, his, n, other_lo, other_hi, other_joined)
    n_half, n_other = 1, 1
    for left in range(n - 2, 0, -1):
        if n_half + left <= least or n_other + left <= least:
            rest = 0 if n_half + left <= least else 1
            for i in range(n):
                if half[i] < 0:
                    half[i] = rest
            break
        chosen, most = -1, -1.0
        for i in range(n):
            if half[i] < 0:
                differ = abs((joined[i] - loss) - (other_joined[i] - other_loss))
                if differ > most:
                    chosen, most = i, differ
        gain, other_gain = joined[chosen] - loss, other_joined[chosen] - other_loss
        if gain != other_gain:
            to_first = gain < other_gain
        elif loss != other_loss:
            to_first = loss < other_loss
        else:
            to_first = n_half <= n_other
        if to_first:
            half[chosen] = 0
            n_half += 1
            join(sides, lo, hi, box_of(los, chosen), box_of(his, chosen))
            loss = box_loss(sides, lo, hi)
            joined_losses(sides, los, his, n, lo, hi, joined)
        else:
            half[chosen] = 1
            n_other += 1
            join(sides, other_lo, other_hi, box_of(los, chosen), box_of(his, chosen))
            other_loss = box_loss(sides, other_lo, other_hi)
            joined_losses(sides, los, his, n, other_lo, other_hi, other_joined)
    return half


@kernel
def _seeds(sides: Sides, los: Floats, his: Floats) -> tuple[int, int]:
    """Return the two boxes that would waste most if they were joined, the first such pair."""
    n = los.shape[1]
    loss, joined = np.empty(n), np.empty(n)
    for i in range(n):
        loss[i] = box_loss(sides, box_of(los, i), box_of(his, i))
    first, second, most = 0, 1, -np.inf
    for i in range(n - 1):
        behind = n - 1 - i
        joined_losses_from(sides, los, his, i + 1, behind, box_of(los, i), box_of(his, i), joined)
        for j in range(behind):
            waste = joined[j] - loss[i] - loss[i + 1 + j]
            if waste > most:
                first, second, most = i, i + 1 + j, waste
    return first, second
