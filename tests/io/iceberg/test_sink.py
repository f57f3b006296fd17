"""An Iceberg table takes each row once, and its files aren't small."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.errors import CheckpointError, JobError, ResourceError
from shoal.io.base import CommitMark, DurableSink
from shoal.io.iceberg.connector import IcebergOutput
from shoal.io.registry import endpoint
from shoal.testing.clocks import ManualClock
from tests.world import people, shoal, write, write_job

pytest.importorskip("pyiceberg")
from shoal.io.iceberg import sink as module
from shoal.io.iceberg.sink import IcebergSink, refuse_rows

SCHEMA = pa.schema([("age", pa.string()), ("ward", pa.string())])


def lake(folder: Path, **more: Any) -> IcebergOutput:
    given = {"iceberg": "public.people", "path": "lake/"} | more
    found = endpoint("output", given, folder)
    assert isinstance(found, IcebergOutput)
    return found


def opened(output: IcebergOutput, mark: CommitMark | None, **more: Any) -> IcebergSink:
    # As a checkpoint stores it.
    stored = None if mark is None else json.loads(json.dumps(mark))
    return IcebergSink(output, SCHEMA, stored, job=more.pop("job", "mine"), **more)


def batch(begin: int, end: int) -> pa.RecordBatch:
    wards = [f"ward {i}" for i in range(begin, end)]
    ages = pa.array(["[1, 2]"] * (end - begin)).dictionary_encode()
    return pa.record_batch({"age": ages, "ward": pa.array(wards)})


def numbers(output: IcebergOutput) -> list[int]:
    rows = module._catalog(output).load_table(output.table).scan().to_arrow()
    return sorted(int(ward[5:]) for ward in rows["ward"].to_pylist())


def files(output: IcebergOutput) -> list[int]:
    table = module._catalog(output).load_table(output.table)
    return [task.file.record_count for task in table.scan().plan_files()]


def test_rows_of_a_commit_are_in_the_table_with_their_number(tmp_path):
    output = lake(tmp_path, rows=5)
    refuse_rows(output)
    sink = opened(output, None)
    assert isinstance(sink, DurableSink)
    sink.write(batch(0, 3))
    assert numbers(output) == []
    sink.write(batch(3, 6))
    assert numbers(output) == list(range(6))
    snapshot = module._catalog(output).load_table(output.table).current_snapshot()
    noted = snapshot.summary.additional_properties
    assert (noted["shoal-rows"], noted["shoal-job"]) == ("6", "mine")
    sink.write(batch(6, 7))
    sink.close()
    sink.close()
    assert numbers(output) == list(range(7))
    assert sorted(files(output)) == [1, 6]


def test_few_rows_wait_and_are_in_the_mark(tmp_path):
    clock = ManualClock(0.0)
    output = lake(tmp_path, rows=100, seconds=60)
    sink = opened(output, None, clock=clock)
    sink.write(batch(0, 10))
    first = sink.commit()
    sink.flush()
    assert numbers(output) == []
    assert "ward" not in first["held"]
    # A crash: what waits comes from the mark.
    sink.abandon()
    sink = opened(output, first, clock=clock)
    assert sink.n_ahead == 0
    sink.write(batch(10, 15))
    clock.set(60.0)
    sink.flush()
    assert numbers(output) == list(range(15))
    assert files(output) == [15]
    assert sink.commit() == {"seq": 15, "held": ""}


@pytest.mark.parametrize("n_again", [0, 1, 7, 12])
def test_a_crash_between_the_commit_and_the_checkpoint_appends_nothing_twice(tmp_path, n_again):
    output = lake(tmp_path, rows=10)
    sink = opened(output, None)
    sink.write(batch(0, 4))
    mark = sink.commit()
    # These are committed, with the four that waited, and then the process dies.
    sink.write(batch(4, 16))
    sink.abandon()
    assert numbers(output) == list(range(16))
    again = opened(output, mark)
    assert again.n_ahead == 12
    again.write(batch(4, 4 + n_again))
    assert again.n_ahead == 12 - n_again
    again.write(batch(4 + n_again, 16))
    again.write(batch(16, 30))
    again.close()
    assert numbers(output) == list(range(30))


def test_a_run_that_died_before_its_first_checkpoint_is_resumed(tmp_path):
    output = lake(tmp_path, rows=1)
    sink = opened(output, None)
    sink.write(batch(0, 3))
    sink.abandon()
    with pytest.raises(ResourceError):
        sink.write(batch(3, 4))
    again = opened(output, {})
    assert again.n_ahead == 3
    again.write(batch(0, 5))
    again.close()
    assert numbers(output) == list(range(5))


@pytest.mark.parametrize("fails", ["before", "after"])
def test_a_commit_of_which_nobody_knows_is_found_out(tmp_path, monkeypatch, fails):
    output = lake(tmp_path, rows=3)
    sink = opened(output, None)
    sink.write(batch(0, 3))
    mark = sink.commit()
    catalog = type(module._catalog(output))
    commit = catalog.commit_table

    def broken(*given: Any) -> Any:
        if fails == "after":
            commit(*given)
        raise ConnectionError("CANARY")

    monkeypatch.setattr(catalog, "commit_table", broken)
    with pytest.raises(ResourceError, match="can't be used") as caught:
        sink.write(batch(3, 6))
    assert "CANARY" not in str(caught.value)
    with pytest.raises(ResourceError):
        sink.commit()
    sink.close()
    monkeypatch.undo()
    again = opened(output, mark)
    assert again.n_ahead == (3 if fails == "after" else 0)
    again.write(batch(3, 9))
    again.close()
    assert numbers(output) == list(range(9))


def test_a_table_that_others_compact_is_appended_to(tmp_path):
    output = lake(tmp_path, rows=2)
    sink = opened(output, None)
    sink.write(batch(0, 2))
    mark = sink.commit()
    other = module._catalog(output).load_table(output.table)
    other.overwrite(other.scan().to_arrow())
    sink.write(batch(2, 4))
    sink.abandon()
    assert numbers(output) == list(range(4))
    again = opened(output, mark)
    assert again.n_ahead == 2
    # The latest snapshot isn't the job's.
    other.refresh()
    other.overwrite(other.scan().to_arrow())
    again = opened(output, mark)
    assert again.n_ahead == 2
    again.write(batch(2, 6))
    again.close()
    assert numbers(output) == list(range(6))


def test_where_the_snapshots_of_the_job_have_expired_it_appends_nothing(tmp_path):
    """Its first checkpoint is older than its first commit, and expects no row in the table."""
    output = lake(tmp_path, rows=2)
    sink = opened(output, None)
    mark = sink.commit()
    sink.write(batch(0, 2))
    sink.abandon()
    other = module._catalog(output).load_table(output.table)
    other.overwrite(other.scan().to_arrow())
    newest = other.current_snapshot()
    others = [each.snapshot_id for each in other.snapshots() if each != newest]
    other.maintenance.expire_snapshots().by_ids(others).commit()
    for each in (mark, {}):
        with pytest.raises(CheckpointError, match="have expired"):
            opened(output, each)
    assert numbers(output) == [0, 1]


def test_a_second_process_of_the_job_appends_nothing(tmp_path):
    output = lake(tmp_path, rows=2)
    first = opened(output, None)
    first.write(batch(0, 2))
    second = opened(output, first.commit())
    first.write(batch(2, 4))
    with pytest.raises(ResourceError, match="another process changes it"):
        second.write(batch(2, 4))
    with pytest.raises(ResourceError):
        second.write(batch(4, 6))
    assert numbers(output) == list(range(4))


def test_a_table_that_doesnt_fit_is_refused(tmp_path):
    output = lake(tmp_path, rows=1)
    sink = opened(output, None)
    sink.write(batch(0, 2))
    mark = sink.commit()
    sink.close()
    with pytest.raises(JobError, match="has rows already"):
        refuse_rows(output)
    with pytest.raises(JobError, match="has rows already"):
        opened(output, None)
    with pytest.raises(CheckpointError, match="a job of another name"):
        opened(output, mark, job="other")
    with pytest.raises(CheckpointError, match="expects 9"):
        opened(output, {"seq": 9, "held": ""})
    with pytest.raises(CheckpointError, match="isn't the kind of output"):
        opened(output, {"seq": 2})
    with pytest.raises(CheckpointError, match="partitioned by other columns"):
        opened(lake(tmp_path, partition=["ward"]), mark)
    with pytest.raises(CheckpointError, match="other columns than the job publishes"):
        IcebergSink(output, pa.schema([("age", pa.string())]), mark, job="mine")
    module._catalog(output).drop_table(output.table)
    with pytest.raises(CheckpointError, match="has 0 rows of the job"):
        opened(output, mark)


@pytest.mark.parametrize(
    ("columns", "fits"),
    [
        ([("age", "string", True), ("ward", "string", True)], None),
        ([("age", "string", True), ("ward", "long", True)], "column ward\\."),
        ([("age", "double", True), ("ward", "string", False)], "column age and column ward\\."),
    ],
    ids=["fits", "another type", "required"],
)
def test_a_table_that_somebody_made_fits_or_is_refused_before_a_row(tmp_path, capfd, columns, fits):
    from pyiceberg.schema import Schema
    from pyiceberg.types import DoubleType, LongType, NestedField, StringType

    types = {"string": StringType(), "long": LongType(), "double": DoubleType()}
    output = lake(tmp_path, rows=1)
    catalog = module._catalog(output)
    catalog.create_namespace("public")
    fields = [
        NestedField(i + 1, name, types[kind], required=not may_be_missing)
        for i, (name, kind, may_be_missing) in enumerate(columns)
    ]
    catalog.create_table("public.people", Schema(*fields))
    if fits is None:
        sink = opened(output, None)
        sink.write(batch(0, 2))
        sink.close()
        assert numbers(output) == [0, 1]
    else:
        with pytest.raises(JobError, match="what the job publishes in " + fits):
            opened(output, None)
    assert capfd.readouterr().out == ""


def test_partitions_are_folders_of_public_columns(tmp_path):
    output = lake(tmp_path, rows=4, partition=["ward"])
    sink = opened(output, None)
    sink.write(batch(0, 2))
    sink.write(batch(0, 2))
    sink.close()
    assert sorted(files(output)) == [2, 2]
    assert len(list((tmp_path / "lake").rglob("ward=ward+*"))) == 2
    with pytest.raises(JobError, match="names column ward, which the job doesn't publish"):
        output.check_columns(["age"])
    output.check_columns(["age", "ward"])


def test_types_that_iceberg_lacks_are_stored_as_others(tmp_path):
    at = datetime.datetime(2026, 3, 1, 12)
    utc = at.replace(tzinfo=datetime.UTC)
    columns: dict[str, tuple[pa.DataType, Sequence[object], object]] = {
        "second": (pa.timestamp("s"), [at], at),
        "nano": (pa.timestamp("ns"), [at], at),
        "zoned": (pa.timestamp("ms", "Europe/Berlin"), [utc], utc),
        "small": (pa.int8(), [-3], -3),
        "byte": (pa.uint8(), [3], 3),
        "word": (pa.uint32(), [2**32 - 1], 2**32 - 1),
        "huge": (pa.uint64(), [2**64 - 1], 2**64 - 1),
        "none": (pa.null(), [None], None),
        "day": (pa.date64(), [at.date()], at.date()),
        "time": (pa.time32("s"), [at.time()], at.time()),
        "yes": (pa.bool_(), [True], True),
        "real": (pa.float64(), [0.5], 0.5),
    }
    schema = pa.schema([(name, kind) for name, (kind, *_) in columns.items()])
    output = lake(tmp_path)
    sink = IcebergSink(output, schema, None, job="mine")
    sink.write(pa.record_batch([pa.array(v, k) for k, v, _ in columns.values()], schema=schema))
    mark = json.loads(json.dumps(sink.commit()))
    sink.abandon()
    again = IcebergSink(output, schema, mark, job="mine")
    again.close()
    [row] = module._catalog(output).load_table(output.table).scan().to_arrow().to_pylist()
    assert row == {name: wanted for name, (_, _, wanted) in columns.items()}


def test_files_are_synced_before_the_catalog_names_them(tmp_path, monkeypatch):
    synced: set[str] = set()
    sync = os.fsync

    def fsync(number: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{number}").readlink()))
        sync(number)

    monkeypatch.setattr(os, "fsync", fsync)
    output = lake(tmp_path, rows=1)
    sink = opened(output, None)
    sink.write(batch(0, 2))
    sink.close()
    written = [path for path in (tmp_path / "lake").rglob("*") if path.suffix in
               (".parquet", ".avro", ".json")]  # fmt: skip
    assert len(written) >= 4
    assert {str(path) for path in written} <= synced
    assert {str(path.parent) for path in written} <= synced


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"iceberg": "people"}, "output.iceberg: must be a namespace and a table"),
        ({"path": "s3://bucket/lake"}, "output.path: isn't on the file system of this machine"),
        ({"path": None}, "output.path: is missing"),
        ({"settings": {"uri": "sqlite://"}}, "output.path: can't be combined with settings.uri"),
        ({"rows": 0}, "output.rows: must be above 0"),
        ({"seconds": -1}, "output.seconds: must be above 0"),
        (
            {"path": None, "settings": {"uri": "env:X", "s3.secret-access-key": "hunter2"}},
            "output.settings.s3.secret-access-key: is a secret in plain text",
        ),
        (
            {"path": None, "settings": {"uri": "postgresql://ann:hunter2@db/x"}},
            "output.settings.uri: is a secret in plain text",
        ),
        ({"format": "csv"}, "output.format: can't be combined with iceberg"),
    ],
)
def test_settings_that_dont_fit_are_refused(tmp_path, given, said):
    wanted = {"iceberg": "public.people", "path": "lake/"} | given
    with pytest.raises(JobError) as caught:
        endpoint("output", {k: v for k, v in wanted.items() if v is not None}, tmp_path)
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_settings_name_a_catalog_with_secrets_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "warehouse").mkdir()
    monkeypatch.setenv("CATALOG", f"sqlite:///{tmp_path}/other.db")
    given = {
        "iceberg": "public.people",
        "settings": {
            "type": "sql", "uri": "env:CATALOG", "warehouse": f"file://{tmp_path}/warehouse",
        },
    }  # fmt: skip
    output = endpoint("output", given, tmp_path)
    assert isinstance(output, IcebergOutput)
    assert "other.db" not in repr(output)
    sink = opened(output, None)
    sink.write(batch(0, 3))
    sink.close()
    assert numbers(output) == [0, 1, 2]
    assert (tmp_path / "other.db").exists()
    with pytest.raises(JobError, match="--to: can't be set for an Iceberg table"):
        output.with_format("csv")


def test_a_catalog_that_cant_be_reached_is_one_sentence_without_its_address(tmp_path):
    (tmp_path / "file").write_text("x")
    output = lake(tmp_path, path="file/lake")
    with pytest.raises(ResourceError, match=r"table public.people: the catalog or its files"):
        opened(output, None)


def test_a_job_isnt_run_that_divides_a_table_by_people(tmp_path, monkeypatch, capfd):
    write(people(20), tmp_path / "in.csv")
    job = write_job(tmp_path, run="checkpoint = { folder = 'state' }")
    with job.open("a") as file:
        file.write("[input]\npath = 'in.csv'\n[output]\niceberg = 'public.people'\n")
        file.write("path = 'lake'\npartition = ['ward', 'person']\n")
    assert shoal(monkeypatch, "run", job) == 2
    assert "output.partition: names column person, which the job doesn't" in capfd.readouterr().err
    assert not (tmp_path / "lake").exists()


def test_a_commit_that_a_proxy_repeats_appends_nothing_twice(tmp_path, monkeypatch):
    from pyiceberg.catalog.sql import SqlCatalog

    output = lake(tmp_path, rows=5)
    sink = opened(output, None)
    sink.write(batch(0, 5))
    mark = sink.commit()
    commit = SqlCatalog.commit_table

    def twice(self, *given):
        commit(self, *given)
        # The answer to the first one never arrives: that to the second one does.
        return commit(self, *given)

    with monkeypatch.context() as repeated:
        repeated.setattr(SqlCatalog, "commit_table", twice)
        with pytest.raises(ResourceError, match="Start the job again: it resumes"):
            sink.write(batch(5, 10))
    sink.close()
    assert numbers(output) == list(range(10))
    resumed = opened(output, mark)
    resumed.write(batch(5, 15))
    resumed.commit()
    resumed.close()
    assert numbers(output) == list(range(15))
