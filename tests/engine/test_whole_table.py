"""Whole tables: all rows are held until the end, and leave under the promise or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.algorithms import find, names
from shoal.engine import Codes, Engine
from shoal.engine.base import Outcome
from shoal.errors import ParameterError
from shoal.spec.criteria import Criterion, EnhancedLikeness, KAnonymity, TCloseness
from shoal.testing.streams import batch, difference, joined
from tests.algorithms.rows import groups, outcomes
from tests.naive.papers.test_emd import DISEASES
from tests.tables import Table, codes, drifting, start

#: Those that are there, with what each is for.
NAMES = [name for name in ("sabre-ak", "sabre-knn", "burel") if name in names()]
PROMISE: dict[str, Criterion] = {
    "sabre-ak": TCloseness(0.3),
    "sabre-knn": TCloseness(0.3),
    "burel": EnhancedLikeness(1.0),
}


def begun(name: str, k: int = 2, seed: bytes = b"1") -> Engine:
    return start(name, KAnonymity(k), PROMISE[name], domains=[DISEASES], seed=seed)


def people(n_rows: int) -> Codes:
    return codes(drifting(3, n_rows, n_subjects=max(1, n_rows // 2)), [DISEASES])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_leaves_before_the_end(name: str) -> None:
    engine, rows = begun(name), people(30)
    assert len(engine.push(rows).rows) == 0
    assert len(engine.advance(1e9).rows) == 0
    assert (engine.n_held, engine.next_deadline) == (30, None)
    decided = engine.flush()
    assert sorted(decided.rows.tolist()) == list(range(30))
    assert set(decided.published.tolist()) == {30}
    assert engine.n_held == 0


@pytest.mark.parametrize("name", NAMES)
def test_groups_tell_the_window_of_all_rows(name: str) -> None:
    engine = begun(name)
    engine.push(people(30))
    decided = engine.flush()
    assert len(decided.groups) > 1
    assert decided.groups.tolist() == list(range(len(decided.groups)))
    assert set(decided.windows.tolist()) == {30}
    assert np.isnan(decided.published_s).all()


def test_without_a_measure_there_is_no_window() -> None:
    table = Table(drifting(3, 30), KAnonymity(3), domains=[DISEASES])
    decided = table.run("sabre-ak")
    assert set(decided.windows.tolist()) == {-1}
    assert all(table.keeps(sorted(group)) for group in groups(decided))


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_table(name: str) -> None:
    engine = begun(name)
    assert len(engine.flush().rows) == 0
    assert len(engine.advance(3.0).rows) == 0
    assert len(engine.push(people(0)).rows) == 0
    assert len(engine.flush().rows) == 0
    engine.push(people(30))
    assert len(engine.flush().rows) == 30


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("k", "outcome"), [(1, Outcome.group), (2, Outcome.suppressed)])
def test_a_single_row(name: str, k: int, outcome: Outcome) -> None:
    engine = begun(name, k)
    engine.push(people(1))
    decided = engine.flush()
    assert (decided.rows.tolist(), decided.outcomes.tolist()) == ([0], [outcome])
    assert decided.losses.tolist() == [0.0 if outcome == Outcome.group else 1.0]


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_one_subject_are_suppressed_in_order_of_arrival(name: str) -> None:
    rows = people(12)
    engine = begun(name)
    engine.push(rows._replace(subjects=np.zeros(12, np.int64)))
    decided = engine.flush()
    assert decided.rows.tolist() == list(range(12))
    assert set(decided.outcomes.tolist()) == {Outcome.suppressed}
    assert set(decided.boxes.tolist()) == {-1}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cuts", [[0, 0, 30], [1, 2, 29], [15], list(range(31))])
def test_batching_does_not_matter(name: str, cuts: list[int]) -> None:
    rows = people(300)
    found = []
    for at in ([], [10 * cut for cut in cuts]):
        engine = begun(name)
        decided = [
            engine.push(batch(rows, begin, end))
            for begin, end in zip([0, *at], [*at, 300], strict=True)
        ]
        found.append(joined([*decided, engine.flush()]))
    assert difference(*found) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_snapshot_in_the_middle_of_a_table(name: str) -> None:
    rows = people(300)
    first, second = batch(rows, 0, 290), batch(rows, 290, 300)
    one, other = begun(name), begun(name, seed=b"other")
    one.push(first)
    snapshot = one.snapshot()
    one.push(second)
    expected = one.flush()
    other.restore(snapshot)
    assert other.n_held == 290
    other.push(second)
    assert difference(expected, other.flush()) is None
    # What was restored from isn't changed by going on.
    other.restore(snapshot)
    assert other.n_held == 290


@pytest.mark.parametrize("name", NAMES)
def test_a_table_that_has_ended_takes_no_more_rows(name: str) -> None:
    engine = begun(name)
    engine.push(people(20))
    engine.flush()
    assert len(engine.flush().rows) == 0
    assert len(engine.push(people(0)).rows) == 0
    with pytest.raises(ParameterError, match="after the end of the table"):
        engine.push(people(3))


def test_the_latest_time_is_when_a_table_is_published() -> None:
    rows = people(6)
    for times, now, expected in (
        ([1.0, 5.0, 3.0, 2.0, 2.0, 2.0], None, 5.0),
        ([1.0, 5.0, 3.0, 2.0, 2.0, 2.0], 9.0, 9.0),
        ([np.nan, 2.0, np.nan, np.nan, np.nan, np.nan], 1.0, 2.0),
    ):
        engine = begun("sabre-ak")
        if now is not None:
            engine.advance(now)
        engine.push(rows._replace(times=np.array(times)))
        assert set(engine.flush().published_s.tolist()) == {expected}


def test_missing_values_are_in_boxes_of_all() -> None:
    anonymizer = find("sabre-ak")()
    table = Table([(x, x, x % 2) for x in range(8)], KAnonymity(2), domains=[DISEASES])
    policy = type(table.policy)(KAnonymity(2), window="all", missing="extended")
    engine = anonymizer.start(table.schema, policy, seed=b"1")
    values = table.codes.values.copy()
    values[3, 0] = np.nan
    engine.push(table.codes._replace(values=values))
    decided = engine.flush()
    box = decided.boxes[decided.rows.tolist().index(3)]
    assert (decided.lo[box].tolist(), decided.hi[box].tolist()) == ([0.0], [100.0])
    assert decided.box_gaps[box] == 1
    assert outcomes(decided) == dict.fromkeys(range(8), "group")
