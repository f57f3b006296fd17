"""The publishing queue: a draw by weights is what a plain sum over all leaves makes of it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.rtree import queue
from shoal.engine.rtree.queue import Queue
from tests.examples import examples

SETTINGS = settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)
N_LEAVES = 12
LEAVES = st.integers(0, N_LEAVES - 1)
ROWS = st.integers(1, 40)
#: Sums of these are exact.
WHOLE = st.lists(st.tuples(LEAVES, st.integers(0, 9), ROWS), max_size=40)
#: The heaviest is 10**80 times as heavy as the lightest.
WILD = st.lists(
    st.tuples(LEAVES, st.just(0.0) | st.integers(-40, 40).map(lambda e: 10.0**e), ROWS),
    min_size=1,
    max_size=40,
)


def filled(puts: list[tuple[int, float, int]], *, grow_at: int | None = None) -> Queue:
    """A queue into which leaves were put, with more room from some moment on."""
    found = queue.empty(N_LEAVES)
    for i, (leaf, weight, n_rows) in enumerate(puts):
        if i == grow_at:
            found = queue.grown(found, 70)
        queue.put(found, leaf, float(weight), n_rows)
    return found


def latest(puts: list[tuple[int, float, int]]) -> dict[int, tuple[float, int]]:
    """The weight and the rows of each leaf in the end, by number."""
    last = {leaf: (float(weight), n_rows) for leaf, weight, n_rows in puts}
    return {leaf: last[leaf] for leaf in sorted(last) if last[leaf][0] > 0}


@SETTINGS
@given(puts=WHOLE, grow_at=st.none() | st.integers(0, 10))
def test_the_leaf_is_the_first_at_which_the_sum_is_more(
    puts: list[tuple[int, float, int]], grow_at: int | None
) -> None:
    found, known = filled(puts, grow_at=grow_at), latest(puts)
    assert queue.weight(found) == sum(weight for weight, _ in known.values())
    assert queue.rows(found) == sum(weight * n_rows for weight, n_rows in known.values())
    sums = dict(zip(known, accumulate(weight for weight, _ in known.values()), strict=True))
    for upto in np.arange(0.0, queue.weight(found), 0.5):
        assert queue.pick(found, upto) == next(leaf for leaf, total in sums.items() if total > upto)


@SETTINGS
@given(puts=WILD, share=st.floats(0, 1, exclude_max=True))
def test_weights_of_any_height(puts: list[tuple[int, float, int]], share: float) -> None:
    found, known = filled(puts), latest(puts)
    if not known:
        assert queue.weight(found) == queue.rows(found) == 0.0
        return
    exact = sum(Fraction(weight) for weight, _ in known.values())
    assert queue.weight(found) == pytest.approx(float(exact), rel=1e-14)
    upto = share * queue.weight(found)
    picked = queue.pick(found, upto)
    before = sum(Fraction(weight) for leaf, (weight, _) in known.items() if leaf < picked)
    rounding = exact * Fraction(1, 10**14)
    assert picked in known
    assert before - rounding <= Fraction(upto) < before + Fraction(known[picked][0]) + rounding


@SETTINGS
@given(puts=WILD)
def test_a_heavy_leaf_that_has_gone_leaves_no_trace(puts: list[tuple[int, float, int]]) -> None:
    found = filled([*puts, (3, 1e40, 7), (3, 0.0, 0)])
    fresh = filled([*puts, (3, 0.0, 0)])
    for one, other in zip(found, fresh, strict=True):
        np.testing.assert_array_equal(one, other)


@SETTINGS
@given(puts=WILD, leaves=st.sampled_from([N_LEAVES, 17, 64, 300]))
def test_growing_keeps_the_weights(puts: list[tuple[int, float, int]], leaves: int) -> None:
    grown, fresh = queue.grown(filled(puts), leaves), queue.empty(leaves)
    assert len(grown.flags) == len(fresh.flags)
    for found in (grown, fresh):
        # A leaf beyond those that were there makes the trees wider.
        queue.put(found, leaves - 1, 0.5, 2)
    for leaf, (weight, n_rows) in latest(puts).items():
        queue.put(fresh, leaf, weight, n_rows)
        queue.put(grown, leaf, weight, n_rows)
    assert grown.width[0] == fresh.width[0] >= leaves
    for one, other in zip(grown, fresh, strict=True):
        np.testing.assert_array_equal(one, other)


#: Due times of leaves; infinity takes one away.
TIMES = st.lists(
    st.tuples(LEAVES, st.sampled_from([3.0, 5.0, 5.5, 8.0, math.inf])), min_size=1, max_size=40
)


@SETTINGS
@given(puts=TIMES)
def test_the_first_leaf_that_is_due(puts: list[tuple[int, float]]) -> None:
    found = queue.empty(N_LEAVES)
    last: dict[int, float] = {}
    for leaf, time in puts:
        queue.widen(found, leaf)
        queue.put_due(found, leaf, time)
        last[leaf] = time
        assert queue.earliest(found) == min(last.values())
        if min(last.values()) < math.inf:
            assert queue.first_due(found) == min(last, key=lambda leaf: (last[leaf], leaf))
    assert [queue.due_of(found, leaf) for leaf in last] == list(last.values())


@SETTINGS
@given(puts=WILD)
def test_sums_over_many_are_the_same_as_one_by_one(puts: list[tuple[int, float, int]]) -> None:
    found, at_once = filled(puts), queue.empty(N_LEAVES)
    queue.widen(at_once, max(leaf for leaf, _, _ in puts))
    for leaf, weight, n_rows in puts:
        queue.set_leaf(at_once, leaf, float(weight), n_rows)
    queue.sum_over(at_once, np.array(sorted({leaf for leaf, _, _ in puts})))
    for one, other in zip(found, at_once, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rounding_does_not_lead_to_a_leaf_that_weighs_nothing() -> None:
    found = filled([(0, 0.1, 1), (1, 0.2, 1), (2, 0.3, 1), (5, 0.0, 1)])
    # Beyond the sum there is nothing; still it is the last leaf that weighs something.
    assert queue.pick(found, queue.weight(found)) == 2
    assert queue.pick(found, 1e9) == 2


@pytest.mark.parametrize("leaves", [0, 1, 2, 3])
def test_room_for_few_leaves(leaves: int) -> None:
    found = queue.empty(leaves)
    for leaf in range(max(1, leaves)):
        queue.put(found, leaf, 2.0, 3)
    assert [queue.pick(found, 2.0 * leaf + 1) for leaf in range(leaves)] == list(range(leaves))
    assert queue.rows(found) == 6.0 * max(1, leaves)
