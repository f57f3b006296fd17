"""Chain sampling: independent samples, each uniform over the latest rows of a stream.

A chain has a current sample, which is one row of the latest ``window`` rows, each of them equally
likely. A row is selected as the new sample by the toss of a coin. As soon as it is a sample, the
position of the row that will replace it, when it leaves the window, is drawn from the ``window``
rows behind it. When that row comes it is linked, and its own replacement is drawn. So no row has to
be fetched that has gone.

On the row at which a sample leaves, its replacement is uniform over the new window as it stands;
a coin on top of that would favour the newest row, so it counts for nothing there.

Coins aren't tossed row by row: the next row that one selects is drawn at once. What a chain has to
do next is never more than a window away, because its sample leaves. So chains wait in the buckets
of a wheel of ``window`` rows, and a row touches only those that have something to do.

References: B. Babcock, M. Datar, R. Motwani, "Sampling from a moving window over streaming data",
SODA 2002; B. Zhou et al., "Continuous privacy preserving publishing of data streams", EDBT 2009,
section 4.2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.engine.jit import inlined, kernel
from shoal.engine.kernels.array_tools import in_order
from shoal.engine.kernels.arrays import Bools, Bytes, Floats, Ints, Records
from shoal.engine.kernels.rng import below, uniform

__all__ = ["LINKS", "Chains", "arrives", "empty", "inside", "n_inside", "renew", "scale_of"]

#: How many links a chain stores. About 0.7 are expected, more than 20 about once in 10**18 chains:
#: then the newest link takes the place of the last one, and no sample is ever without a successor.
LINKS = 20

#: Marks of samples that are in a box, surely or if a closer look says so; odd ones are outside.
SURE, DOUBTFUL = 0, 2
#: So many marks are counted at a time.
BLOCK = 128

#: Of each chain: the position of the next link, that of the next row which its coin selects, how
#: many links it has, and the chain that is behind it in its bucket (-1: none).
CHAIN = np.dtype([("awaited", "i8"), ("selected", "i8"), ("n_links", "i8"), ("following", "i8")])


class Chains(NamedTuple):
    """The boxes of the current samples, one after another, and their positions; the
    boxes and positions of the links of each chain, the next one first; the rest of each chain; and
    the wheel: for each row of a window the first chain that has something to do there (-1: none).

    ``rough_lo`` and ``rough_hi`` are the current samples' boxes in bytes (attributes along the
    first axis), by ``scale``: the lowest of each range, bytes per unit, and 1 where each number has
    a byte of its own. ``marks`` is room to work in. What is in it between two calls doesn't matter.
    """

    lo: Floats
    hi: Floats
    positions: Ints
    link_lo: Floats
    link_hi: Floats
    links: Ints
    chains: Records
    wheel: Ints
    scale: Floats
    rough_lo: Bytes
    rough_hi: Bytes
    marks: Bytes


def empty(
    samples: int, window: int, n_quasi: int, n_links: int = LINKS, scale: Floats | None = None
) -> Chains:
    """So many chains over a window of so many rows, none of which has come.

    ``scale`` (see `scale_of`) makes it quicker to tell which samples a box covers.

    >>> from shoal.engine.kernels.rng import seeded
    >>> chains, random, changed = empty(5, 10, 1), seeded(b"7", "decide"), np.empty(5, np.int64)
    >>> for position in range(100):
    ...     box = np.array([float(position)])
    ...     for c in changed[: arrives(chains, random, position, box, box, changed)]:
    ...         renew(chains, c)
    >>> sorted(chains.positions.tolist())
    [93, 95, 96, 99, 99]
    >>> int(n_inside(chains, np.array([95.0]), np.array([98.0])))
    2
    """
    chains = np.zeros(samples, CHAIN)
    chains["awaited"] = -1
    chains["following"] = np.arange(1, samples + 1)
    chains["following"][-1:] = -1
    wheel = np.full(window, -1)
    wheel[0] = 0
    return Chains(
        # No box covers what has no end: where nothing has come, nothing is inside.
        np.full((samples, n_quasi), -np.inf),
        np.full((samples, n_quasi), np.inf),
        np.full(samples, -1),
        np.zeros((samples, n_links, n_quasi)),
        np.zeros((samples, n_links, n_quasi)),
        np.zeros((samples, n_links), np.int64),
        chains,
        wheel,
        np.zeros((3, n_quasi)) if scale is None else scale,
        np.zeros((n_quasi, samples), np.uint8),
        np.full((n_quasi, samples), 255, np.uint8),
        np.zeros(samples, np.uint8),
    )


def scale_of(lowest: Floats, highest: Floats, are_codes: Bools) -> Floats:
    """How numbers of each attribute are told apart by bytes, given its range.

    >>> scale_of(np.array([0.0, 0.0]), np.array([127.0, 6.0]), np.array([False, True]))
    array([[0., 0.],
           [2., 1.],
           [0., 1.]])
    """
    length = highest - lowest
    per_unit = np.divide(254.0, length, out=np.zeros(len(length)), where=length > 0.0)
    own_byte = are_codes & (length <= 253.0)
    return np.array([lowest, np.where(own_byte, 1.0, per_unit), own_byte])


# -- rows come ------------------------------------------------------------------------------------


@kernel
def arrives(
    chains: Chains, random: Ints, position: int, lo: Floats, hi: Floats, changed: Ints
) -> int:
    """The row of a position comes; say how many chains get another sample, and write which.

    Positions come one after another, from 0. Until `renew` is called for each that is written, in
    ascending order, the former samples are still there; all must be renewed before the next row.
    """
    n = 0
    for c in _due(chains, position):
        if _moves_on(chains, random, c, position, lo, hi):
            changed[n] = c
            n += 1
    return n


@kernel
def renew(chains: Chains, c: int) -> None:
    """The next link of a chain becomes its current sample."""
    for d in range(chains.lo.shape[1]):
        chains.lo[c, d] = chains.link_lo[c, 0, d]
        chains.hi[c, d] = chains.link_hi[c, 0, d]
        lowest, per_unit = chains.scale[0, d], chains.scale[1, d]
        chains.rough_lo[d, c] = _rough(chains.lo[c, d], lowest, per_unit)
        chains.rough_hi[d, c] = _rough(chains.hi[c, d], lowest, per_unit)
    chains.positions[c] = chains.links[c, 0]
    chains.chains["n_links"][c] -= 1
    for j in range(chains.chains["n_links"][c]):
        chains.links[c, j] = chains.links[c, j + 1]
        for d in range(chains.lo.shape[1]):
            chains.link_lo[c, j, d] = chains.link_lo[c, j + 1, d]
            chains.link_hi[c, j, d] = chains.link_hi[c, j + 1, d]


@kernel
def _due(chains: Chains, position: int) -> Ints:
    """Take the chains that have something to do out of the wheel, in ascending order."""
    bucket = position % len(chains.wheel)
    first = chains.wheel[bucket]
    chains.wheel[bucket] = -1
    n, c = 0, first
    while c >= 0:
        n += 1
        c = chains.chains["following"][c]
    due = np.empty(n, np.int64)
    c = first
    for i in range(n):
        due[i] = c
        c = chains.chains["following"][c]
    return in_order(due) if n > 1 else due


@kernel
def _moves_on(chains: Chains, random: Ints, c: int, position: int, lo: Floats, hi: Floats) -> bool:
    """A chain does what it has to do at a row; say whether it gets another sample."""
    chain, window = chains.chains, len(chains.wheel)
    leaves = position >= window and chains.positions[c] == position - window
    is_selected = chain["selected"][c] == position
    begins_anew = is_selected and not leaves
    if begins_anew:
        chain["n_links"][c] = 0
    if begins_anew or chain["awaited"][c] == position:
        _link(chains, c, position, lo, hi)
        chain["awaited"][c] = position + 1 + below(random, window)
    if is_selected:
        chain["selected"][c] = _next_selected(random, position, window)
    # A sample that leaves has a successor: it was awaited among the rows up to this one.
    changes = leaves or begins_anew
    sample = chains.links[c, 0] if changes else chains.positions[c]
    upcoming = min(sample + window, chain["awaited"][c], chain["selected"][c])
    bucket = upcoming % window
    chain["following"][c] = chains.wheel[bucket]
    chains.wheel[bucket] = c
    return changes


@kernel
def _link(chains: Chains, c: int, position: int, lo: Floats, hi: Floats) -> None:
    """Append a row to the links of a chain."""
    j = min(chains.chains["n_links"][c], chains.links.shape[1] - 1)
    chains.links[c, j] = position
    for d in range(len(lo)):
        chains.link_lo[c, j, d] = lo[d]
        chains.link_hi[c, j, d] = hi[d]
    chains.chains["n_links"][c] = j + 1


@kernel
def _next_selected(random: Ints, position: int, window: int) -> int:
    """The position of the next row that a coin selects, behind one that it has selected.

    The row at position i is selected with probability 1 / min(i + 1, window). So none of the rows
    from number n0 + 1 to number n is with probability n0 / n, as long as n is within the first
    window; after that, the number of tosses is geometric.
    """
    if window == 1:
        return position + 1
    count = position + 1
    if count < window:
        # As a number: a quotient that is past the window may be past all whole numbers.
        reached = count / (1.0 - uniform(random))
        if reached < window:
            return math.floor(reached)
        count = window
    skipped = math.log(1.0 - uniform(random)) / math.log(1.0 - 1.0 / window)
    return count + math.floor(skipped)


# -- samples in a box -----------------------------------------------------------------------------


@kernel
def n_inside(chains: Chains, lo: Floats, hi: Floats) -> int:
    """How many of the current samples a box covers."""
    marks, los, his = chains.marks, chains.lo, chains.hi
    _mark_all(chains, lo, hi)
    n = 0
    for begin in range(0, len(marks), BLOCK):
        block = marks[begin : begin + BLOCK]
        n_sure, n_doubtful = _tally(block)
        n += n_sure
        if n_doubtful > 0:
            for i in range(len(block)):
                if block[i] == DOUBTFUL and _covered(los, his, begin + i, lo, hi):
                    n += 1
    return n


@kernel
def _tally(marks: Bytes) -> tuple[int, int]:
    """How many samples are surely in a box, and how many doubtfully so. (At most 255.)"""
    n_sure, n_doubtful = np.uint8(0), np.uint8(0)
    for c in range(len(marks)):
        n_sure += np.uint8(marks[c] == SURE)
        n_doubtful += np.uint8(marks[c] == DOUBTFUL)
    return int(n_sure), int(n_doubtful)


@kernel
def inside(chains: Chains, lo: Floats, hi: Floats) -> Ints:
    """The numbers of the chains whose current sample a box covers, in ascending order."""
    marks, los, his = chains.marks, chains.lo, chains.hi
    found, n = np.empty(len(marks), np.int64), 0
    _mark_all(chains, lo, hi)
    for c in range(len(marks)):
        if marks[c] == SURE or (marks[c] == DOUBTFUL and _covered(los, his, c, lo, hi)):
            found[n] = c
            n += 1
    return found[:n].copy()


@inlined
def _covered(los: Floats, his: Floats, c: int, lo: Floats, hi: Floats) -> bool:
    for d in range(len(lo)):  # noqa: SIM110 - Numba compiles no generator expressions
        if los[c, d] < lo[d] or his[c, d] > hi[d]:
            return False
    return True


@kernel
def _mark_all(chains: Chains, lo: Floats, hi: Floats) -> None:
    """Mark each sample: it is surely in a box, or doubtfully so (`DOUBTFUL`), or outside.

    Rough places are bytes, of which a processor compares dozens at once. They are in the order of
    the numbers that they are of: who is outside by them is so indeed, and only who has the very
    byte of a side has to be looked at closely. (Not even then, where each number has its own byte.)
    """
    marks, scale = chains.marks, chains.scale
    for c in range(len(marks)):
        marks[c] = SURE
    for d in range(len(lo)):
        low, high = _rough(lo[d], scale[0, d], scale[1, d]), _rough(hi[d], scale[0, d], scale[1, d])
        doubt = np.uint8(0 if scale[2, d] > 0.0 else DOUBTFUL)
        _mark(chains.rough_lo[d], chains.rough_hi[d], low, high, doubt, marks)


@kernel
def _mark(
    lows: Bytes, highs: Bytes, low: np.uint8, high: np.uint8, doubt: np.uint8, marks: Bytes
) -> None:
    """Mark samples by one side.

    By itself: within a larger function the compiler doesn't turn the loop into vector instructions.
    """
    for c in range(len(lows)):
        outside = np.uint8((lows[c] < low) | (highs[c] > high))
        at_a_side = np.uint8((lows[c] == low) | (highs[c] == high))
        marks[c] |= outside | (at_a_side * doubt)


@inlined
def _rough(value: float, lowest: float, per_unit: float) -> np.uint8:
    """Where a number roughly lies between the ends of its range."""
    if per_unit == 0.0 or value <= lowest:
        return np.uint8(0)
    place = (value - lowest) * per_unit
    return np.uint8(255 if place >= 254.0 else int(place) + 1)
