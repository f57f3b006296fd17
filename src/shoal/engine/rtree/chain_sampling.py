"""Chain sampling: independent samples, each uniform over the latest rows of a stream.

A chain has a current sample, one of the latest ``span`` rows, each of them equally likely. A row is
selected as the new sample by a coin flip. As soon as it is a sample, the position of the row that
will replace it when it expires is drawn from the next ``span`` rows. When that row arrives it is
linked, and its own replacement is drawn. So no past row has to be fetched.

At the row at which a sample expires, its replacement is already uniform over the latest rows; a
coin flip would favour the newest row, so its result is ignored there.

Coins aren't flipped row by row: the next selected row is drawn at once. The next event of a chain
is at most ``span`` rows away, because its sample expires. So chains wait in the buckets of a timer
wheel of ``span`` rows, and a row touches only the chains with an event.

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

__all__ = [
    "DOUBTFUL", "LINKS", "SURE", "Chains", "arrives", "empty", "inside", "n_inside", "renew",
    "rough", "scale_of",
]  # fmt: skip

#: The most links of a chain. About 0.7 are expected, more than 20 about once in 10**18 chains: then
#: the newest link replaces the last one, so that every sample has a successor.
LINKS = 20

#: Marks of samples: surely in a box, or to be checked exactly; odd ones are outside.
SURE, DOUBTFUL = 0, 2
#: So many chains are put in order by insertion; after the first rows there are hardly ever more.
FEW = 16
#: The number of marks that are counted at a time.
BLOCK = 128

#: Of each chain: the position of the next link, that of the next row that its coin selects, its
#: number of links, and the next chain in its bucket (-1: none).
CHAIN = np.dtype([("awaited", "i8"), ("selected", "i8"), ("n_links", "i8"), ("following", "i8")])


class Chains(NamedTuple):
    """The chains and their current samples.

    The boxes and positions of the current samples; the boxes and positions of the links of each
    chain, the next one first (boxes have links along the first axis, so that the first links of all
    chains are together); the record of each chain; and the wheel: for each row of a span the first
    chain with an event there (-1: none).

    ``rough_lo`` and ``rough_hi`` are the samples' boxes in bytes (attributes along the first axis),
    by ``scale``: the lowest of each range, bytes per unit, and 1 where each number has its own
    byte. ``marks`` is scratch space.
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
    samples: int, span: int, n_quasi: int, n_links: int = LINKS, scale: Floats | None = None
) -> Chains:
    """Return ``samples`` chains over the latest ``span`` rows, none of which has arrived.

    ``scale`` (see `scale_of`) makes it faster to find the samples that a box covers.

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
    wheel = np.full(span, -1)
    wheel[0] = 0
    return Chains(
        # No box covers an infinite one: before the first row, no sample is inside.
        np.full((samples, n_quasi), -np.inf),
        np.full((samples, n_quasi), np.inf),
        np.full(samples, -1),
        np.zeros((n_links, samples, n_quasi)),
        np.zeros((n_links, samples, n_quasi)),
        np.zeros((samples, n_links), np.int64),
        chains,
        wheel,
        np.zeros((3, n_quasi)) if scale is None else scale,
        np.zeros((n_quasi, samples), np.uint8),
        np.full((n_quasi, samples), 255, np.uint8),
        np.zeros(samples, np.uint8),
    )


def scale_of(lowest: Floats, highest: Floats, are_whole: Bools) -> Floats:
    """Return how the numbers of each attribute are mapped to bytes, given its range.

    ``are_whole`` says of which attributes all sides are whole numbers: codes, and numbers with a
    step of 1 from a whole number to another.

    >>> scale_of(np.array([0.0, 0.0]), np.array([127.0, 6.0]), np.array([False, True]))
    array([[0., 0.],
           [2., 1.],
           [0., 1.]])
    """
    length = highest - lowest
    per_unit = np.divide(254.0, length, out=np.zeros(len(length)), where=length > 0.0)
    own_byte = are_whole & (length <= 253.0)
    return np.array([lowest, np.where(own_byte, 1.0, per_unit), own_byte])


# -- rows arrive ----------------------------------------------------------------------------------


@kernel
def arrives(
    chains: Chains, random: Ints, position: int, lo: Floats, hi: Floats, changed: Ints
) -> int:
    """Process the row at a position; write the chains that get a new sample, return their number.

    Positions are consecutive, from 0. The former samples remain until `renew` is called for each of
    these chains, in ascending order; all must be renewed before the next row.
    """
    n = 0
    for c in _due(chains, position):
        if _moves_on(chains, random, c, position, lo, hi):
            changed[n] = c
            n += 1
    return n


@kernel
def renew(chains: Chains, c: int) -> None:
    """Make the next link of a chain its current sample."""
    for d in range(chains.lo.shape[1]):
        chains.lo[c, d] = chains.link_lo[0, c, d]
        chains.hi[c, d] = chains.link_hi[0, c, d]
        lowest, per_unit = chains.scale[0, d], chains.scale[1, d]
        chains.rough_lo[d, c] = rough(chains.lo[c, d], lowest, per_unit)
        chains.rough_hi[d, c] = rough(chains.hi[c, d], lowest, per_unit)
    chains.positions[c] = chains.links[c, 0]
    chains.chains["n_links"][c] -= 1
    for j in range(chains.chains["n_links"][c]):
        chains.links[c, j] = chains.links[c, j + 1]
        for d in range(chains.lo.shape[1]):
            chains.link_lo[j, c, d] = chains.link_lo[j + 1, c, d]
            chains.link_hi[j, c, d] = chains.link_hi[j + 1, c, d]


@kernel
def _due(chains: Chains, position: int) -> Ints:
    """Remove the chains with an event from the wheel, and return them in ascending order."""
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
    if n > FEW:
        return in_order(due)
    for i in range(1, n):
        c, j = due[i], i
        while j > 0 and due[j - 1] > c:
            due[j] = due[j - 1]
            j -= 1
        due[j] = c
    return due


@kernel
def _moves_on(chains: Chains, random: Ints, c: int, position: int, lo: Floats, hi: Floats) -> bool:
    """Process the event of a chain at a row; return whether it gets a new sample."""
    chain, span = chains.chains, len(chains.wheel)
    leaves = position >= span and chains.positions[c] == position - span
    is_selected = chain["selected"][c] == position
    begins_anew = is_selected and not leaves
    if begins_anew:
        chain["n_links"][c] = 0
    if begins_anew or chain["awaited"][c] == position:
        _link(chains, c, position, lo, hi)
        chain["awaited"][c] = position + 1 + below(random, span)
    if is_selected:
        chain["selected"][c] = _next_selected(random, position, span)
    # A sample that expires has a successor: it was awaited among the rows up to this one.
    changes = leaves or begins_anew
    sample = chains.links[c, 0] if changes else chains.positions[c]
    upcoming = min(sample + span, chain["awaited"][c], chain["selected"][c])
    bucket = upcoming % span
    chain["following"][c] = chains.wheel[bucket]
    chains.wheel[bucket] = c
    return changes


@kernel
def _link(chains: Chains, c: int, position: int, lo: Floats, hi: Floats) -> None:
    """Append a row to the links of a chain."""
    j = min(chains.chains["n_links"][c], chains.links.shape[1] - 1)
    chains.links[c, j] = position
    for d in range(len(lo)):
        chains.link_lo[j, c, d] = lo[d]
        chains.link_hi[j, c, d] = hi[d]
    chains.chains["n_links"][c] = j + 1


@kernel
def _next_selected(random: Ints, position: int, span: int) -> int:
    """Return the position of the next row that a coin selects, after one that it has selected.

    The row at position i is selected with probability 1 / min(i + 1, span). So none of the rows
    from number n0 + 1 to number n is selected with probability n0 / n, as long as n is at most
    ``span``; after that, the number of flips is geometric.
    """
    if span == 1:
        return position + 1
    count = position + 1
    if count < span:
        # As a float: a quotient beyond the span may exceed all integers.
        reached = count / (1.0 - uniform(random))
        if reached < span:
            return math.floor(reached)
        count = span
    skipped = math.log(1.0 - uniform(random)) / math.log(1.0 - 1.0 / span)
    return count + math.floor(skipped)


# -- samples in a box -----------------------------------------------------------------------------


@kernel
def n_inside(chains: Chains, lo: Floats, hi: Floats) -> int:
    """Return the number of current samples that a box covers."""
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
    """Return how many samples are surely in a box, and how many must be checked. (At most 255.)"""
    n_sure, n_doubtful = np.uint8(0), np.uint8(0)
    for c in range(len(marks)):
        n_sure += np.uint8(marks[c] == SURE)
        n_doubtful += np.uint8(marks[c] == DOUBTFUL)
    return int(n_sure), int(n_doubtful)


@kernel
def inside(chains: Chains, lo: Floats, hi: Floats) -> Ints:
    """Return the chains whose current sample a box covers, in ascending order."""
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
    """Mark each sample as surely in a box, to be checked (`DOUBTFUL`), or outside.

    Rough values are bytes, of which a processor compares dozens at once. They are ordered like the
    numbers: a sample that is outside by its bytes is outside, and only one with the same byte as a
    side of the box must be checked. (Not even that one, where each number has its own byte.)
    """
    marks, scale = chains.marks, chains.scale
    for c in range(len(marks)):
        marks[c] = SURE
    for d in range(len(lo)):
        low, high = rough(lo[d], scale[0, d], scale[1, d]), rough(hi[d], scale[0, d], scale[1, d])
        doubt = np.uint8(0 if scale[2, d] > 0.0 else DOUBTFUL)
        _mark(chains.rough_lo[d], chains.rough_hi[d], low, high, doubt, marks)


@kernel
def _mark(
    lows: Bytes, highs: Bytes, low: np.uint8, high: np.uint8, doubt: np.uint8, marks: Bytes
) -> None:
    """Mark samples by one side.

    A separate function, since the compiler doesn't vectorize the loop inside a larger one.
    """
    for c in range(len(lows)):
        outside = np.uint8((lows[c] < low) | (highs[c] > high))
        at_a_side = np.uint8((lows[c] == low) | (highs[c] == high))
        marks[c] |= outside | (at_a_side * doubt)


@inlined
def rough(value: float, lowest: float, per_unit: float) -> np.uint8:
    """Return the byte of a number, by its position in the range."""
    if per_unit == 0.0 or value <= lowest:
        return np.uint8(0)
    place = (value - lowest) * per_unit
    return np.uint8(255 if place >= 254.0 else int(place) + 1)
