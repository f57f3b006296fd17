"""Rows that are held by count: how many there are, how long they wait, and who is decided."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shoal import Delay, DistinctLDiversity, KAnonymity, Policy, TCloseness
from shoal.algorithms import Fast, find
from shoal.engine import Codes
from shoal.engine.deadlines import SPAN
from shoal.errors import ParameterError, UnsupportedError
from shoal.spec.policy import Window
from shoal.testing import checks
from shoal.testing.streams import Stream, play
from tests.algorithms.rows import groups, stream
from tests.algorithms.world import ON_DEADLINE, TWINS, both, feed, line

EVERY = pytest.mark.parametrize("name", [*TWINS])
#: Groups of exactly k rows, where k is all that is promised.
OF_K_ROWS = ["fads", "fast", "idea"]


def crowd(n_rows: int, n_people: int, promise: Policy, seed: int = 5) -> Stream:
    draw = random.Random(seed)
    rows = [
        (draw.uniform(0, 100), draw.randrange(n_people), draw.choice([0, 0, 1, 2]))
        for _ in range(n_rows)
    ]
    return stream(rows, promise)


def waited(decided: Any) -> Any:
    return decided.published - decided.rows


# -- bounds ----------------------------------------------------------------------------------------


@EVERY
def test_without_any_bound_it_refuses_to_run(name: str) -> None:
    with pytest.raises(UnsupportedError, match="neither the policy nor a capacity bounds that"):
        find(name)().check(Policy(KAnonymity(2)))
    find(name)(capacity=1).check(Policy(KAnonymity(2)))  # type: ignore[call-arg]
    find(name)().check(Policy(KAnonymity(2), delay=Delay(seconds=5.0)))


@EVERY
def test_a_capacity_without_room_for_a_group_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="never has the 4 people"):
        find(name)(capacity=2).check(Policy(KAnonymity(4)))  # type: ignore[call-arg]
    with pytest.raises(UnsupportedError, match=r"algorithm\.capacity to at least 5"):
        find(name)(capacity=4).check(  # type: ignore[call-arg]
            Policy(KAnonymity(2), DistinctLDiversity(6))
        )
    with pytest.raises(ParameterError, match=r"\.capacity: must be a whole number of at least 0"):
        find(name)(capacity=-1)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ON_DEADLINE)
def test_what_is_measured_needs_a_delay_in_rows(name: str) -> None:
    """By count alone a row could be older than the window that it is measured against."""
    measured = KAnonymity(2), TCloseness(0.5)
    with pytest.raises(UnsupportedError, match="without a delay in rows"):
        find(name)(capacity=9).check(Policy(*measured, window=Window(50)))  # type: ignore[call-arg]
    find(name)(capacity=9).check(  # type: ignore[call-arg]
        Policy(*measured, window=Window(50), delay=Delay(rows=40))
    )


@EVERY
@pytest.mark.parametrize("capacity", [3, 10, 41])
def test_no_more_rows_are_held_than_there_is_room_for(name: str, capacity: int) -> None:
    played = crowd(150, 60, Policy(KAnonymity(4), DistinctLDiversity(2)))
    engine = played.start(find(name)(capacity=capacity))  # type: ignore[call-arg]
    for i in range(len(played)):
        engine.push(Codes(*(column[i : i + 1] for column in played.codes)))
        assert engine.n_held <= capacity
    engine.flush()
    assert engine.n_held == 0


def longest_wait(capacity: int, n_rows: int) -> int:
    """The most rows that may arrive after a row before it is due, if decisions take at most n rows.

    At worst it is the newest of C rows. With one more, the oldest leaves, and at most n - 1 others
    that came later than the row; then as many rows arrive as have left, and so on.
    """
    return 1 + sum(min(n_rows, 1 + i) for i in range(1, capacity))


@pytest.mark.parametrize(("k", "capacity"), [(1, 4), (2, 2), (3, 6), (4, 5), (2, 9)])
@pytest.mark.parametrize("name", ["fads", "idea"])
def test_the_longest_wait_with_groups_of_k_rows(name: str, k: int, capacity: int) -> None:
    # Some rows far apart, then the one that is nobody's neighbour. All others come to the oldest.
    older = [5.0 * n for n in range(capacity - k + 1)]
    rows = [*older, 100.0, *[0.0] * (k - 1)]
    for at in [*older[1:], 50.0]:
        rows += [at] * k
    played = stream([(value, n) for n, value in enumerate(rows)], Policy(KAnonymity(k)))
    engine = played.start(find(name)(capacity=capacity))  # type: ignore[call-arg]
    decided = engine.push(played.codes)
    longest = waited(decided)[decided.rows == len(older)].tolist()
    assert longest == [k * (capacity - k + 2) - 1]
    assert longest[0] <= longest_wait(capacity, k) <= k * capacity


@pytest.mark.parametrize("seed", range(3))
@EVERY
def test_no_row_waits_longer_by_count(name: str, seed: int) -> None:
    k, capacity = 4, 25
    for promise in (Policy(KAnonymity(k)), Policy(KAnonymity(k), DistinctLDiversity(3))):
        played = crowd(500, 80, promise, seed)
        longest = int(waited(play(find(name)(capacity=capacity), played)).max())  # type: ignore[call-arg]
        assert capacity < longest <= SPAN * capacity
        if name in OF_K_ROWS and not promise.diversity:
            workers = 2 if name == "fast" else 0
            assert longest <= k * (capacity + workers)
        assert longest <= longest_wait(capacity, capacity) == capacity * (capacity + 1) // 2


@EVERY
def test_the_delay_is_a_hard_bound_beside_it(name: str) -> None:
    promise = Policy(KAnonymity(4), delay=Delay(rows=30))
    decided = play(find(name)(capacity=25), crowd(500, 80, promise))  # type: ignore[call-arg]
    assert waited(decided).max() == 30


@EVERY
def test_a_row_that_never_leaves_by_count_leaves_in_the_end(name: str) -> None:
    """One person floods the stream; of all who are held there are too few for a group."""
    rows = [(50.0, "a"), (51.0, "b"), *[(50.0, "c")] * 400]
    anonymizer = find(name)(capacity=10)  # type: ignore[call-arg]
    played = stream(rows, Policy(KAnonymity(4)))
    decided = play(anonymizer, played)
    assert len(decided.rows) == len(rows)
    assert waited(decided).max() <= SPAN * 10


# -- the paper -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [5, 12])
@pytest.mark.parametrize("name", ON_DEADLINE)
def test_it_is_what_the_paper_says(name: str, delta: int) -> None:
    """IDEA, Algorithm 1, line 6: publish when as many rows as delta are held."""
    draw = random.Random(delta)
    rows = [(draw.randrange(100), f"s{n}") for n in range(120)]
    literal, _ = both(name, "deadlines_by_position")
    paper = feed(line(name, 3, delay_rows=delta, kept=0, deviations=literal), rows, end=False)
    played = stream(rows, Policy(KAnonymity(3)))
    decided = played.start(find(name)(capacity=delta - 1)).push(  # type: ignore[call-arg]
        played.codes
    )
    assert len(paper) > 80
    assert {(d.row, d.published, d.outcome) for d in paper} == {
        (row, at, ["group", "reuse", "suppressed"][outcome])
        for row, at, outcome in zip(
            decided.rows.tolist(), decided.published.tolist(), decided.outcomes.tolist(),
            strict=True,
        )
    }  # fmt: skip
    assert {frozenset(rows) for rows in groups(decided)} == {
        frozenset(d.row for d in paper if d.group == number) for number in {d.group for d in paper}
    }


# -- FAST ------------------------------------------------------------------------------------------


def test_in_a_round_every_worker_decides_its_oldest_row() -> None:
    played = crowd(400, 400, Policy(KAnonymity(3)))
    engine = played.start(Fast(workers=3, capacity=59))
    decided = engine.push(played.codes)
    rounds = {at: decided.rows[decided.published == at] for at in set(decided.published.tolist())}
    # A round for each 3 groups of 3 rows: as many rows come as have left.
    assert {len(rows) for rows in rounds.values()} == {9}
    assert sorted(rounds) == list(range(59, 400, 9))
    # Every third row is the same worker's.
    assert {0, 1, 2} <= set(rounds[59].tolist())


def test_workers_have_equally_many_rows() -> None:
    played = crowd(400, 400, Policy(KAnonymity(3)))
    engine = played.start(Fast(workers=3, capacity=60))
    for begin in range(0, 400, 50):
        engine.push(Codes(*(column[begin : begin + 50] for column in played.codes)))
        marks = engine.state.columns.marks[:, 0]  # type: ignore[attr-defined]
        held = marks["n"] - marks["n_holes"]
        if begin > 50:
            # Before a round they have 20 or 21 each, and 3 leave each of them in it.
            assert set(held.tolist()) <= {17, 18}


def test_without_room_there_are_no_blocks() -> None:
    with pytest.raises(ParameterError, match=r"Fast\.block: must be left out"):
        Fast(block=5, capacity=20)


def test_a_capacity_that_is_never_reached_costs_no_rounds() -> None:
    """Deadlines come long before: there are two rounds in a delay."""
    played = crowd(400, 400, Policy(KAnonymity(3), delay=Delay(rows=40)))
    engine = played.start(Fast(workers=2, capacity=5_000))
    decided = engine.push(played.codes)
    assert len(set(decided.published.tolist())) <= 2 * 400 // 40


# -- ages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fads", "fast"])
@pytest.mark.parametrize(("unit", "age"), [("rows", 7), ("rounds", 7), ("rows", 3)])
def test_groups_get_older_by_rows_or_by_rounds(name: str, unit: str, age: int) -> None:
    """After the group of a and b, c joins it alone, for as long as it is young enough."""
    rows = [(50.0, "a"), (50.0, "b"), *[(50.0, "c")] * 30]
    knobs: dict[str, Any] = {"workers": 1} if name == "fast" else {}
    anonymizer = find(name)(
        capacity=3, kept=9, age=age, age_unit=unit, joins="alone", **knobs
    )  # fmt: skip
    played = stream(rows, Policy(KAnonymity(2)))
    decided = played.start(anonymizer).push(played.codes)
    made = int(decided.published[decided.outcomes == 0][0])
    times = decided.published[decided.outcomes == 1]
    rounds = {at: number for number, at in enumerate(sorted(set(decided.published.tolist())))}
    ages = [at - made if unit == "rows" else rounds[at] - rounds[made] for at in times.tolist()]
    assert max(ages) == age


# -- the contract ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "check",
    [
        checks.check_promise, checks.check_conservation, checks.check_cover, checks.check_batching,
        checks.check_resume, checks.check_seeded, checks.check_relabelled, checks.check_delay,
        checks.check_inputs,
    ],
)  # fmt: skip
@EVERY
def test_the_contract_by_count_alone(name: str, check: Any) -> None:
    played = crowd(120, 40, Policy(KAnonymity(3), DistinctLDiversity(2)))
    check(find(name)(capacity=20, kept=5), played)  # type: ignore[call-arg]


@EVERY
def test_memory_is_bounded_by_the_capacity(name: str) -> None:
    checks.check_memory(find(name)(capacity=20))  # type: ignore[call-arg]
    played = crowd(3_000, 3_000, Policy(KAnonymity(3)))
    engine = played.start(find(name)(capacity=20))  # type: ignore[call-arg]
    for i in range(0, 3_000, 10):
        engine.push(Codes(*(column[i : i + 10] for column in played.codes)))
    assert len(engine.state.held.rows) <= 512  # type: ignore[attr-defined]
