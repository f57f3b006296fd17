"""The minimum delay method by its engine: Tables 2 and 3, and classes that can't be complete."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal import Delay, DistinctLDiversity, KAnonymity, Policy, Quasi, Range, Schema
from shoal.algorithms import MinDelay
from shoal.algorithms.min_delay import MinDelayEngine, _listed
from shoal.engine import Codes
from shoal.engine.base import Engine
from shoal.engine.kernels.linked_lists import members
from shoal.spec.policy import EntropyLDiversity, Missing
from shoal.testing.streams import batch, difference, joined
from tests.algorithms.rows import GAP, groups, outcomes, sides, stream
from tests.naive.test_min_delay import OCCUPATION, POSTCODE, PUBLISHED, STREAM

TWO = DistinctLDiversity(2)


def started(
    rows: list[tuple[Any, ...]],
    k: int,
    *more: Any,
    delay: Delay | None = None,
    missing: Missing = "quarantine",
    **knobs: Any,
) -> tuple[Any, Codes]:
    """An engine and rows for it; without a bound, one that is never reached."""
    if delay is None and not knobs:
        delay = Delay(rows=10_000)
    played = stream(rows, Policy(KAnonymity(k), *more, delay=delay, missing=missing))
    return played.start(MinDelay(**knobs)), played.codes


def classes(engine: Engine) -> list[list[int]]:
    """The rows of each class, in the order of the list."""
    assert isinstance(engine, MinDelayEngine)
    n = int(engine.state.marks["n_listed"][0])
    return [
        members(engine.state.held.rows, engine.state.classes, _listed(engine.state, rank)).tolist()
        for rank in range(n)
    ]


def check_whole(engine: Engine) -> None:
    """Rows of a subject are in the first classes; numbers are in use or free."""
    assert isinstance(engine, MinDelayEngine)
    state, listed = engine.state, classes(engine)
    mask = len(state.held.rows) - 1
    assert sum(map(len, listed)) == engine.n_held
    places: dict[int, list[int]] = {}
    for rank, rows in enumerate(listed):
        assert rows
        for row in rows:
            assert state.held.rows["cluster"][row & mask] == _listed(state, rank)
            places.setdefault(int(state.held.rows["subject"][row & mask]), []).append(rank)
    assert all(ranks == list(range(len(ranks))) for ranks in places.values())
    assert state.held.marks["n_subjects"][0] == len(places)
    used = [int(_listed(state, rank)) for rank in range(len(listed))]
    free = state.free[: state.marks["free"][0]].tolist()
    assert sorted(used + free) == list(range(len(state.classes)))


# -- the paper -------------------------------------------------------------------------------------


def test_example_5_and_table_3() -> None:
    quasi = [
        Quasi("postcode", POSTCODE), Quasi("occupation", OCCUPATION), Quasi("age", Range(0, 120)),
    ]  # fmt: skip
    policy = Policy(KAnonymity(3), delay=Delay(rows=100))
    engine = MinDelay().start(Schema("ID", quasi), policy, seed=b"1")
    names = list(dict.fromkeys(name for name, *_ in STREAM))
    values = [
        [POSTCODE.leaves.index(postcode), OCCUPATION.leaves.index(occupation), age]
        for _, postcode, occupation, age in STREAM
    ]
    people = [names.index(name) for name, *_ in STREAM]
    nothing = np.empty((6, 0), np.int64)
    decided = engine.push(
        Codes(np.array(values, float), np.array(people), nothing, np.full(6, np.nan))
    )
    table = []
    for row, box in zip(decided.rows, decided.boxes, strict=True):
        (p, o, a), (q, r, b) = decided.lo[box].tolist(), decided.hi[box].tolist()
        labels = POSTCODE.label(int(p), int(q)), OCCUPATION.label(int(o), int(r))
        table.append((STREAM[row][0], *labels, (a, b), int(decided.groups[box]) + 1))
    # Rows of a group are shuffled.
    assert sorted(table) == sorted(PUBLISHED)
    assert decided.published.tolist() == [3, 3, 3, 5, 5, 5]
    assert engine.n_held == 0


# -- classes ---------------------------------------------------------------------------------------


def test_no_row_waits_where_nobody_comes_twice() -> None:
    engine, codes = started([(n * 37 % 101, n) for n in range(60)], 4)
    decided = engine.push(codes)
    assert groups(decided) == [set(range(n, n + 4)) for n in range(0, 60, 4)]
    assert (decided.published == decided.rows // 4 * 4 + 3).all()


def test_with_k_1_every_row_leaves_when_it_comes() -> None:
    engine, codes = started([(n, 7) for n in range(9)], 1)
    decided = engine.push(codes)
    assert groups(decided) == [{n} for n in range(9)]
    assert (decided.loss == 0).all()


def test_a_class_waits_for_what_else_is_promised() -> None:
    rows = [(10, "a", 0), (20, "b", 0), (30, "c", 0), (90, "d", 1)]
    engine, codes = started(rows, 2, TWO)
    assert len(engine.push(batch(codes, 0, 3)).rows) == 0
    decided = engine.push(batch(codes, 3, 4))
    assert groups(decided) == [{0, 1, 2, 3}]
    assert sides(decided, 0) == [(10.0, 90.0)]


def test_rows_that_are_all_equal() -> None:
    engine, codes = started([(50, n % 5) for n in range(40)], 3)
    decided = joined([engine.push(codes), engine.flush()])
    assert (decided.loss == 0).all()
    assert set(outcomes(decided)) == set(range(40))


def test_a_row_without_any_value_fits_everywhere() -> None:
    engine, codes = started([(10, "a"), (GAP, "b"), (30, "c")], 3, missing="maybe")
    decided = engine.push(codes)
    assert groups(decided) == [{0, 1, 2}]
    assert sides(decided, 1) == [(10.0, 30.0)]


# -- rows whose time is up -------------------------------------------------------------------------


def test_one_person_alone_is_suppressed_when_the_time_is_up() -> None:
    engine, codes = started([(n, 7) for n in range(30)], 2, delay=Delay(rows=5))
    decided = engine.push(codes)
    assert outcomes(decided) == dict.fromkeys(range(25), "suppressed")
    assert (decided.published - decided.rows == 5).all()
    assert classes(engine) == [[n] for n in range(25, 30)]
    assert outcomes(engine.flush()) == dict.fromkeys(range(25, 30), "suppressed")
    check_whole(engine)


def test_one_too_few_people_are_suppressed() -> None:
    engine, codes = started([(n, n % 3) for n in range(40)], 4, delay=Delay(rows=8))
    decided = joined([engine.push(codes), engine.flush()])
    assert outcomes(decided) == dict.fromkeys(range(40), "suppressed")


def test_a_forced_class_takes_others_along_in_their_order() -> None:
    rows = [(10, "a", 0), (20, "b", 0), (40, "a", 0), (50, "a", 1), (60, "a", 1), (30, "c", 0)]
    engine, codes = started(rows, 2, TWO, delay=Delay(rows=4))
    assert len(engine.push(batch(codes, 0, 4)).rows) == 0
    assert classes(engine) == [[0, 1], [2], [3]]
    decided = engine.push(batch(codes, 4, 5))
    # The second class has no other value; with the third one, a has it while b has the first.
    assert groups(decided) == [{0, 1, 2, 3}]
    assert classes(engine) == [[4]]
    check_whole(engine)


def test_what_no_union_keeps_is_suppressed() -> None:
    rows = [(10, "a", 0), (20, "b", 0), (30, "a", 0), (40, "b", 0), (50, "a", 1)]
    engine, codes = started(rows, 2, EntropyLDiversity(2.0), delay=Delay(rows=4))
    assert outcomes(engine.push(codes)) == {0: "suppressed"}
    check_whole(engine)


def test_rows_of_a_subject_stay_in_the_first_classes() -> None:
    rows = [(10, "b"), (20, "a"), (30, "a"), (40, "b"), (50, "b"), (60, "a")]
    engine, codes = started(rows, 3, capacity=3)
    seen = []
    for at in range(6):
        engine.push(batch(codes, at, at + 1))
        check_whole(engine)
        seen.append(classes(engine))
    assert seen[3:] == [[[1, 3], [2]], [[3, 2], [4]], [[3, 5], [4]]]


def test_a_class_in_the_middle_of_the_list_is_complete_first() -> None:
    """Those before it lack another value; they keep their places."""
    rows = [(10, "a", 0), (20, "b", 0), (30, "a", 0), (40, "b", 1), (50, "a", 0)]
    engine, codes = started(rows, 2, TWO)
    assert groups(engine.push(batch(codes, 0, 4))) == [{2, 3}]
    assert classes(engine) == [[0, 1]]
    engine.push(batch(codes, 4, 5))
    assert classes(engine) == [[0, 1], [4]]
    check_whole(engine)


@pytest.mark.parametrize("n_people", [1, 3, 12])
def test_the_list_stays_whole(n_people: int) -> None:
    """Classes come and go, are forced and run dry, and the list turns around in its ring."""
    rows = [(n * 37 % 101, n * n % n_people, n * 7 % 5 // 4) for n in range(400)]
    engine, codes = started(rows, 3, TWO, delay=Delay(rows=60), capacity=45)
    decided = []
    for at in range(0, 400, 4):
        decided.append(engine.push(batch(codes, at, at + 4)))
        check_whole(engine)
    assert engine.state.marks["begin"][0] > len(engine.state.listed) or n_people > 1
    decided.append(engine.flush())
    assert set(outcomes(joined(decided))) == set(range(400))
    check_whole(engine)


# -- seconds ---------------------------------------------------------------------------------------


def test_a_delay_in_seconds_fires_between_rows_and_in_silence() -> None:
    engine, codes = started([(10, "a"), (20, "b"), (30, "c")], 3, delay=Delay(seconds=2.5))
    codes = codes._replace(times=np.array([0.0, 1.0, 9.0]))
    assert engine.next_deadline is None
    assert len(engine.push(batch(codes, 0, 2)).rows) == 0
    assert engine.next_deadline == 2.5
    first = engine.advance(2.6)
    assert outcomes(first) == {0: "suppressed"}
    assert (first.published.tolist(), first.published_s.tolist()) == ([2], [2.5])
    second = engine.push(batch(codes, 2, 3))
    assert outcomes(second) == {1: "suppressed"}
    assert (second.published.tolist(), second.published_s.tolist()) == ([2], [3.5])
    assert engine.next_deadline == 11.5


def test_what_is_complete_leaves_at_the_time_of_its_last_row() -> None:
    engine, codes = started([(10, "a"), (20, "b")], 2, delay=Delay(seconds=9.0))
    decided = engine.push(codes._replace(times=np.array([3.0, 4.5])))
    assert decided.published_s.tolist() == [4.5, 4.5]


# -- the end, growing, and going on ----------------------------------------------------------------


def test_the_end_takes_what_there_is() -> None:
    rows = [(10, "a", 0), (20, "b", 0), (30, "a", 0), (40, "c", 0)]
    engine, codes = started(rows, 2, TWO)
    engine.push(codes)
    assert set(outcomes(engine.flush()).values()) == {"suppressed"}
    engine, codes = started([(10, "a", 0), (20, "a", 1), (30, "b", 0)], 2, TWO)
    engine.push(codes)
    decided = engine.flush()
    assert groups(decided) == [{0, 1, 2}]
    assert len(set(decided.instants)) == 1


def test_the_list_grows_with_what_is_held() -> None:
    # The list has turned around in its ring before it grows.
    rows = [(n % 101, n % 2) for n in range(300)] + [(n % 101, 7) for n in range(700)]
    engine, codes = started(rows, 2)
    engine.push(batch(codes, 0, 300))
    for at in range(300, 1000, 100):
        engine.push(batch(codes, at, at + 100))
        check_whole(engine)
    assert classes(engine) == [[n] for n in range(300, 1000)]
    assert len(engine.state.listed) == len(engine.state.classes) == len(engine.state.free) == 1024
    assert engine.n_held == 700


@pytest.mark.parametrize("options", [{"delay": Delay(rows=40)}, {"capacity": 25}])
def test_restored_at_any_moment_it_continues_as_if_nothing_had_happened(
    options: dict[str, Any],
) -> None:
    rows = [(n * 37 % 101, n * n % 13, n % 3) for n in range(150)]
    engine, codes = started(rows, 4, TWO, **options)
    snapshots, decided = [], []
    for at in range(0, 150, 10):
        snapshots.append(engine.snapshot())
        decided.append(engine.push(batch(codes, at, at + 10)))
    decided.append(engine.flush())
    for i, snapshot in enumerate(snapshots):
        other, _ = started(rows, 4, TWO, **options)
        other.restore(snapshot)
        again = joined([other.push(batch(codes, 10 * i, 150)), other.flush()])
        assert difference(joined(decided[i:]), again) is None
