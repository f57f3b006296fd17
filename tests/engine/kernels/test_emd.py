"""The Earth Mover's Distance in whole numbers: the thesis's examples, and its twin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Hierarchy, Policy, Quasi, Range, Schema, Sensitive, TCloseness
from shoal.engine import Space
from shoal.engine.kernels.emd import Trees, node_sums, ordered_emd, tree_emd
from shoal.spec.hierarchy import Domain
from shoal.testing.strategies import hierarchies
from tests.examples import examples
from tests.naive.emd import emd, least_work, tree_distances
from tests.naive.papers.test_emd import DISEASES, RAGGED

SETTINGS = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)


def trees(*domains: Domain) -> Trees:
    sensitive = [Sensitive(f"s{j}", domain) for j, domain in enumerate(domains)]
    schema = Schema(None, [Quasi("x", Range(0, 1))], sensitive)
    return Space(schema, Policy(TCloseness(0.5), window="all")).limits.measures.trees


def counts(group: Sequence[int], window: Sequence[int]) -> tuple[np.ndarray, ...]:
    """The values of a window, how often a group has them, and how often the window has."""
    values, here, there = sorted(set(window)), Counter(group), Counter(window)
    return (
        np.array(values, np.int64),
        np.array([here[value] for value in values], np.int64),
        np.array([there[value] for value in values], np.int64),
    )


def in_order(group: Sequence[int], window: Sequence[int]) -> Fraction:
    _, here, there = counts(group, window)
    moved, whole = ordered_emd(here, len(group), there, len(window))
    return Fraction(int(moved), int(whole))


def in_tree(domain: Domain, group: Sequence[int], window: Sequence[int]) -> Fraction:
    # Behind another tree, so that nothing begins at zero.
    values, here, there = counts(group, window)
    both = trees(DISEASES, domain)
    moved, whole = tree_emd(both, 1, values, here, len(group), there, len(window))
    return Fraction(int(moved), int(whole))


def test_example_3_1() -> None:
    assert in_tree(DISEASES, [0, 1, 2], range(6)) == Fraction(1, 2)


def test_example_3_2_a_third_close() -> None:
    assert {in_tree(DISEASES, [v, v + 3], range(6)) for v in range(3)} == {Fraction(1, 3)}


def test_example_3_3_the_bound_is_met() -> None:
    window = [v for v, n in enumerate([5, 3, 2, 4, 2, 2]) for _ in range(n)]
    assert in_tree(DISEASES, [2] * 10 + [4] * 8, window) == Fraction(7, 18)


def test_example_3_5_numbers() -> None:
    # All rows at an end of 1k to 4k: what the bucket of all of them costs at most.
    window = [1] * 2 + [2] * 3 + [3] * 3 + [4] * 2
    assert in_order([1], window) == in_order([4], window) == Fraction(1, 2)


def test_one_value_is_nowhere_to_be_moved() -> None:
    assert in_order([5, 5], [5, 5, 5]) == 0
    assert in_tree(Hierarchy.flat(["a"]), [0], [0, 0]) == 0
    # The root is the only leaf: its height is 0, and nothing is divided by it.
    assert in_tree(Hierarchy.from_rows([("a",)]), [0], [0]) == 0


def test_the_whole_hierarchy_counts_not_only_what_is_there() -> None:
    # c1 and c2 alone: C is a third as high as the root, which nobody needs.
    assert in_tree(RAGGED, [2], [2, 3]) == Fraction(1, 6)


VALUES = st.lists(st.integers(0, 7), min_size=1, max_size=9)


@SETTINGS
@given(group=VALUES, rest=VALUES)
def test_numbers_are_as_far_apart_as_the_twin_says(group: list[int], rest: list[int]) -> None:
    assert in_order(group, group + rest) == emd(Range(0, 9), group, group + rest)


@SETTINGS
@given(domain=hierarchies(), group=VALUES, rest=VALUES)
def test_categories_are_as_far_apart_as_the_twin_says(
    domain: Hierarchy, group: list[int], rest: list[int]
) -> None:
    group, rest = ([v % len(domain) for v in values] for values in (group, rest))
    found = in_tree(domain, group, group + rest)
    assert found == emd(domain, group, group + rest)
    if len(domain) < 6:
        p, q = (
            [Fraction(values.count(v), len(values)) for v in range(len(domain))]
            for values in (group + rest, group)
        )
        assert found == least_work(q, p, tree_distances(domain))


@SETTINGS
@given(domain=hierarchies(), one=VALUES, other=VALUES, rest=VALUES)
def test_a_union_is_no_farther_than_the_farther_one(
    domain: Hierarchy, one: list[int], other: list[int], rest: list[int]
) -> None:
    one, other, rest = ([v % len(domain) for v in values] for values in (one, other, rest))
    window = one + other + rest
    assert in_order(one + other, window) <= max(in_order(one, window), in_order(other, window))
    both = in_tree(domain, one, window), in_tree(domain, other, window)
    assert in_tree(domain, one + other, window) <= max(both)


def test_nodes_have_the_rows_of_their_leaves() -> None:
    both = trees(DISEASES, RAGGED)
    found = node_sums(both, 1, np.array([0, 2, 3]), np.array([5, 1, 2]))
    named = dict(zip(RAGGED.labels, found.tolist(), strict=True))
    assert named == {"*": 8, "a": 5, "B": 3, "b1": 0, "C": 3, "c1": 1, "c2": 2}
