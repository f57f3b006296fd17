"""The Hilbert curve: through every cell, step by step, and where rows lie on it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Hierarchy, KAnonymity, Policy, Quasi, Range, Schema
from shoal.engine import Space
from shoal.engine.kernels.hilbert import centres, curve_bits, hilbert, hilbert_index
from tests.examples import examples
from tests.naive import hilbert as naive
from tests.naive.centres import Centres
from tests.naive.space import Row
from tests.naive.space import Space as NaiveSpace

SETTINGS = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)
TREE = Hierarchy.from_dict({"Any": {"A": ["a", "b"], "B": ["c", "d", "e"]}})


def place(cell: tuple[int, ...], bits: int) -> int:
    return int(hilbert_index(np.array(cell, np.int64), bits))


@pytest.mark.parametrize(("n", "bits"), [(1, 6), (2, 1), (2, 2), (2, 4), (3, 1), (3, 3), (4, 2)])
def test_every_cell_has_a_place_and_neighbours_are_one_step_apart(n: int, bits: int) -> None:
    cells = list(itertools.product(range(2**bits), repeat=n))
    places = {cell: place(cell, bits) for cell in cells}
    assert sorted(places.values()) == list(range(len(cells)))
    for one, other in itertools.pairwise(sorted(cells, key=places.__getitem__)):
        assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 1


@SETTINGS
@given(cell=st.lists(st.integers(0, 2**15), min_size=1, max_size=62), bits=st.integers(1, 16))
def test_the_place_of_a_cell_is_that_of_the_twin(cell: list[int], bits: int) -> None:
    bits = min(bits, int(curve_bits(len(cell))))
    inside = tuple(a % 2**bits for a in cell)
    found = place(inside, bits)
    assert found == naive.hilbert(inside, bits)
    assert 0 <= found < 2**62


def test_a_key_has_as_many_bits_as_fit() -> None:
    assert [int(curve_bits(n)) for n in (1, 3, 4, 7, 31, 32, 62, 100)] == [
        16, 16, 15, 8, 2, 1, 1, 1,
    ]  # fmt: skip


def space(weights: tuple[float, float, float] = (2.0, 1.0, 1.0)) -> Space:
    domains = [Range(10, 20), TREE, Hierarchy.flat(["only"])]
    quasi = [Quasi(f"q{d}", domain, weights[d]) for d, domain in enumerate(domains)]
    return Space(Schema(None, quasi), Policy(KAnonymity(2), missing="extended"))


def test_centres_are_weighted_shares_of_a_domain() -> None:
    # A box, a point, and what is empty, which lies in the middle.
    lo = np.array([[12.0, 20.0, np.inf], [0.0, 4.0, np.inf], [0.0, 0.0, np.inf]])
    hi = np.array([[18.0, 20.0, -np.inf], [1.0, 4.0, -np.inf], [0.0, 0.0, -np.inf]])
    # Compiled code doesn't mind infinities that take each other away.
    with np.errstate(invalid="ignore"):
        found = centres(space().sides, lo, hi)
    assert found.tolist() == [[0.25, 0.5, 0.25], [0.03125, 0.25, 0.125], [0.0, 0.0, 0.0]]


@SETTINGS
@given(
    rows=st.lists(st.tuples(st.floats(10, 20), st.integers(0, 4)), min_size=1, max_size=5),
    weights=st.tuples(*[st.sampled_from([1.0, 0.5, 3.0])] * 3),
)
def test_rows_lie_where_the_twin_says(
    rows: list[tuple[float, int]], weights: tuple[float, float, float]
) -> None:
    here = space(weights)
    domains = [Range(10, 20), TREE, Hierarchy.flat(["only"])]
    there = Centres(NaiveSpace(domains, weights, "glm"))
    values = np.array([[x, y, 0.0] for x, y in rows])
    lo, hi = here.points(values)
    middle = centres(here.sides, lo.T.copy(), hi.T.copy())
    for i, key in enumerate(hilbert(here.sides, middle)):
        row = Row(i, tuple((float(a), float(a)) for a in values[i]), i, ())
        assert middle[:, i].tolist() == [there.place(d, row) for d in range(3)]
        assert int(key) == there.hilbert(row)


def test_the_ends_of_all_domains_are_on_the_curve() -> None:
    quasi = [Quasi(f"q{d}", Range(0, 1)) for d in range(70)]
    wide = Space(Schema(None, quasi), Policy(KAnonymity(2)))
    values = np.array([[0.0] * 70, [1.0] * 70])
    middle = centres(wide.sides, values.T.copy(), values.T.copy())
    first, last = hilbert(wide.sides, middle)
    assert first == 0
    assert 0 < last < 2**62
