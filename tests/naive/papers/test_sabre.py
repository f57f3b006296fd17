"""SABRE's twin: the worked examples of the thesis, chapter 3, and its theorems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.spec.criteria import KAnonymity, TCloseness
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.policy import Policy
from shoal.spec.schema import Quasi, Schema, Sensitive
from tests.algorithms.world import groups
from tests.examples import examples
from tests.naive.buckets import Ground, bucket_cat, bucket_num, cost
from tests.naive.emd import emd
from tests.naive.measured import Promises
from tests.naive.measured_twins import twin
from tests.naive.papers.test_emd import DISEASES, RAGGED
from tests.naive.sabre import Deviations, NaiveSabre
from tests.naive.sizes import dichotomize, halves, within, work
from tests.naive.space import Row, Space

NOTHING = Fraction(0)
#: Example 3.4: 5 SARS, 3 pneumonia, 2 bronchitis, 4 flu, 2 ulcer, 2 cancer.
EXAMPLE_3_4 = dict(enumerate([5, 3, 2, 4, 2, 2]))
GROUND = Ground(DISEASES, range(6))
RESPIRATORY, DIGESTIVE = [0, 1, 2], [3, 4, 5]


def named(buckets: Sequence[Sequence[int]]) -> list[list[str]]:
    return [[DISEASES.leaves[v] for v in bucket] for bucket in buckets]


# -- worked examples -------------------------------------------------------------------------------


def test_example_3_3() -> None:
    one, other = (cost(GROUND, EXAMPLE_3_4, bucket) for bucket in (RESPIRATORY, DIGESTIVE))
    assert (one, other, one + other) == (Fraction(2, 9), Fraction(1, 6), Fraction(7, 18))
    # The bound is met where each bucket gives rows of its rarest value only.
    window = [v for v, n in EXAMPLE_3_4.items() for _ in range(n)]
    assert emd(DISEASES, [2] * 10 + [4] * 8, window) == Fraction(7, 18)


def test_example_3_4() -> None:
    assert cost(GROUND, EXAMPLE_3_4, list(range(6))) == Fraction(16, 18)
    assert named(bucket_cat(GROUND, EXAMPLE_3_4, 0.2, NOTHING)) == [
        ["SARS"], ["pneumonia"], ["bronchitis"],
        ["gastric flu", "gastric ulcer", "intestinal cancer"],
    ]  # fmt: skip


def test_example_3_5() -> None:
    # Salaries of 1k to 4k; the ground distances are those of ranks.
    ground, counts = Ground(Range(0, 10), [1, 2, 3, 4]), {1: 2, 2: 3, 3: 3, 4: 2}
    assert cost(ground, counts, [1, 2, 3, 4]) == Fraction(1, 2)
    assert cost(ground, counts, [2, 3, 4]) == Fraction(3, 10)
    assert bucket_num(ground, counts, 0.25, NOTHING) == [[1, 2], [3, 4]]


def test_example_3_6() -> None:
    buckets = bucket_cat(GROUND, EXAMPLE_3_4, 0.45, NOTHING)
    assert buckets == [RESPIRATORY, DIGESTIVE]
    assert work(GROUND, buckets, [10, 8], [3, 2]) == Fraction(2, 45)


def test_example_3_7() -> None:
    def allowed(sizes: list[int]) -> bool:
        moved = work(GROUND, [RESPIRATORY, DIGESTIVE], [10, 8], sizes)
        return within(moved, Fraction(7, 18), NOTHING, 0.45)

    assert allowed([3, 2])
    assert not allowed([2, 1])
    assert dichotomize([10, 8], allowed) == [[3, 2], [1, 1], [1, 1]] * 2


# -- traps -----------------------------------------------------------------------------------------


def test_halves_are_rounded_up() -> None:
    # Banker's rounding would give 0, 2 and 2.
    assert halves([1, 3, 5]) == ([1, 2, 3], [0, 1, 2])


def test_an_array_of_ones_is_not_halved() -> None:
    assert dichotomize([1, 1, 1], lambda sizes: True) == [[1, 1, 1]]
    assert dichotomize([2, 1], lambda sizes: True) == [[1, 1], [1, 0]]


def test_both_halves_need_the_least_number_of_rows() -> None:
    assert dichotomize([5], lambda sizes: True, least=2) == [[3], [2]]
    assert dichotomize([5], lambda sizes: True, least=3) == [[5]]


@pytest.mark.parametrize("t", [0.0, 1.0, 7.0])
def test_buckets_at_the_edges_of_t(t: float) -> None:
    singles = [[v] for v in EXAMPLE_3_4]
    buckets = bucket_cat(GROUND, EXAMPLE_3_4, t, NOTHING)
    assert buckets == (singles if t == 0 else [list(range(6))])


def test_only_values_that_occur_are_in_buckets() -> None:
    # Of RAGGED's leaves a and c2 only: their lowest common ancestor is the root.
    ground = Ground(RAGGED, [0, 3])
    assert bucket_cat(ground, {0: 1, 3: 2}, 0.1, NOTHING) == [[0], [3]]
    # c1 and c2 are split under C, though B stands between C and the root.
    assert bucket_cat(Ground(RAGGED, [2, 3]), {2: 1, 3: 1}, 0.1, NOTHING) == [[2], [3]]


def test_of_equal_savings_the_first_is_split() -> None:
    # Four numbers, equally frequent: halved once, either half would save as much.
    ground, counts = Ground(None, [1, 2, 3, 4]), dict.fromkeys([1, 2, 3, 4], 1)
    assert bucket_num(ground, counts, 0.16, NOTHING) == [[1], [2], [3, 4]]


def test_what_is_spent_on_the_way_counts() -> None:
    assert bucket_cat(GROUND, EXAMPLE_3_4, 0.45, Fraction(1, 10)) != [RESPIRATORY, DIGESTIVE]
    assert not within(Fraction(2, 45), Fraction(7, 18), Fraction(1, 10), 0.45)


# -- groups ----------------------------------------------------------------------------------------

SALARY = Range(0, 10)


def schema(domain: Domain, *others: Domain) -> Schema:
    sensitive = [Sensitive(f"s{j}", other) for j, other in enumerate([domain, *others])]
    return Schema("person", [Quasi("x", Range(0, 100)), Quasi("y", Range(0, 1))], sensitive)


def feed(name: str, policy: Policy, domain: Domain, rows: Sequence[Any], **knobs: Any) -> Any:
    """Push (x, subject, value) and end the table."""
    run = twin(name, schema(domain), policy, seed=b"1", **knobs)
    return [
        decision for x, subject, value in rows for decision in run.push([x, 0.0], subject, [value])
    ] + run.flush()


@pytest.mark.parametrize("name", ["sabre-ak", "sabre-knn"])
def test_figure_3_2_three_groups_of_neighbours(name: str) -> None:
    # Table 3.1, along one attribute: one respiratory and one digestive disease each, side by side.
    rows = [(10, "Mike", 0), (12, "Carol", 4), (50, "John", 1), (51, "Beth", 3), (90, "Bob", 2),
            (93, "Alice", 5)]  # fmt: skip
    policy = Policy(KAnonymity(2), TCloseness(0.45), window="all")
    decisions = feed(name, policy, DISEASES, rows)
    assert groups(decisions) == {0: {0, 1}, 1: {2, 3}, 2: {4, 5}}
    assert {d.window for d in decisions} == {6}


@pytest.mark.parametrize("name", ["sabre-ak", "sabre-knn"])
def test_random_seeds_part_all_rows(name: str) -> None:
    rows = [(x, f"s{x}", x % 6) for x in range(60)]
    policy = Policy(KAnonymity(2), TCloseness(0.3), window="all")
    decisions = feed(name, policy, DISEASES, rows)
    assert sorted(d.row for d in decisions if d.outcome == "group") == list(range(60))
    assert decisions == feed(name, policy, DISEASES, rows)


def test_a_table_that_cannot_keep_the_promise_is_suppressed() -> None:
    policy = Policy(KAnonymity(3), TCloseness(0.5), window="all")
    decisions = feed("sabre-ak", policy, DISEASES, [(1, "a", 0), (2, "b", 1)])
    assert [(d.row, d.outcome, d.window) for d in decisions] == [
        (0, "suppressed", None), (1, "suppressed", None),
    ]  # fmt: skip


def test_an_empty_table_is_no_group() -> None:
    policy = Policy(KAnonymity(1), TCloseness(0.5), window="all")
    assert feed("sabre-ak", policy, DISEASES, []) == []


# -- the deviations, each off and on ---------------------------------------------------------------


def test_sabre_1_groups_have_k_rows() -> None:
    rows = [(x, f"s{x}", 0) for x in range(8)]
    policy = Policy(KAnonymity(3), TCloseness(0.5), window="all")
    off = {"groups_have_k_rows": False, "failing_groups_merge": False}
    paper = feed("sabre-ak", policy, DISEASES, rows, deviations=Deviations(**off))
    assert {d.n_subjects for d in paper} == {1}
    off = {"failing_groups_merge": False}
    shoal = feed("sabre-ak", policy, DISEASES, rows, deviations=Deviations(**off))
    assert {d.n_subjects for d in shoal} == {4}


def test_sabre_2_failing_groups_merge() -> None:
    # Rows of one person are several rows and one subject.
    rows = [(x, "s0" if x < 4 else f"s{x}", 0) for x in (0, 1, 2, 3, 90, 91, 92, 93)]
    policy = Policy(KAnonymity(2), TCloseness(0.5), window="all")
    paper, shoal = (
        feed("sabre-ak", policy, DISEASES, rows, deviations=Deviations(failing_groups_merge=flag))
        for flag in (False, True)
    )
    assert {d.row: d.n_subjects for d in paper} == {i: 1 if i < 4 else 2 for i in range(8)}
    assert sorted(len(rows) for rows in groups(shoal).values()) == [2, 6]
    assert min(d.n_subjects for d in shoal) == 2


def test_sabre_3_buckets_leave_room() -> None:
    # By the thesis buckets spend nearly all of t, and the whole table is one group.
    values = [0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 4, 5]
    rows = [(x, f"s{x}", value) for x, value in enumerate(values)]
    policy = Policy(KAnonymity(1), TCloseness(0.25), window="all")
    paper, shoal = (
        feed("sabre-ak", policy, DISEASES, rows, deviations=Deviations(buckets_leave_room=flag))
        for flag in (False, True)
    )
    assert (len(groups(paper)), len(groups(shoal))) == (1, 3)


def test_several_attributes_are_reached_by_merging() -> None:
    other = Hierarchy.flat([*"ab"])
    policy = Policy(KAnonymity(1), TCloseness(0.3), window="all")
    run = twin("sabre-ak", schema(DISEASES, other), policy)
    for x in range(8):
        run.push([x, 0.0], f"s{x}", [x % 2, int(x >= 4)])
    decisions = run.flush()
    for rows in groups(decisions).values():
        assert len({x >= 4 for x in rows}) == 2


def test_the_first_attribute_with_its_strictest_t_is_put_in_buckets() -> None:
    policy = Policy(
        TCloseness(0.4, attribute="s1"), TCloseness(0.3, attribute="s1"),
        TCloseness(0.1, attribute="s2"), window="all",
    )  # fmt: skip
    promises = Promises.of(schema(SALARY, DISEASES, DISEASES), policy)
    measure, t = NaiveSabre(space(), promises, draw=lambda n: 0).target
    assert (measure.j, t) == (1, 0.3)


# -- the theorems ----------------------------------------------------------------------------------


def space() -> Space:
    return Space([Range(0, 100), Range(0, 1)], [1.0, 1.0], "glm")


def rows_of(points: Sequence[tuple[int, int]]) -> list[Row]:
    return [
        Row(n, ((float(x), float(x)), (0.0, 0.0)), n, (value,))
        for n, (x, value) in enumerate(points)
    ]


POINTS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 3)), min_size=1, max_size=24)


@settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)
@given(
    points=POINTS,
    skip=st.integers(0, 4),
    t=st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]),
    domain=st.sampled_from([RAGGED, SALARY]),
    look=st.sampled_from([1, 8, None]),
)
def test_every_group_is_within_its_bound(
    points: list[tuple[int, int]], skip: int, t: float, domain: Domain, look: int | None
) -> None:
    # Some rows of the window have left before: the pool is what it holds besides.
    window = rows_of(points)
    pool = window[skip:]
    promises = Promises.of(schema(domain), Policy(TCloseness(t), window="all"))
    if not pool or not promises.hold(pool, window):
        return
    # By itself: no group is repaired.
    sabre = NaiveSabre(
        space(), promises, draw=lambda n: 0, look=look,
        deviations=Deviations(failing_groups_merge=False),
    )  # fmt: skip
    measure, _ = sabre.target
    values, against = measure.values(pool), measure.values(window)
    ground, counts = Ground(domain, against), Counter(values)
    buckets, sizes = sabre.plan(pool, window)
    spent = emd(domain, values, against)
    assert spent is not None
    bound = sum((cost(ground, counts, bucket) for bucket in buckets), NOTHING)
    all_of = [sum(counts[v] for v in bucket) for bucket in buckets]
    assert [sum(column) for column in zip(*sizes, strict=True)] == all_of
    parts = sabre(pool, window)
    assert sorted(row.number for part in parts for row in part.rows) == [r.number for r in pool]
    for part, wanted in zip(parts, sizes, strict=True):
        values = measure.values(part.rows)
        assert [sum(v in bucket for v in values) for bucket in buckets] == wanted
        moved = work(ground, buckets, all_of, wanted)
        distance = emd(domain, values, against)
        assert distance is not None
        assert distance <= moved + bound + spent
        assert promises.hold(part.rows, window)
        assert within(moved, bound, spent, t)
