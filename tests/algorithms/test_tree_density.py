"""The density-aware method by its engine: Example 6, samples, and leaves that have hardly any."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import pytest

from shoal import Delay, DistinctLDiversity
from shoal.algorithms import TreeDensity, TreeFull
from shoal.engine.rtree.queue import RECOUNT
from shoal.engine.rtree.weights import refresh
from shoal.errors import JobError, ParameterError
from shoal.job import Job
from tests.algorithms.leaves import (
    alive,
    chances,
    check_queue,
    check_whole,
    codes,
    engine,
    leaves,
    mature,
    publish,
    put_samples,
    samples_in,
    still,
)
from tests.algorithms.test_tree_basic import FIGURE_1

DENSE = pytest.mark.parametrize("anonymizer", [TreeDensity, TreeFull])


def weighed(run: Any) -> Any:
    """Let a row come each second, as if it were an instant, and leaves know it."""
    run.state.marks["gap"][0] = 1.0
    refresh(run._rules, run.state)
    return run


def counted(run: Any, leaf: int) -> int:
    """The number of samples that a mature leaf is weighed with."""
    refresh(run._rules, run.state)
    return int(run.state.coverage.n_samples[leaf])


# -- knobs -----------------------------------------------------------------------------------------


@DENSE
@pytest.mark.parametrize(
    ("knob", "value", "said"),
    [
        ("alpha", -0.1, "must be a number from 0 to 1; got -0.1"),
        ("alpha", 1.5, "must be a number from 0 to 1; got 1.5"),
        ("alpha", float("nan"), "must be a number from 0 to 1; got nan"),
        ("alpha", "much", "must be a number from 0 to 1; got 'much'"),
        ("samples", 0, "must be a whole number of at least 1; got 0"),
        ("samples", 10**8, "must be at most 10,000,000; got 100000000"),
        ("sampled", 0, "must be a whole number of at least 1; got 0"),
        ("sampled", 9.5, "must be a whole number of at least 1; got 9.5"),
    ],
)
def test_knobs_that_make_no_sense_are_refused(
    anonymizer: type[TreeDensity | TreeFull], knob: str, value: Any, said: str
) -> None:
    message = re.escape(f"{anonymizer.__name__}.{knob}: {said}.")
    with pytest.raises(ParameterError, match=message):
        anonymizer(**{knob: value})


@DENSE
def test_a_job_says_how_density_is_looked_at(anonymizer: type[TreeDensity | TreeFull]) -> None:
    job = (
        '[schema]\nsubject = "p"\n[schema.quasi]\nx = { range = [0, 9] }\n[policy]\nk = 2\n'
        f'delay = {{ rows = 9 }}\n[algorithm]\nname = "{anonymizer.name}"\n'
    )
    assert Job.parse(job).anonymizer == anonymizer(alpha=0.001, samples=3000, sampled=10_000)
    other = Job.parse(job + "alpha = 0.01\nsamples = 50\nsampled = 400")
    assert other.anonymizer == anonymizer(alpha=0.01, samples=50, sampled=400)
    with pytest.raises(JobError, match=r"algorithm\.sample: .*Did you mean 'samples'\?"):
        Job.parse(job + "sample = 50")


# -- the paper -------------------------------------------------------------------------------------


def test_example_6_where_few_rows_are_to_be_expected_a_leaf_does_not_wait() -> None:
    run = still("tree-density", 3, FIGURE_1, samples=50, alpha=0.05)
    assert leaves(run) == [{0, 1, 2}, {3, 4, 5}]
    put_samples(run, *[12.0] * 49, 65.0)
    c1, c2 = chances(weighed(run)).values()
    # Three more rows are awaited in both: 3 * 50 / 49 instants in C1, 3 * 50 in C2.
    assert c1 / c2 == pytest.approx(5 * 1.05 ** (3 * 50 / 49 - 3 * 50))
    assert c2 > c1
    put_samples(run, *[12.0] * 25, *[65.0] * 25)
    c1, c2 = chances(weighed(run)).values()
    assert c1 / c2 == pytest.approx(5)  # both are as dense: what loses less goes first


def test_an_instant_of_many_seconds_makes_waiting_cheap() -> None:
    found = []
    for instant in (1.0, 10.0):
        run = still("tree-density", 3, FIGURE_1, samples=50, alpha=0.05, instant=instant)
        put_samples(run, *[12.0] * 49, 65.0)
        c1, c2 = chances(weighed(run)).values()
        found.append(math.log(c1 / c2 / 5) / math.log(1.05))
    assert found == pytest.approx([3 * 50 / 49 - 3 * 50, (3 * 50 / 49 - 3 * 50) / 10])


def test_a_leaf_that_has_enough_rows_to_be_cut_waits_for_none() -> None:
    """It can't be cut for lack of variety: no more rows are awaited, and density doesn't matter."""
    rows = [(at, at, 0) for at in range(4)] + [(4, 9, 1)]
    run = still("tree-density", 2, rows, DistinctLDiversity(2), samples=4, alpha=1.0)
    assert leaves(run) == [{0, 1, 2, 3, 4}]
    put_samples(run, *[90.0] * 4)
    weighed(run)
    assert run.state.queue.weights[1] == pytest.approx(1 / (5 * 0.04))


@pytest.mark.parametrize("name", ["tree-density", "tree-full"])
def test_theorem_4_whatever_the_leaves_are_one_row_is_expected_to_leave(name: str) -> None:
    run, draw = engine(name, 3, n_quasi=2, samples=6, alpha=0.01), random.Random(3)
    n_instants = 0
    for n in range(150):
        run.push(codes([([draw.randrange(101), draw.randrange(101)], n)]))
        check_queue(run)
        n_instants += bool(mature(run))
    assert n_instants > 80


# -- samples ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tree-density", "tree-full"])
def test_each_leaf_counts_the_samples_that_it_covers(name: str) -> None:
    """Samples leave the window, leaves are cut, shrink and leave: a sample may be in several."""
    run, draw = engine(name, 3, delay=Delay(rows=30), samples=12, sampled=15), random.Random(2)
    shared = 0
    for n in range(120):
        run.push(codes([(draw.gauss(50, 20) % 100, n % 17)]))
        check_whole(run)
        inside = [c for leaf in alive(run) for c in samples_in(run, leaf)]
        shared += len(inside) > len(set(inside))
    assert shared > 5


def test_a_leaf_that_has_gone_leaves_no_samples_behind() -> None:
    run = still("tree-density", 2, [(10, 1), (20, 2)], samples=8, sampled=1000)
    put_samples(run, *[15.0] * 8)
    assert counted(run, 0) == 8
    publish(run, 0, 1.0)
    assert leaves(run) == []
    run.push(codes([(80, 3)]))
    # It has the same number.
    assert leaves(run) == [{2}]
    assert run.state.queue.flags[0] & RECOUNT
    run.push(codes([(85, 4)]))
    assert counted(run, 0) == len(samples_in(run, 0)) < 8
    check_whole(run)


def test_a_sample_that_moves_on_is_taken_from_leaves_and_given_to_others() -> None:
    run = engine("tree-density", 2, samples=5, sampled=3, instant=1.0)
    counted = []
    for at in (10, 90, 12, 92, 91, 93):
        run.push(codes([(at, at)]))
        check_whole(run)
        counted.append([len(samples_in(run, leaf)) for leaf in alive(run)])
    # Of the latest three rows none is near 10: the leaf there is left without samples.
    assert leaves(run)[0] == {0, 2}
    assert counted[-1][0] == 0
    assert sum(counted[-1]) >= 5


# -- traps -----------------------------------------------------------------------------------------


def test_a_leaf_without_a_sample_counts_as_one_with_half_of_one() -> None:
    run = still("tree-density", 2, [(10, 1), (20, 2)], samples=4, alpha=0.1)
    put_samples(run, *[90.0] * 4)
    weighed(run)
    assert counted(run, 0) == 0
    assert run.state.queue.weights[1] == pytest.approx(1.1 ** (2 * 4 / 0.5) / (2 * 0.1))
    assert list(chances(run).values()) == [1 / 2]


def test_exponents_do_not_overflow() -> None:
    """With alpha = 1 a row is worth half as much after each instant, and 1000 more are awaited."""
    n = 1004
    run = still("tree-density", 1000, [(at % 101, at) for at in range(n)], samples=1, alpha=1.0)
    put_samples(run, 200.0)
    weighed(run)
    assert run.state.queue.weights[1] == pytest.approx(math.exp(100) / n)
    assert list(chances(run).values()) == [pytest.approx(1 / n)]


def test_a_leaf_that_waits_in_vain_and_loses_nothing() -> None:
    """The heaviest leaf there can be beside the lightest: all chances are numbers."""
    run = still("tree-density", 2, [(10, 1), (60, 2), (10, 3), (100, 4)], samples=900, alpha=1.0)
    assert leaves(run) == [{0, 2}, {1, 3}]
    put_samples(run, *[70.0] * 900)
    heavy, light = chances(weighed(run)).values()
    assert heavy == pytest.approx(1 / 2)
    assert light / heavy == pytest.approx(4 * 1e-9 / 0.4 / math.exp(100))
    # When the heavy one has gone, the light one is alone, and no trace of the other is left.
    publish(run, 0, 4.0)
    assert chances(run) == {1: 1 / 2}


def test_without_a_price_for_waiting_density_does_not_matter() -> None:
    run = still("tree-density", 3, FIGURE_1, samples=50, alpha=0.0)
    put_samples(run, *[12.0] * 49, 65.0)
    c1, c2 = chances(weighed(run)).values()
    assert c1 / c2 == pytest.approx(5)
