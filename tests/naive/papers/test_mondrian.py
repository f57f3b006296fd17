"""The twins of Mondrian and Incognito: where they cut, which levels they take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.spec.criteria import (
    Criterion,
    DeltaDisclosure,
    EnhancedLikeness,
    EntropyLDiversity,
    KAnonymity,
    Measured,
    RecursiveLDiversity,
    TCloseness,
)
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.policy import Policy
from shoal.spec.schema import Quasi, Schema, Sensitive
from tests.algorithms.world import groups
from tests.examples import examples
from tests.naive.incognito import NaiveIncognito
from tests.naive.measured import Promises
from tests.naive.measured_twins import FOR_TABLES, twin
from tests.naive.papers.test_emd import RAGGED
from tests.naive.space import Row, Space, covers
from tests.naive.whole_table import NaiveWholeTable

FLAT = Hierarchy.flat([*"abcd"])


def start(
    name: str, domains: Sequence[Domain], *criteria: Criterion, **knobs: Any
) -> NaiveWholeTable:
    quasi = [Quasi(f"q{d}", domain) for d, domain in enumerate(domains)]
    schema = Schema("person", quasi, [Sensitive("s", FLAT)])
    missing = knobs.pop("missing", "quarantine")
    measured = any(isinstance(criterion, Measured) for criterion in criteria)
    policy = Policy(*criteria, missing=missing, window="all" if measured else None)
    return twin(name, schema, policy, **knobs)


def part(name: str, domains: Sequence[Domain], rows: Sequence[Any], *c: Criterion, **k: Any) -> Any:
    """Push (values, sensitive value), each of another subject, and end the table."""
    run = start(name, domains, *c, **k)
    for n, (values, value) in enumerate(rows):
        run.push([math.nan if v is None else float(v) for v in values], f"s{n}", [value])
    return run.flush()


def line(*numbers: float) -> list[Any]:
    return [((number,), 0) for number in numbers]


# -- Mondrian --------------------------------------------------------------------------------------


def test_cuts_at_the_median_until_k_rows_are_left() -> None:
    found = part("mondrian", [Range(0, 100)], line(1, 2, 3, 50, 51, 52, 53), KAnonymity(3))
    # Of seven the fourth is the median, and goes left.
    assert groups(found) == {0: {0, 1, 2, 3}, 1: {4, 5, 6}}
    assert {(d.group, d.lo, d.hi) for d in found} == {(0, (1,), (50,)), (1, (51,), (53,))}


def test_equal_values_stay_together() -> None:
    # The median is the largest value: what lies below it goes left.
    found = part("mondrian", [Range(0, 100)], line(9, 9, 9, 1, 2), KAnonymity(2))
    assert groups(found) == {0: {3, 4}, 1: {0, 1, 2}}
    assert len(groups(part("mondrian", [Range(0, 100)], line(9, 9, 9, 9), KAnonymity(1)))) == 1


def test_the_widest_side_is_cut_first_and_of_equals_the_first() -> None:
    square: list[Domain] = [Range(0, 100), Range(0, 100)]
    rows = [((0, 0), 0), ((0, 60), 0), ((50, 0), 0), ((50, 60), 0)]
    assert groups(part("mondrian", square, rows, KAnonymity(2))) == {0: {0, 2}, 1: {1, 3}}
    rows = [((0, 0), 0), ((0, 50), 0), ((50, 0), 0), ((50, 50), 0)]
    assert groups(part("mondrian", square, rows, KAnonymity(2))) == {0: {0, 1}, 1: {2, 3}}


def test_categories_are_cut_along_their_codes_and_widened_to_a_node() -> None:
    found = part("mondrian", [RAGGED], line(0, 1, 2, 3), KAnonymity(2))
    assert {(d.group, d.lo, d.hi) for d in found} == {(0, (0,), (3,)), (1, (2,), (3,))}


def test_another_attribute_is_tried_where_the_first_cut_breaks_the_promise() -> None:
    square: list[Domain] = [Range(0, 100), Range(0, 100)]
    # Along the first, wider attribute both halves would have one sensitive value only.
    rows = [((0, 0), 0), ((1, 10), 0), ((90, 0), 1), ((91, 10), 1)]
    for criterion in (TCloseness(0.4), EnhancedLikeness(0.5), DeltaDisclosure(0.1)):
        assert groups(part("t-mondrian", square, rows, criterion)) == {0: {0, 2}, 1: {1, 3}}


def test_halves_go_on_being_cut_from_left_to_right() -> None:
    found = part("mondrian", [Range(0, 100)], line(80, 70, 60, 50, 40, 30, 20, 10), KAnonymity(2))
    assert groups(found) == {0: {6, 7}, 1: {4, 5}, 2: {2, 3}, 3: {0, 1}}


def test_what_is_missing_lies_in_the_middle() -> None:
    rows = [((0,), 0), ((10,), 0), ((None,), 0), ((100,), 0)]
    found = part("mondrian", [Range(0, 100)], rows, KAnonymity(2), missing="maybe")
    assert groups(found) == {0: {0, 1}, 1: {2, 3}}


# -- Incognito -------------------------------------------------------------------------------------


def incognito(domains: Sequence[Domain], **knobs: Any) -> NaiveIncognito:
    run = start("t-incognito", domains, KAnonymity(1), **knobs)
    assert isinstance(run.partition, NaiveIncognito)
    return run.partition


def own(space: Space, *values: float | None) -> Row:
    values_ = [math.nan if value is None else value for value in values]
    gaps = frozenset(d for d, value in enumerate(values) if value is None)
    return Row(0, space.row_box(values_), "s", (0,), None, gaps)


def test_levels_of_a_number_halve_its_intervals() -> None:
    twin = incognito([Range(0, 80)])
    row = own(twin.space, 44.0)
    sides = [twin.side(0, twin.cell(0, row, level), level) for level in range(5)]
    assert sides == [(44, 44), (40, 50), (40, 60), (40, 80), (0, 80)]
    # The highest number is in the last interval.
    assert twin.side(0, twin.cell(0, own(twin.space, 80.0), 1), 1) == (70, 80)


def test_levels_are_widened_to_the_step() -> None:
    twin = incognito([Range(17, 90, step=5)])
    for value in (17.0, 22.4, 22.5, 23.0, 53.5, 90.0):
        row = own(twin.space, value)
        for level in range(5):
            side = twin.side(0, twin.cell(0, row, level), level)
            assert side is not None
            own_side = row.box[0]
            assert own_side is not None
            assert side[0] <= own_side[0] <= value <= own_side[1] <= side[1]
            assert side[0] in (17, *range(20, 95, 5))


def test_levels_of_a_category_climb_and_end_at_the_root() -> None:
    twin = incognito([RAGGED])
    assert twin.top(0) == 3
    sides = [
        [twin.side(0, twin.cell(0, own(twin.space, code), level), level) for level in range(4)]
        for code in (0.0, 1.0, 3.0)
    ]
    assert sides == [
        [(0, 0), (0, 3), (0, 3), (0, 3)],
        [(1, 1), (1, 3), (0, 3), (0, 3)],
        [(3, 3), (2, 3), (1, 3), (0, 3)],
    ]


def test_all_rows_have_the_same_levels() -> None:
    # At level 2 the lowest two would do with 0 to 20; all are cut into four.
    found = part("t-incognito", [Range(0, 80)], line(1, 12, 41, 79, 62, 42), KAnonymity(2))
    assert {(d.group, d.lo, d.hi) for d in found} == {
        (0, (0,), (20,)), (1, (40,), (60,)), (2, (60,), (80,)),
    }  # fmt: skip
    assert groups(found) == {0: {0, 1}, 1: {2, 5}, 2: {3, 4}}


def test_of_the_minimal_levels_those_of_least_loss_are_taken() -> None:
    square: list[Domain] = [Range(0, 80), Hierarchy.flat([*"ab"])]
    # Either the number is from 0 to 10, or the letter is any: both are minimal.
    rows = [((1, 0), 0), ((2, 0), 0), ((1, 1), 0), ((2, 1), 0)]
    found = part("t-incognito", square, rows, KAnonymity(2))
    assert {(d.lo, d.hi) for d in found} == {((0, 0), (10, 0)), ((0, 1), (10, 1))}
    # With equal losses the first of the levels in their order counts.
    letters: list[Domain] = [Hierarchy.flat([*"ab"]), Hierarchy.flat([*"ab"])]
    rows = [((0, 0), 0), ((0, 1), 0), ((1, 0), 0), ((1, 1), 0)]
    found = part("t-incognito", letters, rows, KAnonymity(2))
    assert {(d.lo, d.hi) for d in found} == {((0, 0), (0, 1)), ((1, 0), (1, 1))}


def test_levels_is_a_knob() -> None:
    found = part("t-incognito", [Range(0, 80)], line(1, 12, 41, 42), KAnonymity(2), levels=1)
    assert {(d.lo, d.hi) for d in found} == {((0,), (80,))}


def test_what_is_missing_is_a_cell_of_its_own_below_the_top() -> None:
    rows = [((1,), 0), ((2,), 0), ((None,), 0), ((None,), 0)]
    for missing, side in (("maybe", (None, None)), ("extended", (0, 80))):
        found = part("t-incognito", [Range(0, 80)], rows, KAnonymity(2), missing=missing)
        assert groups(found) == {0: {0, 1}, 1: {2, 3}}
        assert [(d.lo, d.hi) for d in found if d.row == 2] == [((side[0],), (side[1],))]
    found = part("t-incognito", [Range(0, 80)], rows[:3], KAnonymity(2), missing="maybe")
    assert {(d.lo, d.hi) for d in found} == {((0,), (80,))}


def test_what_may_break_again_is_looked_at_in_every_node() -> None:
    schema = Schema(None, [Quasi("q", Range(0, 80))], [Sensitive("s", FLAT)])
    for criterion, monotone in (
        (KAnonymity(2), True), (EntropyLDiversity(2), False), (RecursiveLDiversity(2), False),
    ):  # fmt: skip
        promises = Promises.of(schema, Policy(criterion))
        assert promises.is_monotone is monotone
    rows = [((1,), 0), ((2,), 1), ((41,), 0), ((42,), 1)]
    found = part("t-incognito", [Range(0, 80)], rows, EntropyLDiversity(2))
    assert {(d.lo, d.hi) for d in found} == {((0,), (10,)), ((40,), (50,))}


# -- all of them -----------------------------------------------------------------------------------

RIVALS = ["mondrian", "t-mondrian", "l-mondrian", "d-mondrian", "t-incognito"]
CRITERIA = [TCloseness(0.25), EnhancedLikeness(0.8), DeltaDisclosure(0.9)]


@pytest.mark.parametrize("name", RIVALS)
def test_every_group_keeps_the_promise(name: str) -> None:
    assert name in FOR_TABLES

    @settings(max_examples=examples(25), deadline=None, derandomize=True, database=None)
    @given(
        rows=st.lists(
            st.tuples(st.tuples(st.integers(0, 80), st.integers(0, 3)), st.integers(0, 3)),
            min_size=1,
            max_size=20,
        ),
        k=st.integers(1, 3),
        criterion=st.sampled_from(CRITERIA),
    )
    def kept(rows: list[Any], k: int, criterion: Criterion) -> None:
        run = start(name, [Range(0, 80), RAGGED], KAnonymity(k), criterion)
        for n, (values, value) in enumerate(rows):
            run.push([float(v) for v in values], n, [value])
        found = run.flush()
        assert sorted(d.row for d in found) == list(range(len(rows)))
        for members in groups(found).values():
            assert run.promises.hold([run.rows[n] for n in members], run.rows)
        for d in found:
            assert (d.outcome == "group") == run.promises.hold(run.rows, run.rows)
            if d.lo is not None and d.hi is not None:
                box: Any = tuple(zip(d.lo, d.hi, strict=True))
                assert covers(box, run.rows[d.row].box)

    kept()
