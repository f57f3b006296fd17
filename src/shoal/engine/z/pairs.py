"""The exposures of the latest window, where values have no ladder: pairs and counts.

All exposures of the window are in a ring, in their order. A pair is a value (by its key) and a
subject that has exposed it; it is stored as its hash and the index in the ring of its latest
exposure. Counts are the numbers of pairs of each value. Both are hash tables with linear probing; a
deletion shifts the following entries back, so that they never degrade on an endless stream. Adding
and removing an exposure take constant time.

The same as `shoal.engine.z.exposures` does for values with ladders, in as little memory as
possible, since memory access dominates the time.

Reference: N. Jha et al., Performance Evaluation 159 (2023), Algorithm 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints, Records, power_of_two
from shoal.engine.kernels.ring import wrap
from shoal.engine.z.window import DONE, LEAST, LOOK, MISSING, ROOM, ZDecisions, ZWindow, slot_of

__all__ = ["N_PAIRS", "Pairs", "empty", "hash_of", "moved", "needed", "published", "room", "take"]

#: The columns of the ring, and the second one of a count. A key of 0 is a free count.
KEY, SUBJECT, COUNT = 0, 1, 1
#: A pair is its hash, which has 31 bits, times 2**32, and its place in the ring plus 1; 0 is free.
PLACE_BITS, PLACE_MASK, HASH_MASK = 32, 2**32 - 1, 2**31 - 1
#: The marks: the numbers of pairs and of values, the positions of the oldest exposure and of the
#: next one.
N_PAIRS, N_KEYS, OLDEST, UPCOMING = range(4)
#: So many rows ahead the tables are read, to have them in the cache.
AHEAD = 64


class Pairs(NamedTuple):
    """The pairs, the counts, the ring of exposures with its times, and the marks."""

    pairs: Ints
    counts: Ints
    ring: Ints
    times: Floats
    marks: Ints


def empty(n_pairs: int = LEAST, n_keys: int = LEAST, n_exposures: int = LEAST) -> Pairs:
    """Return empty tables with room for these numbers of each."""
    n_ring = power_of_two(n_exposures)
    return Pairs(
        np.zeros(power_of_two(2 * n_pairs), np.int64),
        np.zeros((power_of_two(2 * n_keys), 2), np.int64),
        np.zeros((n_ring, 2), np.int64),
        np.zeros(n_ring),
        np.zeros(4, np.int64),
    )


def needed(table: Pairs) -> tuple[int, int, int]:
    """Return the numbers of pairs, values and exposures."""
    marks = table.marks
    return int(marks[N_PAIRS]), int(marks[N_KEYS]), int(marks[UPCOMING] - marks[OLDEST])


def room(table: Pairs) -> tuple[int, int, int]:
    """Return the room for pairs, values and exposures."""
    return len(table.pairs) // 2, len(table.counts) // 2, len(table.ring)


def moved(table: Pairs, n_pairs: int, n_keys: int, n_exposures: int) -> Pairs:
    """Return the same content in tables with other room, larger or smaller."""
    other = empty(n_pairs, n_keys, n_exposures)
    other.marks[:] = table.marks
    _move(table, other)
    return other


@kernel
def hash_of(key: int, subject: int) -> int:
    """Return a 31-bit hash of a pair, or of a value if the subject is 0."""
    # 32-bit halves times 31-bit constants: nothing overflows, compiled or not.
    h = ((key & 0xFFFFFFFF) * 0x5BD1E995) ^ (((key >> 32) & 0xFFFFFFFF) * 0x2C1B3C6D)
    h ^= ((subject & 0xFFFFFFFF) * 0x297A2D39) ^ (((subject >> 32) & 0xFFFFFFFF) * 0x45D9F3B5)
    h ^= h >> 29
    h = (h & 0xFFFFFFFF) * 0x45D9F3B
    return (h >> 16) & HASH_MASK


@kernel
def find_count(counts: Ints, key: int) -> int:
    """Return the slot of the count of a value, or the free slot where it would go."""
    at = wrap(hash_of(key, 0), len(counts))
    while counts[at, KEY] != 0 and counts[at, KEY] != key:
        at = wrap(at + 1, len(counts))
    return at


@kernel
def take(
    table: Pairs, place: Records, window: ZWindow, subjects: Ints, times: Floats, values: Ints,
    cells: ZDecisions, cursor: Ints,
) -> int:  # fmt: skip
    """Take in rows from the cursor on, until all are decided or the kernel has to stop.

    Everything is in one kernel, with its progress in local variables: calls that pass arrays would
    take longer than their work.
    """
    pairs, counts, ring, stamps, marks = table
    n_pairs, n_keys = marks[N_PAIRS], marks[N_KEYS]
    oldest, upcoming = marks[OLDEST], marks[UPCOMING]
    row, now, begin, z = place["upcoming"][0], place["now"][0], place["begin"][0], place["z"][0]
    n_cells = values.shape[1]
    i = ahead = since = cursor[0]
    why = DONE
    hashes = np.empty((AHEAD, n_cells), np.int64)
    while i < len(subjects):
        if i == ahead:
            ahead = min(i + AHEAD, len(subjects))
            since = i
            cursor[1] = _touched(table, subjects, values, i, ahead, oldest, upcoming, hashes)
        if times[i] > now:
            now = times[i]
        clock = now if window.seconds else float(row)
        if row == 0:
            begin = clock
        horizon = clock - window.back
        while oldest < upcoming and stamps[wrap(oldest, len(ring))] < horizon:
            spot = wrap(oldest, len(ring))
            oldest += 1
            key = ring[spot, KEY]
            pair_hash = hash_of(key, ring[spot, SUBJECT])
            wanted = (pair_hash << PLACE_BITS) + spot + 1
            at = wrap(pair_hash, len(pairs))
            while pairs[at] != 0 and pairs[at] != wanted:
                at = wrap(at + 1, len(pairs))
            if pairs[at] == 0:
                # The subject has exposed the value again since.
                continue
            n_pairs -= 1
            free = at
            at = wrap(at + 1, len(pairs))
            while pairs[at] != 0:
                # An entry may fill the gap unless its home slot lies cyclically after the gap.
                first = wrap(pairs[at] >> PLACE_BITS, len(pairs))
                if wrap(at - first, len(pairs)) >= wrap(at - free, len(pairs)):
                    pairs[free] = pairs[at]
                    free = at
                at = wrap(at + 1, len(pairs))
            pairs[free] = 0
            at = wrap(hash_of(key, 0), len(counts))
            while counts[at, KEY] != key:
                at = wrap(at + 1, len(counts))
            counts[at, COUNT] -= 1
            if counts[at, COUNT] == 0:
                _drop_count(counts, at)
                n_keys -= 1
        slot = slot_of(clock, begin, window)
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
            count = wrap(hash_of(key, 0), len(counts))
            while counts[count, KEY] != 0 and counts[count, KEY] != key:
                count = wrap(count + 1, len(counts))
            pair_hash = hashes[i - since, j]
            at = wrap(pair_hash, len(pairs))
            while pairs[at] != 0:
                if pairs[at] >> PLACE_BITS == pair_hash:
                    spot = (pairs[at] & PLACE_MASK) - 1
                    if ring[spot, KEY] == key and ring[spot, SUBJECT] == subject:
                        break
                at = wrap(at + 1, len(pairs))
            if pairs[at] == 0:
                n_pairs += 1
                if counts[count, KEY] == 0:
                    counts[count, KEY] = key
                    counts[count, COUNT] = 0
                    n_keys += 1
                counts[count, COUNT] += 1
            spot = wrap(upcoming, len(ring))
            pairs[at] = (pair_hash << PLACE_BITS) + spot + 1
            ring[spot, KEY] = key
            ring[spot, SUBJECT] = subject
            stamps[spot] = clock
            upcoming += 1
            if counts[count, COUNT] >= z:
                cells.levels[i, j] = 0
                cells.n_behind[i, j] = counts[count, COUNT]
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
def _touched(
    table: Pairs, subjects: Ints, values: Ints, first: int, last: int, oldest: int, upcoming: int,
    hashes: Ints,
) -> int:  # fmt: skip
    """Read what some rows, and as many exposures that leave the window, are going to look at.

    These places are all over the table. Read one after the other they are loaded at once, while
    each row would wait for its own. The hashes of the pairs are kept; the result is only there so
    that the table is read.
    """
    pairs, ring = table.pairs, table.ring
    n_cells = values.shape[1]
    touched = 0
    for i in range(first, last):
        for j in range(n_cells):
            hashes[i - first, j] = hash_of(values[i, j], subjects[i])
            touched ^= pairs[wrap(hashes[i - first, j], len(pairs))]
    for position in range(oldest, min(oldest + (last - first) * n_cells, upcoming)):
        spot = wrap(position, len(ring))
        touched ^= pairs[wrap(hash_of(ring[spot, KEY], ring[spot, SUBJECT]), len(pairs))]
    return touched


@kernel
def _drop_count(counts: Ints, free: int) -> None:
    at = wrap(free + 1, len(counts))
    while counts[at, KEY] != 0:
        if wrap(at - hash_of(counts[at, KEY], 0), len(counts)) >= wrap(at - free, len(counts)):
            counts[free, KEY] = counts[at, KEY]
            counts[free, COUNT] = counts[at, COUNT]
            free = at
        at = wrap(at + 1, len(counts))
    counts[free, KEY] = 0


@kernel
def _is_latest(table: Pairs, spot: int) -> bool:
    """Whether an exposure is the latest one of its pair."""
    pairs, ring = table.pairs, table.ring
    pair_hash = hash_of(ring[spot, KEY], ring[spot, SUBJECT])
    wanted = (pair_hash << PLACE_BITS) + spot + 1
    at = wrap(pair_hash, len(pairs))
    while pairs[at] != 0 and pairs[at] != wanted:
        at = wrap(at + 1, len(pairs))
    return pairs[at] != 0


@kernel
def _move(table: Pairs, other: Pairs) -> None:
    counts, ring = table.counts, table.ring
    for i in range(len(counts)):
        if counts[i, KEY] != 0:
            at = find_count(other.counts, counts[i, KEY])
            other.counts[at, KEY] = counts[i, KEY]
            other.counts[at, COUNT] = counts[i, COUNT]
    for position in range(table.marks[OLDEST], table.marks[UPCOMING]):
        here, there = wrap(position, len(ring)), wrap(position, len(other.ring))
        other.ring[there, KEY] = ring[here, KEY]
        other.ring[there, SUBJECT] = ring[here, SUBJECT]
        other.times[there] = table.times[here]
        if _is_latest(table, here):
            pair_hash = hash_of(ring[here, KEY], ring[here, SUBJECT])
            at = wrap(pair_hash, len(other.pairs))
            while other.pairs[at] != 0:
                at = wrap(at + 1, len(other.pairs))
            other.pairs[at] = (pair_hash << PLACE_BITS) + there + 1


@kernel
def published(table: Pairs, z: int) -> tuple[Ints, Ints]:
    """Return the subjects and the values of the pairs whose value z subjects have exposed."""
    pairs, counts, ring = table.pairs, table.counts, table.ring
    subjects = np.empty(table.marks[N_PAIRS], np.int64)
    keys = np.empty(len(subjects), np.int64)
    n = 0
    for i in range(len(pairs)):
        if pairs[i] != 0:
            spot = (pairs[i] & PLACE_MASK) - 1
            key = ring[spot, KEY]
            if z <= 1 or counts[find_count(counts, key), COUNT] >= z:
                subjects[n] = ring[spot, SUBJECT]
                keys[n] = key
                n += 1
    return subjects[:n], keys[:n]
