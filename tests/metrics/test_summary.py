from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import CheckpointError, ParameterError
from shoal.metrics import Summary, summarize

NONE = np.array([], dtype=np.int64)


def a_summary() -> Summary:
    """Two groups, one reuse, two suppressed rows, in two batches."""
    summary = Summary()
    summary.n_in, summary.n_quarantined, summary.n_held = 10, 1, 1
    summary.add(
        outcome=np.array([0, 0, 0, 1], dtype=np.int8),
        loss=np.array([0.1, 0.1, 0.1, 0.5]),
        waited_rows=np.array([2, 1, 0, 4]),
        waited_s=np.array([0.2, 0.1, 0.0, 0.4]),
        group_rows=np.array([3]),
        group_subjects=np.array([2]),
        n_alone=1,
    )
    summary.add(
        outcome=np.array([2, 0, 2, 0], dtype=np.int8),
        loss=np.array([1.0, 0.3, 1.0, 0.3]),
        waited_rows=np.array([9, 3, 9, 3]),
        waited_s=np.array([0.9, 0.3, 0.9, 0.3]),
        group_rows=np.array([2]),
        group_subjects=np.array([2]),
        reasons={"too few subjects": 2},
    )
    return summary


def test_all_figures() -> None:
    found = a_summary().as_dict()
    assert found["rows"] == {
        "in": 10,
        "published": 6,
        "suppressed": 2,
        "quarantined": 1,
        "held": 1,
        "late": 0,
    }
    assert found["loss"] == pytest.approx({"published": 1.4 / 6, "with_suppressed": 3.4 / 8})
    assert found["delay"]["rows"] == pytest.approx(
        {"mean": 13 / 6, "p50": 2, "p99": 4, "max": 4}
    )  # suppressed rows were never published
    assert found["delay"]["seconds"] == pytest.approx(
        {"mean": 1.3 / 6, "p50": 0.2, "p99": 0.4, "max": 0.4}, rel=0.01
    )
    assert found["groups"] == {
        "count": 2,
        "rows": {"min": 2, "median": 2, "mean": 2.5, "max": 3},
        "subjects": {"min": 2, "median": 2, "mean": 2, "max": 2},
    }
    assert found["reuse"] == {"count": 1, "share": 1 / 6, "alone": 1}
    assert found["suppression"] == {"count": 2, "share": 0.25, "reasons": {"too few subjects": 2}}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_in_words() -> None:
    lines = a_summary().lines()
    assert lines[0] == "10 rows in, 6 published, 2 suppressed, 1 quarantined, 1 held"
    assert lines[-1] == "suppression: 2 rows, 25.0 % of those decided; 2 too few subjects"
    assert [line.split(":")[0] for line in lines[1:]] == [
        "loss",
        "delay",
        "delay",
        "groups",
        "reuse",
        "suppression",
    ]


def test_nothing_yet() -> None:
    summary = Summary()
    assert summary.lines() == ["0 rows in, 0 published, 0 suppressed, 0 quarantined, 0 held"]
    assert summary.as_dict()["loss"] == {"published": None, "with_suppressed": None}
    json.dumps(summary.as_dict(), allow_nan=False)


def test_late_rows_are_reported_if_there_are_any() -> None:
    summary = a_summary()
    assert not any(line.startswith("late") for line in summary.lines())
    summary.n_late = 3
    assert "late: 3 rows were published after their delay" in summary.lines()
    assert summary.as_dict()["rows"]["late"] == 3


def test_only_suppressed_rows() -> None:
    summary = Summary()
    ones = np.ones(2)
    summary.add(np.array([2, 2], dtype=np.int8), ones, np.array([5, 5]), None, NONE, NONE)
    assert summary.loss.with_suppressed == 1.0
    assert "loss: no published rows, 1.000 with suppressed rows as 1" in summary.lines()


def test_memory_does_not_grow_with_the_stream() -> None:
    rng = np.random.default_rng(4)
    summary = Summary()
    n_bytes = set()
    for _ in range(20):
        summary.add(
            rng.integers(0, 3, 1000).astype(np.int8),
            rng.random(1000),
            rng.integers(0, 10**6, 1000),
            rng.random(1000) * 1e4,
            rng.integers(5, 5000, 100),
            rng.integers(5, 5000, 100),
        )
        n_bytes.add(len(pickle.dumps(summary)) // 100)
    assert len(n_bytes) <= 2


# -- into a checkpoint and back --------------------------------------------------------------------


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    """One batch of decisions, as `Summary.add` takes it."""
    n, n_groups = draw(st.integers(0, 6)), draw(st.integers(0, 3))
    waits = st.integers(0, 10**9)
    seconds = st.floats(0, 1e12) | st.just(float("nan"))

    def some(kind: st.SearchStrategy[Any], n: int) -> list[Any]:
        return draw(st.lists(kind, min_size=n, max_size=n))

    return {
        "outcome": np.array(some(st.integers(0, 2), n), dtype=np.int8),
        "loss": np.array(some(st.floats(0, 1), n), dtype=np.float64),
        "waited_rows": np.array(some(waits, n), dtype=np.int64),
        "waited_s": draw(st.none() | st.just(np.array(some(seconds, n), dtype=np.float64))),
        "group_rows": np.array(some(waits, n_groups), dtype=np.int64),
        "group_subjects": np.array(some(waits, n_groups), dtype=np.int64),
        "reasons": draw(st.none() | st.dictionaries(st.sampled_from(["few", "late"]), waits)),
    }


@given(st.lists(batches(), max_size=4), st.lists(batches(), max_size=4), st.integers(0, 10**12))
def test_a_restored_one_continues_as_if_nothing_had_happened(
    before: list[dict[str, Any]], after: list[dict[str, Any]], count: int
) -> None:
    straight, restored = Summary(), Summary()
    straight.n_in, straight.n_quarantined = count, count // 2
    straight.n_held, straight.n_late = count // 3, count // 5
    for batch in before:
        straight.add(**batch)
    for batch in after:
        restored.add(**batch)  # what was counted before is forgotten
    restored.restore(json.loads(json.dumps(straight.state(), allow_nan=False)))
    for batch in after:
        straight.add(**batch)
        restored.add(**batch)
    assert restored.as_dict() == straight.as_dict()
    assert restored.state() == straight.state()


def test_a_state_is_no_view() -> None:
    summary = a_summary()
    state = summary.state()
    text = json.dumps(state)
    other = Summary()
    other.restore(state)
    other.add(np.zeros(1, np.int8), np.zeros(1), np.ones(1, np.int64), None, NONE, NONE, {"x": 1})
    assert json.dumps(state) == text
    assert json.dumps(summary.state()) == text


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state.pop("n_late"),
        lambda state: state["loss"].pop("sum"),
        lambda state: state.update(groups=None),
        lambda state: state["delay"]["rows"].update(buckets=[[10**9], [1]]),
        lambda state: state["delay"]["rows"].update(buckets=[[1]]),
    ],
)
def test_what_is_no_state_is_refused(damage: Callable[[dict[str, Any]], None]) -> None:
    state = a_summary().state()
    damage(state)
    with pytest.raises(CheckpointError, match="the figures in the checkpoint"):
        Summary().restore(state)


# -- from a trace ----------------------------------------------------------------------------------


def a_trace(**changes: object) -> pa.Table:
    columns: dict[str, object] = {
        "row": list(range(10)),
        "subject": ["a", "a", "b", "c", "d", "e", "f", "f", None, "g"],
        "outcome": ["group"] * 3
        + ["reuse", "suppressed", "group", "suppressed", "group", "quarantined", "held"],
        "arrived": [0, 1, 2, 3, 4, 5, 6, 7, None, 8],
        "published": [2, 2, 2, 7, 8, 8, 8, 8, None, None],
        "arrived_s": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, None, 0.8],
        "published_s": [0.2, 0.2, 0.2, 0.7, 0.8, 0.8, 0.8, 0.8, None, None],
        "group": [0, 0, 0, 0, None, 1, None, 1, None, None],
        "loss": [0.1, 0.1, 0.1, 0.5, 1.0, 0.3, 1.0, 0.3, None, None],
        "seq": [0, 1, 2, 3, None, 4, None, 5, None, None],
    }
    return pa.table({**columns, **changes})


def test_a_trace_gives_the_figures_of_its_run() -> None:
    found, expected = summarize(a_trace()).as_dict(), a_summary().as_dict()
    for key in ("rows", "reuse", "groups"):
        assert found[key] == expected[key]
    assert found["loss"] == pytest.approx(expected["loss"])
    assert found["delay"]["rows"] == pytest.approx({"mean": 11 / 6, "p50": 1, "p99": 4, "max": 4})
    assert found["suppression"]["share"] == 0.25


@pytest.mark.parametrize(("k", "alone"), [(1, 0), (2, 0), (3, 2)])
def test_rows_that_join_earlier_groups_count_as_alone_if_fewer_than_k_left(
    k: int, alone: int
) -> None:
    """The last two rows join groups at one moment."""
    outcomes = ["group"] * 3 + ["suppressed"] * 5 + ["reuse"] * 2
    published = [2, 2, 2, 7, 8, 8, 8, 8, 9, 9]
    trace = a_trace(outcome=outcomes, arrived=list(range(10)), published=published)
    assert summarize(trace, k).as_dict()["reuse"]["alone"] == alone


def test_rows_that_leave_without_company_are_said_to_do_so() -> None:
    (line,) = [line for line in a_summary().lines() if line.startswith("reuse")]
    assert line.endswith(
        "1 left without enough company: anyone who knows when these people came can tell which "
        "row is theirs, or nearly so"
    )


def test_a_trace_without_times_or_subjects() -> None:
    nothing = pa.nulls(10, pa.float64())
    trace = a_trace(arrived_s=nothing, published_s=nothing, subject=pa.nulls(10, pa.string()))
    found = summarize(trace).as_dict()
    assert found["delay"]["seconds"] is None
    assert found["groups"]["subjects"]["max"] == 3  # each row is a subject of its own


def test_subjects_may_be_numbers_or_dictionaries() -> None:
    plain = summarize(a_trace()).as_dict()
    subjects = a_trace()["subject"].combine_chunks().dictionary_encode()
    assert summarize(a_trace(subject=subjects)).as_dict() == plain
    numbers = [1, 1, 2, 3, 4, 5, 6, 6, None, 7]
    assert summarize(a_trace(subject=numbers)).as_dict() == plain


def test_an_empty_trace() -> None:
    assert summarize(a_trace().slice(0, 0)).n_in == 0


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(ParameterError, match="trace: lacks the columns group, loss"):
        summarize(a_trace().drop_columns(["group", "loss"]))


def test_missing_values_are_a_part_of_the_state() -> None:
    before, after = Summary(n_quasi=3), Summary(n_quasi=3)
    assert before.pollution is not None
    before.pollution.add(np.array([0b001, 0b000]), np.array([0b001, 0b001]))
    after.restore(json.loads(json.dumps(before.state())))
    assert after.as_dict() == before.as_dict()
    assert after.as_dict()["missing"] == {"before": 1 / 6, "after": 2 / 6, "rate": 1 / 6}
    assert "missing: 16.7 % of the quasi values of published rows, 33.3 % as published" in (
        after.lines()
    )
    with pytest.raises(CheckpointError):
        Summary(n_quasi=3).restore(Summary().state())
