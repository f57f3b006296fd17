"""The basic method by its engine: Example 6, Corollary 1, and that as much leaves as comes."""

from __future__ import annotations

import math
import random
from typing import Any

import numba
import numpy as np
import pytest

from shoal import Delay
from shoal.algorithms import TreeBasic
from shoal.engine.rtree import queue
from shoal.errors import ParameterError
from tests.algorithms.leaves import (
    chances,
    check_queue,
    check_whole,
    codes,
    engine,
    leaves,
    mature,
    still,
    weight,
)
from tests.algorithms.rows import groups

#: Compiled code plays more and longer streams.
RUNS, ROWS = (3, 500) if numba.config.DISABLE_JIT else (8, 1000)
#: Figure 1: C1 of rows 0 to 2, from 10 to 14; C2 of rows 3 to 5, from 60 to 80.
FIGURE_1 = [(10, 1), (12, 2), (14, 3), (60, 4), (70, 5), (80, 6)]


def hoeffding(n: int, p_wrong: float) -> float:
    """How far the mean of n draws from [0, 1] is from its expectation, but for p_wrong."""
    return math.sqrt(math.log(2 / p_wrong) / (2 * n))


def freedman(n: int, p_wrong: float) -> float:
    """How far the sum of n martingale differences is from 0, but for p_wrong.

    With k = 2 a leaf has at most 3 rows, and at each instant 1 is expected to go: a difference is
    from -1 to 2, and its variance is at most 3 * 1 - 1 = 2. (Freedman 1975, both sides.)
    """
    log = math.log(2 / p_wrong)
    return log * 2 / 3 + math.sqrt((log * 2 / 3) ** 2 + 2 * 2 * n * log)


# -- the paper -------------------------------------------------------------------------------------


def test_example_6_what_loses_less_is_likelier_to_leave() -> None:
    run = still("tree-basic", 3, FIGURE_1)
    assert leaves(run) == [{0, 1, 2}, {3, 4, 5}]
    c1, c2 = chances(run).values()
    assert c1 / c2 == pytest.approx(20 / 4)
    assert 3 * c1 + 3 * c2 == pytest.approx(1)  # Theorem 2


def still_there() -> Any:
    """An engine that flips coins, and by chance has published nothing of Figure 1."""
    for seed in range(100):
        run = engine("tree-basic", 3, seed=bytes([seed]))
        run.push(codes(FIGURE_1))
        if run.n_held == 6:
            return run
    raise AssertionError("no seed is like that")


@pytest.mark.parametrize("d", [1, 4])
def test_corollary_1_delay(d: int) -> None:
    """The same row comes over and over: how often does a leaf outlast d of these instants?"""
    n = 900
    run = still_there()
    before, random_state = run.snapshot(), run.state.rng.copy()
    gone: list[set[int]] = []
    expected: dict[frozenset[int], float] = {}
    for _ in range(n):
        run.restore(before)
        run.state.rng[:] = random_state
        decided = run.push(codes([(11, 7)]))
        random_state = run.state.rng.copy()
        gone += groups(decided) or [set()]
        if len(decided.rows) == 0:
            expected = {
                frozenset(rows): p
                for rows, p in zip(leaves(run), chances(run).values(), strict=True)
            }
    assert expected.keys() == {frozenset({0, 1, 2, 6}), frozenset({3, 4, 5})}
    for rows, chance in expected.items():
        blocks = [gone[i : i + d] for i in range(0, n - d + 1, d)]
        survived = sum(all(each != rows for each in block) for block in blocks)
        # By Hoeffding, a right engine fails with probability 1e-6 at most for each leaf.
        off = abs(survived / len(blocks) - (1 - chance) ** d)
        assert off < hoeffding(len(blocks), 1e-6)
    # The bound isn't so wide that anything would pass.
    assert hoeffding(n, 1e-6) < max(expected.values()) < 1 / 3


def test_theorem_2_whatever_the_leaves_are_one_row_is_expected_to_leave() -> None:
    run, draw = engine("tree-basic", 3, n_quasi=2), random.Random(3)
    n_instants = 0
    for n in range(150):
        run.push(codes([([draw.randrange(101), draw.randrange(101)], n)]))
        check_queue(run)
        weights = {leaf: weight(run, leaf) for leaf in mature(run)}
        rows = run.state.tree.leaves["n_rows"]
        assert queue.weight(run.state.queue) == pytest.approx(sum(weights.values()))
        assert queue.rows(run.state.queue) == pytest.approx(
            sum(rows[leaf] * found for leaf, found in weights.items())
        )
        n_instants += bool(weights)
    assert n_instants > 80


def drift(name: str, **knobs: Any) -> tuple[int, int]:
    """Over some streams: how many more rows went than came, and at how many instants.

    Only instants at which a leaf can be published count; before that, nothing can go.
    """
    surplus = n_instants = 0
    for seed in range(RUNS):
        draw = np.random.default_rng(seed)
        run = engine(name, 2, n_quasi=2, seed=bytes([seed]), **knobs)
        for n, at in enumerate(draw.normal(50, 15, (ROWS, 2)) % 100):
            gone = len(run.push(codes([(at, n)])).rows)
            if gone or mature(run):
                surplus += gone - 1
                n_instants += 1
    return surplus, n_instants


@pytest.mark.parametrize(
    ("name", "knobs"),
    [("tree-basic", {}), ("tree-density", {"samples": 4, "sampled": 100, "alpha": 0.02})],
)
def test_theorems_2_and_4_no_drift(name: str, knobs: dict[str, Any]) -> None:
    """A right engine fails with probability 1e-4 at most; one whose coins are stale does fail."""
    surplus, n_instants = drift(name, **knobs)
    assert n_instants > 0.8 * RUNS * ROWS
    assert abs(surplus) < freedman(n_instants, 1e-4)


def test_where_instants_last_leaves_go_at_the_rate_at_which_rows_come() -> None:
    """The time to the next leaf is exponential: as its rate says, and drawn again at each row."""
    n = 400
    run = still("tree-basic", 3, FIGURE_1)
    before, random_state = run.snapshot(), run.state.rng.copy()
    waits = []
    for _ in range(n):
        run.restore(before)
        run.state.rng[:] = random_state
        run.push(codes([(11, 7)], [12.0]))
        random_state = run.state.rng.copy()
        waits.append(run.state.marks["due"][0] - 12.0)
    gap = run.state.marks["gap"][0]
    assert gap == 2.0
    often = sum(chances(run).values()) / gap
    # Of 400 such draws the mean is within a quarter, but for once in a million: Chernoff's bound is
    # exp(-n (t - 1 - log t)) above at t = 1.25, and below at t = 0.75.
    assert 0.75 < np.mean(waits) * often < 1.25
    assert n * (1.25 - 1 - math.log(1.25)) > math.log(2e4)
    # Not all at once and not on a grid: the median of such draws is log 2.
    assert abs(np.mean(np.array(waits) * often < math.log(2)) - 0.5) < hoeffding(n, 1e-5)


# -- due times that are drawn once -----------------------------------------------------------------


def test_drawn_due_times_stay_while_a_leaf_grows() -> None:
    """A leaf of three leaves at the instant that was drawn when it had three, with all it has."""
    left_at: list[int] = []
    for seed in range(60):
        run = engine("tree-basic", 3, due="drawn", seed=bytes([seed]))
        for n, at in enumerate((10, 20, 30)):
            run.push(codes([(at, n)]))
        if run.n_held < 3:
            left_at.append(2)
            continue
        due = queue.earliest(run.state.queue)
        assert due > 2
        for n, at in ((3, 90), (4, 5)):
            decided = run.push(codes([(at, n)]))
            if due == n:
                # The box has grown, and the chance with it is less; still it is due.
                assert groups(decided) == [set(range(n + 1))]
                left_at.append(n)
                break
            assert len(decided.rows) == 0
            assert queue.earliest(run.state.queue) == due
    # Alone, a leaf of three is due with one third at each instant.
    assert {2, 3, 4} == set(left_at)
    assert abs(left_at.count(2) / 60 - 1 / 3) < hoeffding(60, 1e-6)


def test_drawn_a_leaf_that_is_cut_gets_two_due_times() -> None:
    for seed in range(60):
        run = engine("tree-basic", 3, due="drawn", seed=bytes([seed]))
        run.push(codes(FIGURE_1))
        if run.n_held == 6:
            break
    assert leaves(run) == [{3, 4, 5}, {0, 1, 2}] or leaves(run) == [{0, 1, 2}, {3, 4, 5}]
    dues = [queue.due_of(run.state.queue, leaf) for leaf in mature(run)]
    assert all(5 < due < math.inf for due in dues)
    check_whole(run)


def test_drawn_keeps_the_active_set_small() -> None:
    """Leaves grow after their coins were flipped: more goes than comes, and few rows are held."""
    held = {}
    for due in ("current", "drawn"):
        counts = []
        for seed in range(RUNS):
            run = engine("tree-basic", 2, n_quasi=2, seed=bytes([seed]), due=due)
            draw = np.random.default_rng(seed)
            for n, at in enumerate(draw.normal(50, 15, (ROWS, 2)) % 100):
                run.push(codes([(at, n)]))
                counts.append(run.n_held)
        held[due] = np.mean(counts)
    assert held["drawn"] < 0.7 * held["current"]


def test_drawn_due_times_are_gone_with_their_leaves() -> None:
    run = engine("tree-full", 3, due="drawn", delay=Delay(rows=12), n_quasi=2)
    draw = random.Random(5)
    for n in range(200):
        run.push(codes([([draw.randrange(101), draw.randrange(101)], n % 23)]))
        check_whole(run)
        dues = run.state.queue.due[run.state.queue.width[0] :][: run.state.queue.width[0]]
        assert set(np.flatnonzero(dues < np.inf)) == set(mature(run))
        assert (dues > n).all()
    run.flush()
    assert queue.earliest(run.state.queue) == math.inf


# -- knobs and traps -------------------------------------------------------------------------------


@pytest.mark.parametrize("knob", ["alpha", "samples", "sampled"])
def test_what_is_about_density_is_no_knob_of_it(knob: str) -> None:
    with pytest.raises(TypeError, match=knob):
        TreeBasic(**{knob: 1})


def test_the_repr_has_the_knobs() -> None:
    assert (
        repr(TreeBasic(capacity=9))
        == "TreeBasic(loss='glm', capacity=9, instant=0.0, due='current')"
    )
    with pytest.raises(ParameterError, match=r"TreeBasic\.instant"):
        TreeBasic(instant=-0.5)
    with pytest.raises(ParameterError, match=r"TreeBasic\.due: must be one of current, drawn"):
        TreeBasic(due="never")  # type: ignore[arg-type]


def test_a_leaf_of_zero_loss_leaves_before_all_others() -> None:
    run = still("tree-basic", 2, [(10, 1), (10, 2), (60, 3), (61, 4)])
    assert leaves(run) == [{0, 1}, {2, 3}]
    alike, other = chances(run).values()
    assert alike == pytest.approx(1 / 2)
    assert other / alike == pytest.approx(1e-9 / 0.01)
    check_whole(run)


def test_no_samples_are_kept() -> None:
    run = engine("tree-basic", 2)
    run.push(codes([(at, at) for at in range(20)]))
    assert len(run.state.chains.positions) == 0
    assert len(run.state.coverage.n_samples) == 0
