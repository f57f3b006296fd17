"""SABRE-AK and SABRE-KNN as engines: the thesis's examples, its theorem, traps and refusals."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Hierarchy, Policy, Quasi, Range, Schema, Sensitive
from shoal.algorithms import SabreAk, SabreKnn, find
from shoal.engine import Anonymizer, Codes
from shoal.errors import JobError, ParameterError, UnsupportedError
from shoal.spec.criteria import (
    Criterion,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EntropyLDiversity,
    KAnonymity,
    TCloseness,
)
from shoal.spec.hierarchy import Domain
from shoal.spec.policy import Delay, Window
from shoal.testing.streams import difference
from tests.algorithms.rows import groups, outcomes
from tests.examples import examples
from tests.naive.buckets import Ground, cost
from tests.naive.emd import emd
from tests.naive.papers.test_emd import DISEASES, RAGGED
from tests.naive.sabre import NaiveSabre
from tests.naive.sizes import work
from tests.naive.space import Space as NaiveSpace
from tests.tables import SALARY, Table, drifting, schema, spread

BOTH = pytest.mark.parametrize("name", ["sabre-ak", "sabre-knn"])
SETTINGS = settings(max_examples=examples(40), deadline=None, derandomize=True, database=None)


def taken(table: Table, found: list[set[int]], buckets: list[set[int]]) -> list[list[int]]:
    """How many rows each group has of each bucket of values."""
    values = table.codes.sensitive[:, 0].tolist()
    return [[sum(values[row] in bucket for row in group) for bucket in buckets] for group in found]


# -- worked examples -------------------------------------------------------------------------------

#: Table 3.1: weight, age and disease of Mike, Alice, John, Bob, Beth and Carol.
TABLE_3_1 = [(60, 40, 0), (70, 50, 5), (60, 60, 1), (50, 50, 2), (80, 50, 3), (70, 70, 4)]


@BOTH
@pytest.mark.parametrize("seed", [b"1", b"2", b"3"])
def test_example_3_2_three_groups_of_one_row_of_each_bucket(name: str, seed: bytes) -> None:
    patients = Schema(
        "name",
        [Quasi("weight", Range(50, 80)), Quasi("age", Range(40, 70))],
        [Sensitive("disease", DISEASES)],
    )
    policy = Policy(KAnonymity(2), TCloseness(0.45), window="all")
    engine = find(name)().start(patients, policy, seed=seed)
    rows = np.array(TABLE_3_1, float)
    sensitive = rows[:, 2:].astype(np.int64)
    engine.push(Codes(rows[:, :2].copy(), np.arange(6), sensitive, np.full(6, np.nan)))
    decided = engine.flush()
    found = groups(decided)
    assert [len(group) for group in found] == [2, 2, 2]
    for group in found:
        values = [TABLE_3_1[row][2] for row in group]
        assert sorted(value // 3 for value in values) == [0, 1]
        assert emd(DISEASES, values, range(6)) == Fraction(1, 3)


@BOTH
def test_example_3_2_one_group_of_all_at_t_0(name: str) -> None:
    table = Table(spread([1] * 6), TCloseness(0.0), domains=[DISEASES])
    assert groups(table.run(name)) == [set(range(6))]


@BOTH
def test_example_3_4_and_3_7(name: str) -> None:
    table = Table(spread([5, 3, 2, 4, 2, 2]), TCloseness(0.45), domains=[DISEASES])
    found = groups(table.run(name))
    assert taken(table, found, [{0, 1, 2}, {3, 4, 5}]) == [[3, 2], [1, 1], [1, 1]] * 2
    # At t = 0.2 there are four buckets, and no half of all rows is fair.
    strict = Table(spread([5, 3, 2, 4, 2, 2]), TCloseness(0.2), domains=[DISEASES])
    assert len(groups(strict.run(name))) == 1


@BOTH
def test_example_3_5(name: str) -> None:
    salaries = [1.0] * 2 + [2.0] * 3 + [3.0] * 3 + [4.0] * 2
    points = [(10 * x, x, salary) for x, salary in enumerate(salaries)]
    table = Table(points, TCloseness(0.25), domains=[SALARY])
    found = groups(table.run(name))
    halves = [sorted(salaries[row] >= 3 for row in group) for group in found]
    assert halves == [[False, True]] * 5


@BOTH
def test_example_3_6_a_group_of_three_and_two(name: str) -> None:
    table = Table(spread([5, 3, 2, 4, 2, 2]), TCloseness(0.45), domains=[DISEASES])
    largest = max(groups(table.run(name)), key=len)
    values = [row.sensitive[0] for row in table.naive]
    ground, buckets = Ground(DISEASES, range(6)), [[0, 1, 2], [3, 4, 5]]
    assert work(ground, buckets, [10, 8], [3, 2]) == Fraction(2, 45)
    distance = emd(DISEASES, [values[row] for row in largest], values)
    assert distance is not None
    assert distance <= Fraction(2, 45) + Fraction(7, 18)


# -- the theorem -----------------------------------------------------------------------------------

POINTS = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=40
)


@BOTH
@SETTINGS
@given(
    points=POINTS,
    t=st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0]),
    domain=st.sampled_from([RAGGED, SALARY]),
)
def test_every_group_is_within_its_bound(
    name: str, points: list[tuple[int, int, int]], t: float, domain: Domain
) -> None:
    table = Table(points, TCloseness(t), domains=[domain])
    found = groups(table.run(name))
    assert sorted(row for group in found for row in group) == list(range(len(points)))
    values = [row.sensitive[0] for row in table.naive]
    ground, counts = Ground(domain, values), Counter(values)  # type: ignore[arg-type]
    space = NaiveSpace([Range(0, 100)], [1.0], "glm")
    buckets, _ = NaiveSabre(space, table.promises, draw=lambda n: 0).plan(table.naive, table.naive)
    all_of = [sum(counts[v] for v in bucket) for bucket in buckets]
    bound = sum((cost(ground, counts, bucket) for bucket in buckets), Fraction(0))  # type: ignore[arg-type]
    for group in found:
        inside = [values[row] for row in group]
        distance = emd(domain, inside, values)
        assert distance is not None
        assert table.keeps(sorted(group))
        moved = work(ground, buckets, all_of, [sum(v in b for v in inside) for b in buckets])
        # EMD ≤ D + U ≤ t (Theorem 3.4); only all rows together need no bound.
        assert distance <= moved + bound
        if len(found) > 1:
            assert moved + bound <= Fraction(t) * (1 + Fraction(1, 10**12))


@BOTH
@SETTINGS
@given(
    points=st.lists(
        st.tuples(st.integers(0, 100), st.integers(0, 9), st.integers(0, 3), st.integers(0, 3)),
        min_size=1,
        max_size=40,
    ),
    k=st.integers(1, 4),
    t=st.sampled_from([0.1, 0.3]),
    more=st.sampled_from([None, DistinctLDiversity(2, "s1"), EntropyLDiversity(1.5, "s0")]),
)
def test_several_attributes_with_k_and_l(
    name: str, points: list[tuple[int, ...]], k: int, t: float, more: Criterion | None
) -> None:
    criteria = [KAnonymity(k), TCloseness(t), *([] if more is None else [more])]
    table = Table(points, *criteria, domains=[RAGGED, SALARY])
    decided = table.run(name)
    assert sorted(decided.rows.tolist()) == list(range(len(points)))
    assert all(table.keeps(sorted(group)) for group in groups(decided))
    # Where all rows may leave together, none is suppressed (§3.6).
    if table.keeps(range(len(points))):
        assert set(outcomes(decided).values()) == {"group"}


# -- traps -----------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("t", [1.0, 1.5, 7.0])
def test_from_t_1_on_every_row_may_leave_alone(name: str, t: float) -> None:
    table = Table(spread([3, 3, 4]), TCloseness(t), domains=[DISEASES])
    assert [len(group) for group in groups(table.run(name))] == [1] * 10


@BOTH
def test_at_t_0_every_group_is_as_the_table(name: str) -> None:
    table = Table(spread([8, 4, 12]), TCloseness(0.0), domains=[DISEASES])
    found = groups(table.run(name))
    assert taken(table, found, [{0}, {1}, {2}]) == [[2, 1, 3]] * 4


@BOTH
@pytest.mark.parametrize("domain", [DISEASES, SALARY], ids=["categories", "numbers"])
def test_one_value_only(name: str, domain: Domain) -> None:
    table = Table(spread([9]), KAnonymity(2), TCloseness(0.0), domains=[domain])
    assert sorted(len(group) for group in groups(table.run(name))) == [2, 2, 2, 3]


@BOTH
def test_a_domain_of_one_value(name: str) -> None:
    for domain in (Hierarchy.flat(["a"]), Hierarchy.from_rows([("a",)])):
        table = Table(spread([4]), KAnonymity(2), TCloseness(0.0), domains=[domain])
        assert [len(group) for group in groups(table.run(name))] == [2, 2]


@BOTH
def test_a_value_seen_once_is_in_one_group(name: str) -> None:
    table = Table(spread([20, 20, 0, 1]), KAnonymity(2), TCloseness(0.3), domains=[DISEASES])
    decided = table.run(name)
    found = groups(decided)
    assert len(found) > 1
    assert sum(40 in group for group in found) == 1
    assert all(table.keeps(sorted(group)) for group in found)


@BOTH
def test_a_bucket_that_runs_dry(name: str) -> None:
    # One row in nine: only the first of the groups gets it.
    table = Table(spread([8, 1]), TCloseness(0.5), domains=[RAGGED])
    found = groups(table.run(name))
    assert taken(table, found, [{0}, {1}])[0][1] == 1
    assert len(found) > 2
    assert all(table.keeps(sorted(group)) for group in found)


@BOTH
def test_odd_rows_go_left(name: str) -> None:
    # Five rows are 3 and 2; banker's rounding would begin with 2.
    table = Table(spread([5]), KAnonymity(2), TCloseness(0.5), domains=[RAGGED])
    assert [len(group) for group in groups(table.run(name))] == [3, 2]


@BOTH
def test_rows_of_one_subject_are_merged_with_others(name: str) -> None:
    points = [(x, 0 if x < 50 else x, 0) for x in (0, 1, 2, 3, 90, 91, 92, 93)]
    table = Table(points, KAnonymity(2), TCloseness(0.5), domains=[RAGGED])
    decided = table.run(name)
    assert sorted(decided.n_rows.tolist()) == [2, 6]
    assert decided.n_subjects.min() == 2


@BOTH
def test_too_few_people_are_suppressed(name: str) -> None:
    table = Table(spread([1, 1]), KAnonymity(3), TCloseness(0.5), domains=[RAGGED])
    assert outcomes(table.run(name)) == {0: "suppressed", 1: "suppressed"}


@BOTH
def test_seeds_make_the_groups(name: str) -> None:
    table = Table(drifting(1, 60, 60), KAnonymity(3), TCloseness(0.3), domains=[RAGGED])
    assert difference(table.run(name), table.run(name)) is None
    others = [table.run(name, seed=bytes([n])) for n in range(3)]
    assert any(groups(other) != groups(table.run(name)) for other in others)


@BOTH
def test_rows_that_are_near_come_together(name: str) -> None:
    # Four clusters along a line, each with as many of both values.
    places = [x + y for x in (0, 30, 60, 90) for y in range(8)]
    points = [(x, n, n % 2) for n, x in enumerate(places)]
    table = Table(points, KAnonymity(8), TCloseness(0.1), domains=[RAGGED])
    decided = table.run(name)
    assert sorted(map(min, groups(decided))) == [0, 8, 16, 24]
    assert decided.losses.max() <= 0.07


# -- refusals --------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (Policy(EnhancedLikeness(1.0), window="all"), "can't enforce enhanced beta-likeness"),
        (Policy(DeltaDisclosure(1.0), window="all"), "can't enforce delta-disclosure"),
        (Policy(TCloseness(0.2), window=Window(4, 2)), "publishes a whole table at once"),
        (Policy(KAnonymity(2), delay=Delay(rows=9)), "publishes a whole table at once"),
        (Policy(KAnonymity(2)), "publishes a whole table at once"),
        (Policy(KAnonymity(2), window="all", missing="maybe"), 'missing values that are "maybe"'),
    ],
)
def test_what_it_cannot_keep_is_refused(name: str, policy: Policy, says: str) -> None:
    with pytest.raises(UnsupportedError, match=says):
        find(name)().start(schema([DISEASES]), policy)


@BOTH
def test_a_domain_that_is_open_is_refused(name: str) -> None:
    policy = Policy(TCloseness(0.2), window="all")
    with pytest.raises(JobError, match="its domain is open"):
        find(name)().start(schema([None]), policy)


@pytest.mark.parametrize("look", [0, 1.5, True])
def test_a_look_at_nothing_is_refused(look: Any) -> None:
    with pytest.raises(ParameterError, match=r"SabreAk\.look: must be a whole number of at least"):
        find("sabre-ak")(look=look)


# -- SABRE-KNN looks at all rows ------------------------------------------------------------------

PLANE = Schema(
    "p", [Quasi("x", Range(0, 100)), Quasi("y", Range(0, 100))], [Sensitive("s", RAGGED)]
)


def scattered(seed: int, n: int = 160) -> Codes:
    draw = random.Random(seed)
    return Codes(
        np.array([[draw.uniform(0, 100), draw.uniform(0, 100)] for _ in range(n)]),
        np.arange(n),
        np.array([[draw.randrange(4)] for _ in range(n)]),
        np.full(n, np.nan),
    )


def test_sabre_knn_loses_less_than_what_looks_along_the_curve_only() -> None:
    policy = Policy(KAnonymity(4), TCloseness(0.2), window="all")

    def loss(anonymizer: Anonymizer) -> float:
        lost = 0.0
        for seed in range(4):
            engine = anonymizer.start(PLANE, policy, seed=b"1")
            engine.push(scattered(seed))
            lost += float(engine.flush().losses.mean())
        return lost

    along = loss(SabreAk(look=1))
    assert loss(SabreKnn()) < 0.95 * along
    assert loss(SabreAk(look=8)) < 0.95 * along


def test_equally_near_rows_are_taken_in_the_order_of_the_curve() -> None:
    # All at one place: nothing tells rows apart but when they came.
    points = [(50, n, value) for n, (_, _, value) in enumerate(spread([6, 6]))]
    table = Table(points, KAnonymity(2), TCloseness(0.1), domains=[RAGGED])
    found = [sorted(group) for group in groups(table.run("sabre-knn"))]
    assert found == [[n, n + 6] for n in range(6)]


def test_sabre_knn_has_no_knob_for_looking() -> None:
    assert repr(SabreKnn()) == "SabreKnn(loss='glm')"
