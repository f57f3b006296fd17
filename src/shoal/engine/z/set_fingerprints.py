"""Fingerprints of the sets of values that are published about subjects, to find equal sets."""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Ints, power_of_two
from shoal.engine.kernels.hashing import scattered
from shoal.engine.kernels.ring import wrap
from shoal.engine.z.pairs import hash_of

__all__ = ["distinct", "first_of_pairs", "sets_of"]

#: Sums are taken modulo 2**61, so that an addition never overflows.
MASK = 2**61 - 1


def distinct(subjects: Ints) -> Ints:
    """Return each subject once, in any order.

    >>> sorted(distinct(np.array([7, 5, 7])).tolist())
    [5, 7]
    """
    return _distinct(subjects, _table(len(subjects)))


def sets_of(people: Ints, subjects: Ints, keys: Ints) -> Ints:
    """Return a fingerprint of the set of keys of each subject.

    ``subjects`` and ``keys`` are pairs without repetition; equal sets have equal fingerprints, and
    different sets almost certainly different ones.

    >>> sets = sets_of(np.array([5, 7, 9]), np.array([5, 9, 9, 5]), np.array([1, 2, 1, 2]))
    >>> bool(sets[0] == sets[2]), bool(sets[0] == sets[1])
    (True, False)
    """
    sets = np.zeros(len(people), np.int64)
    _add(people, _table(len(people)), subjects, _scattered(keys), sets)
    return sets


def first_of_pairs(subjects: Ints, keys: Ints) -> Ints:
    """Return the index of the first occurrence of each pair of a subject and a key.

    >>> first_of_pairs(np.array([5, 7, 5, 5]), np.array([1, 1, 1, 2])).tolist()
    [0, 1, 3]
    """
    order = np.lexsort((keys, subjects))
    ordered = subjects[order], keys[order]
    is_new = np.ones(len(order), np.bool_)
    for column in ordered:
        if len(order):
            is_new[1:] &= column[1:] == column[:-1]
    is_new[1:] = ~is_new[1:]
    firsts: Ints = np.sort(order[is_new])
    return firsts


def _table(n: int) -> Ints:
    return np.full(power_of_two(2 * n + 2), -1, np.int64)


def _scattered(keys: Ints) -> Ints:
    """Return numbers whose sums distinguish sets of keys."""
    apart = scattered(keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return (apart & np.uint64(MASK)).astype(np.int64)


@kernel
def _distinct(subjects: Ints, table: Ints) -> Ints:
    people = np.empty(len(subjects), np.int64)
    n = 0
    for subject in subjects:
        at = wrap(hash_of(subject, 0), len(table))
        while table[at] != -1 and people[table[at]] != subject:
            at = wrap(at + 1, len(table))
        if table[at] == -1:
            table[at] = n
            people[n] = subject
            n += 1
    return people[:n].copy()


@kernel
def _add(people: Ints, table: Ints, subjects: Ints, numbers: Ints, sets: Ints) -> None:
    for i in range(len(people)):
        at = wrap(hash_of(people[i], 0), len(table))
        while table[at] != -1:
            at = wrap(at + 1, len(table))
        table[at] = i
    for i in range(len(subjects)):
        at = wrap(hash_of(subjects[i], 0), len(table))
        while people[table[at]] != subjects[i]:
            at = wrap(at + 1, len(table))
        sets[table[at]] = (sets[table[at]] + numbers[i]) & MASK
