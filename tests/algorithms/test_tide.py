"""TIDE by its engine: batches, groups around a row, promises, bounds and threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from shoal import (
    Delay,
    DistinctLDiversity,
    EntropyLDiversity,
    Hierarchy,
    KAnonymity,
    Policy,
    Quasi,
    Range,
    Schema,
    Sensitive,
    TCloseness,
    Window,
)
from shoal.algorithms import Castle, Fads, Idea, Tide, TideTable, TMondrian
from shoal.algorithms import tide as tide_module
from shoal.engine import Codes, Decisions
from shoal.engine.tide import by_batch, forming
from shoal.errors import ParameterError, UnsupportedError
from shoal.spec.policy import Criterion
from shoal.testing.checks.published import judge
from shoal.testing.streams import Stream, play
from tests.algorithms.rows import GAP, groups, outcomes, sides, stream


def decided(
    rows: list[tuple[Any, ...]], *more: Criterion, k: int = 2, delay: int = 3, **knobs: Any
) -> Decisions:
    """What is decided while rows come."""
    played = stream(rows, Policy(KAnonymity(k), *more, delay=Delay(rows=delay)))
    return played.start(Tide(**knobs)).push(played.codes)


def many(n: int, k: int, delay: int, *more: Criterion, n_subjects: int = 0) -> Stream:
    """Rows of two numbers, some of them of the same people."""
    draw = np.random.default_rng(n)
    people = draw.integers(0, n_subjects, n) if n_subjects else np.arange(n)
    rows = [
        ((float(a), float(b)), int(person), int(value))
        for a, b, person, value in zip(
            draw.integers(0, 101, n), draw.normal(50, 15, n).clip(0, 100), people,
            draw.integers(0, 4, n), strict=True,
        )
    ]  # fmt: skip
    window = Window(rows=2 * delay) if any(isinstance(m, TCloseness) for m in more) else None
    return stream(rows, Policy(KAnonymity(k), *more, delay=Delay(rows=delay), window=window))


# -- batches ---------------------------------------------------------------------------------------


def test_all_held_rows_leave_at_once_but_for_the_youngest() -> None:
    """k people stay, so that the end of the stream finds a group, whenever it comes."""
    rows = [(value, person) for person, value in enumerate([10, 80, 12, 82, 50, 52])]
    assert groups(decided(rows, delay=5)) == [{0, 2}, {1, 3}]


def test_groups_are_formed_together() -> None:
    """Around the first row alone, 20 and 30 would leave, and 0 and 60 would be left."""
    rows = [(30, "a"), (20, "b"), (40, "c"), (0, "d"), (90, "e"), (91, "f")]
    found = decided(rows, delay=5)
    assert sorted(map(sorted, groups(found))) == [[0, 2], [1, 3]]


def test_further_rows_of_a_person_follow_to_where_they_cost_least() -> None:
    rows = [(10, "a"), (12, "b"), (80, "c"), (82, "d"), (81, "a"), (50, "e"), (51, "f")]
    found = decided(rows, delay=6)
    assert sorted(map(sorted, groups(found))) == [[0, 1], [2, 3, 4]]


def test_a_person_alone_is_suppressed_and_others_wait() -> None:
    rows = [(10, "a"), (11, "a"), (12, "a"), (13, "a"), (14, "b")]
    assert outcomes(decided(rows, delay=3)) == {
        0: "suppressed",
        **dict.fromkeys(range(1, 5), "group"),
    }


def test_more_effort_loses_less() -> None:
    played = many(600, 5, 200)
    losses = [float(play(Tide(effort=e), played).losses.mean()) for e in (0, 5, 40)]
    assert losses[0] > losses[1] > losses[2]


def test_a_batch_of_large_groups_loses_less_than_group_by_group() -> None:
    played = many(2000, 40, 400)
    assert play(Tide(), played).losses.mean() < play(Tide(release="rolling"), played).losses.mean()


@pytest.mark.parametrize("release", ["batch", "rolling"])
def test_nothing_is_reused_and_nobody_leaves_alone(release: Any) -> None:
    found = play(Tide(release=release), many(400, 4, 60, n_subjects=90))
    assert set(found.outcomes.tolist()) == {0}
    assert (found.n_subjects >= 4).all()


def test_rows_that_lack_the_same_values_leave_together() -> None:
    rows = [((50, GAP), "a"), ((50, 50), "b"), ((55, GAP), "c"), ((55, 50), "d")]
    rows += [((50, 50), "e"), ((50, 50), "f")]
    policy = Policy(KAnonymity(2), delay=Delay(rows=5), missing="maybe")
    played = stream(rows, policy)
    found = played.start(Tide()).push(played.codes)
    assert sorted(map(sorted, groups(found))) == [[0, 2], [1, 3]]
    assert sides(found, 0) == [(50.0, 55.0), (np.inf, -np.inf)]


# -- promises --------------------------------------------------------------------------------------


def test_a_group_grows_until_it_is_diverse() -> None:
    rows = [(10, "a", 0), (11, "b", 0), (12, "c", 0), (30, "d", 1), (90, "e", 0), (91, "f", 1)]
    found = decided(rows, DistinctLDiversity(2), delay=5)
    assert groups(found) == [{0, 1, 2, 3}]


@pytest.mark.parametrize("release", ["batch", "rolling"])
@pytest.mark.parametrize(
    "criterion", [DistinctLDiversity(3), EntropyLDiversity(2.5), TCloseness(0.25)]
)
def test_promises_are_kept_where_people_have_several_rows(release: Any, criterion: Any) -> None:
    """Further rows of a person change the counts of a group, which is checked after them."""
    played = many(500, 5, 120, criterion, n_subjects=120)
    if isinstance(criterion, TCloseness):
        schema = Schema("person", played.schema.quasi, [Sensitive("s", Range(0, 3))])
        played = Stream(schema, played.policy, played.codes)
    anonymizer = Tide(release=release)
    found = play(anonymizer, played)
    judge(anonymizer, played, found)
    assert np.count_nonzero(found.outcomes == 0) > 400


def test_a_part_that_fails_is_merged_and_not_suppressed() -> None:
    """All of one value on the left, all of the other on the right: only together they may leave."""
    rows = [(float(i), i, 0) for i in range(6)] + [(90.0 + i, 10 + i, 1) for i in range(6)]
    played = stream(rows, Policy(KAnonymity(2), DistinctLDiversity(2), delay=Delay(rows=50)))
    found = play(Tide(), played)
    assert set(found.outcomes.tolist()) == {0}


def alike_by_place(n: int, policy: Policy) -> Stream:
    """Rows that have nearly the same sensitive value where they are near each other."""
    draw = np.random.default_rng(n)
    places, noise = draw.integers(0, 101, (n, 2)), draw.normal(0, 15, n)
    values = ((places[:, 0] + noise).clip(0, 99) // 10).astype(int)
    rows = [((float(a), float(b)), i, int(values[i])) for i, (a, b) in enumerate(places)]
    played = stream(rows, policy)
    schema = Schema("person", played.schema.quasi, [Sensitive("s", Range(0, 9))])
    return Stream(schema, policy, played.codes)


def test_under_a_tight_t_less_is_lost_than_by_cuts_at_medians() -> None:
    """The cuts are the start, and the groups are repaired by shares of the sensitive values."""
    played = alike_by_place(600, Policy(KAnonymity(4), TCloseness(0.12), window="all"))
    found, cut = play(TideTable(), played), play(TMondrian(), played)
    judge(TideTable(), played, found)
    assert set(found.outcomes.tolist()) == {0}
    assert found.losses.mean() < 0.9 * cut.losses.mean()


def test_under_a_tight_t_a_stream_has_many_groups() -> None:
    policy = Policy(KAnonymity(4), TCloseness(0.12), delay=Delay(rows=300), window=Window(rows=600))
    played = alike_by_place(900, policy)
    found = play(Tide(), played)
    judge(Tide(), played, found)
    assert set(found.outcomes.tolist()) == {0}
    assert len(groups(found)) > 40


# -- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["batch", "rolling"])
def test_a_capacity_bounds_what_is_held(release: Any) -> None:
    played = many(300, 3, 10_000)
    engine = played.start(Tide(release=release, capacity=50))
    for i in range(300):
        engine.push(Codes(*(column[i : i + 1] for column in played.codes[:4])))
        assert engine.n_held <= 50


def test_a_capacity_is_bound_enough() -> None:
    played = many(300, 3, 10_000)
    free = Stream(played.schema, Policy(KAnonymity(3)), played.codes)
    assert set(play(Tide(capacity=40), free).outcomes.tolist()) == {0}
    with pytest.raises(UnsupportedError, match="neither the policy nor a capacity bounds"):
        free.start(Tide())
    with pytest.raises(UnsupportedError, match="never has the 3 people"):
        free.start(Tide(capacity=1))


def test_many_held_rows_are_decided_earlier() -> None:
    """To decide 50,000 rows takes about a second: they are due that much before the delay is up."""
    played = many(50_000, 3, 10_000)
    policy = Policy(KAnonymity(3), delay=Delay(seconds=60.0))
    for n, deadline in ((100, 60.0 - 0.002), (50_000, 59.0)):
        engine = Stream(played.schema, policy, played.codes).start(Tide())
        part = Codes(*(column[:n] for column in played.codes[:4]))
        engine.push(part._replace(times=np.zeros(n)))
        assert engine.next_deadline == pytest.approx(deadline)
        assert engine.n_held == n


# -- threads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Tide, TideTable])
def test_any_number_of_workers_decides_alike(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forming, "CELL", 100)
    monkeypatch.setattr(forming, "CHUNK", 8)
    monkeypatch.setattr(forming, "PIECE", 50)
    for module in (by_batch, tide_module):
        monkeypatch.setattr(module, "WORTH_A_THREAD", 1)
    played = many(900, 3, 450, DistinctLDiversity(2))
    if kind is TideTable:
        policy = Policy(KAnonymity(3), DistinctLDiversity(2), window="all")
        played = Stream(played.schema, policy, played.codes)
    one, *others = (play(kind(workers=n), played) for n in (1, 2, 5))
    judge(kind(), played, one)
    for other in others:
        for before, after in zip(one, other, strict=True):
            np.testing.assert_array_equal(before, after)


def test_batches_of_one_push_are_formed_at_once_and_published_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some people have several rows, and the first rows are too few people for a group."""
    monkeypatch.setattr(by_batch, "WORTH_A_THREAD", 1)
    played = many(900, 3, 60, n_subjects=250)
    one, two = (played.start(Tide(workers=n)) for n in (1, 2))
    before, after = (engine.push(played.codes) for engine in (one, two))
    assert len(np.unique(before.instants)) > 10
    for expected, found in zip(before, after, strict=True):
        np.testing.assert_array_equal(expected, found)
    states = [engine.snapshot() for engine in (one, two)]
    for name in states[0]:
        assert states[0][name].tobytes() == states[1][name].tobytes()


def test_a_snapshot_continues_with_any_number_of_workers() -> None:
    played = many(900, 3, 60)
    first, second = (
        Codes(*(column[part] for column in played.codes[:4]))
        for part in (slice(0, 500), slice(500, 900))
    )
    one = played.start(Tide(workers=1))
    one.push(first)
    expected = None
    for workers in (1, 2, 0):
        other = played.start(Tide(workers=workers))
        other.restore(one.snapshot())
        found = [other.push(second), other.flush()]
        expected = expected or found
        for before, after in zip(expected, found, strict=True):
            for column, same in zip(before, after, strict=True):
                np.testing.assert_array_equal(column, same)


def test_few_rows_start_no_thread() -> None:
    played, before = many(900, 3, 450), threading.active_count()
    engine = played.start(Tide(workers=4))
    engine.push(played.codes)
    engine.flush()
    assert threading.active_count() == before


@pytest.mark.parametrize("kind", [Tide, TideTable])
def test_beside_other_engines_there_is_one_worker_unless_asked(kind: Any) -> None:
    assert kind().workers == 0
    assert kind(effort=7).beside_others() == kind(effort=7, workers=1)
    assert kind(workers=3).beside_others() == kind(workers=3)
    assert Castle().beside_others() == Castle()


# -- simple data -----------------------------------------------------------------------------------


def simple(kind: str, k: int, delay: int, rows: int = 4000) -> Stream:
    """One to three attributes with few values, most of them rare."""
    draw = np.random.default_rng(7)

    def skewed(n: int) -> Any:
        return draw.choice(n, rows, p=(w := 1 / np.arange(1, n + 1)) / w.sum()).astype(float)

    def leaves(n: int) -> Quasi:
        twigs = {f"g{i}": [f"{i}.{j}" for j in range(n // 4)] for i in range(4)}
        return Quasi(f"tree {n}", Hierarchy.from_dict({"any": twigs}))

    age = Quasi("age", Range(0, 100, step=1))
    ages = draw.normal(40, 12, rows).round().clip(0, 100)
    place = draw.integers(0, [101, 20], (40, 2))[skewed(40).astype(int)].astype(float)
    quasi, values = {
        "a tree": ([leaves(20)], [skewed(20)]),
        "age": ([age], [ages]),
        "age and tree": ([age, leaves(20)], [ages, skewed(20)]),
        "40 places": ([age, leaves(20)], [place[:, 0], place[:, 1]]),
        "three": ([leaves(4), leaves(8), leaves(12)], [skewed(4), skewed(8), skewed(12)]),
    }[kind]
    codes = Codes(
        np.column_stack(values), np.arange(rows), np.zeros((rows, 0), np.int64),
        np.full(rows, np.nan),
    )  # fmt: skip
    return Stream(Schema(None, quasi), Policy(KAnonymity(k), delay=Delay(rows=delay)), codes)


def lost(anonymizer: Any, played: Stream) -> float:
    return float(play(anonymizer, played).losses.mean())


@pytest.mark.parametrize("n", [(14, 16), (10, 29), (19, 11)])
def test_equal_rows_stay_together(n: tuple[int, int]) -> None:
    """Rows like those of a group, too few for another one, would have to leave with strangers."""
    rows = [((20.0, 20.0), i) for i in range(n[0])] + [((80.0, 80.0), 50 + i) for i in range(n[1])]
    order = np.random.default_rng(1).permutation(len(rows))
    played = stream([rows[i] for i in order], Policy(KAnonymity(10), delay=Delay(rows=100)))
    found = play(Tide(), played)
    assert not found.losses.any()
    assert (found.n_rows < 20).all()


def test_equal_rows_stay_together_only_if_they_are_diverse() -> None:
    rows = [((20.0, 20.0), i, int(i == 0)) for i in range(14)]
    rows += [((80.0, 80.0), 50 + i, i % 2) for i in range(14)]
    played = stream(
        rows, Policy(KAnonymity(10), EntropyLDiversity(1.6), delay=Delay(rows=100))
    )  # fmt: skip
    judge(Tide(), played, play(Tide(), played))


@pytest.mark.parametrize(
    ("kind", "release", "delay"),
    [
        ("age and tree", "batch", 500), ("three", "batch", 500),
        ("age and tree", "batch", 1000), ("three", "batch", 1000),
        ("age and tree", "rolling", 500), ("three", "rolling", 500),
        ("40 places", "rolling", 500),
    ],
)  # fmt: skip
def test_no_method_of_the_papers_loses_less_on_some_simple_data(
    kind: str, release: Any, delay: int
) -> None:
    """These are the cases where that is so; docs/algorithms/tide.md has those where it isn't."""
    played = simple(kind, 10, delay)
    others = [lost(other(), played) for other in (Castle, Fads, Idea)]
    assert lost(Tide(release=release), played) <= min(others)


# -- knobs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "release"), [(15, "rolling"), (16, "batch")])
def test_auto_chooses_by_the_people_that_a_group_needs(k: int, release: str) -> None:
    assert Tide(release="auto").released(k)[0] == release
    played = many(200, k, 100)
    chosen, named = (play(Tide(release=r), played) for r in ("auto", release))  # type: ignore[arg-type]
    np.testing.assert_array_equal(chosen.lo, named.lo)


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"release": "never"}, r"Tide\.release: must be one of batch, rolling, auto; got 'never'"),
        ({"effort": -1}, r"Tide\.effort: must be a whole number of at least 0; got -1"),
        ({"effort": 5000}, r"Tide\.effort: must be at most 1,000; got 5000"),
        ({"workers": -1}, r"Tide\.workers: must be a whole number of at least 0; got -1"),
        ({"workers": 65}, r"Tide\.workers: must be at most 64; got 65"),
        ({"capacity": -1}, r"Tide\.capacity: must be a whole number of at least 0; got -1"),
    ],
)
def test_knobs_that_make_no_sense_are_refused(knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Tide(**knobs)
