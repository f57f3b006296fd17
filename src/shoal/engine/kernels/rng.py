"""Random numbers whose whole state is an array: ChaCha12 in counter mode.

Which kept group a row reuses and how the rows of a group are shuffled must not be predictable
from the output, so the generator is a cryptographic one. Words have 32 bits and are stored in
``int64``, so that nothing overflows and plain Python and compiled code agree to the last bit.

Reference: D. J. Bernstein, "ChaCha, a variant of Salsa20"; RFC 8439 for the block layout.
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.engine.jit import inlined, kernel

__all__ = ["below", "block", "forked", "seeded", "shuffle", "uniform", "word"]

Ints: TypeAlias = NDArray[np.int64]

# Layout of the state: 8 words of key, 2 of counter, 2 of nonce, 16 of output, 1 next index.
COUNTER, NONCE, OUTPUT, NEXT, LENGTH = 8, 10, 12, 28, 29


def seeded(seed: bytes, stream: str) -> Ints:
    """Return the state for a seed; different streams of one seed are independent.

    >>> state = seeded(b"7", "split")
    >>> [int(below(state, 6)) for _ in range(5)]
    [0, 5, 3, 2, 0]
    """
    key = hashlib.blake2b(seed, digest_size=32, person=b"shoal-rng").digest()
    nonce = hashlib.blake2b(stream.encode(), digest_size=8, person=b"shoal-stream").digest()
    state = np.zeros(LENGTH, np.int64)
    state[:COUNTER] = np.frombuffer(key, "<u4")
    state[NONCE:OUTPUT] = np.frombuffer(nonce, "<u4")
    state[NEXT] = 16
    return state


@inlined
def _quarter(x: Ints, a: int, b: int, c: int, d: int) -> None:
    x[a] = (x[a] + x[b]) & 0xFFFFFFFF
    x[d] ^= x[a]
    x[d] = ((x[d] << 16) | (x[d] >> 16)) & 0xFFFFFFFF
    x[c] = (x[c] + x[d]) & 0xFFFFFFFF
    x[b] ^= x[c]
    x[b] = ((x[b] << 12) | (x[b] >> 20)) & 0xFFFFFFFF
    x[a] = (x[a] + x[b]) & 0xFFFFFFFF
    x[d] ^= x[a]
    x[d] = ((x[d] << 8) | (x[d] >> 24)) & 0xFFFFFFFF
    x[c] = (x[c] + x[d]) & 0xFFFFFFFF
    x[b] ^= x[c]
    x[b] = ((x[b] << 7) | (x[b] >> 25)) & 0xFFFFFFFF


@kernel
def block(key: Ints, tail: Ints, rounds: int, out: Ints) -> None:
    """Write one ChaCha block of 16 words: ``key`` has 8 words, ``tail`` the last 4 of the input."""
    start = np.empty(16, np.int64)
    start[0], start[1], start[2], start[3] = 0x61707865, 0x3320646E, 0x79622D32, 0x6B206574
    for i in range(8):
        start[4 + i] = key[i]
    for i in range(4):
        start[12 + i] = tail[i]
    for i in range(16):
        out[i] = start[i]
    for _ in range(rounds // 2):
        _quarter(out, 0, 4, 8, 12)
        _quarter(out, 1, 5, 9, 13)
        _quarter(out, 2, 6, 10, 14)
        _quarter(out, 3, 7, 11, 15)
        _quarter(out, 0, 5, 10, 15)
        _quarter(out, 1, 6, 11, 12)
        _quarter(out, 2, 7, 8, 13)
        _quarter(out, 3, 4, 9, 14)
    for i in range(16):
        out[i] = (out[i] + start[i]) & 0xFFFFFFFF


@kernel
def word(state: Ints) -> int:
    """Return the next 32 random bits."""
    if state[28] >= 16:
        block(state[:8], state[8:12], 12, state[12:28])
        state[8] = (state[8] + 1) & 0xFFFFFFFF
        if state[8] == 0:
            state[9] = (state[9] + 1) & 0xFFFFFFFF
        state[28] = 0
    value = state[12 + state[28]]
    state[28] += 1
    return value


@kernel
def forked(state: Ints) -> Ints:
    """Return the state of a new generator, whose key is drawn from this one."""
    fork = np.zeros(29, np.int64)
    for i in range(8):
        fork[i] = word(state)
    fork[28] = 16
    return fork


@kernel
def below(state: Ints, n: int) -> int:
    """Return a whole number from 0 to n - 1, each equally likely (n at most 2**32)."""
    # Words past the last multiple of n are drawn again, otherwise small results are favoured.
    limit = 0x100000000 - 0x100000000 % n
    value = word(state)
    while value >= limit:
        value = word(state)
    return value % n


@kernel
def uniform(state: Ints) -> float:
    """Return a number in [0, 1), one of 2**53 equally likely and equally spaced ones."""
    # Two statements, since the order in which the words are drawn must be fixed.
    high = word(state) >> 5
    low = word(state) >> 6
    return (high * 67108864 + low) / 9007199254740992.0


@kernel
def shuffle(state: Ints, items: Ints) -> None:
    """Shuffle an array in place."""
    for i in range(len(items) - 1, 0, -1):
        j = below(state, i + 1)
        items[i], items[j] = items[j], items[i]
