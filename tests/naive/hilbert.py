"""Places on a Hilbert curve, after J. Skilling, "Programming the Hilbert curve" (2004)."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["hilbert", "transpose"]


def transpose(axes: Sequence[int], bits: int) -> list[int]:
    """AxesToTranspose: the bits of the place on the curve, spread over as many numbers as axes."""
    x = list(axes)
    n = len(x)
    # Undo, from the coarsest cell to the finest, how each is turned and reflected.
    for q in (1 << bit for bit in range(bits - 1, 0, -1)):
        below = q - 1
        for i in range(n):
            if x[i] & q:
                x[0] ^= below
            else:
                swapped = (x[0] ^ x[i]) & below
                x[0] ^= swapped
                x[i] ^= swapped
    # Then the corners are in the order of a Gray code.
    for i in range(1, n):
        x[i] ^= x[i - 1]
    flipped = 0
    for q in (1 << bit for bit in range(bits - 1, 0, -1)):
        if x[n - 1] & q:
            flipped ^= q - 1
    return [value ^ flipped for value in x]


def hilbert(axes: Sequence[int], bits: int) -> int:
    """The place of a cell on the curve through a grid of 2^bits cells along each axis."""
    spread = transpose(axes, bits)
    place = 0
    for bit in range(bits - 1, -1, -1):
        for value in spread:
            place = place << 1 | (value >> bit & 1)
    return place
