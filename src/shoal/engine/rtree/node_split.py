"""Split boxes into two separate halves: Guttman's quadratic split of a node.

Reference: A. Guttman, "R-trees: A Dynamic Index Structure for Spatial Searching", SIGMOD 1984,
§3.5.2; with the loss of boxes instead of their area, which is 0 if one side is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.boxes import (
    Sides,
    add_lengths,
    add_nodes,
    box_loss,
    box_of,
    cover,
    joined_losses,
)

__all__ = ["halves"]


class Half(NamedTuple):
    """A half: its box, the loss of the box, and what it would lose with each of all boxes.

    ``by_side`` has these losses side by side (attributes along the first axis), so that a side
    that stays as it is needn't be measured again.
    """

    lo: Floats
    hi: Floats
    loss: Floats
    by_side: Floats
    joined: Floats


@kernel
def halves(sides: Sides, los: Floats, his: Floats, least: int) -> Ints:
    """Return the half, 0 or 1, of each of two or more boxes (attributes along the first axis).

    Each half gets at least ``least`` boxes; there must be at least twice as many.
    """
    n = los.shape[1]
    half = np.full(n, -1, np.int64)
    first, second = _seeds(sides, los, his)
    half[first], half[second] = 0, 1
    one, other = _begin(sides, los, his, first), _begin(sides, los, his, second)
    n_half, n_other = 1, 1
    for left in range(n - 2, 0, -1):
        if n_half + left <= least or n_other + left <= least:
            rest = 0 if n_half + left <= least else 1
            for i in range(n):
                if half[i] < 0:
                    half[i] = rest
            break
        loss, other_loss = one.loss[0], other.loss[0]
        chosen, most = -1, -1.0
        for i in range(n):
            if half[i] < 0:
                differ = abs((one.joined[i] - loss) - (other.joined[i] - other_loss))
                if differ > most:
                    chosen, most = i, differ
        gain, other_gain = one.joined[chosen] - loss, other.joined[chosen] - other_loss
        if gain != other_gain:
            to_first = gain < other_gain
        elif loss != other_loss:
            to_first = loss < other_loss
        else:
            to_first = n_half <= n_other
        if to_first:
            half[chosen] = 0
            n_half += 1
            _take(sides, one, los, his, chosen)
        else:
            half[chosen] = 1
            n_other += 1
            _take(sides, other, los, his, chosen)
    return half


@kernel
def _begin(sides: Sides, los: Floats, his: Floats, seed: int) -> Half:
    """Return a half of one box."""
    d, n = los.shape
    lo, hi = box_of(los, seed), box_of(his, seed)
    half = Half(lo, hi, np.empty(1), np.empty((d, n)), np.empty(n))
    for side in range(d):
        _measure(sides, half, los, his, side)
    _sum_up(sides, half)
    return half


@kernel
def _take(sides: Sides, half: Half, los: Floats, his: Floats, c: int) -> None:
    """Take a box into a half."""
    lo, hi, first_leaf, widened = half.lo, half.hi, sides.attributes["first_leaf"], False
    for d in range(len(lo)):
        if los[d, c] >= lo[d] and his[d, c] <= hi[d]:
            continue
        widened = True
        lo[d], hi[d] = min(lo[d], los[d, c]), max(hi[d], his[d, c])
        if first_leaf[d] >= 0:
            node = cover(sides, d, lo[d], hi[d])
            lo[d], hi[d] = sides.nodes["lo"][node], sides.nodes["hi"][node]
        _measure(sides, half, los, his, d)
    if widened:
        _sum_up(sides, half)


@kernel
def _measure(sides: Sides, half: Half, los: Floats, his: Floats, d: int) -> None:
    """Measure what one side of a half would lose with each box."""
    line, n, low, high = half.by_side[d], los.shape[1], half.lo[d], half.hi[d]
    for i in range(n):
        line[i] = 0.0
    if sides.attributes["first_leaf"][d] < 0:
        add_lengths(sides.attributes["unit"][d], d, los, his, 0, n, low, high, line)
    else:
        add_nodes(sides, d, los, his, 0, n, low, high, line)


@kernel
def _sum_up(sides: Sides, half: Half) -> None:
    """Add the losses of all sides, from the first to the last."""
    lines, joined = half.by_side, half.joined
    half.loss[0] = box_loss(sides, half.lo, half.hi)
    for i in range(len(joined)):
        joined[i] = 0.0
    for d in range(len(lines)):
        for i in range(len(joined)):
            joined[i] += lines[d, i]


@kernel
def _seeds(sides: Sides, los: Floats, his: Floats) -> tuple[int, int]:
    """Return the two boxes that would waste most if they were joined, the first such pair."""
    n = los.shape[1]
    loss, joined = np.empty(n), np.empty(n)
    lo, hi = np.empty(len(los)), np.empty(len(los))
    first, second, most = 0, 1, -np.inf
    # From the last box on: what those behind lose, joined with themselves, is known then.
    for i in range(n - 1, -1, -1):
        for d in range(len(lo)):
            lo[d], hi[d] = los[d, i], his[d, i]
        joined_losses(sides, los, his, n, lo, hi, joined)
        loss[i] = joined[i]
        other, waste = -1, -np.inf
        for j in range(i + 1, n):
            if joined[j] - loss[i] - loss[j] > waste:
                other, waste = j, joined[j] - loss[i] - loss[j]
        if other >= 0 and waste >= most:
            first, second, most = i, other, waste
    return first, second
