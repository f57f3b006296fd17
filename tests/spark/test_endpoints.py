"""Sources and sinks on Spark: formats, tables, bad rows, streams of users."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from shoal.errors import CheckpointError, DataError, JobError, ParameterError, ResourceError
from shoal.io.table import TableOutput
from shoal.job import Job
from shoal.spark import publish
from shoal.spark.columns import TICK, order_column
from shoal.spark.endpoints import read_stream
from shoal.spark.order import with_order
from tests.run.test_pipeline import Story
from tests.spark.cluster import logs_of
from tests.spark.streams import OnSpark, put, stream_of, traced
from tests.spark.test_query import POLICY, totals
from tests.spark.world import COLUMNS, LIVE, by_row, job_of, judge, unsharded
from tests.world import people

TABLE = people(300, n_people=100).select(COLUMNS)
HEAD = ",".join(COLUMNS)


def lines_of(table: pa.Table) -> list[str]:
    return [",".join(map(str, row.values())) for row in table.to_pylist()]


def read_text(folder: Path, form: str) -> list[dict[str, Any]]:
    """What text files have, epoch by epoch."""
    rows: list[dict[str, Any]] = []
    for path in sorted(folder.glob(f"batch-*/part-*.{form}")):
        if form == "json":
            rows += [json.loads(line) for line in path.read_text().splitlines()]
        elif path.stat().st_size:
            rows += pyarrow.csv.read_csv(path).to_pylist()
    return rows


# -- files -----------------------------------------------------------------------------------------


def test_lines_of_text_that_cant_be_used_are_set_apart_and_all_others_published(spark, tmp_path):
    more = (
        "[input]\npath = 'in'\nformat = 'csv'\n[output]\npath = 'out'\nformat = 'jsonl'\n"
        "[spark]\nshards = 2\n"
    )
    job = job_of(tmp_path, policy=POLICY, more=more)
    (tmp_path / "in").mkdir()

    def resume():
        stream = read_stream(spark, job, job.input)
        publishing = publish(stream, job, until_end=True, trace=tmp_path / "trace")
        publishing.wait()
        return publishing.summary

    # No good row at all: nothing tells yet how rows are to be dealt out.
    unknown = [f"person-{i},unknown,bonn,flu,A" for i in range(3)]
    (tmp_path / "in" / "0.csv").write_text("\n".join([HEAD, *unknown]) + "\n")
    assert totals(resume()) | {"n_in": 3, "quarantined": 3} == totals(resume())
    good = lines_of(TABLE)
    text = [HEAD, *good[:50], "person-1,41", *good[50:], 'person-2,20,"bonn,flu,A']
    (tmp_path / "in" / "1.csv").write_text("\n".join(text) + "\n")
    summary = resume()
    assert summary.n_in == 305
    assert summary.n_quarantined == 5
    quarantined = [
        json.loads(line)
        for path in (tmp_path / "job.quarantine.jsonl").iterdir()
        for line in path.read_text().splitlines()
    ]
    assert sorted(row["row"] for row in quarantined) == [0, 1, 2, 53, 304]
    assert sorted(row["raw"] for row in quarantined)[0] == "person-1,41"
    lines = traced(tmp_path / "trace")
    assert sorted(line["row"] for line in lines) == list(range(305))
    public = read_text(tmp_path / "out", "json")
    assert len(public) == summary.n_published > 200
    nothing = dict.fromkeys(COLUMNS)
    rows = TABLE.to_pylist()
    original = [nothing] * 3 + rows[:50] + [nothing] + rows[50:] + [nothing]
    report = judge(job, public, lines, pa.Table.from_pylist(original, TABLE.schema))
    assert report.verdict == "kept", str(report)


def test_a_job_that_says_so_stops_at_a_bad_row_and_no_log_quotes_it(spark, tmp_path):
    more = "[input]\npath = 'in'\nformat = 'jsonl'\n[output]\npath = 'out'\n"
    job = job_of(tmp_path, policy=POLICY, more=more, bad_rows="action = 'stop'")
    (tmp_path / "in").mkdir()
    rows = TABLE.to_pylist()[:40]
    rows[7]["age"] = "canary-4711"
    (tmp_path / "in" / "0.json").write_text("\n".join(map(json.dumps, rows)) + "\n")
    publishing = publish(read_stream(spark, job, job.input), job, until_end=True)
    with pytest.raises(DataError, match=r"batch-0000000000: .*The job says to stop") as stopped:
        publishing.wait()
    assert "canary" not in str(stopped.value)
    logs = [path.read_bytes() for path in logs_of(spark).rglob("std*")]
    assert any(logs)
    assert not any(b"canary-4711" in log for log in logs)
    # Nobody holds the folder now: a fixed job can go on.
    with pytest.raises(DataError):
        publish(read_stream(spark, job, job.input), job, until_end=True).wait()


# -- tables ----------------------------------------------------------------------------------------


def test_from_a_table_to_a_table(spark, tmp_path):
    spark.sql("CREATE DATABASE IF NOT EXISTS clinic")
    spark.createDataFrame(TABLE).coalesce(1).write.mode("overwrite").saveAsTable("clinic.people")
    more = "[input]\ntable = 'clinic.people'\n[output]\ntable = 'clinic.public'\n"
    job = job_of(tmp_path, policy=POLICY, more=more)
    for _ in range(2):
        # The second time there is nothing new, and the end was recorded.
        publish(read_stream(spark, job, job.input), job, until_end=True).wait()
        public = spark.table("clinic.public")
        rows = public.drop("batch").toArrow().to_pylist()
        expected = Story(job.pipeline, TABLE).execute().output.to_pylist()
        assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    batches = [row.batch for row in public.select("batch").distinct().collect()]
    assert sorted(batches) == ["batch-0000000000", "batch-0000000000-end"]
    spark.sql("DROP DATABASE clinic CASCADE")


# -- streams of users' own -------------------------------------------------------------------------


def test_a_user_names_the_order_and_csv_is_written(spark, tmp_path):
    with_read_order = TABLE.append_column("n", [list(range(len(TABLE)))])
    mixed = list(range(len(TABLE)))
    random.Random(3).shuffle(mixed)
    (tmp_path / "in").mkdir()
    put(with_read_order.take(mixed), tmp_path / "in", 0)
    job = job_of(tmp_path, policy=POLICY, more="[output]\npath = 'out'\nformat = 'csv'\n")
    run = OnSpark(spark, job, tmp_path, with_read_order)
    run.to_end(order=["n"])
    story = Story(job.pipeline, TABLE).execute()
    assert unsharded(run.lines) == by_row(story.trace.table.to_pylist())
    expected = [{k: str(v) for k, v in row.items()} for row in story.output.to_pylist()]
    found = [{k: str(v) for k, v in row.items()} for row in read_text(tmp_path / "out", "csv")]
    assert found == expected


def test_rows_of_a_topic_are_in_the_order_of_their_offsets(spark, tmp_path):
    (tmp_path / "in").mkdir()
    places = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
    fields = pa.schema([*TABLE.schema, *places])
    ordered = with_order(stream_of(spark, tmp_path / "in", fields), COLUMNS, None)
    assert (ordered.n_columns, ordered.as_read) == (3, False)
    # As they are called otherwise, nothing but the file tells.
    ordered = with_order(stream_of(spark, tmp_path / "in", TABLE.schema), COLUMNS, None)
    assert (ordered.n_columns, ordered.as_read) == (2, True)
    assert ordered.stream.columns == [*COLUMNS, order_column(0), order_column(1), TICK]


def test_streams_that_cant_be_published_are_refused_at_once(spark, tmp_path):
    job = job_of(tmp_path, policy=POLICY, more="[output]\npath = 'out'\n")
    (tmp_path / "in").mkdir()
    files = stream_of(spark, tmp_path / "in", TABLE.schema)
    rate = spark.readStream.format("rate").load()
    nameless = rate.selectExpr(*(f"CAST(value AS STRING) AS {name}" for name in COLUMNS))
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (nameless, {}, "nothing defines the order of the rows of this stream"),
        (files, {"order": ["offset"]}, r"different in every row; got \['offset'\]"),
        (files, {"order": []}, "different in every row"),
        (files.drop("age", "ward"), {}, "lacks the columns age, ward"),
        (files.withColumnRenamed("ward", "__shoal_ward"), {}, "begin with __shoal_"),
        (spark.createDataFrame(TABLE), {}, "must be a streaming DataFrame"),
        (files, {"shards": 0}, "must be a whole number from 1"),
    ]
    for stream, options, words in wrong:
        with pytest.raises(JobError, match=words):
            publish(stream, job, **options)
    events = job_of(
        tmp_path / "events", name="z-anonymity", policy="z = 3\nwindow = { rows = 50 }",
        schema="subject = 'person'\n[schema.quasi]\ntown = { hierarchy = 'town.csv' }\n",
        publish="pseudonym = { rotate = 100 }",
    )  # fmt: skip
    with pytest.raises(ParameterError, match="would undo the pseudonyms"):
        publish(files, events, trace=tmp_path / "trace")
    assert not (tmp_path / "state").exists()


def test_a_batch_that_wasnt_written_is_finished_before_all_else(spark, tmp_path):
    (tmp_path / "in").mkdir()
    put(TABLE, tmp_path / "in", 0)
    more = "[output]\npath = 'out'\n"
    run = OnSpark(spark, job_of(tmp_path, policy=POLICY, more=more), tmp_path, TABLE)
    with pytest.raises(CheckpointError, match=r"shard-000: has no state after batch-0000000000"):
        run.to_end(write=lambda rows, epoch: None)
    # Some of its rows might be out: neither other shards nor another promise come in between.
    with pytest.raises(CheckpointError, match=r"was interrupted"):
        run.to_end(shards=2, migrate=True)
    run.job = job_of(tmp_path, policy=POLICY.replace("k = 4", "k = 5"), more=more)
    refused = r"\[policy\] is not as it was then\. A job on Spark can't change while it lives\."
    with pytest.raises(CheckpointError, match=refused):
        run.to_end()
    run.job = job_of(tmp_path, policy=POLICY, more=more)
    run.to_end()
    public = Story(run.job.pipeline, TABLE).execute().output.to_pylist()
    assert run.public == public
    # Spark doesn't know that it is done, and has it repeated: it was ended after that.
    for name in ("0", ".0.crc"):
        (tmp_path / "state" / "spark" / "commits" / name).unlink()
    later = people(60, seed=2).select(COLUMNS)
    run.table = pa.concat_tables([TABLE, later])
    put(later, tmp_path / "in", 1)
    run.to_end()
    assert run.public[: len(public)] == public
    assert sorted(line["row"] for line in run.lines) == list(range(360))
    assert run.judge().verdict == "kept"


# -- files with other columns, and files that come later ------------------------------------------

WALL = "k = 3\ndelay = { rows = 1000, seconds = 2, clock = 'wall' }"


def write(path: Path, names: list[str], first: int, n_rows: int = 40) -> None:
    table = people(200).slice(first, n_rows).select(names).to_pylist()
    lines = [",".join(names), *(",".join(str(row[name]) for name in names) for row in table)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def job(tmp_path):
    (tmp_path / "in").mkdir()
    run = LIVE + "\n[spark]\ninterval = 0.2\n"
    return job_of(tmp_path, policy=WALL, run=run)


def run_until_out(spark: Any, job: Job, folder: Path, **options: Any) -> list[dict[str, Any]]:
    """Run until some rows are out; give them."""
    source = dataclasses.replace(job.input, path=str(folder / "in"), format="csv")
    found: dict[str, list[dict[str, Any]]] = {}

    def keep(rows: Any, epoch: str) -> None:
        found[epoch] = rows.toArrow().to_pylist()

    running = publish(read_stream(spark, job, source), job, write=keep, **options)
    if options.get("until_end"):
        running.wait()
    else:
        while not any(found.values()):
            assert not running.wait(1)
        running.stop()
        assert running.wait(1)
    return [row for rows in found.values() for row in rows]


def test_a_file_whose_columns_stand_in_another_order_is_refused(spark, job, tmp_path):
    # By its header alone it can be seen that these aren't wards.
    write(tmp_path / "in" / "a.csv", ["person", "age", "town", "illness", "ward"], 0)
    write(tmp_path / "in" / "b.csv", ["ward", "age", "town", "illness", "person"], 40)
    with pytest.raises(ResourceError, match="Spark has given up"):
        run_until_out(spark, job, tmp_path, until_end=True)


def test_a_job_that_read_to_the_end_can_follow_later_files(spark, job, tmp_path):
    names = ["person", "age", "town", "illness", "ward"]
    n_out = 0
    for i, until_end in enumerate([True, False, True]):
        write(tmp_path / "in" / f"{i}.csv", names, 40 * i)
        n_out += len(run_until_out(spark, job, tmp_path, until_end=until_end))
    assert 60 < n_out <= 120


# -- tables ----------------------------------------------------------------------------------------


@pytest.fixture
def table(spark):
    name = "epochs_of_a_job"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def partitions(spark: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(name).collect())


@pytest.mark.parametrize("mode", ["STATIC", "DYNAMIC"])
def test_an_epoch_is_written_over_itself_and_over_no_other(spark, table, tmp_path, mode):
    write = TableOutput(table).spark_writer()
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", mode)

    def epoch(number: int, *rows: tuple[int, str]) -> None:
        write(spark.createDataFrame(list(rows), "age int, town string"), f"batch-000000000{number}")

    try:
        epoch(0, (1, "east"), (2, "west"))
        epoch(1, (3, "east"))
        both = partitions(spark, table)
        assert both == [
            (1, "east", "batch-0000000000"),
            (2, "west", "batch-0000000000"),
            (3, "east", "batch-0000000001"),
        ]
        epoch(1, (3, "east"))
        assert partitions(spark, table) == both
        # What was torn by a crash goes altogether.
        epoch(1)
        assert partitions(spark, table) == both[:2]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
