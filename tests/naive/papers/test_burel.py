"""BUREL's twin: the worked example of the thesis, chapter 4, and its eligibility condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.spec.criteria import (
    BasicLikeness,
    Criterion,
    EnhancedLikeness,
    KAnonymity,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
)
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import Policy
from tests.algorithms.world import groups
from tests.examples import examples
from tests.naive.buckets import dp_partition
from tests.naive.burel import Deviations, NaiveBurel
from tests.naive.measured import Promises, order_code
from tests.naive.papers.test_emd import RAGGED
from tests.naive.papers.test_sabre import feed, rows_of, schema, space
from tests.naive.sizes import dichotomize, eligible
from tests.naive.space import Row

#: Figure 4.1: SARS, pneumonia, bronchitis, hepatitis, gastric ulcer, intestinal cancer.
FIGURE_4_1 = Hierarchy.from_dict(
    {
        "respiratory and digestive diseases": {
            "respiratory diseases": ["SARS", "pneumonia", "bronchitis"],
            "digestive diseases": ["hepatitis", "gastric ulcer", "intestinal cancer"],
        }
    }
)
EXAMPLE_4_2 = dict(enumerate([2, 3, 3, 3, 4, 4]))


def burel(*criteria: Criterion, domain: Any = FIGURE_4_1, **knobs: Any) -> NaiveBurel:
    promises = Promises.of(schema(domain), Policy(*criteria, window="all"))
    return NaiveBurel(space(), promises, draw=lambda n: 0, **knobs)


def some(counts: dict[int, int]) -> list[Row]:
    values = [v for v, n in counts.items() for _ in range(n)]
    return rows_of([(n, v) for n, v in enumerate(values)])


# -- the worked example ----------------------------------------------------------------------------


def test_example_4_2_bounds() -> None:
    cap = burel(EnhancedLikeness(2.0)).cap
    found = [round(float(cap(Fraction(n, 19))), 3) for n in (2, 3, 4)]
    assert found == [0.316, 0.449, 0.539]  # ≈ 0.31, 0.45, 0.54


def test_example_4_2_buckets_and_tree() -> None:
    table = some(EXAMPLE_4_2)
    buckets, leaves = burel(EnhancedLikeness(2.0)).plan(table, table)
    assert [[FIGURE_4_1.leaves[v] for v in bucket] for bucket in buckets] == [
        ["SARS", "pneumonia"], ["bronchitis", "hepatitis"], ["gastric ulcer", "intestinal cancer"],
    ]  # fmt: skip
    # The odd row goes left here, and right in Figure 4.3: the same leaves, the other way round.
    assert leaves == [[3, 3, 4], [1, 2, 2], [1, 1, 2]]


def test_example_4_2_eligibility() -> None:
    cap = burel(EnhancedLikeness(2.0)).cap
    caps = [cap(Fraction(n, 19)) for n in (2, 3, 4)]
    assert all(eligible(sizes, caps) for sizes in ([5, 6, 8], [2, 3, 4], [3, 3, 4], [1, 1, 2]))
    assert not eligible([2, 2, 2], caps)


# -- traps -----------------------------------------------------------------------------------------


def test_values_are_combined_below_the_cap_only() -> None:
    # Example 4.1 at beta = 1: two values would have just what one may have.
    table = some(dict.fromkeys(range(6), 1))
    for beta, n_buckets in ((1.0, 6), (1.01, 3)):
        buckets, _ = burel(EnhancedLikeness(beta)).plan(table, table)
        assert len(buckets) == n_buckets


def test_equally_frequent_values_are_in_the_order_of_their_rows() -> None:
    counts = {5: 1, 3: 1, 4: 1, 0: 2}
    buckets = dp_partition(counts, counts, lambda v: Fraction(1, 2))
    assert buckets == [[5, 3], [4], [0]]


def test_of_equally_few_buckets_the_longest_last_one_is_not_preferred() -> None:
    # [a] [b c] and [a b] [c] are two each: step 10 keeps what was found first.
    counts = {0: 1, 1: 1, 2: 1}
    assert dp_partition(counts, counts, lambda v: Fraction(7, 10)) == [[0, 1], [2]]


def test_one_value_fills_every_group() -> None:
    table = some({0: 8})
    assert burel(EnhancedLikeness(1.0)).plan(table, table) == ([[0]], [[1]] * 8)


def test_basic_likeness_has_a_cap_of_its_own() -> None:
    both = burel(BasicLikeness(0.5), EnhancedLikeness(2.0)).cap
    assert both(Fraction(1, 10)) == Fraction(3, 20)
    assert both(Fraction(1)) == 1


def test_a_group_may_draw_no_row_from_a_bucket() -> None:
    assert dichotomize([3, 1], lambda sizes: True) == [[1, 1], [1, 0], [1, 0]]


# -- the extension, by merging ---------------------------------------------------------------------


def test_semantic_likeness_is_reached_by_merging() -> None:
    # Side by side are values of one branch, each in its bucket: alike one by one, not together.
    rows = [(x, f"s{x}", v) for x, v in enumerate([0, 1, 0, 1, 3, 4, 3, 4])]
    plain = Policy(EnhancedLikeness(1.5), window="all")
    semantic = Policy(SemanticLikeness(0.6, level=1), EnhancedLikeness(1.5), window="all")
    promises = Promises.of(schema(FIGURE_4_1), semantic)
    table = rows_of([(x, v) for x, _, v in rows])
    for policy, holds in ((plain, False), (semantic, True)):
        found = groups(feed("burel", policy, FIGURE_4_1, rows)).values()
        assert len(found) > 1
        assert all(promises.hold([table[n] for n in rows], table) for rows in found) is holds


def test_range_likeness_is_reached_by_merging() -> None:
    rows = [(x, f"s{x}", order_code(v)) for x, v in enumerate([1.0, 2.0, 8.0, 9.0] * 3)]
    policy = Policy(RangeLikeness(0.8, epsilon=1.0), window="all")
    promises = Promises.of(schema(Range(0, 10)), policy)
    table = rows_of([(x, v) for x, _, v in rows])
    found = groups(feed("burel", policy, Range(0, 10), rows)).values()
    assert len(found) > 1
    assert all(promises.hold([table[n] for n in rows], table) for rows in found)


# -- the deviations, each off and on ---------------------------------------------------------------


def test_burel_1_caps_are_of_the_window() -> None:
    # The pool has twice as many of a value as the window: gains would compound.
    window = some({0: 2, 1: 6, 2: 8})
    pool = [row for row in window if row.sensitive[0] == 0] + window[-3:] + window[3:6]
    promises = Promises.of(schema(FIGURE_4_1), Policy(EnhancedLikeness(1.0), window="all"))
    assert promises.hold(pool, window)
    off, on = (
        burel(
            EnhancedLikeness(1.0),
            deviations=Deviations(caps_are_of_the_window=flag, failing_groups_merge=False),
        )(pool, window)
        for flag in (False, True)
    )
    assert not all(promises.hold(part.rows, window) for part in off)
    assert all(promises.hold(part.rows, window) for part in on)


def test_burel_2_groups_have_k_rows() -> None:
    table = some({0: 8})
    off, on = (
        burel(
            EnhancedLikeness(1.0),
            KAnonymity(3),
            deviations=Deviations(groups_have_k_rows=flag, failing_groups_merge=False),
        )(table, table)
        for flag in (False, True)
    )
    assert {len(part.rows) for part in off} == {1}
    assert {len(part.rows) for part in on} == {4}


def test_burel_3_failing_groups_merge() -> None:
    rows = [(x, "s0" if x < 4 else f"s{x}", 0) for x in range(8)]
    policy = Policy(KAnonymity(2), EnhancedLikeness(1.0), window="all")
    paper, shoal = (
        feed("burel", policy, RAGGED, rows, deviations=Deviations(failing_groups_merge=flag))
        for flag in (False, True)
    )
    assert min(d.n_subjects for d in paper) == 1
    assert min(d.n_subjects for d in shoal) == 2


# -- the theorem -----------------------------------------------------------------------------------

POINTS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 3)), min_size=1, max_size=24)


@settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)
@given(
    points=POINTS,
    skip=st.integers(0, 4),
    kind=st.sampled_from([BasicLikeness, EnhancedLikeness]),
    beta=st.sampled_from([0.1, 0.5, 1.0, 2.0]),
)
def test_every_group_is_eligible(
    points: Sequence[tuple[int, int]], skip: int, kind: Any, beta: float
) -> None:
    window = rows_of(points)
    pool = window[skip:]
    twin = burel(kind(beta), domain=RAGGED, deviations=Deviations(failing_groups_merge=False))
    if not pool or not twin.promises.hold(pool, window):
        return
    buckets, sizes = twin.plan(pool, window)
    against = Counter(row.sensitive[0] for row in window)
    caps = [min(twin.cap(Fraction(against[v], len(window))) for v in b) for b in buckets]
    parts = twin(pool, window)
    assert sorted(row.number for part in parts for row in part.rows) == [r.number for r in pool]
    for part, wanted in zip(parts, sizes, strict=True):
        assert eligible(wanted, caps)
        assert [sum(r.sensitive[0] in b for r in part.rows) for b in buckets] == wanted
        assert twin.promises.hold(part.rows, window)


@pytest.mark.parametrize("criterion", [EnhancedLikeness(0.01), TCloseness(0.01)])
def test_rows_that_leave_no_other_choice_are_one_group(criterion: Criterion) -> None:
    name = "sabre-ak" if isinstance(criterion, TCloseness) else "burel"
    rows = [(x, f"s{x}", x % 3) for x in range(3)]
    decisions = feed(name, Policy(criterion, window="all"), RAGGED, rows)
    assert groups(decisions) == {0: {0, 1, 2}}
