"""The direction of the largest spread of points: the first eigenvector of their covariance.

The covariance matrix is squared repeatedly, until every column is a multiple of the eigenvector
with the largest eigenvalue. This needs no initial guess, and no library whose sums differ between
machines: a run makes the same decisions, compiled or not, to the last bit.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints

__all__ = ["SQUARINGS", "principal_direction", "scatter"]

#: The matrix to the power of 4096: a component with an eigenvalue smaller by 1 % has vanished by
#: then, and one smaller by 0.1 % is a sixtieth of what it was.
SQUARINGS = 12


@kernel
def scatter(points: Floats, members: Ints, centre: Floats) -> Floats:
    """Return the covariance of some points (attributes along the first axis) times their number."""
    d = len(centre)
    matrix = np.zeros((d, d))
    for i in members:
        for a in range(d):
            apart = points[a, i] - centre[a]
            for b in range(a, d):
                matrix[a, b] += apart * (points[b, i] - centre[b])
    for a in range(d):
        for b in range(a):
            matrix[a, b] = matrix[b, a]
    return matrix


@kernel
def _trace(matrix: Floats) -> float:
    trace = 0.0
    for a in range(len(matrix)):
        trace += matrix[a, a]
    return trace


@kernel
def _shrunk(matrix: Floats) -> Floats:
    """Divide a matrix by its trace, so that its powers neither vanish nor overflow."""
    d, trace = len(matrix), _trace(matrix)
    shrunk = np.empty((d, d))
    for a in range(d):
        for b in range(d):
            shrunk[a, b] = matrix[a, b] / trace
    return shrunk


@kernel
def _squared(matrix: Floats) -> Floats:
    """Return the square of a symmetric matrix."""
    d = len(matrix)
    square = np.empty((d, d))
    for a in range(d):
        for b in range(a, d):
            total = 0.0
            for c in range(d):
                total += matrix[a, c] * matrix[c, b]
            square[a, b] = total
            square[b, a] = total
    return square


@kernel
def principal_direction(matrix: Floats) -> Floats:
    """Return the eigenvector of a covariance matrix with the largest eigenvalue, of any length.

    Its largest component is positive. Where there is no spread, all components are 0.
    """
    d = len(matrix)
    direction = np.zeros(d)
    if _trace(matrix) <= 0.0:
        return direction
    power = _shrunk(matrix)
    for _ in range(SQUARINGS):
        power = _shrunk(_squared(power))
    longest = 0
    for a in range(1, d):
        if power[a, a] > power[longest, longest]:
            longest = a
    for a in range(d):
        direction[a] = power[a, longest]
    return direction
