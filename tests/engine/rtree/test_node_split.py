"""Boxes cut into halves: Guttman's quadratic split, as the slow one does it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal import Hierarchy, KAnonymity, Policy, Quasi, Range, Schema
from shoal.engine import Space
from shoal.engine.kernels.boxes import Sides, box_loss, join
from shoal.engine.rtree.node_split import halves
from shoal.engine.space import Loss
from shoal.spec.hierarchy import Domain
from tests.examples import examples
from tests.naive import rtree as naive
from tests.naive import space as slow

SETTINGS = settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)
DOMAINS: list[Domain] = [Range(0, 20), Hierarchy.digits(2), Hierarchy.flat([*"abcd"])]
WEIGHTS = [1.0, 2.0, 0.5]
QUASI = [Quasi(f"x{d}", DOMAINS[d], WEIGHTS[d]) for d in range(3)]
GAP = (np.inf, -np.inf)
SIDES: list[st.SearchStrategy[tuple[float, float]]] = [
    st.tuples(st.integers(0, 20), st.integers(0, 3)).map(lambda s: (s[0], min(20, s[0] + s[1]))),
    st.integers(0, 99).map(lambda code: (code, code)),
    st.integers(0, 3).map(lambda code: (code, code)),
]
BOXES = st.lists(st.tuples(*(side | st.just(GAP) for side in SIDES)), min_size=2, max_size=14)


def space(loss: Loss) -> Sides:
    return Space(Schema("p", QUASI), Policy(KAnonymity(2)), loss).sides


def arrays(boxes: list[tuple[tuple[float, float], ...]]) -> tuple[NDArray[np.float64], ...]:
    """Low and high ends, attributes along the first axis."""
    whole = np.array(boxes, float).transpose(1, 2, 0)
    return whole[:, 0].copy(), whole[:, 1].copy()


@SETTINGS
@given(boxes=BOXES, share=st.floats(0, 1), loss=st.sampled_from(["glm", "lm", "uncertainty"]))
def test_as_the_slow_one_cuts_them(
    boxes: list[tuple[tuple[float, float], ...]], share: float, loss: Loss
) -> None:
    least = 1 + int(share * (len(boxes) // 2 - 1))
    half = halves(space(loss), *arrays(boxes), least)
    parts = naive.halves(
        slow.Space(DOMAINS, WEIGHTS, loss),
        [tuple(None if side == GAP else side for side in box) for box in boxes],
        least,
    )
    assert [np.flatnonzero(half == part).tolist() for part in (0, 1)] == [*map(sorted, parts)]
    assert all(len(part) >= least for part in parts)


@SETTINGS
@given(boxes=BOXES)
def test_the_pair_that_wastes_most_is_taken_apart(
    boxes: list[tuple[tuple[float, float], ...]],
) -> None:
    sides, (los, his) = space("glm"), arrays(boxes)

    def lost(*members: int) -> float:
        lo, hi = los[:, members[0]].copy(), his[:, members[0]].copy()
        for i in members:
            join(sides, lo, hi, los[:, i].copy(), his[:, i].copy())
        return box_loss(sides, lo, hi)

    pairs = list(itertools.combinations(range(len(boxes)), 2))
    waste = [lost(i, j) - lost(i) - lost(j) for i, j in pairs]
    # Of several such pairs it is the first; the one that comes first makes the first half.
    first, second = pairs[int(np.argmax(waste))]
    half = halves(sides, los, his, 1)
    assert (half[first], half[second]) == (0, 1)


@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_equal_boxes_are_dealt_out(n: int) -> None:
    half = halves(space("glm"), *arrays([((5, 5), (7, 7), (1, 1))] * n), n // 2)
    assert sorted([np.count_nonzero(half == 0), np.count_nonzero(half == 1)]) == [
        n // 2,
        -(-n // 2),
    ]


def test_a_half_that_needs_all_the_rest_takes_it() -> None:
    line = [((at, at), GAP, GAP) for at in (0.0, 1.0, 2.0, 3.0, 20.0, 4.0)]
    assert halves(space("glm"), *arrays(line), 1).tolist() == [0, 0, 0, 0, 1, 0]
    assert halves(space("glm"), *arrays(line), 3).tolist() == [0, 0, 0, 1, 1, 1]
    assert halves(space("glm"), *arrays(line[::-1]), 3).tolist() == [0, 0, 0, 1, 1, 1]
