"""Count the rows of each subject in each place: a hash table in arrays.

Open addressing with linear probing; a deletion shifts the following entries back, so that there
are no tombstones and the table never degrades on an endless stream.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Records, power_of_two
from shoal.engine.kernels.ring import wrap

__all__ = ["EVERYWHERE", "add", "count", "empty", "grown", "home", "remove"]

#: The place under which the subjects of all held rows are counted.
EVERYWHERE = -1

#: An entry: the number of rows of a subject in a place. A count of 0 is a free entry.
ENTRY = np.dtype([("place", "i8"), ("subject", "i8"), ("count", "i8")])


def empty(entries: int) -> Records:
    """Return an empty table with room for ``entries`` at a load of at most one half."""
    return np.zeros(power_of_two(2 * entries + 2), ENTRY)


def grown(counter: Records, entries: int) -> Records:
    """Return the same counts in a table with more room."""
    larger = empty(entries)
    _copy(counter, larger)
    return larger


@kernel
def home(place: int, subject: int, capacity: int) -> int:
    """Return the home slot of an entry in a table of ``capacity`` (a power of two)."""
    # 32-bit halves times 31-bit constants: nothing overflows, compiled or not.
    low = subject & 0xFFFFFFFF
    high = (subject >> 32) & 0xFFFFFFFF
    h = (low * 0x5BD1E995) ^ (high * 0x2C1B3C6D) ^ ((place + 1) * 0x297A2D39)
    h ^= h >> 29
    h = (h & 0xFFFFFFFF) * 0x45D9F3B
    return wrap(h >> 16, capacity)


@kernel
def _copy(source: Records, target: Records) -> None:
    for i in range(len(source)):
        if source["count"][i] > 0:
            at = _find(target, source["place"][i], source["subject"][i])
            target["place"][at] = source["place"][i]
            target["subject"][at] = source["subject"][i]
            target["count"][at] = source["count"][i]


@kernel
def _find(counter: Records, place: int, subject: int) -> int:
    """Return the slot of an entry, or the free slot where it would go."""
    capacity = len(counter)
    at = home(place, subject, capacity)
    while counter["count"][at] > 0 and (
        counter["place"][at] != place or counter["subject"][at] != subject
    ):
        at = wrap(at + 1, capacity)
    return at


@kernel
def count(counter: Records, place: int, subject: int) -> int:
    """Return the number of rows of a subject in a place."""
    return counter["count"][_find(counter, place, subject)]


@kernel
def add(counter: Records, place: int, subject: int) -> bool:
    """Count a row of a subject in a place; return whether it is the first one there."""
    at = _find(counter, place, subject)
    counter["place"][at] = place
    counter["subject"][at] = subject
    counter["count"][at] += 1
    return counter["count"][at] == 1


@kernel
def remove(counter: Records, place: int, subject: int) -> bool:
    """Uncount a row of a subject in a place; return whether it was the last one there."""
    at = _find(counter, place, subject)
    counter["count"][at] -= 1
    if counter["count"][at] > 0:
        return False
    capacity = len(counter)
    free = at
    at = wrap(at + 1, capacity)
    while counter["count"][at] > 0:
        wanted = home(counter["place"][at], counter["subject"][at], capacity)
        # An entry may fill the gap unless its home slot lies cyclically after the gap.
        if wrap(at - wanted, capacity) >= wrap(at - free, capacity):
            counter["place"][free] = counter["place"][at]
            counter["subject"][free] = counter["subject"][at]
            counter["count"][free] = counter["count"][at]
            counter["count"][at] = 0
            free = at
        at = wrap(at + 1, capacity)
    return True
