"""Subjects and their sets, against plain sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.z.set_fingerprints import distinct, sets_of
from tests.examples import examples

NUMBERS = st.sampled_from([0, 1, 2, -1, -(2**63), 2**63 - 1, 2**32])
#: No value has the key 0: it stands for what is missing.
KEYS = NUMBERS.filter(lambda key: key != 0)


@settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)
@given(st.sets(st.tuples(NUMBERS, KEYS)), st.sets(NUMBERS))
def test_equal_sets_have_equal_numbers_and_others_other_ones(
    pairs: set[tuple[int, int]], more: set[int]
) -> None:
    subjects = np.array([subject for subject, _ in sorted(pairs)], np.int64)
    keys = np.array([key for _, key in sorted(pairs)], np.int64)
    people = distinct(np.concatenate((subjects, np.array(sorted(more), np.int64))))
    assert sorted(people.tolist()) == sorted({*subjects.tolist(), *more})
    numbers = sets_of(people, subjects, keys).tolist()
    sets = [frozenset(k for s, k in pairs if s == person) for person in people.tolist()]
    assert len(set(numbers)) == len(set(sets)) == len(set(zip(numbers, sets, strict=True)))
