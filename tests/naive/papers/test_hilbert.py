"""The twin's Hilbert curve: it goes through every cell, step by step."""

from __future__ import annotations

import itertools

import pytest

from shoal.spec.hierarchy import Hierarchy, Range
from tests.naive.centres import MOST_BITS, Centres
from tests.naive.hilbert import hilbert
from tests.naive.space import Row, Space


@pytest.mark.parametrize(
    ("n", "bits"), [(1, 4), (2, 1), (2, 2), (2, 4), (3, 1), (3, 3), (4, 2), (5, 2)]
)
def test_every_cell_has_a_place_and_neighbours_are_one_step_apart(n: int, bits: int) -> None:
    cells = list(itertools.product(range(2**bits), repeat=n))
    place = {cell: hilbert(cell, bits) for cell in cells}
    assert sorted(place.values()) == list(range(len(cells)))
    curve = sorted(cells, key=lambda cell: place[cell])
    for one, other in itertools.pairwise(curve):
        assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 1


def test_a_coarser_curve_goes_through_the_same_cells() -> None:
    # The first digits of a place are those of the larger cell around: what makes it a fractal.
    for start in itertools.product(range(4), repeat=3):
        fine = {
            hilbert([4 * a + b for a, b in zip(start, within, strict=True)], 4) >> 6
            for within in itertools.product(range(4), repeat=3)
        }
        assert len(fine) == 1


def test_the_first_square() -> None:
    assert [hilbert(cell, 1) for cell in ((0, 0), (0, 1), (1, 1), (1, 0))] == [0, 1, 2, 3]


def row(*sides: tuple[float, float] | None) -> Row:
    return Row(0, tuple(sides), "s", ())


def test_points_are_weighted_shares_of_their_domain() -> None:
    space = Space(
        [Range(10, 20), Hierarchy.flat([*"abc"]), Hierarchy.flat([*"a"])], [2, 1, 1], "glm"
    )
    centres = Centres(space)
    there = row((12.0, 18.0), (2.0, 2.0), (0.0, 0.0))
    assert [centres.place(d, there) for d in range(3)] == [0.25, 0.25, 0.0]
    # What is missing is in the middle.
    missing = row(None, None, None)
    assert [centres.place(d, missing) for d in range(3)] == [0.25, 0.125, 0.0]
    assert centres.distance(there, missing) == 0.125**2


def test_the_curve_has_as_many_bits_as_fit() -> None:
    assert Centres(Space([Range(0, 1)], [1], "glm")).bits == MOST_BITS
    assert Centres(Space([Range(0, 1)] * 7, [1] * 7, "glm")).bits == 8
    one = Centres(Space([Range(0, 1)], [1], "glm"))
    assert [one.hilbert(row((x, x))) for x in (0.0, 0.5, 1.0)] == [0, 2**15, 2**16 - 1]
