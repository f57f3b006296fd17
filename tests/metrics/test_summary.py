from __future__ import annotations

import json
import pickle

import numpy as np
import pyarrow as pa
import pytest

from shoal.errors import ParameterError
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
    assert found["reuse"] == {"count": 1, "share": 1 / 6}
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
