"""The position of a row on the Hilbert curve through the space of the quasi attributes.

The curve visits every square of a grid, each step into a neighbouring square: rows that are near
each other on it are near each other in space. Implemented here because decisions must be the same
to the last bit, compiled or not, and because libraries for it are too slow for whole batches.

Reference: J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707, 2004.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.boxes import Sides

__all__ = ["centres", "curve_bits", "hilbert", "hilbert_index"]

#: The bits of a key: a whole number that isn't negative.
KEY_BITS = 62
#: The most bits of one attribute; more would be finer than needed.
MOST_BITS = 16


@kernel
def curve_bits(n_quasi: int) -> int:
    """Return the bits of each attribute in a key; 1 for the first 62 of very many attributes."""
    return max(1, min(MOST_BITS, KEY_BITS // n_quasi))


@kernel
def centres(sides: Sides, lo: Floats, hi: Floats) -> Floats:
    """Return the centre of each box (attributes along the first axis), from 0 to the side's weight.

    The centre of an empty side is the middle of the range.
    """
    d, n = lo.shape
    middle = np.zeros((d, n))
    for a in range(d):
        side = sides.attributes[a]
        lowest, length = side["lowest"], side["highest"] - side["lowest"]
        if length <= 0.0:
            continue
        scale = side["weight"] / length
        for i in range(n):
            centre = (lowest + side["highest"]) / 2.0
            if lo[a, i] <= hi[a, i]:
                centre = (lo[a, i] + hi[a, i]) / 2.0
            middle[a, i] = (centre - lowest) * scale
    return middle


@kernel
def hilbert_index(cell: Ints, bits: int) -> int:
    """Return the position of a grid square on the curve. ``cell`` is overwritten."""
    d, top = len(cell), 1 << (bits - 1)
    mask = top
    while mask > 1:
        lower = mask - 1
        for a in range(d):
            if cell[a] & mask:
                cell[0] ^= lower
            else:
                swap = (cell[0] ^ cell[a]) & lower
                cell[0] ^= swap
                cell[a] ^= swap
        mask >>= 1
    for a in range(1, d):
        cell[a] ^= cell[a - 1]
    flips, mask = 0, top
    while mask > 1:
        if cell[d - 1] & mask:
            flips ^= mask - 1
        mask >>= 1
    key = 0
    for a in range(d):
        cell[a] ^= flips
    for bit in range(bits - 1, -1, -1):
        for a in range(d):
            key = (key << 1) | ((cell[a] >> bit) & 1)
    return key


@kernel
def hilbert(sides: Sides, middle: Floats) -> Ints:
    """Return the key of each box, given its centre.

    The attribute with the largest weight spans the whole grid; half the weight spans half of it.
    """
    d = min(len(middle), KEY_BITS)
    n, bits = middle.shape[1], curve_bits(d)
    cells, heaviest = 1 << bits, 0.0
    for a in range(len(middle)):
        heaviest = max(heaviest, sides.attributes["weight"][a])
    keys, cell = np.empty(n, np.int64), np.empty(d, np.int64)
    for i in range(n):
        for a in range(d):
            cell[a] = min(int(middle[a, i] / heaviest * cells), cells - 1)
        keys[i] = hilbert_index(cell, bits)
    return keys
