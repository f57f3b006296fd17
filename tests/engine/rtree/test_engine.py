"""What all of the R-tree family have in common: leaves, instants, and rows at their deadline."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

from shoal import (
    Delay,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    Policy,
    Quasi,
    Range,
    Schema,
)
from shoal.engine import Codes
from shoal.engine.rtree.engine import TreeEngine
from shoal.errors import JobError, ParameterError, UnsupportedError
from shoal.job import Job
from shoal.testing.streams import batch, difference, joined
from tests.algorithms.leaves import (
    ANONYMIZERS,
    FEW,
    alive,
    chances,
    check_whole,
    codes,
    engine,
    leaves,
    mature,
    still,
)
from tests.algorithms.rows import groups, outcomes, sides

FAMILY = pytest.mark.parametrize("name", ANONYMIZERS)
#: For two people with two values.
TWO = DistinctLDiversity(2)


def knobs_of(name: str) -> dict[str, Any]:
    return {} if name == "tree-basic" else dict(FEW)


# -- knobs -----------------------------------------------------------------------------------------


@FAMILY
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "1", True, 2e9])
def test_an_instant_that_makes_no_sense_is_refused(name: str, value: Any) -> None:
    said = re.escape(f".instant: must be a number from 0 to 1e+09; got {value!r}.")
    with pytest.raises(ParameterError, match=said):
        ANONYMIZERS[name](instant=value)


@FAMILY
def test_an_instant_in_seconds_needs_rows_with_a_time(name: str) -> None:
    anonymizer = ANONYMIZERS[name](instant=2.5, **knobs_of(name))
    quasi, by_rows = [Quasi("x", Range(0, 9))], Policy(KAnonymity(2), delay=Delay(rows=9))
    with pytest.raises(UnsupportedError) as refused:
        anonymizer.start(Schema("p", quasi), by_rows)
    assert str(refused.value) == (
        f"algorithm: '{name}' with instants of 2.5 seconds needs to know when rows come, and "
        "nothing tells it: neither a time column nor a delay in seconds is set. Set schema.time or "
        "policy.delay.seconds, or leave algorithm.instant out."
    )
    # Either of the two is enough, and without instants neither is needed.
    anonymizer.start(Schema("p", quasi, time="at"), by_rows)
    anonymizer.start(Schema("p", quasi), Policy(KAnonymity(2), delay=Delay(seconds=9.0)))
    ANONYMIZERS[name](**knobs_of(name)).start(Schema("p", quasi), by_rows)


@FAMILY
def test_rows_without_a_time_are_refused_where_instants_last(name: str) -> None:
    run = engine(name, 2, instant=1.0)
    rows = codes([(1, 1), (2, 2), (3, 3)], [0.0, np.nan, np.inf])
    said = "must be finite, since an instant lasts some seconds; got 2 that aren't"
    with pytest.raises(ParameterError, match=said):
        run.push(rows)
    # If a row is an instant, times aren't needed.
    assert len(engine(name, 9).push(rows._replace(times=np.full(3, np.nan))).rows) == 0


@FAMILY
def test_a_knob_of_a_job_that_is_not_known_is_refused(name: str) -> None:
    job = (
        '[schema]\nsubject = "p"\n[schema.quasi]\nx = { range = [0, 9] }\n[policy]\nk = 2\n'
        f'delay = {{ rows = 9 }}\n[algorithm]\nname = "{name}"\n'
    )
    with pytest.raises(JobError, match=r"algorithm\.instnat.*Did you mean 'instant'\?"):
        Job.parse(job + "instnat = 1.0")
    with pytest.raises(JobError, match=r"algorithm\.instant.*from 0 to 1e\+09; got -1"):
        Job.parse(job + "instant = -1.0")
    assert Job.parse(job + "instant = 1.5").anonymizer == ANONYMIZERS[name](instant=1.5)


# -- leaves ----------------------------------------------------------------------------------------


@FAMILY
def test_rows_go_where_they_cost_least_but_not_to_their_own_subject(name: str) -> None:
    run = still(name, 2, [(10, 1), (50, 2), (12, 3), (52, 4)])
    assert leaves(run) == [{0, 2}, {1, 3}]
    run.push(codes([(12, 1)]))
    assert leaves(run) == [{0, 2}, {1, 3, 4}]
    run.push(codes([(51, 1)]))  # nobody takes it
    assert leaves(run) == [{0, 2}, {1, 3, 4}, {5}]
    assert mature(run) == list(chances(run)) == [0, 1]
    check_whole(run)


@FAMILY
def test_a_leaf_is_cut_when_it_has_twice_what_a_group_needs(name: str) -> None:
    run = still(name, 3, [(at, at) for at in (10, 80, 20, 90, 30)])
    assert leaves(run) == [{0, 1, 2, 3, 4}]
    run.push(codes([(85, 85)]))
    # Of the two that are new, one has the number of the one that has gone.
    assert leaves(run) == [{0, 2, 4}, {1, 3, 5}]
    check_whole(run)


@FAMILY
def test_a_leaf_that_cannot_be_cut_is_tried_again_and_full_at_last(name: str) -> None:
    run = still(name, 2, [(at, at, 0) for at in range(4)], TWO)
    tries = run.state.tree.leaves["next_try"]
    assert leaves(run) == [{0, 1, 2, 3}]
    assert tries[0] == 5
    run.push(codes([(at, at, 0) for at in range(4, 8)]))
    assert leaves(run) == [set(range(8))]
    assert tries[0] == 9
    run.push(codes([(3, 9, 0)]))
    assert leaves(run) == [set(range(8)), {8}]  # it is full, wherever the row lies
    assert mature(run) == []
    run.push(codes([(3, 10, 1)]))
    assert leaves(run) == [set(range(8)), {8, 9}]
    assert mature(run) == [1]
    check_whole(run)


@FAMILY
def test_a_leaf_that_can_be_cut_at_last_is(name: str) -> None:
    run = still(name, 2, [(10, 1, 0), (20, 2, 0), (80, 3, 0), (90, 4, 1)], TWO)
    assert leaves(run) == [{0, 1, 2, 3}]
    run.push(codes([(15, 5, 1)]))
    assert leaves(run) == [{0, 1, 4}, {2, 3}]
    check_whole(run)


@FAMILY
def test_rows_that_are_all_equal(name: str) -> None:
    """A loss of 0 isn't divided by: as many rows leave as arrive, and each leaf may."""
    run = engine(name, 3, seed=b"1")
    n_groups = 0
    for n in range(80):
        decided = run.push(codes([(50, n)]))
        n_groups += len(decided.lo)
        assert (decided.loss == 0).all()
        check_whole(run)
    assert 10 < n_groups < 27


@FAMILY
def test_one_person_only_makes_a_leaf_of_each_row_and_nodes_of_leaves(name: str) -> None:
    """Nodes split while leaves become more, and are given up when their time is over."""
    run = engine(name, 2, delay=Delay(rows=150))
    draw = random.Random(3)
    most = 0
    for n in range(330):
        decided = run.push(codes([(draw.randrange(101), 7)]))
        assert outcomes(decided) == ({} if n < 150 else {n - 150: "suppressed"})
        most = max(most, int(run.state.tree.marks["n_nodes"][0]))
        if n % 10 == 0:
            check_whole(run)
    assert most >= 3
    assert mature(run) == []
    assert outcomes(run.flush()) == dict.fromkeys(range(180, 330), "suppressed")
    check_whole(run)
    assert run.state.tree.marks["n_nodes"][0] == 0


@FAMILY
def test_nodes_are_given_up_one_after_the_other(name: str) -> None:
    """The oldest rows are in one place: the node of that place has ever fewer leaves."""
    rows = [(at % 5, 7) for at in range(60)] + [(60 + at % 40, 7) for at in range(80)]
    run = still(name, 2, rows, delay=Delay(rows=140))
    assert run.state.tree.marks["n_nodes"][0] >= 2
    for n in range(75):
        run.push(codes([(99, 7)]))
        if n % 5 == 0:
            check_whole(run)
    assert min(run.state.tree.lo[0, alive(run)]) == 60
    assert run.state.tree.marks["free_nodes"][0] >= 1


@FAMILY
def test_one_too_few_people_are_suppressed(name: str) -> None:
    run = engine(name, 4, delay=Delay(rows=10))
    decided = [run.push(codes([(n * 37 % 101, n % 3)])) for n in range(40)]
    check_whole(run)
    fates = outcomes(joined([*decided, run.flush()]))
    assert fates == dict.fromkeys(range(40), "suppressed")


@FAMILY
@pytest.mark.parametrize("n_rows", [1, 30])
def test_with_k_1_every_row_leaves_when_it_comes(name: str, n_rows: int) -> None:
    run = engine(name, 1)
    decided = run.push(codes([(n * 37 % 101, n % 4) for n in range(n_rows)]))
    # There is one leaf at a time, of one row, and its chance is 1.
    assert decided.rows.tolist() == list(range(n_rows))
    assert (decided.published == decided.rows).all()
    assert (decided.loss == 0).all()
    check_whole(run)


@FAMILY
def test_l_above_k_is_what_a_leaf_needs(name: str) -> None:
    run = still(name, 1, [(at, at, at % 3) for at in range(5)], DistinctLDiversity(3))
    assert leaves(run) == [set(range(5))]
    assert mature(run) == [0]
    run.push(codes([(at, 10 + at, at % 3) for at in (90, 91, 92)]))
    assert [len(rows) for rows in leaves(run)] == [5, 3]
    check_whole(run)


# -- growing, and going on -------------------------------------------------------------------------


@FAMILY
def test_everything_grows_with_what_is_held(name: str) -> None:
    rows = [(n * 37 % 101, n % 2) for n in range(300)]
    run = still(name, 3, rows)  # two people are too few
    assert run.n_held == 300
    assert len(run.state.held.rows) == len(run.state.until) == len(run.state.tree.loss) == 512
    assert len(run.state.queue.weights) == 1024
    check_whole(run)
    parts = engine(name, 3, instant=1.0)
    for begin in range(0, 300, 70):
        parts.push(codes(rows[begin : begin + 70]))
        check_whole(parts)
    assert leaves(parts) == leaves(run)
    assert difference(parts.flush(), run.flush()) is None


@FAMILY
def test_until_when_a_row_may_be_held_grows_with_the_ring(name: str) -> None:
    """Of the rows that are held, some lie at the end of the ring and some at its beginning."""
    run = engine(name, 3, instant=1.0, delay=Delay(rows=100_000), capacity=100)
    for _ in range(30):
        run.push(codes([(n % 101, 7) for n in range(10)]))
    assert len(run.state.held.rows) == len(run.state.until) == 256
    positions = np.arange(200, 300)
    assert run.state.held.marks["oldest"][0] == 200
    run.state.until[positions & 255] = positions
    run.push(codes([(7, 7)]))
    # Room is made for a batch as if all of it were held.
    run._reserve(900)
    assert len(run.state.held.rows) == len(run.state.until) == 1024
    assert run.state.until[201:300].tolist() == list(range(201, 300))
    assert run.state.until[300] == np.inf
    check_whole(run)


@FAMILY
def test_a_large_batch_needs_no_room_for_leaves_beyond_the_capacity(name: str) -> None:
    run = engine(name, 3, capacity=100, **knobs_of(name))
    run.push(codes([(n % 101, 7) for n in range(700)]))
    assert len(run.state.tree.loss) == 256
    assert len(run.state.counter) == 512
    check_whole(run)


@FAMILY
@pytest.mark.parametrize("bound", [{"delay": Delay(rows=255)}, {"capacity": 255}])
def test_a_large_batch_has_room_for_a_leaf_of_each_row_of_the_delay(
    name: str, bound: dict[str, Any]
) -> None:
    """While a row comes, one more than that is held, and one more than the capacity."""
    run = engine(name, 3, **bound, **knobs_of(name))
    run.push(codes([(n % 101, 7) for n in range(700)]))
    assert run.n_held <= 255 + 1 < len(run.state.tree.loss) == 512
    check_whole(run)


def timed(n: int, n_people: int, seed: int = 4) -> Codes:
    """Rows of people with a home, some seconds apart or at the same second."""
    draw = random.Random(seed)
    now, times, rows = 0.0, [], []
    for _ in range(n):
        now += draw.choice([0.0, 0.5, 1.0, 4.0])
        times.append(now)
        person = draw.randrange(n_people)
        rows.append(((person * 37 + draw.randrange(9)) % 101, person, draw.randrange(3)))
    return codes(rows, times)


BOUNDS: dict[str, dict[str, Any]] = {
    "rows": {"delay": Delay(rows=40)},
    "seconds": {"delay": Delay(seconds=30.0)},
    "capacity": {"capacity": 25},
    "instants": {"delay": Delay(rows=60), "instant": 1.0},
    "all": {"delay": Delay(rows=60, seconds=45.0), "instant": 1.0, "capacity": 50},
}


@FAMILY
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("more", [(), (TWO,)], ids=["k", "l"])
def test_restored_at_any_moment_it_continues_as_if_nothing_had_happened(
    name: str, bound: str, more: tuple[Any, ...]
) -> None:
    stream, n = timed(90, 40), 90
    run = engine(name, 3, *more, **BOUNDS[bound])
    snapshots, decided = [], []
    for at in range(0, n, 9):
        snapshots.append(run.snapshot())
        decided.append(run.push(batch(stream, at, at + 9)))
        decided.append(run.advance(float(stream.times[at + 8]) + 0.25))
        check_whole(run)
    decided.append(run.flush())
    assert outcomes(joined(decided)).keys() == set(range(n))
    for i, snapshot in enumerate(snapshots):
        other = engine(name, 3, *more, seed=b"other", **BOUNDS[bound])
        other.restore(snapshot)
        again = []
        for at in range(9 * i, n, 9):
            again.append(other.push(batch(stream, at, at + 9)))
            again.append(other.advance(float(stream.times[at + 8]) + 0.25))
        again.append(other.flush())
        assert difference(joined(decided[2 * i :]), joined(again)) is None


@FAMILY
@pytest.mark.parametrize("bound", BOUNDS)
def test_instants_and_batches_are_not_the_same(name: str, bound: str) -> None:
    stream = timed(120, 60)
    whole, rows = engine(name, 3, **BOUNDS[bound]), engine(name, 3, **BOUNDS[bound])
    at_once = joined([whole.push(stream), whole.flush()])
    separately = [rows.push(batch(stream, at, at + 1)) for at in range(120)]
    assert difference(at_once, joined([*separately, rows.flush()])) is None


# -- rows at their deadline ------------------------------------------------------------------------


@FAMILY
def test_a_mature_leaf_is_published_when_one_of_its_rows_is_forced(name: str) -> None:
    run = still(name, 2, [(10, 1), (12, 2), (90, 3), (92, 4)], delay=Delay(rows=4))
    decided = run.push(codes([(11, 5)]))
    assert groups(decided) == [{0, 1, 4}]
    assert set(decided.published) == {4}
    assert leaves(run) == [{2, 3}]
    check_whole(run)


@FAMILY
def test_a_leaf_that_is_not_mature_is_merged_with_the_nearest(name: str) -> None:
    rows = [(50, 1), (12, 1), (10, 2), (80, 1), (82, 2)]
    run = still(name, 2, rows, delay=Delay(rows=5))
    assert leaves(run) == [{0}, {1, 2}, {3, 4}]
    decided = run.push(codes([(11, 3)]))
    assert groups(decided) == [{0, 3, 4}]
    assert sides(decided, 0) == [(50.0, 82.0)]
    assert leaves(run) == [{1, 2, 5}]
    check_whole(run)


@FAMILY
def test_as_many_are_merged_as_it_takes(name: str) -> None:
    rows = [(50, 1), (12, 1), (10, 2), (80, 1), (82, 2)]
    run = still(name, 2, rows, delay=Delay(rows=5))
    # The nearest one is of the same person.
    decided = run.push(codes([(79, 1)]))
    assert groups(decided) == [{0, 3, 4, 5}]
    assert leaves(run) == [{1, 2}]
    check_whole(run)


@FAMILY
def test_a_row_that_nobody_can_leave_with_is_suppressed_alone(name: str) -> None:
    run = still(name, 3, [(10, 1), (90, 2), (50, 1), (40, 2)], delay=Delay(rows=4))
    assert leaves(run) == [{0, 1}, {2, 3}]
    assert outcomes(run.push(codes([(45, 1)]))) == {0: "suppressed"}
    # The leaf shrinks to those who are left.
    assert leaves(run) == [{1}, {2, 3}, {4}]
    assert run.state.tree.lo[0, 0] == run.state.tree.hi[0, 0] == 90.0
    check_whole(run)


@FAMILY
def test_what_no_union_keeps_is_suppressed(name: str) -> None:
    """There are enough people, and as few are even as can be: all are looked at, in vain."""
    rows = [(10, 1, 0), (90, 2, 0), (50, 1, 0), (40, 2, 0)]
    run = still(name, 2, rows, EntropyLDiversity(2.0), delay=Delay(rows=4))
    assert outcomes(run.push(codes([(45, 1, 1)]))) == {0: "suppressed"}
    check_whole(run)


@FAMILY
@pytest.mark.parametrize("instant", [0.0, 1.0])
def test_a_delay_in_seconds_fires_in_silence(name: str, instant: float) -> None:
    run = engine(name, 3, delay=Delay(seconds=10.0), instant=instant)
    run.push(codes([(10, 1), (20, 2)], [0.0, 0.0]))
    assert run.next_deadline == 10.0
    assert len(run.advance(9.75).rows) == 0
    decided = run.advance(12.0)
    assert outcomes(decided) == {0: "suppressed", 1: "suppressed"}
    assert decided.published.tolist() == [2, 2]
    assert decided.published_s.tolist() == [10.0, 10.0]
    assert run.next_deadline is None
    check_whole(run)


@FAMILY
def test_deadlines_in_seconds_are_met_between_rows(name: str) -> None:
    run = engine(name, 3, delay=Delay(seconds=10.0))
    decided = run.push(codes([(10, 1), (20, 2), (30, 3)], [0.0, 4.0, 50.0]))
    assert outcomes(decided) == {0: "suppressed", 1: "suppressed"}
    assert decided.published.tolist() == [2, 2]
    assert decided.published_s.tolist() == [10.0, 14.0]


# -- the end ---------------------------------------------------------------------------------------


@FAMILY
def test_at_the_end_leaves_that_are_not_mature_join_others_first(name: str) -> None:
    run = still(name, 2, [(10, 1), (12, 2), (11, 1)])
    assert leaves(run) == [{0, 1}, {2}]
    assert groups(run.flush()) == [{0, 1, 2}]


@FAMILY
def test_a_union_of_enough_people_is_two_groups(name: str) -> None:
    rows = [(9, 1, 0), (8, 5, 1), (10, 1, 0), (80, 2, 0), (81, 6, 0), (79, 2, 1)]
    run = still(name, 2, rows, TWO)
    assert leaves(run) == [{0, 1, 5}, {2, 3, 4}]
    assert mature(run) == [0]
    decided = run.flush()
    assert groups(decided) == [{0, 1, 2}, {3, 4, 5}]
    assert len(set(decided.instants)) == 1  # the whole end is one instant


@FAMILY
def test_a_union_of_enough_people_whose_halves_are_not_diverse_is_one_group(name: str) -> None:
    rows = [(9, 1, 0), (8, 5, 1), (10, 1, 0), (80, 2, 0), (81, 6, 0)]
    run = still(name, 2, rows, TWO)
    assert leaves(run) == [{0, 1}, {2, 3, 4}]
    assert groups(run.flush()) == [{0, 1, 2, 3, 4}]


@FAMILY
def test_the_end_of_nothing_is_nothing(name: str) -> None:
    assert len(engine(name, 2).flush().rows) == 0


@FAMILY
def test_after_the_end_nothing_is_due_and_a_new_stream_may_begin(name: str) -> None:
    """The leaf that was due has left with one that wasn't mature."""
    run = engine(name, 2, instant=1.0, delay=Delay(rows=50))
    run.push(codes([(10, 1), (20, 2), (15, 1)], [0.0, 0.0, 2.0]))
    assert leaves(run) == [{0, 1}, {2}]
    assert run.next_deadline is not None
    assert groups(run.flush()) == [{0, 1, 2}]
    assert run.next_deadline is None
    assert len(run.advance(1e6).rows) == 0
    decided = joined([run.push(codes([(10, 1), (20, 2)], [1e6, 1e6 + 1])), run.advance(1e9)])
    assert sorted(decided.rows.tolist()) == [3, 4]
    check_whole(run)


# -- instants that last ----------------------------------------------------------------------------


@FAMILY
def test_rows_of_one_second_make_no_leaf_due(name: str) -> None:
    run = still(name, 2, [(10, 1), (20, 2), (30, 3)])
    assert mature(run) == [0]
    assert run.next_deadline is None
    assert len(run.advance(1e6).rows) == 0


@FAMILY
@pytest.mark.parametrize("seed", range(6))
def test_the_next_deadline_is_the_first_of_a_leaf_and_of_a_row(name: str, seed: int) -> None:
    run = engine(name, 2, instant=1.0, delay=Delay(seconds=150.0), seed=bytes([seed]))
    run.push(codes([(10, 1)], [0.0]))
    assert run.next_deadline == 150.0  # the leaf may not leave yet
    assert len(run.push(codes([(20, 2)], [100.0])).rows) == 0
    due = float(run.state.marks["due"][0])
    assert 100.0 < due < np.inf
    deadline = run.next_deadline
    assert deadline == min(due, 150.0)
    assert len(run.advance(np.nextafter(deadline, 0.0)).rows) == 0
    decided = run.advance(deadline)
    assert groups(decided) == [{0, 1}]
    assert decided.published.tolist() == [2, 2]
    assert decided.published_s.tolist() == [deadline] * 2
    assert run.next_deadline is None


@FAMILY
def test_the_next_deadline_of_a_leaf_alone(name: str) -> None:
    run = engine(name, 2, instant=1.0, delay=Delay(rows=50), seed=b"1")
    run.push(codes([(10, 1), (20, 2)], [0.0, 1.0]))
    assert run.next_deadline == run.state.marks["due"][0]


@FAMILY
def test_silence_publishes_all_that_may_leave(name: str) -> None:
    run = engine(name, 2, instant=1.0, delay=Delay(seconds=1e9))
    run.push(codes([(n * 37 % 101, n) for n in range(9)], [float(n) for n in range(9)]))
    decided = run.advance(1e7)
    # One that is held back may be left, alone.
    assert mature(run) == []
    assert run.n_held <= (name == "tree-full")
    assert (decided.published == 9).all()
    assert run.state.marks["due"][0] == np.inf
    check_whole(run)


@FAMILY
@pytest.mark.parametrize("bound", ["instants", "all"])
def test_time_never_goes_back(name: str, bound: str) -> None:
    stream = timed(200, 150)
    run = engine(name, 3, seed=b"3", **BOUNDS[bound])
    decided = [run.push(stream), run.flush()]
    when, rows = joined(decided).published_s, joined(decided).rows
    assert (np.diff(when) >= 0).all()
    assert (when >= stream.times[rows]).all()
    assert (decided[0].published_s <= stream.times[-1]).all()
    # Most leaves are due between two rows.
    between = ~np.isin(decided[0].published_s, stream.times)
    assert np.count_nonzero(between) > 20
    published = joined(decided).published
    assert (np.diff(published) >= 0).all()
    # A decision without a row has the number of rows so far; a tick of the same second too.
    last = np.searchsorted(stream.times, decided[0].published_s[between], side="right")
    assert (decided[0].published[between] == last).all()


@FAMILY
def test_the_mean_gap_is_that_of_the_latest_rows(name: str) -> None:
    run = engine(name, 50, instant=1.0)
    times = [0.0, 1.0, 3.0, 3.0, 10.0]
    run.push(codes([(n, n) for n in range(5)], times))
    assert run.state.marks["gap"][0] == pytest.approx(2.5)
    # A row that is late has come when the latest one had.
    run.push(codes([(5, 5)], [4.0]))
    assert run.state.marks["gap"][0] == pytest.approx(2.0)
    assert isinstance(run, TreeEngine)


# -- time as a quasi attribute ---------------------------------------------------------------------


def timed_run(name: str, instant: float, seed: int) -> Any:
    """A run where the time is a quasi attribute too, and waiting costs nothing else."""
    schema = Schema("p", [Quasi("x", Range(0, 100)), Quasi("at", Range(0, 100))], time="at")
    policy = Policy(KAnonymity(2), delay=Delay(rows=100))
    knobs = knobs_of(name) | ({} if name == "tree-basic" else {"alpha": 0.0})
    return ANONYMIZERS[name](instant=instant, **knobs).start(schema, policy, seed=bytes([seed]))


@FAMILY
@pytest.mark.parametrize("instant", [0.0, 1.0])
def test_where_time_is_a_quasi_attribute_a_leaf_loses_by_waiting(name: str, instant: float) -> None:
    """Rows that wait lose as much as rows that are far apart in time."""
    rows = np.array([[0.0, 0.0], [10.0, 0.0], [90.0, 0.0], [100.0, 0.0], [95.0, 40.0]])
    stream = Codes(rows, np.arange(5), np.empty((5, 0), np.int64), rows[:, 1].copy())
    for seed in range(200):
        run = timed_run(name, instant, seed)
        before = run.push(batch(stream, 0, 4))
        alike = chances(run)
        after = run.push(batch(stream, 4, 5))
        # Where a row is an instant, most seeds publish something by then.
        if len(before.rows) == len(after.rows) == 0:
            break
    assert leaves(run) == [{0, 1}, {2, 3, 4}]
    assert alike[0] == alike[1] == 1 / 4
    old, young = chances(run).values()
    # Both reach from second 0 to second 40 now: one of 2 rows by waiting, one of 3 by the last.
    assert old / young == pytest.approx(3 * (10 + 40) / (2 * (10 + 40)))
