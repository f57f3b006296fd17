from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ParameterError
from shoal.metrics.rounds import Rounds
from tests.metrics.test_summary import a_trace


@st.composite
def decisions(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Rows in the order of their decisions: (arrived, published)."""
    waits = draw(st.lists(st.integers(0, 8), max_size=40))
    rows = [(arrived, arrived + wait) for arrived, wait in enumerate(waits)]
    return sorted(rows, key=lambda row: row[1])


def slowly(rows: list[tuple[int, int]]) -> list[int]:
    instants = {published for _, published in rows}
    return [
        max(1, sum(arrived < instant <= published for instant in instants))
        for arrived, published in rows
    ]


def fed(rows: list[tuple[int, int]], cut: int) -> Rounds:
    rounds = Rounds()
    for part in (rows[:cut], rows[cut:]):
        arrived, published = np.array(part, np.int64).reshape(-1, 2).T
        rounds.add(arrived, published)
    return rounds


@given(decisions(), st.integers(0, 40))
def test_rounds_are_counted_in_any_pieces(rows: list[tuple[int, int]], cut: int) -> None:
    expected = slowly(rows)
    rounds = fed(rows, cut)
    assert rounds.counts.count == len(expected)
    for n in range(10):
        above = sum(count > n for count in expected) / len(expected) if expected else None
        assert rounds.share_above(n) == pytest.approx(above)


def test_memory_is_bounded_by_the_delay() -> None:
    rounds = Rounds()
    rng = np.random.default_rng(5)
    for begin in range(0, 20_000, 100):
        rounds.add(begin + rng.permutation(100), np.repeat(begin + np.arange(100, 110), 10))
        state = rounds.state()
        assert len(state["instants"]) <= 20
        assert len(state["ahead"]) == 0
    assert rounds.counts.count == 20_000


def test_a_row_that_waits_long_is_remembered() -> None:
    rounds = Rounds()
    rounds.add(np.arange(1, 500), np.arange(2, 501))
    rounds.add(np.array([0]), np.array([501]))
    assert rounds.counts.largest == 500
    assert rounds.share_above(10) == pytest.approx(1 / 500)


def test_from_a_trace() -> None:
    # Rounds at 2, 7 and 8; a row that is held or quarantined takes part in none that is known.
    rounds = Rounds.from_trace(a_trace())
    assert rounds.counts.count == 8
    assert rounds.as_dict() == {"mean": 1.375, "p50": 1, "p99": 2, "max": 2}


def test_each_shard_has_rounds_of_its_own() -> None:
    """One decides at its rows 1 and 3, the other at its row 2: nobody lives through two rounds."""
    trace = pa.table(
        {
            "outcome": ["group", "group", "suppressed", "group", "held"],
            "arrived": [0, 1, 0, 1, 2],
            "published": [1, 3, 2, 2, None],
            "shard": [0, 0, 1, 1, 1],
        }
    )
    assert Rounds.from_trace(trace).as_dict() == {"mean": 1, "p50": 1, "p99": 1, "max": 1}
    as_one = Rounds.from_trace(trace.drop_columns("shard"))
    assert as_one.as_dict() == {"mean": 1.5, "p50": 1, "p99": 2, "max": 2}
    assert Rounds.from_trace(trace.slice(0, 0)).counts.count == 0


def test_nothing_yet() -> None:
    rounds = Rounds()
    rounds.add(np.empty(0, np.int64), np.empty(0, np.int64))
    assert rounds.share_above(3) is None
    assert rounds.as_dict()["mean"] is None


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(ParameterError, match="trace: lacks the columns published"):
        Rounds.from_trace(a_trace().drop_columns(["published"]))


@given(decisions(), st.integers(0, 40))
def test_a_restored_one_continues(rows: list[tuple[int, int]], cut: int) -> None:
    straight = fed(rows, cut)
    before = Rounds()
    arrived, published = np.array(rows[:cut], np.int64).reshape(-1, 2).T
    before.add(arrived, published)
    restored = Rounds()
    restored.restore(json.loads(json.dumps(before.state())))
    arrived, published = np.array(rows[cut:], np.int64).reshape(-1, 2).T
    restored.add(arrived, published)
    assert restored.state() == straight.state()
