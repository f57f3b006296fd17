"""A keyed 64-bit hash of byte strings: HalfSipHash-2-4.

Subjects and open sensitive values are only compared for equality, so that a code is a keyed hash
and there is no dictionary that would grow with the stream. If two subjects ever collide, they count
as one: groups get larger, never smaller.

Reference: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF" (the 32-bit variant).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Bytes, Ints

__all__ = ["hash_strings", "scattered"]


@kernel
def _round(v: Ints) -> None:
    v[0] = (v[0] + v[1]) & 0xFFFFFFFF
    v[1] = (((v[1] << 5) | (v[1] >> 27)) & 0xFFFFFFFF) ^ v[0]
    v[0] = ((v[0] << 16) | (v[0] >> 16)) & 0xFFFFFFFF
    v[2] = (v[2] + v[3]) & 0xFFFFFFFF
    v[3] = (((v[3] << 8) | (v[3] >> 24)) & 0xFFFFFFFF) ^ v[2]
    v[0] = (v[0] + v[3]) & 0xFFFFFFFF
    v[3] = (((v[3] << 7) | (v[3] >> 25)) & 0xFFFFFFFF) ^ v[0]
    v[2] = (v[2] + v[1]) & 0xFFFFFFFF
    v[1] = (((v[1] << 13) | (v[1] >> 19)) & 0xFFFFFFFF) ^ v[2]
    v[2] = ((v[2] << 16) | (v[2] >> 16)) & 0xFFFFFFFF


@kernel
def _hash(key: Ints, data: Bytes, start: int, stop: int, v: Ints) -> int:
    v[0], v[1] = key[0], key[1]
    v[2], v[3] = key[0] ^ 0x6C796765, key[1] ^ 0x74656462
    v[1] ^= 0xEE
    n = stop - start
    whole = start + n // 4 * 4
    for i in range(start, whole, 4):
        m = np.int64(data[i])
        m |= np.int64(data[i + 1]) << 8
        m |= np.int64(data[i + 2]) << 16
        m |= np.int64(data[i + 3]) << 24
        v[3] ^= m
        _round(v)
        _round(v)
        v[0] ^= m
    last = np.int64((n & 0xFF) << 24)
    for i in range(whole, stop):
        last |= np.int64(data[i]) << (8 * (i - whole))
    v[3] ^= last
    _round(v)
    _round(v)
    v[0] ^= last
    v[2] ^= 0xEE
    for _ in range(4):
        _round(v)
    low = v[1] ^ v[3]
    v[1] ^= 0xDD
    for _ in range(4):
        _round(v)
    high = v[1] ^ v[3]
    # The top bit would be the sign: flip it by subtraction, which overflows nowhere.
    if high >= 0x80000000:
        high -= 0x100000000
    return high * 0x100000000 + low


@kernel
def hash_strings(key: Ints, offsets: Ints, data: Bytes) -> Ints:
    """Hash the n byte strings in ``data`` between n + 1 offsets; the key is two 32-bit words."""
    n = len(offsets) - 1
    codes = np.empty(n, np.int64)
    scratch = np.empty(4, np.int64)
    for i in range(n):
        codes[i] = _hash(key, data, offsets[i], offsets[i + 1], scratch)
    return codes


def scattered(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a bijective mix of each number, in which every bit depends on all (splitmix64).

    >>> scattered(np.array([0, 1], np.uint64)).tolist()
    [0, 6238072747940578789]
    """
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    done: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return done
