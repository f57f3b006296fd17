"""Whole tables: any kind of frame in, the same kind out, through the pipeline of streams."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal import (
    Delay,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    Hierarchy,
    KAnonymity,
    Open,
    Policy,
    Quasi,
    Range,
    Schema,
    Sensitive,
    TCloseness,
    Window,
    ZAnonymity,
    algorithms,
    anonymize,
)
from shoal.algorithms import Castle
from shoal.algorithms.registry import DEFAULT
from shoal.audit import audit
from shoal.errors import (
    DataError,
    JobError,
    ParameterError,
    ResourceError,
    ShoalError,
    UnsupportedError,
)
from shoal.job import Job
from shoal.run import frame_kinds
from shoal.spec.policy import Measured
from tests.world import TOWNS, Rows, people

TOWN = Hierarchy.from_rows([line.split(";") for line in TOWNS.splitlines()])
ILLNESS = Hierarchy.flat(["flu", "gout", "scurvy", "measles"])
QUASI = [Quasi("age", Range(0, 120, step=1)), Quasi("town", TOWN)]
SCHEMA = Schema("person", QUASI, [Sensitive("illness", ILLNESS)], ["ward"])
POLICY = Policy(KAnonymity(3), DistinctLDiversity(2), delay=Delay(rows=20))
COLUMNS = ["age", "town", "illness", "ward"]


def published(given: Any, *parts: Any, **options: Any) -> Any:
    return anonymize(given, *parts, **options).frame


def to_batch(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(table.to_pylist(), schema=table.schema)


#: The type of each kind of frame, what makes one of a table, and what makes a table of one.
KINDS: dict[str, tuple[type, Any, Any]] = {
    "table": (pa.Table, lambda table: table, lambda given: given),
    "batch": (pa.RecordBatch, to_batch, lambda given: pa.Table.from_batches([given])),
    "pandas": (pd.DataFrame, lambda table: table.to_pandas(), pa.Table.from_pandas),
    "polars": (pl.DataFrame, pl.from_arrow, lambda given: given.to_arrow()),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> tuple[type, Any, Any]:
    return KINDS[request.param]


# -- kinds of frames -------------------------------------------------------------------------------


def test_the_same_kind_comes_out_with_public_columns_only(kind: Any) -> None:
    of_kind, make, to_table = kind
    original = people(60)
    given = make(original)
    result = published(given, SCHEMA, POLICY, "castle", seed=1)
    assert type(result) is of_kind
    shown = to_table(result)
    assert shown.column_names == COLUMNS
    assert 0 < shown.num_rows <= 60
    assert to_table(given).to_pylist() == original.to_pylist(), "the input was changed"


def test_all_kinds_decide_alike() -> None:
    original = people(60)
    results = [
        to_table(published(make(original), SCHEMA, POLICY, Castle(), seed=1)).to_pylist()
        for _, make, to_table in KINDS.values()
    ]
    assert results[0]
    assert all(result == results[0] for result in results)


def test_a_job_decides_like_the_function(tmp_path: Any) -> None:
    (tmp_path / "town.csv").write_text(TOWNS)
    job = Job.parse(
        """
        [schema]
        subject = "person"
        [schema.quasi]
        age = { range = [0, 120], step = 1 }
        town = { hierarchy = "town.csv" }
        [schema.sensitive]
        illness = {}
        [policy]
        k = 3
        delay.rows = 20
        [algorithm]
        name = "castle"
        [run]
        seed = -5
        """,
        folder=tmp_path,
    )
    table = people(60)
    batches: list[pa.RecordBatch] = []

    class Sink:
        def write(self, batch: pa.RecordBatch) -> None:
            batches.append(batch)

        def flush(self) -> None: ...

        def close(self) -> None: ...

    source = Rows(table, job.schema.columns, [60])
    job.pipeline.run(source, lambda schema: Sink(), on_bad=lambda bad: None).execute()
    by_job = [row for batch in batches for row in batch.to_pylist()]
    result = published(table, job.schema, job.policy, job.anonymizer, seed=-5)
    assert result.to_pylist() == by_job


def test_an_empty_frame_keeps_its_types(kind: Any) -> None:
    of_kind, make, to_table = kind
    rows = people(3)
    rows = rows.set_column(4, "ward", pa.array([1, 2, 3])).slice(0, 0)
    result = published(make(rows), SCHEMA, POLICY, "castle")
    assert type(result) is of_kind
    shown = to_table(result)
    assert (shown.num_rows, shown.column_names) == (0, COLUMNS)
    assert shown.schema.field("ward").type == pa.int64()


def test_a_table_in_pieces_is_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    table = people(60)
    whole = published(table, SCHEMA, POLICY, "castle", seed=1)
    pieces = pa.concat_tables([table.slice(0, 25), table.slice(25)])
    monkeypatch.setattr(frame_kinds, "BATCH_ROWS", 10)
    assert published(pieces, SCHEMA, POLICY, "castle", seed=1).to_pylist() == whole.to_pylist()


def test_pandas_drops_the_index_and_keeps_the_types_of_what_is_published_as_it_is() -> None:
    n = 30
    given = pd.DataFrame(
        {
            "person": range(n),
            "age": [30] * n,
            "number": range(n),
            "word": ["x"] * n,
            "kind": pd.Categorical(["a"] * n),
            "nullable": pd.array([2**60 + 1, None] * (n // 2), dtype="Int64"),
            "text": pd.array(["y", None] * (n // 2), dtype="string"),
            "at": pd.date_range("2026-01-01", periods=n, tz="Europe/Berlin"),
            "arrow": pd.array(["z"] * n, dtype=pd.ArrowDtype(pa.large_string())),
        },
        index=pd.Index([f"CANARY-{i}" for i in range(n)], name="who"),
    )
    keep = [*given.columns[2:]]
    schema = Schema("person", QUASI[:1], keep=keep)
    policy = Policy(KAnonymity(3), delay=Delay(rows=n))
    result = published(given, schema, policy, Castle(), numeric="bounds")
    assert [*result.columns] == ["age_min", "age_max", *keep]
    assert isinstance(result.index, pd.RangeIndex)
    assert result.index.name is None
    same = ["number", "word", "nullable", "text", "at", "arrow"]
    assert {name: result[name].dtype for name in same} == {n: given[n].dtype for n in same}
    assert result["age_min"].dtype == "int64"
    assert set(result["nullable"].dropna()) == {2**60 + 1}
    assert sorted(result["number"]) == [*range(n)]
    assert not isinstance(result["kind"].dtype, pd.CategoricalDtype)


def test_suppressed_rows_leave_nothing_behind_not_even_a_category() -> None:
    rows = people(40)
    wards = ["A"] * 39 + ["CANARY"]
    towns = pl.from_arrow(rows).with_columns(pl.Series("ward", wards, dtype=pl.Categorical))
    alone = rows.set_column(1, "age", pa.array([30] * 39 + [119])).to_pandas()
    alone["ward"] = pd.Categorical(wards)
    lonely = Policy(KAnonymity(3), delay=Delay(rows=1))
    schema = Schema("person", QUASI, keep=["ward"])
    for given in (towns[39:], alone[39:]):
        with pytest.warns(UserWarning, match="k can be at most 1"):
            result = published(given, schema, lonely, "castle")
        arrow = result.to_arrow() if isinstance(result, pl.DataFrame) else pa.table(result)
        assert arrow.num_rows == 0
        assert "CANARY" not in str(result["ward"].dtype)
        assert b"CANARY" not in str(arrow.schema).encode()


def test_polars_keeps_the_types_of_what_is_published_as_it_is() -> None:
    n = 30
    given = pl.DataFrame(
        {"person": range(n), "age": [30] * n, "number": range(n), "word": ["x"] * n},
        schema_overrides={"number": pl.Int16},
    )
    schema = Schema("person", QUASI[:1], keep=["number", "word"])
    result = published(given, schema, Policy(KAnonymity(3), delay=Delay(rows=n)), "castle")
    assert dict(result.schema) == {"age": pl.String, "number": pl.Int16, "word": pl.String}


def test_columns_that_the_schema_does_not_name_may_hold_anything() -> None:
    given = people(40).to_pandas()
    given["odd"] = [object() for _ in range(40)]
    given[7] = 1
    assert len(published(given, SCHEMA, POLICY, "castle"))


def test_metadata_of_a_table_is_not_published() -> None:
    given = people(40).replace_schema_metadata({"note": "CANARY"})
    fields = [field.with_metadata({"note": "CANARY"}) for field in given.schema]
    given = given.cast(pa.schema(fields, metadata=given.schema.metadata))
    assert (
        b"CANARY" not in published(given, SCHEMA, POLICY, "castle").schema.serialize().to_pybytes()
    )


def test_frames_that_are_none() -> None:
    what = r"or polars, or a Table or RecordBatch of Arrow; got "
    with pytest.raises(ParameterError, match=what + r"builtins\.int\.$"):
        published(7, SCHEMA, POLICY, "castle")
    lazy = pl.from_arrow(people(3)).lazy()
    with pytest.raises(ParameterError, match=what + r".*LazyFrame\. Call collect\(\) first"):
        published(lazy, SCHEMA, POLICY, "castle")


def test_neither_pandas_nor_polars_is_needed() -> None:
    code = """
import sys
sys.modules["pandas"] = sys.modules["polars"] = None
import pyarrow as pa
from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
people = pa.table({"person": [1, 2, 3], "age": [31, 32, 33]})
schema = Schema("person", [Quasi("age", Range(0, 99, step=1))])
policy = Policy(KAnonymity(3), delay=Delay(rows=9))
assert anonymize(people, schema, policy, "castle")["age"].to_pylist() == ["[31, 33]"] * 3
"""
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        timeout=600,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )


# -- columns and rows that can't be used -----------------------------------------------------------


def test_a_missing_column_is_named(kind: Any) -> None:
    given = kind[1](people(9).rename_columns(["person", "age", "twon", "illness", "ward", "at"]))
    with pytest.raises(JobError, match=r"^frame: column town: .*Did you mean 'twon'\?"):
        published(given, SCHEMA, POLICY, "castle")


def test_a_column_in_the_index_is_found_there() -> None:
    given = people(40).to_pandas().set_index(["person", "town"])
    with pytest.raises(JobError, match=r"frame") as raised:
        published(given, SCHEMA, POLICY, "castle")
    assert [problem.key for problem in raised.value.problems] == ["column person", "column town"]
    assert "reset_index()" in str(raised.value)
    assert len(published(given.reset_index(), SCHEMA, POLICY, "castle"))


def test_two_columns_of_one_name_are_refused() -> None:
    given = people(9).to_pandas()
    given.columns = ["person", "age", "town", "illness", "ward", "age"]
    with pytest.raises(ResourceError, match="columns 2 and 6 have the same name"):
        published(given, SCHEMA, POLICY, "castle")


@pytest.mark.parametrize("values", [[1, "CANARY"], [2**70, 1], [{"CANARY"}, 1]])
def test_a_column_of_several_types_is_named_without_its_values(values: list[Any]) -> None:
    given = pd.DataFrame({"person": pd.Series(values, dtype=object), "age": [1, 2]})
    with pytest.raises(DataError, match=r"column person .*astype\(str\)") as raised:
        published(given, Schema("person", QUASI[:1]), POLICY, "castle")
    assert "CANARY" not in str(raised.value)
    assert raised.value.__suppress_context__


def broken(n_rows: int = 60) -> pa.Table:
    """Three rows without an age, and one with a town that is none."""
    rows = people(n_rows).to_pylist()
    for i in (7, 21, 33):
        rows[i]["age"] = None
    rows[50]["town"] = "CANARY"
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("batch_rows", [10, 1000])
def test_bad_rows_are_counted_and_refused(
    kind: Any, batch_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_kinds, "BATCH_ROWS", batch_rows)
    with pytest.raises(DataError) as raised:
        published(kind[1](broken()), SCHEMA, POLICY, "castle")
    assert str(raised.value) == (
        "frame: 4 of 60 rows can't be used: age is missing (3), town has a category that its "
        "hierarchy lacks (1). The first is row 7, counted from 0. Fix them, or leave them out "
        'with bad_rows="drop".'
    )


def test_bad_rows_can_be_left_out() -> None:
    result = anonymize(broken(), SCHEMA, POLICY, "castle", bad_rows="drop", trace=True)
    summary = result.summary
    assert (summary.n_in, summary.n_quarantined) == (60, 4)
    assert result.frame.num_rows == len(result) == summary.n_published > 0
    outcomes = result.trace.sort_by("row")["outcome"].to_pylist()
    assert [i for i, word in enumerate(outcomes) if word == "quarantined"] == [7, 21, 33, 50]


def test_only_bad_rows_are_no_rows() -> None:
    rows = people(9).set_column(1, "age", pa.nulls(9, pa.int64()))
    why = r"nothing was published: 9 of 9 rows can't be used: age is missing \(9\)"
    with pytest.warns(UserWarning, match=why) as caught:
        result = published(rows, SCHEMA, POLICY, "castle", bad_rows="drop")
    assert (result.num_rows, result.column_names) == (0, COLUMNS)
    assert caught[0].filename == __file__


def test_what_is_measured_by_place_may_not_be_missing() -> None:
    class Able(Castle):
        enforces = (*Castle.enforces, Measured)

    rows = people(40).append_column("pay", pa.array([*range(39), None]))
    schema = Schema("person", QUASI, [Sensitive("pay", Range(0, 100))])
    closely = Policy(TCloseness(1), delay=Delay(rows=20), window=Window(rows=40))
    with pytest.raises(DataError, match=r"1 of 40 rows can't be used: pay is missing \(1\)"):
        published(rows, schema, closely, Able())
    assert published(rows, schema, Policy(KAnonymity(2), delay=Delay(rows=20)), "castle").num_rows


# -- what is promised, and what is given -----------------------------------------------------------


def policies() -> list[Policy]:
    """Some policies, one of which every algorithm can keep."""
    delay, window = Delay(rows=60), Window(rows=40, advance=20)
    measured = [TCloseness(0.5), EnhancedLikeness(4), DeltaDisclosure(3)]
    return [
        POLICY,
        *(Policy(KAnonymity(3), promise, window="all") for promise in measured),
        Policy(KAnonymity(3), DistinctLDiversity(2), window="all"),
        Policy(KAnonymity(3), window="all"),
        *(Policy(KAnonymity(3), promise, delay=delay, window=window) for promise in measured),
        Policy(ZAnonymity(3), window=Window(rows=40)),
    ]


def can(name: str, policy: Policy) -> bool:
    try:
        algorithms.find(name)().check(policy)
    except UnsupportedError:
        return False
    return True


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.compiled if "tree" in name else ())
        for name in algorithms.names()
    ],
)
def test_every_algorithm_keeps_its_promise_on_a_frame(name: str) -> None:
    policy = next(policy for policy in policies() if can(name, policy))
    table = people(150)
    schema = SCHEMA
    if policy.z:
        quasi = [Quasi("town", Open()), Quasi("age", Range(0, 120, step=10))]
        schema = Schema(SCHEMA.subject, quasi)
    result = anonymize(table, schema, policy, name, seed=1, trace=True)
    report = audit(schema, policy, result.frame, trace=result.trace, original=table)
    assert report.exit_code == 0, str(report)
    assert result.trace.num_rows == 150 * (len(schema.quasi) if policy.z else 1)
    assert 0 < len(result) <= 150


def test_the_trace_is_given_where_it_is_asked_for() -> None:
    table = people(60)
    alone = anonymize(table, SCHEMA, POLICY, "castle", seed=1)
    traced = anonymize(table, SCHEMA, POLICY, "castle", seed=1, trace=True)
    assert alone.trace is None
    assert traced.trace.num_rows == 60
    assert alone.frame == traced.frame
    assert alone.summary.as_dict() == traced.summary.as_dict()


def test_without_a_name_the_default_algorithm_is_taken() -> None:
    table = people(60)
    assert published(table, SCHEMA, POLICY, seed=1) == published(
        table, SCHEMA, POLICY, DEFAULT, seed=1
    )


def test_a_table_has_a_default_of_its_own() -> None:
    table, policy = people(60), Policy(KAnonymity(3), window="all")
    assert published(table, SCHEMA, policy, seed=1) == published(
        table, SCHEMA, policy, "tide-table", seed=1
    )


def test_dicts_decide_like_a_table() -> None:
    table = people(60)
    by_dicts = published(table.to_pylist(), SCHEMA, POLICY, "castle", seed=1)
    assert by_dicts == published(table, SCHEMA, POLICY, "castle", seed=1).to_pylist()


def test_the_trace_shows_where_each_row_went() -> None:
    table = people(60)
    result = anonymize(table, SCHEMA, POLICY, "castle", trace=True)
    for line in result.trace.to_pylist():
        if line["seq"] is not None:
            row, shown = table.slice(line["row"], 1), result.frame.slice(line["seq"], 1)
            assert row["person"].to_pylist() == [line["subject"]]
            assert row["illness"].to_pylist() == shown["illness"].to_pylist()


def test_the_trace_of_a_pandas_frame_is_arrow() -> None:
    result = anonymize(people(40).to_pandas(), SCHEMA, POLICY, "castle", trace=True)
    assert isinstance(result.trace, pa.Table)


def test_seeds() -> None:
    table = people(80)
    one, again, other = (
        published(table, SCHEMA, POLICY, "castle", seed=seed) for seed in (1, 1, 2)
    )
    assert one == again
    assert one != other


def test_numbers_and_suppressed_rows_as_asked() -> None:
    rows = people(2)
    schema = Schema("person", QUASI, [Sensitive("illness")])
    policy = Policy(KAnonymity(9), delay=Delay(rows=5))
    with pytest.warns(UserWarning, match="nothing was published: 2 of 2 rows were suppressed"):
        result = published(rows, schema, policy, "castle", numeric="midpoint", suppressed="root")
    assert result.to_pylist() == [{"age": 60.0, "town": "any", "illness": None}] * 2


def test_a_column_that_identifies_people_is_warned_about() -> None:
    rows = people(120)
    rows = rows.set_column(4, "ward", pa.array([f"CANARY-{i}" for i in range(120)]))
    with pytest.warns(UserWarning, match="column ward has 120 different values") as caught:
        published(rows, SCHEMA, POLICY, "castle")
    assert caught[0].filename == __file__
    assert "CANARY" not in str(caught[0].message)


class Unable(Castle):
    """Can't promise diversity."""

    enforces = (KAnonymity,)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"algorithm": "castel"}, "Did you mean 'castle'?"),
        ({"algorithm": Castle}, r"got a class. Call it, for example Tide\(\)"),
        ({"algorithm": 3}, 'anonymizer or the name of one; got int. For example "tide"'),
        ({"algorithm": Unable()}, "can't enforce distinct l-diversity. These can: .*castle"),
        ({"policy": Policy(KAnonymity(3))}, "Set policy.delay"),
        ({"policy": Policy(KAnonymity(3), delay=Delay(seconds=3))}, "Give the delay in rows"),
        ({"policy": Policy(DistinctLDiversity(3, "x"), delay=Delay(rows=3))}, "Sensitive: illness"),
        ({"bad_rows": "dorp"}, "bad_rows: must be one of stop, drop; got 'dorp'. Did you mean"),
        ({"numeric": "ranges"}, "publish.numeric: .* Did you mean 'range'?"),
        ({"suppressed": "rot"}, "publish.suppressed: .* Did you mean 'root'?"),
        ({"seed": "x"}, "seed: must be a whole number; got str"),
        ({"seed": True}, "seed: must be a whole number; got bool"),
    ],
)
def test_wrong_arguments(changes: dict[str, Any], said: str) -> None:
    arguments = {"schema": SCHEMA, "policy": POLICY, "algorithm": "castle"} | changes
    with pytest.raises(JobError, match=said):
        published(people(9), **arguments)


def test_a_delay_in_seconds_goes_by_the_times_of_the_rows() -> None:
    schema = Schema("person", QUASI, keep=["ward"], time="at")
    policy = Policy(KAnonymity(3), delay=Delay(seconds=15))
    result = anonymize(people(60), schema, policy, "castle")
    assert len(result) == result.summary.n_published > 0


def test_the_name_is_public() -> None:
    assert shoal.anonymize is anonymize
    assert issubclass(DataError, ShoalError)
