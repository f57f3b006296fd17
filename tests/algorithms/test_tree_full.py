"""The full method by its engine: Example 7, who is held back, and for how long."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from shoal import Delay, DistinctLDiversity
from shoal.algorithms import TreeFull
from shoal.testing.streams import joined
from tests.algorithms.leaves import (
    alive,
    check_whole,
    codes,
    engine,
    leaves,
    publish,
    put_samples,
    still,
)
from tests.algorithms.rows import groups, outcomes, sides

TWO = DistinctLDiversity(2)


def of(run: Any, position: int) -> int:
    """The leaf of a row."""
    return alive(run)[[position in rows for rows in leaves(run)].index(True)]


def held_back(run: Any, now: float) -> set[int]:
    """Which rows stay when the leaf of the first one is published."""
    publish(run, of(run, 0), now)
    check_whole(run)
    return {row for rows in leaves(run) for row in rows}


# -- the paper -------------------------------------------------------------------------------------


def test_example_7_holding() -> None:
    run = still("tree-full", 3, [(0, 1), (10, 2), (20, 3), (41, 4)], samples=6, sampled=6)
    put_samples(run, 41.0, 40.5, 40.0, 20.0, 0.0, 99.0)
    decided = publish(run, 0, 3.0)
    assert groups(decided) == [{0, 1, 2}]
    assert sides(decided, 0) == [(0.0, 20.0)]  # without the last, which has samples beside it
    assert leaves(run) == [{3}]
    check_whole(run)


def test_no_more_rows_are_held_than_k_can_spare() -> None:
    rows = [(0, 1), (40, 2), (40, 3), (39, 4), (40, 5)]
    run = still("tree-full", 3, rows, samples=4, sampled=4)
    put_samples(run, *[40.0] * 4)
    # Rows 1, 2 and 4 could find two neighbours in one place; the youngest two are held.
    assert held_back(run, 4.0) == {2, 4}
    # Without a loss to come there is no end to it but the bound of the policy.
    assert run.state.until[[2, 4]].tolist() == [np.inf, np.inf]


def test_a_row_that_gains_nothing_is_not_held() -> None:
    for alpha, expected in ((0.9, {2}), (1.0, set())):
        run = still("tree-full", 2, [(0, 1), (10, 2), (20, 3)], samples=2, sampled=2, alpha=alpha)
        put_samples(run, 0.0, 10.0, positions=[0, 1])
        # Row 2 would lose 0.1 with its nearest sample, after one instant 0.1 * (1 + alpha) of 0.2.
        assert held_back(run, 2.0) == expected


def test_who_has_too_few_samples_is_not_held() -> None:
    rows = [(0, 1), (10, 2), (20, 3), (41, 4)]
    run = still("tree-full", 3, rows, samples=6, sampled=6)
    put_samples(run, 41.0, *[99.0] * 5)  # two would be needed
    assert held_back(run, 3.0) == set()


def test_how_many_samples_stand_for_the_others() -> None:
    """A sample stands for sampled / samples rows, and k - 1 others are wanted."""
    for k, samples, sampled, expected in [
        (3, 6, 6, 2), (10, 3000, 10_000, 3), (2, 1, 1000, 1), (1, 50, 100, 1), (101, 30, 1000, 3),
    ]:  # fmt: skip
        rules = engine("tree-full", k, samples=samples, sampled=sampled)._rules
        assert rules.neighbours == expected
    assert engine("tree-density", 3)._rules.neighbours == 0


def test_a_row_is_no_neighbour_of_itself() -> None:
    for positions, expected in (([-1, -1], {2}), ([2, -1], set())):
        run = still("tree-full", 2, [(0, 1), (0, 2), (40, 3)], samples=2, sampled=2)
        put_samples(run, 40.0, 90.0, positions=positions)
        assert held_back(run, 2.0) == expected


def test_a_row_that_the_others_need_is_not_held() -> None:
    rows = [(0, 1, 0), (10, 2, 0), (40, 3, 1)]
    run = still("tree-full", 2, rows, TWO, samples=2, sampled=2)
    put_samples(run, 40.0, 40.0)
    assert held_back(run, 2.0) == set()  # the other value is that of row 2
    rows[1] = (10, 2, 1)
    run = still("tree-full", 2, rows, TWO, samples=2, sampled=2)
    put_samples(run, 40.0, 40.0)
    assert held_back(run, 2.0) == {2}


def test_rows_that_are_held_join_other_leaves() -> None:
    rows = [(0, 1), (10, 2), (41, 3), (90, 4), (91, 5)]
    run = still("tree-full", 2, rows, samples=4, sampled=4)
    assert leaves(run) == [{0, 1}, {2, 3, 4}]
    put_samples(run, *[41.0] * 4)
    assert groups(publish(run, of(run, 2), 4.0)) == [{3, 4}]
    assert leaves(run) == [{0, 1, 2}]
    check_whole(run)


# -- for how long ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_no_row_is_held_for_ever(alpha: float) -> None:
    """Row 0 could hope for less each time, and its leaf is published over and over."""
    run = still("tree-full", 2, [(50, 0)], samples=1, sampled=1, alpha=alpha)
    n = 1
    while run.n_held and n < 60:
        run.push(codes([(0, n), (10, n + 1)]))
        n += 2
        put_samples(run, 49.0)
        publish(run, of(run, 0), n - 1.0)
        check_whole(run)
        if 0 not in {row for rows in leaves(run) for row in rows}:
            break
        # It was held first at instant 2, when the leaf lost 0.5 and it could hope for 0.01.
        deadline = 2 + math.log(0.5 / 0.01) / math.log1p(alpha)
        assert run.state.until[0] == pytest.approx(deadline)
    assert deadline <= n - 1 < deadline + 2


def test_a_row_in_no_hurry_waits_for_its_hard_bound() -> None:
    options = {"samples": 1, "sampled": 1, "alpha": 0.0, "delay": Delay(rows=9)}
    run = still("tree-full", 2, [(50, 0)], **options)
    for n in range(1, 9, 2):
        run.push(codes([(0, n), (10, n + 1)]))
        put_samples(run, 50.0)
        publish(run, of(run, 0), float(n + 1))
        assert leaves(run) == [{0}]
        assert run.state.until[0] == np.inf
    assert outcomes(run.push(codes([(60, 20)]))) == {0: "group", 9: "group"}


def test_a_place_in_the_ring_says_nothing_of_who_had_it_before() -> None:
    """A row that comes has never been held, though another one was at the same place."""
    run = still("tree-full", 2, [(50, 0)], samples=1, sampled=1, delay=Delay(rows=20))
    run.state.until[:] = 5.0
    run.push(codes([(51, 0)]))
    assert run.state.until[1] == np.inf
    assert run.state.until[0] == 5.0


def test_where_instants_last_a_deadline_is_one_of_seconds() -> None:
    """A row is held first at second 20, which is instant 4."""
    run = still("tree-full", 2, [(0, 1), (0, 2), (40, 3)], samples=1, sampled=1, instant=5.0)
    put_samples(run, 39.0)
    run.state.marks["gap"][0], run.state.marks["due"][0] = 1.0, 20.0
    decided = run.advance(20.0)
    assert groups(decided)[0] == {0, 1}
    assert run.state.until[2] == pytest.approx(4 + math.log(0.4 / 0.01) / math.log(1.001))


# -- streams ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.001, 0.1])
def test_on_a_stream_rows_are_held_and_all_is_whole(alpha: float) -> None:
    """In a dense place and in a sparse one, as long as the policy lets them wait."""
    draw = np.random.default_rng(5)
    at = np.where(draw.random(200) < 0.8, draw.normal(20, 2, 200), draw.uniform(40, 100, 200))
    run = engine("tree-full", 3, samples=20, sampled=40, alpha=alpha, delay=Delay(rows=60))
    decided, once_held = [], set()
    for n in range(200):
        decided.append(run.push(codes([(at[n], n)])))
        check_whole(run)
        waiting = [row for rows in leaves(run) for row in rows]
        once_held |= {row for row in waiting if run.state.until[row & 255] < np.inf}
    decided.append(run.flush())
    whole = joined(decided)
    assert sorted(whole.rows.tolist()) == list(range(200))
    assert (whole.published - whole.rows <= 60).all()
    assert len(once_held) > 5
    # Mostly where rows are dense.
    assert np.mean(at[list(once_held)] < 30) > 0.5


def test_the_repr_has_the_knobs() -> None:
    assert repr(TreeFull(alpha=0.5)) == (
        "TreeFull(loss='glm', capacity=0, instant=0.0, due='current', alpha=0.5, samples=3000, "
        "sampled=10000)"
    )


def test_drawn_the_full_method_needs_no_bound() -> None:
    """Who is held back isn't in the balance; but leaves grow, which leads the active set back."""
    n_held = {}
    for due in ("current", "drawn"):
        halves = []
        for seed in range(3):
            run = engine(
                "tree-full", 3, n_quasi=2, seed=bytes([seed]), due=due, samples=40, sampled=100
            )
            draw, counts = np.random.default_rng(seed), []
            for n, at in enumerate(draw.normal(50, 15, (500, 2)) % 100):
                run.push(codes([(at, n)]))
                counts.append(run.n_held)
            halves.append([np.mean(counts[:250]), np.mean(counts[250:])])
        n_held[due] = np.mean(halves, axis=0)
    first, second = n_held["current"]
    assert second > 1.5 * first  # and so on, until a bound stops it
    assert n_held["drawn"][1] < 0.4 * second
    assert n_held["drawn"][1] < 8 * 3
