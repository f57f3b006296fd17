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

from shoal._jit import inlined, kernel
from shoal.kernels.arrays import Bytes, Floats, Ints, Records
from shoal.kernels.lists import in_order
from shoal.kernels.rng import below, uniform

__all__ = ["LINKS", "Chains", "arrives", "empty", "inside", "n_inside", "renew"]

#: How many links a chain stores. About 0.7 are expected, more than 20 about once in 10**18 chains:
#: then the newest link takes the place of the last one, and no sample is ever without a successor.
LINKS = 20

#: Eight samples that are outside of a box, looked at as one number.
ALL_OUTSIDE = 0x0101010101010101

#: Of each chain: the position of the next link, that of the next row which its coin selects, how
#: many links it has, and the chain that is behind it in its bucket (-1: none).
CHAIN = np.dtype([("awaited", "i8"), ("selected", "i8"), ("n_links", "i8"), ("following", "i8")])


class Chains(NamedTuple):
    """The boxes of the current samples, one after another, and their positions; the
    boxes and positions of the links of each chain, the next one first; the rest of each chain; and
    the wheel: for each row of a window the first chain that has something to do there (-1: none).

    ``rough_lo`` and ``rough_hi`` are the current samples' boxes in bytes (attributes along the
    first axis), by ``scale``: the lowest of each range, and bytes per unit. ``outside`` and
    ``found`` are room to work in. What is in them between two calls doesn't matter.
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
    outside: Bytes
    found: Ints


def empty(
    samples: int, window: int, n_quasi: int, n_links: int = LINKS, ranges: Floats | None = None
) -> Chains:
    """So many chains over a window of so many rows, none of which has come.

    ``ranges`` are the lowest and the highest number of each attribute, by which it is quicker told
    which samples a box covers.

    >>> from shoal.kernels.rng import seeded
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
    scale = np.zeros((2, n_quasi))
    if ranges is not None:
        lengths = ranges[1] - ranges[0]
        scale[0] = ranges[0]
        scale[1] = np.divide(254.0, lengths, out=np.zeros(n_quasi), where=lengths > 0.0)
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
        scale,
        np.zeros((n_quasi, samples), np.uint8),
        np.full((n_quasi, samples), 255, np.uint8),
        np.ones(-(-samples // 8) * 8, np.uint8),
        np.zeros(samples, np.int64),
    )


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
    return _find(chains, lo, hi)


@kernel
def inside(chains: Chains, lo: Floats, hi: Floats) -> Ints:
    """The numbers of the chains whose current sample a box covers, in ascending order."""
    return chains.found[: _find(chains, lo, hi)].copy()


@kernel
def _find(chains: Chains, lo: Floats, hi: Floats) -> int:
    """Write down which samples a box covers; give how many there are.

    Rough places are bytes, of which a processor compares dozens at once. They are in the order of
    the numbers that they are of: who is outside by them is so indeed, and only the others are
    looked at closely.
    """
    outside, found, n = chains.outside, chains.found, 0
    los, his = chains.lo, chains.hi
    for c in range(len(outside)):
        outside[c] = 0 if c < len(found) else 1
    for d in range(len(lo)):
        low = np.uint8(_rough(lo[d], chains.scale[0, d], chains.scale[1, d]))
        high = np.uint8(_rough(hi[d], chains.scale[0, d], chains.scale[1, d]))
        _mark(chains.rough_lo[d], chains.rough_hi[d], low, high, outside)
    eights = outside.view(np.int64)
    for eight in range(len(eights)):
        if eights[eight] == ALL_OUTSIDE:
            continue
        for c in range(8 * eight, 8 * eight + 8):
            if outside[c] == 0:
                # Who isn't inside is written over by the next one.
                found[n] = c
                covered = 1
                for d in range(len(lo)):
                    if (los[c, d] < lo[d]) | (his[c, d] > hi[d]):
                        covered = 0
                n += covered
    return n


@kernel
def _mark(lows: Bytes, highs: Bytes, low: int, high: int, outside: Bytes) -> None:
    """Mark the samples that are outside of one side, by bytes.

    By itself: within a larger function the compiler doesn't turn the loop into vector instructions.
    """
    for c in range(len(lows)):
        outside[c] |= np.uint8((lows[c] < low) | (highs[c] > high))


@inlined
def _rough(value: float, lowest: float, per_unit: float) -> int:
    """Where a number roughly lies between the ends of its range: from 0 to 255."""
    if per_unit == 0.0 or value <= lowest:
        return 0
    place = (value - lowest) * per_unit
    return 255 if place >= 254.0 else int(place) + 1
