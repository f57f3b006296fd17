"""Who has exposed what in the latest window, where values have no ladder: pairs and counts.

A pair is a value (by its key) and a subject that has exposed it; it knows the position in a ring of
its latest exposure. Counts tell how many pairs each value has. Both are hash tables with linear
probing; deleting shifts what lies behind back, so that they never degrade on an endless stream. An
exposure, and one that leaves the window, take constant time.

It does what `shoal.kernels.exposures` does for values with ladders, in the nearest memory that can
be: an exposure touches one line of each table.

Reference: N. Jha et al., Performance Evaluation 159 (2023), Algorithm 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal._jit import kernel
from shoal.kernels.arrays import Floats, Ints, Records, power_of_two
from shoal.kernels.reach import DONE, LOOK, ROOM, Cells, Reach, slot_of

__all__ = ["N_PAIRS", "Pairs", "empty", "moved", "needed", "published", "room", "take"]

#: Tables have room for at least so many.
LEAST = 64
#: The columns of a pair; those of the ring are the first two. A key of 0 is a free line.
KEY, SUBJECT, LATEST = range(3)
#: The second column of a count.
COUNT = 1
#: The rung of a value that isn't there.
MISSING = -2
#: The marks: how many pairs and values there are, the positions of the oldest exposure and of the
#: next one.
N_PAIRS, N_KEYS, OLDEST, UPCOMING = range(4)


class Pairs(NamedTuple):
    """Pairs, counts, the ring of exposures with its times, and where they stand."""

    pairs: Ints
    counts: Ints
    ring: Ints
    times: Floats
    marks: Ints


def empty(n_pairs: int = LEAST, n_keys: int = LEAST, n_exposures: int = LEAST) -> Pairs:
    """Nobody has exposed anything; there is room for so many of each."""
    n_ring = power_of_two(n_exposures)
    return Pairs(
        np.zeros((power_of_two(2 * n_pairs), 3), np.int64),
        np.zeros((power_of_two(2 * n_keys), 2), np.int64),
        np.zeros((n_ring, 2), np.int64),
        np.zeros(n_ring),
        np.zeros(4, np.int64),
    )


def needed(table: Pairs) -> tuple[int, int, int]:
    """How many pairs, values and exposures there are."""
    marks = table.marks
    return int(marks[N_PAIRS]), int(marks[N_KEYS]), int(marks[UPCOMING] - marks[OLDEST])


def room(table: Pairs) -> tuple[int, int, int]:
    """How many pairs, values and exposures there is room for."""
    return len(table.pairs) // 2, len(table.counts) // 2, len(table.ring)


def moved(table: Pairs, n_pairs: int, n_keys: int, n_exposures: int) -> Pairs:
    """The same in tables with room for so many: larger ones, or smaller ones."""
    other = empty(n_pairs, n_keys, n_exposures)
    other.marks[:] = table.marks
    _move(table, other)
    return other


@kernel
def home(key: int, subject: int, mask: int) -> int:
    """Where a pair, or with no subject a value, is looked for first."""
    # 32-bit halves times 31-bit constants: nothing overflows, compiled or not.
    h = ((key & 0xFFFFFFFF) * 0x5BD1E995) ^ (((key >> 32) & 0xFFFFFFFF) * 0x2C1B3C6D)
    h ^= ((subject & 0xFFFFFFFF) * 0x297A2D39) ^ (((subject >> 32) & 0xFFFFFFFF) * 0x45D9F3B5)
    h ^= h >> 29
    h = (h & 0xFFFFFFFF) * 0x45D9F3B
    return (h >> 12) & mask


@kernel
def find_pair(pairs: Ints, key: int, subject: int) -> int:
    """Where a pair is, or the free line where it would go."""
    mask = len(pairs) - 1
    at = home(key, subject, mask)
    while pairs[at, KEY] != 0 and (pairs[at, KEY] != key or pairs[at, SUBJECT] != subject):
        at = (at + 1) & mask
    return at


@kernel
def find_count(counts: Ints, key: int) -> int:
    """Where the count of a value is, or the free line where it would go."""
    mask = len(counts) - 1
    at = home(key, 0, mask)
    while counts[at, KEY] != 0 and counts[at, KEY] != key:
        at = (at + 1) & mask
    return at


@kernel
def take(
    table: Pairs, place: Records, reach: Reach, subjects: Ints, times: Floats, values: Ints,
    cells: Cells, cursor: Ints,
) -> int:  # fmt: skip
    """Take in rows from the cursor on, until all are decided or something else has to be done.

    All of it is in one kernel, and where it stands in plain numbers: calls that pass arrays would
    take longer than what they do.
    """
    pairs, counts, ring, stamps, marks = table
    pair_mask, count_mask, ring_mask = len(pairs) - 1, len(counts) - 1, len(ring) - 1
    n_pairs, n_keys = marks[N_PAIRS], marks[N_KEYS]
    oldest, upcoming = marks[OLDEST], marks[UPCOMING]
    row, now, begin, z = place["upcoming"][0], place["now"][0], place["begin"][0], place["z"][0]
    n_cells = values.shape[1]
    i = cursor[0]
    why = DONE
    while i < len(subjects):
        if times[i] > now:
            now = times[i]
        clock = now if reach.seconds else float(row)
        if row == 0:
            begin = clock
        horizon = clock - reach.back
        while oldest < upcoming and stamps[oldest & ring_mask] < horizon:
            position = oldest
            oldest += 1
            key, subject = ring[position & ring_mask, KEY], ring[position & ring_mask, SUBJECT]
            at = home(key, subject, pair_mask)
            while pairs[at, KEY] != 0 and (pairs[at, KEY] != key or pairs[at, SUBJECT] != subject):
                at = (at + 1) & pair_mask
            if pairs[at, KEY] == 0 or pairs[at, LATEST] != position:
                # The subject has exposed the value again since.
                continue
            n_pairs -= 1
            free = at
            at = (at + 1) & pair_mask
            while pairs[at, KEY] != 0:
                wanted = home(pairs[at, KEY], pairs[at, SUBJECT], pair_mask)
                # A line may fill the gap unless its home lies cyclically behind the gap.
                if ((at - wanted) & pair_mask) >= ((at - free) & pair_mask):
                    pairs[free, KEY] = pairs[at, KEY]
                    pairs[free, SUBJECT] = pairs[at, SUBJECT]
                    pairs[free, LATEST] = pairs[at, LATEST]
                    free = at
                at = (at + 1) & pair_mask
            pairs[free, KEY] = 0
            at = home(key, 0, count_mask)
            while counts[at, KEY] != key:
                at = (at + 1) & count_mask
            counts[at, COUNT] -= 1
            if counts[at, COUNT] == 0:
                _drop_count(counts, at)
                n_keys -= 1
        slot = slot_of(clock, begin, reach)
        if slot >= 0 and slot > place["slot"][0]:
            place["slot"][0] = slot
            why = LOOK
            break
        if (
            2 * (n_pairs + n_cells) > len(pairs)
            or 2 * (n_keys + n_cells) > len(counts)
            or upcoming - oldest + n_cells > len(ring)
        ):
            why = ROOM
            break
        subject = subjects[i]
        for j in range(n_cells):
            key = values[i, j]
            if key == 0:
                cells.levels[i, j] = MISSING
                continue
            count = home(key, 0, count_mask)
            while counts[count, KEY] != 0 and counts[count, KEY] != key:
                count = (count + 1) & count_mask
            at = home(key, subject, pair_mask)
            while pairs[at, KEY] != 0 and (pairs[at, KEY] != key or pairs[at, SUBJECT] != subject):
                at = (at + 1) & pair_mask
            if pairs[at, KEY] == 0:
                pairs[at, KEY] = key
                pairs[at, SUBJECT] = subject
                n_pairs += 1
                if counts[count, KEY] == 0:
                    counts[count, KEY] = key
                    counts[count, COUNT] = 0
                    n_keys += 1
                counts[count, COUNT] += 1
            pairs[at, LATEST] = upcoming
            ring[upcoming & ring_mask, KEY] = key
            ring[upcoming & ring_mask, SUBJECT] = subject
            stamps[upcoming & ring_mask] = clock
            upcoming += 1
            if counts[count, COUNT] >= z:
                cells.levels[i, j] = 0
                cells.crowds[i, j] = counts[count, COUNT]
        cells.z[i] = z
        if not np.isnan(times[i]):
            cells.times[i] = now
        row += 1
        i += 1
    marks[N_PAIRS], marks[N_KEYS], marks[OLDEST], marks[UPCOMING] = (
        n_pairs,
        n_keys,
        oldest,
        upcoming,
    )
    place["upcoming"][0], place["now"][0], place["begin"][0] = row, now, begin
    cursor[0] = i
    return why


@kernel
def _drop_count(counts: Ints, free: int) -> None:
    mask = len(counts) - 1
    at = (free + 1) & mask
    while counts[at, KEY] != 0:
        if ((at - home(counts[at, KEY], 0, mask)) & mask) >= ((at - free) & mask):
            counts[free, KEY] = counts[at, KEY]
            counts[free, COUNT] = counts[at, COUNT]
            free = at
        at = (at + 1) & mask
    counts[free, KEY] = 0


@kernel
def _move(table: Pairs, other: Pairs) -> None:
    pairs, counts, ring = table.pairs, table.counts, table.ring
    for i in range(len(pairs)):
        if pairs[i, KEY] != 0:
            at = find_pair(other.pairs, pairs[i, KEY], pairs[i, SUBJECT])
            for column in range(3):
                other.pairs[at, column] = pairs[i, column]
    for i in range(len(counts)):
        if counts[i, KEY] != 0:
            at = find_count(other.counts, counts[i, KEY])
            for column in range(2):
                other.counts[at, column] = counts[i, column]
    for position in range(table.marks[OLDEST], table.marks[UPCOMING]):
        here, there = position & (len(ring) - 1), position & (len(other.ring) - 1)
        other.ring[there, KEY] = ring[here, KEY]
        other.ring[there, SUBJECT] = ring[here, SUBJECT]
        other.times[there] = table.times[here]


@kernel
def published(table: Pairs, z: int) -> tuple[Ints, Ints]:
    """The subjects and the values of the pairs whose value z subjects have exposed."""
    subjects = np.empty(table.marks[N_PAIRS], np.int64)
    keys = np.empty(len(subjects), np.int64)
    n = 0
    for i in range(len(table.pairs)):
        key = table.pairs[i, KEY]
        if key != 0 and table.counts[find_count(table.counts, key), COUNT] >= z:
            subjects[n], keys[n] = table.pairs[i, SUBJECT], key
            n += 1
    return subjects[:n], keys[:n]
