"""Rows pushed from Python: the same decisions as for a table, and no row is lost."""

from __future__ import annotations

import itertools
import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal import (
    Delay,
    DistinctLDiversity,
    Hierarchy,
    KAnonymity,
    Open,
    Policy,
    Pseudonym,
    Quasi,
    Range,
    Schema,
    Sensitive,
    Stream,
    Window,
    ZAnonymity,
    algorithms,
    anonymize,
)
from shoal.algorithms import Castle
from shoal.errors import DataError, JobError, ParameterError, PromiseError, UnsupportedError
from shoal.job import Job
from shoal.run import stream as stream_module
from shoal.run.core import RunCore
from shoal.testing.clocks import ManualClock
from tests.examples import examples
from tests.world import TOWNS, people, read, write, write_job

TOWN = Hierarchy.from_rows([line.split(";") for line in TOWNS.splitlines()])
QUASI = [Quasi("age", Range(0, 120, step=1)), Quasi("town", TOWN)]
SCHEMA = Schema("person", QUASI, [Sensitive("illness")], ["ward"])
POLICY = Policy(KAnonymity(3), DistinctLDiversity(2), delay=Delay(rows=20))
#: Two people who can leave at once, by the second row.
PAIR = Policy(KAnonymity(2), delay=Delay(rows=1))
AGES = Schema("name", [Quasi("age", Range(0, 120, step=1))])


def fed(stream: Stream, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Everything that leaves when rows are pushed one by one."""
    released = [release for row in rows for release in stream.push(row)]
    return released + stream.flush()


# -- the same decisions as for a table -------------------------------------------------------------


def stream_algorithms() -> list[str]:
    # These have the engine of tree-basic, and are the slowest in plain Python.
    slow = ("tree-density", "tree-full")
    names = (name for name in algorithms.names() if name not in slow)
    return [name for name in names if algorithms.find(name).publishes == "rows"]


@pytest.mark.parametrize("name", stream_algorithms())
def test_rows_pushed_one_by_one_are_decided_like_a_table(name: str) -> None:
    table = people(80)
    policy = Policy(KAnonymity(3), delay=Delay(rows=20))
    whole = anonymize(table, SCHEMA, policy, name, seed=4)
    stream = Stream(SCHEMA, policy, name, seed=4)
    assert fed(stream, table.to_pylist()) == whole.frame.to_pylist()
    # The order in which losses are added up is another one.
    assert stream.summary.as_dict()["rows"] == whole.summary.as_dict()["rows"]


def test_values_pushed_one_by_one_are_decided_like_a_table() -> None:
    table = people(80)
    schema = Schema("person", [Quasi("town", Open()), Quasi("age", Range(0, 120, step=10))])
    policy = Policy(ZAnonymity(3), window=Window(rows=40))
    whole = anonymize(table, schema, policy, "z-anonymity", seed=4)
    assert fed(Stream(schema, policy, "z-anonymity", seed=4), table.to_pylist()) == (
        whole.frame.to_pylist()
    )


@settings(max_examples=examples(15))
@given(cuts=st.lists(st.integers(0, 60), max_size=6), seed=st.integers(0, 3))
def test_how_rows_are_cut_into_pushes_decides_nothing(cuts: list[int], seed: int) -> None:
    table = people(60)
    whole = anonymize(table, SCHEMA, POLICY, "castle", seed=seed)
    stream, released = Stream(SCHEMA, POLICY, "castle", seed=seed), []
    borders = sorted({0, 60, *cuts})
    for begin, end in itertools.pairwise(borders):
        released += stream.push(table.slice(begin, end - begin).to_pylist())
    assert released + stream.flush() == whole.frame.to_pylist()


def test_rows_of_a_job_pushed_one_by_one_are_published_as_by_its_run(tmp_path: Path) -> None:
    job = Job.load(write_job(tmp_path))
    source = write(people(60), tmp_path / "people.parquet")
    with pytest.warns(UserWarning, match="seed"):
        shoal.run(job, input=source, output=tmp_path / "out.parquet")
    stream = Stream.of(job.pipeline)
    assert fed(stream, people(60).to_pylist()) == read(tmp_path / "out.parquet").to_pylist()


@pytest.mark.parametrize("options", [{"numeric": "bounds"}, {"suppressed": "root"}])
def test_releases_look_as_they_are_asked_for(options: Any) -> None:
    table = people(80)
    whole = anonymize(table, SCHEMA, POLICY, "castle", seed=4, **options)
    stream = Stream(SCHEMA, POLICY, "castle", seed=4, **options)
    assert fed(stream, table.to_pylist()) == whole.frame.to_pylist()


def test_the_last_guard_stops_a_group_that_breaks_the_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard = RunCore._guard
    seen = []

    def strict(core: RunCore, decisions: Any) -> None:
        seen.append(len(decisions.rows))
        guard(core, decisions._replace(n_subjects=decisions.n_subjects * 0))

    monkeypatch.setattr(RunCore, "_guard", strict)
    stream = Stream(SCHEMA, POLICY, "castle")
    with pytest.raises(PromiseError):
        fed(stream, people(60).to_pylist())
    assert seen
    with pytest.raises(ParameterError, match="has ended: it failed"):
        stream.push({})


# -- kinds of rows ---------------------------------------------------------------------------------

KINDS: dict[str, tuple[Any, Any, Any]] = {
    "table": (pa.Table, lambda table: table, lambda frame: frame),
    "batch": (
        pa.RecordBatch,
        lambda table: table.combine_chunks().to_batches()[0],
        lambda frame: pa.Table.from_batches([frame]),
    ),
    "pandas": (pd.DataFrame, lambda table: table.to_pandas(), pa.Table.from_pandas),
    "polars": (pl.DataFrame, pl.from_arrow, lambda frame: frame.to_arrow()),
}


@pytest.mark.parametrize("name", KINDS)
def test_releases_are_of_the_kind_that_went_in(name: str) -> None:
    of_kind, make, to_table = KINDS[name]
    table = people(60)
    stream = Stream(SCHEMA, POLICY, "castle", seed=4)
    released = [*stream.push(make(table.slice(0, 30))), *stream.push(make(table.slice(30)))]
    released += stream.flush()
    assert len(released) == 3
    assert {type(frame) for frame in released} == {of_kind}
    rows = [row for frame in released for row in to_table(frame).to_pylist()]
    assert rows == anonymize(table, SCHEMA, POLICY, "castle", seed=4).frame.to_pylist()


def test_where_nothing_leaves_there_is_no_release() -> None:
    stream = Stream(SCHEMA, POLICY, "castle")
    assert stream.push(people(3)) == []
    assert stream.push([]) == []
    assert stream.push(people(3).slice(0, 0)) == []
    assert stream.n_held == 3


def test_what_is_neither_rows_nor_a_frame_is_refused() -> None:
    stream = Stream(SCHEMA, POLICY, "castle")
    with pytest.raises(ParameterError, match=r"^rows: must be a dict, a list of dicts, .*got "):
        stream.push("CANARY")
    with pytest.raises(ParameterError, match=r"^rows: must be dictionaries.*got a str in it"):
        stream.push([people(1).to_pylist()[0], "CANARY"])
    with pytest.raises(ParameterError, match=r"Call collect\(\) first"):
        stream.push(pl.from_arrow(people(3)).lazy())
    with pytest.raises(JobError, match=r"^rows: column town: isn't in the input"):
        stream.push(people(3).drop_columns(["town"]))
    assert stream.summary.n_in == 0


def test_one_person_is_one_however_the_type_of_the_subject_changes() -> None:
    ages = [31, 32, 33, 34]
    for subjects in ([7, "7", 7.0, " 7"], [[7, "7"], [7.0, " 7"]]):
        stream = Stream(AGES, Policy(KAnonymity(2), delay=Delay(rows=9)), "castle")
        if isinstance(subjects[0], list):
            pushes: list[Any] = [[{"name": s, "age": 31} for s in pair] for pair in subjects]
        else:
            pushes = [{"name": s, "age": a} for s, a in zip(subjects, ages, strict=True)]
        assert [release for rows in pushes for release in stream.push(rows)] == []
        assert stream.flush() == []
        assert stream.summary.suppression.count == 4


# -- rows that can't be used -----------------------------------------------------------------------


def test_bad_rows_are_counted_and_can_be_reached() -> None:
    stream = Stream(SCHEMA, POLICY, "castle")
    rows = people(60).to_pylist()
    rows[7]["age"] = None
    rows[9]["age"] = "CANARY"
    rows[11]["town"] = ["CANARY"]
    del rows[13]["age"]
    released = stream.push(rows) + stream.flush()
    assert [(bad.row, bad.reason) for bad in stream.quarantined] == [
        (7, "age is missing"),
        (9, "age isn't a number"),
        (11, "town isn't a text, number, time or boolean"),
        (13, "age is missing"),
    ]
    assert json.loads(stream.quarantined[1].raw or b"")["age"] == "CANARY"
    assert "CANARY" not in repr(stream.quarantined) + repr(stream) + stream._repr_html_()
    summary = stream.summary
    assert (summary.n_in, summary.n_quarantined) == (60, 4)
    assert len(released) + summary.suppression.count == 56


def test_a_bad_row_before_all_others_sets_no_type() -> None:
    schema = Schema("name", AGES.quasi, keep=["n"])
    stream = Stream(schema, PAIR, "castle")
    stream.push({"name": {}, "age": 1, "n": 1})
    released = stream.push([{"name": "a", "age": 31, "n": 1}, {"name": "b", "age": 31, "n": 2}])
    assert sorted(row["n"] for row in released + stream.flush()) == [1, 2]
    assert (stream.summary.n_in, stream.summary.n_quarantined) == (3, 1)


def test_a_value_of_another_type_than_before_is_a_bad_row() -> None:
    schema = Schema("name", AGES.quasi, keep=["n"])
    stream = Stream(schema, PAIR, "castle")
    stream.push({"name": "a", "age": 31, "n": 1})
    stream.push({"name": "b", "age": 31, "n": "CANARY"})
    assert [bad.reason for bad in stream.quarantined] == [
        "n isn't of the type it had before (int64)"
    ]


def test_a_stream_that_stops_at_bad_rows_takes_none_of_the_push_in() -> None:
    stream = Stream(AGES, PAIR, "castle", bad_rows="stop", seed=1)
    good = [{"name": name, "age": 31} for name in "ab"]
    with pytest.raises(DataError, match=r"row 1, counted from 0 .*: age isn't a number\. 1 of the"):
        stream.push([good[0], {"name": "c", "age": "CANARY"}])
    assert (stream.summary.n_in, stream.quarantined) == (0, [])
    assert stream.push(good) + stream.flush() == [{"age": "[31, 31]"}] * 2


def test_bad_rows_that_nobody_takes_stop_the_stream_and_none_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_module, "MOST_QUARANTINED", 3)
    stream = Stream(AGES, PAIR, "castle")
    bad = {"name": "a", "age": None}
    stream.push([bad] * 3)
    with pytest.raises(DataError, match="3 rows that can't be used wait in "):
        stream.push(bad)
    assert stream.summary.n_in == 3
    stream.quarantined.clear()
    stream.push(bad)
    assert (len(stream.quarantined), stream.summary.n_quarantined) == (1, 4)


def test_suppressed_rows_are_counted() -> None:
    stream = Stream(AGES, PAIR, "castle")
    assert fed(stream, [{"name": "a", "age": 31}] * 3) == []
    assert stream.summary.suppression.count == 3
    assert "3 suppressed" in repr(stream)


# -- time ------------------------------------------------------------------------------------------


def test_a_deadline_by_the_wall_clock_fires_when_time_is_advanced() -> None:
    clock = ManualClock(100.0)
    policy = Policy(KAnonymity(2), delay=Delay(seconds=30))
    stream = Stream(AGES, policy, "castle", clock=clock)
    assert stream.push([{"name": "a", "age": 31}, {"name": "b", "age": 33}]) == []
    assert stream.next_deadline == 130.0
    assert stream.seconds_left == 30.0
    clock.set(129.0)
    assert stream.advance() == []
    clock.set(130.0)
    assert stream.advance() == [{"age": "[31, 33]"}] * 2
    assert stream.summary.n_late == 0
    with pytest.raises(ParameterError, match="until: isn't used"):
        stream.advance(140.0)


def test_a_deadline_by_the_stream_fires_when_its_time_is_known() -> None:
    schema = Schema("name", AGES.quasi, time="at")
    stream = Stream(schema, Policy(KAnonymity(2), delay=Delay(seconds=30)), "castle")
    assert stream.push([{"name": "a", "age": 31, "at": 0}, {"name": "b", "age": 33, "at": 5}]) == []
    with pytest.raises(ParameterError, match=r"until: is missing: .* in the unit of column at"):
        stream.advance()
    for wrong in (float("nan"), float("inf"), True, "CANARY"):
        with pytest.raises(ParameterError, match="until: must be a finite number of seconds"):
            stream.advance(wrong)  # type: ignore[arg-type]
    assert stream.advance(29.0) == []
    assert stream.advance(datetime.fromtimestamp(30, UTC)) == [{"age": "[31, 33]"}] * 2
    # A row from before counts as of now.
    stream.push([{"name": "a", "age": 31, "at": 1}, {"name": "b", "age": 33, "at": 2}])
    assert stream.next_deadline == 60.0


def test_time_that_was_advanced_makes_rows_late() -> None:
    schema = Schema("name", AGES.quasi, time="at")
    policy = Policy(KAnonymity(2), delay=Delay(seconds=30), lateness=10)
    stream = Stream(schema, policy, "castle")
    stream.advance(100.0)
    stream.push([{"name": "a", "age": 31, "at": 89}, {"name": "a", "age": 31, "at": 90}])
    assert [bad.row for bad in stream.quarantined] == [0]


def test_a_delay_in_rows_has_no_deadline_in_time() -> None:
    stream = Stream(AGES, PAIR, "castle")
    stream.push({"name": "a", "age": 31})
    assert stream.advance() == []
    assert stream.advance(5.0) == []
    assert stream.seconds_left is None


# -- the end ---------------------------------------------------------------------------------------


def test_leaving_the_block_flushes_and_keeps_what_left() -> None:
    table = people(60)
    with Stream(SCHEMA, POLICY, "castle", seed=4) as stream:
        released = stream.push(table.to_pylist())
    assert stream.rest
    assert released + stream.rest == (
        anonymize(table, SCHEMA, POLICY, "castle", seed=4).frame.to_pylist()
    )
    with pytest.raises(ParameterError, match=r"has ended: it was flushed\. Start a new Stream"):
        stream.push(table)
    assert stream.flush() == []


def test_who_flushes_in_the_block_has_everything() -> None:
    with Stream(SCHEMA, POLICY, "castle") as stream:
        stream.push(people(60))
        assert stream.flush()
    assert stream.rest == []


def test_leaving_the_block_with_an_exception_publishes_nothing() -> None:
    with pytest.raises(KeyError), Stream(SCHEMA, POLICY, "castle") as stream:
        stream.push(people(10))
        raise KeyError
    assert stream.rest == []
    assert stream.n_held == 10
    with pytest.raises(ParameterError, match="has ended: it was closed"):
        stream.flush()


# -- what can't be a stream ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (
            lambda: Stream(SCHEMA, Policy(KAnonymity(3), window="all"), "mondrian"),
            UnsupportedError,
            "publishes a whole table at once, and a stream has no end. Use shoal.anonymize",
        ),
        (lambda: Stream(SCHEMA, POLICY, "castel"), ParameterError, "Did you mean 'castle'"),
        (lambda: Stream(SCHEMA, POLICY, Castle), ParameterError, "got a class. Call it"),
        (lambda: Stream(POLICY, SCHEMA), ParameterError, "schema: must be a Schema; got Policy"),
        (lambda: Stream(SCHEMA, SCHEMA), ParameterError, "policy: must be a Policy; got Schema"),
        (
            lambda: Stream(SCHEMA, POLICY, bad_rows="drop"),
            ParameterError,
            "bad_rows: must be one of quarantine, stop; got 'drop'",
        ),
        (lambda: Stream(SCHEMA, POLICY, seed="x"), ParameterError, "seed: must be a whole number"),
        (
            lambda: Stream(SCHEMA, POLICY, pseudonym=Pseudonym(5)),
            JobError,
            "publish.pseudonym: is for z-anonymity only",
        ),
        (
            lambda: Stream(SCHEMA, Policy(KAnonymity(3))),
            UnsupportedError,
            "holds rows, and neither the policy nor a capacity bounds that",
        ),
        (
            lambda: Stream(
                SCHEMA, Policy(DistinctLDiversity(2, "ward"), delay=Delay(rows=5)), "castle"
            ),
            JobError,
            "policy.l.ward: isn't a sensitive attribute",
        ),
    ],
)
def test_a_stream_that_cannot_be_is_refused_at_once(make: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        make()


def test_threads_may_share_a_stream() -> None:
    rows = people(200).to_pylist()
    stream, released = Stream(SCHEMA, POLICY, "castle"), []

    def push(part: list[dict[str, Any]]) -> None:
        for row in part:
            released.extend(stream.push(row))

    threads = [threading.Thread(target=push, args=(rows[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    released += stream.flush()
    assert stream.summary.n_in == 200
    assert len(released) + stream.summary.suppression.count == 200


def kept_in(rows: list[Any]) -> list[Any]:
    """The values of a column published as it is, of all that leaves after these pushes."""
    stream = Stream(Schema("name", AGES.quasi, keep=["kept"]), PAIR, "castle", seed=1)
    released = [release for part in rows for release in stream.push(part)] + stream.flush()
    frames = [x if isinstance(x, pd.DataFrame) else pd.DataFrame([x]) for x in released]
    return sorted(str(value) for frame in frames for value in frame["kept"])


@pytest.mark.parametrize(
    ("first", "dtype"), [("x", "Int64"), (2.5, "Int64"), (7, "boolean"), ("y", "period[D]")]
)
def test_a_frame_after_rows_of_another_type_is_published(first: Any, dtype: str) -> None:
    rows = [{"name": name, "age": 30, "kept": first} for name in "ab"]
    days = pd.Series([1, 0]) if dtype != "period[D]" else pd.period_range("2020", periods=2)
    frame = pd.DataFrame({"name": ["c", "d"], "age": [30, 31], "kept": days}).astype(
        {"kept": dtype}
    )
    assert len(kept_in([*rows, frame])) == 4


def test_times_beyond_the_calendar_leave_a_stream_of_dicts_as_numbers() -> None:
    far = pa.array([1 << 40, 1 << 41]).view(pa.timestamp("s"))
    table = pa.table({"name": ["a", "b"], "age": [30, 31], "kept": far})
    schema = Schema("name", AGES.quasi, keep=["kept"])
    stream, again = (Stream(schema, Policy(KAnonymity(2), delay=Delay(rows=9))) for _ in "12")
    assert stream.push(table) == []
    again.restore(stream.snapshot())
    assert sorted(row["kept"] for row in again.flush()) == [1 << 40, 1 << 41]


def test_the_reasons_of_rows_that_no_column_can_have_are_counted() -> None:
    stream = Stream(AGES, PAIR, "castle")
    stream.push({"name": "a", "age": [1]})
    stream.push([{"name": "b", "age": {}}, {"name": "c", "age": 500}])
    reasons = stream.summary.bad_rows.as_dict()
    assert sum(reasons.values()) == stream.summary.n_quarantined == 3
    assert reasons["age isn't a text, number, time or boolean"] == 2
