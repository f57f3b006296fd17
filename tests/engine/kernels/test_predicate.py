"""The privacy predicate against definitions written apart from it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Policy, Quasi, Range, Schema, Sensitive
from shoal.engine import Space
from shoal.engine.kernels.array_tools import by_first
from shoal.engine.kernels.predicate import (
    any_diversity,
    breakable,
    count_subjects,
    match,
    meets,
    needed,
)
from shoal.spec.policy import (
    Criterion,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
)
from shoal.testing.definitions import broken
from shoal.testing.definitions.groups import n_paired
from tests.examples import examples

SETTINGS = settings(max_examples=examples(150), deadline=None, derandomize=True, database=None)
SCHEMA = Schema("p", [Quasi("a", Range(0, 1))], [Sensitive("s0"), Sensitive("s1")])
PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=14)
ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.tuples(st.integers(0, 3), st.integers(0, 2))),
    min_size=1,
    max_size=12,
)
FORMS: st.SearchStrategy[LDiversity] = st.one_of(
    st.builds(DistinctLDiversity, st.integers(1, 4)),
    st.builds(EntropyLDiversity, st.sampled_from([1.0, 1.5, 2.0, 3.0])),
    st.builds(RecursiveLDiversity, st.integers(1, 3), st.none(), st.sampled_from([0.7, 1.0, 2.0])),
)


def best_pairing(pairs: list[tuple[int, int]]) -> int:
    """By König and Ore: all values, less the worst lack of subjects that some of them have."""
    values = sorted({value for _, value in pairs})
    lack = max(
        len(some) - len({subject for subject, value in pairs if value in some})
        for n in range(len(values) + 1)
        for some in itertools.combinations(values, n)
    )
    return len(values) - lack


@SETTINGS
@given(pairs=PAIRS)
def test_match_finds_as_many_pairs_as_there_can_be(pairs: list[tuple[int, int]]) -> None:
    subject = by_first(np.array([pair[0] for pair in pairs], np.int64))
    value = by_first(np.array([pair[1] for pair in pairs], np.int64))
    partners = match(subject, value, 99)
    found = [(int(s), v) for v, s in enumerate(partners) if s >= 0]
    assert len(found) == best_pairing(pairs) == n_paired(pairs)
    assert len({s for s, _ in found}) == len(found)
    assert set(found) <= set(zip(subject.tolist(), value.tolist(), strict=True))


@SETTINGS
@given(pairs=PAIRS, enough=st.integers(1, 3))
def test_match_stops_when_there_are_enough(pairs: list[tuple[int, int]], enough: int) -> None:
    subject = by_first(np.array([pair[0] for pair in pairs], np.int64))
    value = by_first(np.array([pair[1] for pair in pairs], np.int64))
    assert (match(subject, value, enough) >= 0).sum() == min(enough, best_pairing(pairs))


@SETTINGS
@given(rows=ROWS, k=st.integers(1, 5), forms=st.lists(FORMS, max_size=2, unique_by=type))
def test_meets_agrees_with_the_definitions(
    rows: list[tuple[int, tuple[int, int]]], k: int, forms: list[Criterion]
) -> None:
    policy = Policy(KAnonymity(k), *forms)
    subjects = np.array([subject for subject, _ in rows]) * 10**15
    sensitive = np.array([codes for _, codes in rows]) - 7
    limits = Space(SCHEMA, policy).limits
    what = broken(policy, SCHEMA, subjects.tolist(), sensitive.tolist())
    assert bool(meets(limits, subjects, sensitive)) == (what is None)


def test_an_exact_tie_of_entropy_is_kept() -> None:
    """Six values, once each: the entropy is log 6, however the logarithms are rounded."""
    policy = Policy(EntropyLDiversity(6.0, "s0"))
    limits = Space(SCHEMA, policy).limits
    sensitive = np.column_stack((np.arange(6), np.zeros(6, np.int64)))
    assert meets(limits, np.arange(6), sensitive)
    assert not meets(limits, np.append(np.arange(6), 9), np.vstack((sensitive, sensitive[:1])))


def test_one_person_makes_no_diversity_alone() -> None:
    policy = Policy(DistinctLDiversity(3, "s0"))
    limits = Space(SCHEMA, policy).limits
    sensitive = np.array([[0, 0], [1, 0], [2, 0], [0, 0]])
    assert not meets(limits, np.array([1, 1, 1, 2]), sensitive)
    assert meets(limits, np.array([1, 3, 4, 2]), sensitive)


def test_values_must_be_even_among_people_not_only_among_rows() -> None:
    """Two rows have each value, but both rows of the first value are of one person."""
    sensitive = np.array([[0, 0], [0, 0], [1, 0], [1, 0]])
    for form in (EntropyLDiversity(2.0, "s0"), RecursiveLDiversity(2, "s0", 1.5)):
        limits = Space(SCHEMA, Policy(form)).limits
        assert not meets(limits, np.array([1, 1, 2, 3]), sensitive)
        assert meets(limits, np.array([1, 4, 2, 3]), sensitive)


@pytest.mark.parametrize(
    ("l", "c", "counts", "is_kept"),
    [
        # The tail of l = 1 is all rows.
        (1, 1.0, [1], False),
        (1, 1.0, [1, 1], True),
        (1, 0.5, [1, 1], False),
        (1, 0.5, [1, 1, 1], True),
        (2, 0.8, [2, 1, 1], False),
        (2, 1.0, [2, 1, 1], False),
        (2, 1.1, [2, 1, 1], True),
        (2, 1.0, [2, 2, 1], True),
        # Without the two largest, whatever their order, 2 or 1 + 1 remain.
        (3, 2.0, [2, 4, 3], False),
        (3, 2.0, [1, 4, 1, 3], False),
        (3, 2.0, [2, 3, 3], True),
        (3, 2.0, [4, 4, 3], True),
        (3, 3.0, [6, 4, 2], False),
        (3, 3.0, [5, 4, 2], True),
        (4, 9.0, [8, 7, 6], False),
    ],
)
def test_the_most_frequent_value_is_rarer_than_c_tails(
    l: int,  # noqa: E741
    c: float,
    counts: list[int],
    is_kept: bool,
) -> None:
    """Strictly rarer: the rows of the l - 1 most frequent values are no part of the tail."""
    sensitive = np.array([(value, 0) for value, n in enumerate(counts) for _ in range(n)])
    limits = Space(SCHEMA, Policy(RecursiveLDiversity(l, "s0", c))).limits
    assert bool(meets(limits, np.arange(len(sensitive)), sensitive)) is is_kept


def test_limits_of_a_policy() -> None:
    for policy, least, diverse, can_break in [
        (Policy(KAnonymity(4)), 4, False, False),
        (Policy(KAnonymity(2), DistinctLDiversity(3, "s1")), 3, True, False),
        (Policy(EntropyLDiversity(1.0, "s0")), 1, True, True),
        (Policy(RecursiveLDiversity(1, "s0")), 1, True, True),
        (Policy(DistinctLDiversity(1)), 1, False, False),
    ]:
        limits = Space(SCHEMA, policy).limits
        assert (needed(limits), bool(any_diversity(limits))) == (least, diverse)
        assert bool(breakable(limits)) == can_break


@SETTINGS
@given(keys=st.lists(st.integers(-3, 3)))
def test_by_first_and_count_subjects(keys: list[int]) -> None:
    array = np.array(keys, np.int64)
    order = list(dict.fromkeys(keys))
    assert by_first(array).tolist() == [order.index(key) for key in keys]
    assert count_subjects(array) == len(order)
