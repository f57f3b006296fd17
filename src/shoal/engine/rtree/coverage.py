"""Which leaves cover a sample: leaf boxes in bytes, of which a processor compares dozens at once.

A sample that moves changes the number of samples in every leaf that covers it. The bytes are those
of `shoal.engine.rtree.chain_sampling`: ordered like the numbers, so that only a leaf with the same
byte as the sample on some side must be checked exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import inlined, kernel
from shoal.engine.kernels.arrays import Bytes, Floats, Ints, staggered
from shoal.engine.rtree.chain_sampling import DOUBTFUL, SURE, rough

__all__ = ["Coverage", "add", "empty", "fit", "grown"]

#: So many marks are looked at together, and which bits are set if any of them is doubtful.
WORD = 8
ANY_DOUBTFUL = np.uint64(0x0202020202020202)


class Coverage(NamedTuple):
    """The boxes of leaves in bytes (attributes along the first axis), and their samples.

    ``n_samples`` is right for the leaves that aren't to be counted again. ``marks`` is scratch
    space.
    """

    rough_lo: Bytes
    rough_hi: Bytes
    n_samples: Ints
    marks: Bytes


def empty(n_quasi: int, leaves: int) -> Coverage:
    """Return an empty coverage with room for ``leaves`` leaves."""
    return Coverage(
        np.full((n_quasi, staggered(leaves)), 255, np.uint8),
        np.zeros((n_quasi, staggered(leaves)), np.uint8),
        np.zeros(leaves, np.int64),
        np.zeros(-(-leaves // WORD) * WORD, np.uint8),
    )


def grown(coverage: Coverage, leaves: int) -> Coverage:
    """Return the same with more room."""
    larger = empty(len(coverage.rough_lo), leaves)
    for name in Coverage._fields:
        before = getattr(coverage, name)
        getattr(larger, name)[tuple(slice(n) for n in before.shape)] = before
    return larger


@inlined
def fit(coverage: Coverage, scale: Floats, los: Floats, his: Floats, leaf: int) -> None:
    """Set the bytes of a leaf whose box is another."""
    for d in range(len(los)):
        coverage.rough_lo[d, leaf] = rough(los[d, leaf], scale[0, d], scale[1, d])
        coverage.rough_hi[d, leaf] = rough(his[d, leaf], scale[0, d], scale[1, d])


@kernel
def add(
    coverage: Coverage, scale: Floats, los: Floats, his: Floats, n: int, lo: Floats, hi: Floats,
    by: int, flags: Bytes, flag: int,
) -> None:  # fmt: skip
    """Add to the number of samples of those of the first n leaves that cover a box; flag them."""
    marks, n_samples = coverage.marks, coverage.n_samples
    for c in range(n):
        marks[c] = SURE
    for d in range(len(lo)):
        low, high = rough(lo[d], scale[0, d], scale[1, d]), rough(hi[d], scale[0, d], scale[1, d])
        doubt = np.uint8(0 if scale[2, d] > 0.0 else DOUBTFUL)
        _mark(coverage.rough_lo[d], coverage.rough_hi[d], n, low, high, doubt, marks)
    words = marks.view(np.uint64)
    for word in range((n + WORD - 1) // WORD):
        if words[word] & ANY_DOUBTFUL == 0:
            continue
        for c in range(word * WORD, min(n, (word + 1) * WORD)):
            if marks[c] == DOUBTFUL and _covers(los, his, c, lo, hi):
                marks[c] = SURE
    _count(marks, n, by, n_samples, flags, np.uint8(flag))


@kernel
def _count(marks: Bytes, n: int, by: int, n_samples: Ints, flags: Bytes, flag: np.uint8) -> None:
    """Count a sample in the leaves that surely cover it. (Loops without branches: many at once.)"""
    for c in range(n):
        n_samples[c] += by if marks[c] == SURE else 0
    for c in range(n):
        flags[c] |= flag if marks[c] == SURE else np.uint8(0)


@kernel
def _mark(
    lows: Bytes, highs: Bytes, n: int, low: np.uint8, high: np.uint8, doubt: np.uint8, marks: Bytes
) -> None:
    """Mark leaves by one side. (A loop in a larger function wouldn't be vectorized.)"""
    for c in range(n):
        outside = np.uint8((low < lows[c]) | (high > highs[c]))
        at_a_side = np.uint8((low == lows[c]) | (high == highs[c]))
        marks[c] |= outside | (at_a_side * doubt)


@inlined
def _covers(los: Floats, his: Floats, c: int, lo: Floats, hi: Floats) -> bool:
    for d in range(len(lo)):  # noqa: SIM110 - Numba compiles no generator expressions
        if lo[d] < los[d, c] or hi[d] > his[d, c]:
            return False
    return True
