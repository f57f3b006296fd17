"""Beta-likeness and disclosure: bounds on the frequency of values in a group (thesis, §4.2)."""

from __future__ import annotations

import math

import numpy as np

from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.emd import Trees, node_sums

__all__ = ["SLACK", "like", "like_in_ranges", "like_in_tree", "numbers_of", "undisclosed"]

#: A tie must not fail because of rounding.
SLACK = 1e-12
#: The relative rounding error that is allowed in a difference of two numbers.
TIE = 1e-15
#: Counts of 64 bits have no ratio with such a logarithm; and e to the 710 is no number any more.
LARGEST = 100.0
#: All bits but the sign.
MAGNITUDE = 0x7FFFFFFFFFFFFFFF


@kernel
def most_of(beta: float, enhanced: bool, of: int, n_all: int) -> float:
    """Return the largest share of a value that ``of`` of ``n_all`` rows have (Eq. 4.1)."""
    share = of / n_all
    gain = min(beta, -math.log(share)) if enhanced else beta
    return (1.0 + gain) * share


@kernel
def is_like(count: int, n: int, of: int, n_all: int, beta: float, enhanced: bool) -> bool:
    """Whether a value, or a set of values, is no more frequent among n rows than allowed."""
    if count == 0:
        return True
    return count <= most_of(beta, enhanced, of, n_all) * n * (1.0 + SLACK)


@kernel
def like(counts: Ints, n: int, of: Ints, n_all: int, beta: float, enhanced: bool) -> bool:
    """Whether each value is no more frequent than allowed."""
    for i in range(len(of)):  # noqa: SIM110 - kernels have no generators
        if not is_like(counts[i], n, of[i], n_all, beta, enhanced):
            return False
    return True


@on_demand
def like_in_tree(
    trees: Trees, j: int, values: Ints, counts: Ints, n: int, of: Ints, n_all: int,
    beta: float, level: int,
) -> bool:  # fmt: skip
    """Whether each value, and each node from a level down, is no more frequent than allowed."""
    first = trees.trees["first_node"][j]
    there, here = node_sums(trees, j, values, of), node_sums(trees, j, values, counts)
    for node in range(len(there)):
        inner = trees.nodes["height"][first + node] > 0
        if inner and trees.nodes["depth"][first + node] < level:
            continue
        if not is_like(here[node], n, there[node], n_all, beta, True):
            return False
    return True


@kernel
def numbers_of(codes: Ints) -> Floats:
    """Return the numbers of order-preserving codes."""
    bits = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        bits[i] = codes[i] if codes[i] >= 0 else codes[i] ^ MAGNITUDE
    return bits.view(np.float64)


@kernel
def like_in_ranges(
    numbers: Floats, counts: Ints, n: int, of: Ints, n_all: int,
    beta: float, epsilon: float, relative: bool,
) -> bool:  # fmt: skip
    """Whether each interval of values up to a length of epsilon is no more frequent than allowed.

    A value that no row of the group has only raises the bound: intervals between values that rows
    have are enough.
    """
    for a in range(len(of)):
        if counts[a] == 0:
            continue
        here, there = 0, 0
        most = epsilon * numbers[a] if relative else epsilon
        for b in range(a, len(of)):
            rounding = TIE * (abs(numbers[a]) + abs(numbers[b]))
            if numbers[b] - numbers[a] > most + rounding:
                break
            here += counts[b]
            there += of[b]
            if counts[b] > 0 and not is_like(here, n, there, n_all, beta, True):
                return False
    return True


@kernel
def undisclosed(counts: Ints, n: int, of: Ints, n_all: int, delta: float) -> bool:
    """Whether each value occurs, and |ln(q / p)| is below delta."""
    most = math.exp(min(delta, LARGEST)) * (1.0 - SLACK)
    for i in range(len(of)):
        here, there = counts[i] * n_all, of[i] * n
        if not (here < most * there and there < most * here):
            return False
    return True
