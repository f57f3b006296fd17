"""Levels for all rows: by hand, and as the twin of Incognito chooses them."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.kernels import lattice
from shoal.engine.kernels.lattice import check_lattice, lattice_parts
from shoal.errors import UnsupportedError
from shoal.spec.criteria import DistinctLDiversity, EntropyLDiversity, KAnonymity, TCloseness
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from tests.engine.kernels.tables import RAGGED, Table, shown, shown_slowly, tables, that_leave
from tests.examples import examples
from tests.naive.incognito import NaiveIncognito

EXAMPLES = examples(20 if numba.config.DISABLE_JIT else 300)
FLAT = Hierarchy.flat([*"ab"])


def parts(table: Table, levels: int = 4) -> list[Any]:
    return shown(lattice_parts(*table.arrays(), levels))


def line(domain: Domain, *numbers: float, k: int, **options: Any) -> Table:
    """Numbers of different people."""
    rows = [((x,), n, 0, 1.0) for n, x in enumerate(numbers)]
    return Table([domain], [KAnonymity(k)], rows, **options)


def test_exact_values_where_that_is_enough() -> None:
    assert parts(line(Range(0, 80), 5, 44, 5, 44, k=2)) == [
        ([0, 2], [(5, 5)]), ([1, 3], [(44, 44)]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "sides"),
    [
        ((41, 44, 3, 9), {(40, 50), (0, 10)}),
        ((41, 55, 3, 9), {(40, 60), (0, 20)}),
        ((41, 75, 3, 9), {(40, 80), (0, 40)}),
        ((41, 3), {(0, 80)}),
        # The highest number belongs to the last interval, an inner edge to the upper one.
        ((80, 71, 70, 75), {(70, 80)}),
    ],
)
def test_each_level_halves_the_detail(numbers: tuple[float, ...], sides: set[Any]) -> None:
    assert {box[0] for _, box in parts(line(Range(0, 80), *numbers, k=2))} == sides


def test_all_rows_have_the_same_levels_and_parts_come_by_their_first_row() -> None:
    # The lowest two alone could do with less, and nobody shares a part with the others.
    assert parts(line(Range(0, 80), 1, 41, 2, 79, 62, 42, k=2)) == [
        ([0, 2], [(0, 20)]), ([1, 5], [(40, 60)]), ([3, 4], [(60, 80)]),
    ]  # fmt: skip


def test_cells_are_widened_to_the_step() -> None:
    table = line(Range(0, 80, step=15), 41, 44, 3, 9, k=2)
    assert [box for _, box in parts(table)] == [[(30, 45)], [(0, 15)]]
    wide = line(Range(0, 80, step=15), 22, 38, 3, 9, k=2)
    # 20 to 40 and 0 to 20, as level 2 has them, become 15 to 45 and 0 to 30.
    assert [box for _, box in parts(wide)] == [[(15, 45)], [(0, 30)]]


def test_a_number_just_below_an_edge_is_below_it() -> None:
    # Its distance to the lower end of the range is rounded to that of the edge.
    table = line(Range(-8, 8), -1e-20, -2, 0, 1, k=2)
    assert parts(table, levels=2) == [([0, 1], [(-8, 0)]), ([2, 3], [(0, 8)])]


def test_minus_zero_is_zero() -> None:
    assert parts(line(Range(-8, 8), 0.0, -0.0, k=2)) == [([0, 1], [(0, 0)])]


def test_categories_climb_and_short_branches_wait_at_the_root() -> None:
    assert [box for _, box in parts(line(RAGGED, 2, 3, 2, 3, 0, 0, k=2))] == [
        [(2, 2)], [(3, 3)], [(0, 0)],
    ]  # fmt: skip
    # Three levels up the longest branch is below the root, and the two others are there.
    assert [box for _, box in parts(line(RAGGED, 2, 3, 2, 0, 0, k=2))] == [[(1, 3)], [(0, 3)]]


def test_what_is_missing_is_a_cell_of_its_own_below_the_top() -> None:
    gap = np.nan
    table = line(Range(0, 80), 1, 2, gap, gap, k=2, missing="extended")
    assert parts(table) == [([0, 1], [(0, 10)]), ([2, 3], [(0, 80)])]
    alone = line(Range(0, 80), 1, 2, gap, k=2, missing="extended")
    assert parts(alone) == [([0, 1, 2], [(0, 80)])]


def test_of_the_lowest_levels_those_that_lose_least_are_taken() -> None:
    places = [(1, 0), (2, 0), (1, 1), (2, 1)]
    rows = [((float(x), float(y)), n, 0, 1.0) for n, (x, y) in enumerate(places)]
    # Either the number is from 0 to 10, or the letter is any.
    found = parts(Table([Range(0, 80), FLAT], [KAnonymity(2)], rows))
    assert [box for _, box in found] == [[(0, 10), (0, 0)], [(0, 10), (1, 1)]]
    found = parts(Table([Range(0, 80), FLAT], [KAnonymity(2)], rows, weights=[100.0, 1.0]))
    assert [box for _, box in found] == [[(1, 1), (0, 1)], [(2, 2), (0, 1)]]


def test_of_equal_losses_the_first_levels_are_taken() -> None:
    places = [(0, 0), (0, 1), (1, 0), (1, 1)]
    rows = [((float(x), float(y)), n, 0, 1.0) for n, (x, y) in enumerate(places)]
    found = parts(Table([FLAT, FLAT], [KAnonymity(2)], rows))
    assert [box for _, box in found] == [[(0, 0), (0, 1)], [(1, 1), (0, 1)]]


def test_closeness_needs_coarser_levels_than_people_do() -> None:
    rows = [
        ((float(x),), n, ill, 1.0) for n, (x, ill) in enumerate([(1, 0), (2, 0), (41, 1), (42, 1)])
    ]
    assert len(parts(Table([Range(0, 80)], [KAnonymity(2)], rows))) == 2
    assert len(parts(Table([Range(0, 80)], [TCloseness(0.2, attribute="ill")], rows))) == 1


def test_rows_that_may_not_leave_are_one_part() -> None:
    assert parts(line(Range(0, 80), 1, 2, 41, k=4)) == [([0, 1, 2], [(0, 80)])]


def test_groups_are_distinguished_for_any_number_of_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not numba.config.DISABLE_JIT:
        pytest.skip("compiled code doesn't look at the module again")
    draw = np.random.default_rng(1)
    values = draw.integers(0, 4, (40, 3)).astype(float)
    rows = [(tuple(row), n, 0, 1.0) for n, row in enumerate(values.tolist())]
    table = Table([Hierarchy.flat([*"abcd"])] * 3, [KAnonymity(1)], rows)
    plain = parts(table)
    assert len(plain) == len({row[0] for row in rows})
    monkeypatch.setattr(lattice, "LARGEST", 16)
    assert parts(table) == plain


def test_a_lattice_that_is_too_large_is_refused() -> None:
    sides = Table([Range(0, 1)] * 8, [KAnonymity(2)], []).space.sides
    check_lattice("x", sides, 4)
    with pytest.raises(UnsupportedError, match=r"'x' .* 8 quasi attributes; there are 1,679,616"):
        check_lattice("x", sides, 5)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(tables(), st.sampled_from([4, 1, 2]))
def test_equals_its_twin(table: Table, levels: int) -> None:
    twin = NaiveIncognito(table.slow, table.promises, levels=levels)
    arrays = table.arrays()
    found = that_leave(*arrays, lattice_parts(table.space.shown, *arrays[1:], levels))
    assert found == shown_slowly(twin(*table.naively()))


def test_what_can_break_again_is_looked_at_in_every_node() -> None:
    """Two people, whose values are even apart and not together: only the lowest levels do."""
    people = [(0, 0), (0, 1), (1, 0), (1, 1)] * 2
    rows = [
        ((float(at),), person, ill, 1.0)
        for at, people_here in ((1, people[:4]), (41, people[4:]))
        for person, ill in people_here
    ]
    found = parts(
        Table([Range(0, 80)], [EntropyLDiversity(2, "ill"), DistinctLDiversity(2, "ill")], rows)
    )
    assert [box for _, box in found] == [[(1, 1)], [(41, 41)]]
