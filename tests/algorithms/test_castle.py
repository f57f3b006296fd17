"""CASTLE where public implementations of it were found to fail, one test for each failure."""

from __future__ import annotations

import random
from typing import Literal

import numpy as np
import pytest

from shoal import Delay, DistinctLDiversity, KAnonymity, Policy, Quasi, Range, Schema, Sensitive
from shoal.algorithms import Castle
from shoal.engine import Codes, Decisions
from shoal.engine.base import Outcome
from shoal.errors import ParameterError
from shoal.testing.streams import Stream, batch, difference, play, steps

SCHEMA = Schema("p", [Quasi("x", Range(0, 1000))], [Sensitive("s")])


def stream(
    values: list[float], subjects: list[int], policy: Policy, sensitive: list[int] | None = None
) -> Stream:
    n = len(values)
    codes = Codes(
        np.array(values, float).reshape(n, 1),
        np.array(subjects, np.int64),
        np.array(sensitive or [0] * n, np.int64).reshape(n, 1),
        np.full(n, np.nan),
    )
    return Stream(SCHEMA, policy, codes)


def crowd(
    n_rows: int, n_subjects: int, policy: Policy, *, drift: float = 0.0, seed: int = 1
) -> Stream:
    """People with a home and many rows near it; homes spread out as the stream goes on."""
    draw = random.Random(seed)
    homes = [draw.uniform(0, 900) for _ in range(n_subjects)]
    subjects = [draw.randrange(n_subjects) for _ in range(n_rows)]
    values = [
        min(1000.0, homes[subject] * (1 - drift + drift * i / n_rows) + draw.uniform(0, 20))
        for i, subject in enumerate(subjects)
    ]
    return stream(values, subjects, policy, [draw.randrange(5) for _ in range(n_rows)])


def groups(decided: Decisions) -> list[list[int]]:
    """The rows of each box that was formed by a group."""
    return [
        decided.rows[decided.boxes == box].tolist()
        for box in range(len(decided.lo))
        if decided.n_rows[box] > 0
    ]


def test_the_delay_is_counted_from_the_position_of_the_row() -> None:
    """A buffer that reuse and suppression drain never fills up: its length isn't the delay."""
    policy = Policy(KAnonymity(2), delay=Delay(rows=4))
    drained = stream([100.0, 100, *([500.0, 900.0] * 9)], [1, 2, *([3] * 18)], policy)
    engine = drained.start(Castle(kept=10))
    decided: dict[int, int] = {}
    for move, decisions in steps(engine, drained, drained.row_by_row()):
        decided |= dict.fromkeys(decisions.rows.tolist(), move.begin)
    assert len(decided) == len(drained)
    assert all(at - row <= 4 for row, at in decided.items())
    assert sum(at - row == 4 for row, at in decided.items()) >= 10


def test_groups_are_counted_in_people_not_in_rows() -> None:
    """500 people with many rows each, k = 10: never fewer than 10 people, though rows abound."""
    many = crowd(2500, 500, Policy(KAnonymity(10), delay=Delay(rows=100)))
    decided = play(Castle(clusters=10), many)
    counts = [len(set(many.codes.subjects[rows].tolist())) for rows in groups(decided)]
    assert len(counts) > 20
    assert min(counts) >= 10
    assert any(len(rows) > len(set(many.codes.subjects[rows].tolist())) for rows in groups(decided))


def test_the_box_covers_the_expiring_row_itself() -> None:
    """The row that is due lies at the edge of its cluster; the others alone have a smaller box."""
    policy = Policy(KAnonymity(3), delay=Delay(rows=3))
    decided = play(Castle(clusters=1), stream([10.0, 40, 50, 45], [1, 2, 3, 4], policy))
    assert decided.lo.tolist() == [[10.0]]
    assert decided.hi.tolist() == [[50.0]]
    assert sorted(decided.rows.tolist()) == [0, 1, 2, 3]


def test_the_threshold_follows_the_latest_groups() -> None:
    """On a stream that spreads out, the mean over the oldest groups would stay behind."""
    recent = 5
    drifting = crowd(600, 600, Policy(KAnonymity(3), delay=Delay(rows=30)), drift=1.0)
    engine = drifting.start(Castle(clusters=5, recent=recent, kept=0))
    losses: list[float] = []
    for move, decided in steps(engine, drifting, drifting.row_by_row()):
        losses += decided.loss.tolist()
        if losses and move.verb == "push":
            threshold = engine.state.marks["threshold"][0]
            assert threshold == pytest.approx(np.mean(losses[-recent:]), rel=1e-12)
    assert np.mean(losses[-recent:]) != pytest.approx(np.mean(losses[:recent]), rel=0.2)


@pytest.mark.parametrize("clusters", [1, 2, 7])
def test_no_more_clusters_are_open_than_the_limit(clusters: int) -> None:
    spread = crowd(300, 300, Policy(KAnonymity(3), delay=Delay(rows=40)))
    engine = spread.start(Castle(clusters=clusters))
    n_open = [
        int(engine.state.marks["n_open"][0]) for _ in steps(engine, spread, spread.row_by_row())
    ]
    assert max(n_open) == clusters
    assert n_open[-1] == 0


def test_the_last_rows_of_the_stream_are_not_lost() -> None:
    """The stream ends long before the delay is over: all rows are still decided, as groups."""
    policy = Policy(KAnonymity(3), delay=Delay(rows=10_000))
    decided = play(Castle(), crowd(50, 40, policy))
    assert sorted(decided.rows.tolist()) == list(range(50))
    assert (decided.outcomes == Outcome.group).all()


def test_a_remainder_that_cannot_stand_alone_comes_along() -> None:
    policy = Policy(KAnonymity(3), delay=Delay(rows=100))
    values = [0.0, 1, 2, 500, 501, 502, 1000]
    decided = play(Castle(), stream(values, [1, 2, 3, 4, 5, 6, 7], policy))
    assert (decided.outcomes == Outcome.group).all()


def test_a_state_can_be_restored_in_the_middle() -> None:
    """With clusters open, groups kept, and the ring of held rows grown and turned around."""
    policy = Policy(KAnonymity(4), DistinctLDiversity(2), delay=Delay(rows=300))
    long = crowd(900, 300, policy)
    engine, half = long.start(Castle(clusters=8)), 700
    engine.push(batch(long.codes, 0, half))
    assert engine.n_held > 0
    snapshot = engine.snapshot()
    rest = batch(long.codes, half, len(long))
    fresh = long.start(Castle(clusters=8), seed=b"other")
    fresh.restore(snapshot)
    for left, right in ((engine.push(rest), fresh.push(rest)), (engine.flush(), fresh.flush())):
        assert difference(left, right) is None


@pytest.mark.parametrize(("k", "l"), [(3, 2), (5, 3), (7, 4), (2, 5)])
def test_shares_that_are_not_whole_crash_nothing(k: int, l: int) -> None:  # noqa: E741
    """Values occur 1, 2, 4, 8 and 16 times in 31: no part can have its exact share of them."""
    sensitive = [0] * 16 + [1] * 8 + [2] * 4 + [3] * 2 + [4]
    order = list(range(31))
    random.Random(3).shuffle(order)
    policy = Policy(KAnonymity(k), DistinctLDiversity(l), delay=Delay(rows=31))
    uneven = stream([float(i) for i in range(31)], order, policy, [sensitive[i] for i in order])
    decided = play(Castle(clusters=1), uneven)
    assert sorted(decided.rows.tolist()) == list(range(31))
    formed = groups(decided)
    assert formed
    for rows in formed:
        assert len(rows) >= k
        assert len({sensitive[order[row]] for row in rows}) >= l


@pytest.mark.parametrize(("reuse", "n_boxes"), [("best", 1), ("random", 2)])
def test_reuse_is_by_chance_unless_asked_for_the_best(
    reuse: Literal["best", "random"], n_boxes: int
) -> None:
    """The groups [100, 300] and [190, 210] both cover the rows at 200."""
    policy = Policy(KAnonymity(2), delay=Delay(rows=1))
    values = [100.0, 300, 190, 210, *([200.0, 900.0] * 10)]
    lonely = stream(values, [1, 2, 3, 4, *([9] * 20)], policy)
    decided = play(Castle(clusters=1, kept=1000, joins="alone", reuse=reuse), lonely)
    reused = decided.boxes[decided.outcomes == Outcome.reuse]
    assert len(reused) == 10
    assert len(set(decided.groups[reused].tolist())) == n_boxes
    assert decided.lo[reused].max() == 190.0


@pytest.mark.parametrize(
    ("knob", "value"),
    [("clusters", 0), ("recent", 0), ("kept", -1), ("reuse", "worst"), ("clusters", 2.0)],
)
def test_knobs_that_make_no_sense_are_refused(knob: str, value: object) -> None:
    with pytest.raises(ParameterError, match=rf"Castle\.{knob}"):
        Castle(**{knob: value})  # type: ignore[arg-type]


def test_the_next_deadline_is_that_of_the_oldest_row() -> None:
    engine = Castle().start(SCHEMA, Policy(KAnonymity(2), delay=Delay(seconds=5.0)), seed=b"1")
    assert engine.next_deadline is None
    engine.push(stream([1.0], [1], Policy(KAnonymity(2))).codes._replace(times=np.array([3.0])))
    assert engine.next_deadline == 8.0
    assert len(engine.advance(7.9).rows) == 0
    decided = engine.advance(8.0)
    assert decided.outcomes.tolist() == [Outcome.suppressed]
    assert decided.published_s.tolist() == [8.0]
    assert engine.next_deadline is None


def test_a_tick_doesnt_make_a_row_younger_that_was_on_its_way() -> None:
    policy = Policy(KAnonymity(2), delay=Delay(seconds=2))
    four = stream([1.0, 2.0, 3.0, 4.0], [1, 2, 3, 4], policy)
    codes = four.codes._replace(times=np.array([0.0, 1.0, 1.0, 1.0]))
    engine = four.start(Castle())
    engine.push(Codes(*(array[:1] for array in codes)))
    assert len(engine.advance(2.1).rows) == 1
    # It was read at 1.0, and a queue or a slow sink has kept it from the engine.
    assert len(engine.push(Codes(*(array[1:3] for array in codes))).rows) == 0
    assert engine.next_deadline == 3.0
    assert len(engine.advance(2.9).rows) == 0
    assert engine.advance(3.1).published_s.tolist() == [3.0, 3.0]
    # One that is overdue as it comes is decided as it comes.
    late = engine.push(Codes(*(array[3:] for array in codes)))
    assert (late.rows.tolist(), late.published.tolist()) == ([3], [3])
    assert late.published_s.tolist() == [3.0]


NOTHING = np.nan


def test_a_row_without_any_value_opens_a_cluster_that_others_join() -> None:
    """Its box is empty, and neither that of a free place nor one that nothing fits."""
    policy = Policy(KAnonymity(3), delay=Delay(rows=2), missing="maybe")
    decided = play(Castle(clusters=3), stream([NOTHING, 40.0, 60.0], [1, 2, 3], policy))
    assert [sorted(rows) for rows in groups(decided)] == [[0, 1, 2]]
    assert (decided.lo.tolist(), decided.hi.tolist()) == ([[40.0]], [[60.0]])
    assert sorted(zip(decided.rows.tolist(), decided.gaps.tolist(), strict=True)) == [
        (0, 1), (1, 0), (2, 0),
    ]  # fmt: skip


def test_a_group_that_nobody_has_a_value_for_is_empty_and_loses_nothing() -> None:
    policy = Policy(KAnonymity(2), delay=Delay(rows=5), missing="maybe")
    decided = play(Castle(), stream([NOTHING] * 3, [1, 2, 3], policy))
    assert (decided.lo.tolist(), decided.hi.tolist()) == ([[np.inf]], [[-np.inf]])
    assert decided.losses.tolist() == [0.0] * 3


def test_an_extended_value_takes_its_group_to_the_root() -> None:
    policy = Policy(KAnonymity(3), delay=Delay(rows=5), missing="extended")
    decided = play(Castle(), stream([NOTHING, 40.0, 60.0], [1, 2, 3], policy))
    assert (decided.lo.tolist(), decided.hi.tolist()) == ([[0.0]], [[1000.0]])
    by_row = decided.losses[np.argsort(decided.rows)]
    assert by_row.tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(("missing", "outcome"), [("maybe", "reuse"), ("extended", "suppressed")])
def test_a_gap_is_covered_by_any_group_unless_it_may_be_any_value(
    missing: Literal["maybe", "extended"], outcome: str
) -> None:
    policy = Policy(KAnonymity(2), delay=Delay(rows=1), missing=missing)
    # The first two are a group; then rows that lack it come, always of one person.
    kept = Castle(kept=10)
    decided = play(kept, stream([40.0, 60.0, NOTHING, NOTHING], [1, 2, 3, 3], policy))
    fate = dict(zip(decided.rows.tolist(), decided.outcomes.tolist(), strict=True))
    assert {Outcome(fate[row]).name for row in (2, 3)} == {outcome}


# -- each row is of another subject ----------------------------------------------------------------

EACH_ROW = Schema(None, SCHEMA.quasi, SCHEMA.sensitive)


def numbered(n_rows: int, *, kept: int) -> tuple[list[Decisions], list[Decisions]]:
    """What is decided about rows of different people, with a column that says so and without."""
    draw = random.Random(5)
    values = [draw.choice([draw.uniform(0, 200), draw.uniform(600, 900)]) for _ in range(n_rows)]
    policy = Policy(KAnonymity(4), delay=Delay(rows=40))
    one = stream(values, list(range(n_rows)), policy)
    castle = Castle(clusters=6, kept=kept)
    found = []
    for schema in (SCHEMA, EACH_ROW):
        engine = castle.start(schema, policy, seed=b"numbered")
        made = [engine.push(batch(one.codes, i, i + 50)) for i in range(0, n_rows, 50)]
        found.append([*made, engine.flush()])
    return found[0], found[1]


@pytest.mark.parametrize("kept", [0, 10])
def test_counting_rows_is_counting_people_where_each_row_is_another_one(kept: int) -> None:
    counted, alone = numbered(600, kept=kept)
    for a, b in zip(counted, alone, strict=True):
        for one, other in zip(a, b, strict=True):
            np.testing.assert_array_equal(one, other)
    assert sum(len(decided.rows) for decided in alone) == 600


def test_a_subject_that_comes_again_is_refused_where_rows_are_counted() -> None:
    policy = Policy(KAnonymity(2), delay=Delay(rows=9))
    for subjects in ([0, 1, 1], [0, 2, 1]):
        engine = Castle().start(EACH_ROW, policy, seed=b"again")
        with pytest.raises(ParameterError, match="must be ascending"):
            engine.push(stream([1.0, 2.0, 3.0], subjects, policy).codes)
    engine = Castle().start(EACH_ROW, policy, seed=b"again")
    engine.push(stream([1.0, 2.0], [0, 1], policy).codes)
    with pytest.raises(ParameterError, match="must be ascending"):
        engine.push(stream([3.0], [1], policy).codes)
