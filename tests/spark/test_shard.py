"""A shard without Spark publishes the same rows however it is batched, repeated or stopped."""

from __future__ import annotations

import dataclasses
import json
import logging
import stat
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.errors import CheckpointError, DataError, ResourceError, ShoalError
from shoal.io.base import BadRow
from shoal.run.core import RunCore
from shoal.run.state.folder import path_of
from shoal.spark import shard
from shoal.spark import shard_job as shard_jobs
from shoal.spark.commits import Epoch, shard_folder
from shoal.spark.shard import Shard, run_shard, shard_seed
from shoal.spark.shard_io import ShardIO, drop_unfinished
from shoal.spark.shard_job import ShardJob, own_code
from tests.run.test_pipeline import Story
from tests.spark.world import (
    COLUMNS,
    ShardRun,
    batches_of,
    by_row,
    cuts_of,
    job_of,
    rows_of,
    shard_job_of,
    unsharded,
)
from tests.world import SCHEMA, people, with_gaps

N_ROWS = 240
TABLE = people(N_ROWS).select(COLUMNS)
TIMED = 'time = "at"\n' + SCHEMA
STREAM = "k = 3\ndelay = { rows = 1000, seconds = 30 }"
WALL = "k = 3\ndelay = { rows = 1000, seconds = 10, clock = 'wall' }"


@pytest.fixture(autouse=True)
def no_cached_state():
    shard._cached.clear()


def shard_run_of(
    folder: Path, table: pa.Table = TABLE, is_fresh: bool = False, **options: Any
) -> ShardRun:
    fields = {name: options.pop(name) for name in ("traced", "quarantine") if name in options}
    lead = options.pop("lead", 0.0)
    job = job_of(folder, **options)
    return ShardRun(shard_job_of(job, table.schema, **fields), is_fresh=is_fresh, lead=lead)


def run_shard_over(folder: Path, borders: list[int], cuts: list[int], **options: Any) -> ShardRun:
    """A whole stream in epochs that end at some rows, each cut into batches."""
    life = shard_run_of(folder, **options)
    for begin, end in pairwise([0, *borders, N_ROWS]):
        life.take(TABLE.slice(begin, end - begin), cuts)
    life.take(is_end=True)
    return life


# -- what comes in goes out ------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["castle", "fads"])
def test_one_shard_decides_as_a_run_on_its_own(tmp_path, algorithm):
    life = run_shard_over(tmp_path / "shard", cuts_of(N_ROWS, 3), [2, 9, 30], name=algorithm)
    job = job_of(tmp_path / "alone", name=algorithm)
    assert job.anonymizer.name == algorithm
    story = Story(job.pipeline, TABLE).execute()
    assert life.public == story.output.to_pylist()
    assert unsharded(life.lines) == by_row(story.trace.table.to_pylist())
    report = life.judge(TABLE)
    assert report.verdict == "kept", str(report)


@pytest.mark.parametrize("publish", ["", "order = 'arrival'", "order = 'shuffled'"])
def test_any_cutting_into_batches_and_epochs_gives_the_same_rows(tmp_path, publish):
    whole = run_shard_over(tmp_path / "whole", [], [], publish=publish)
    assert len(whole.public) > N_ROWS / 2
    for seed in (1, 2):
        borders, cuts = cuts_of(N_ROWS, seed), [1, 2, 5 + seed, 40]
        is_fresh = seed == 2
        cut = run_shard_over(
            tmp_path / f"{seed}", borders, cuts, publish=publish, is_fresh=is_fresh
        )
        assert cut.public == whole.public
        if not publish:
            assert by_row(cut.lines) == by_row(whole.lines)


def test_values_that_are_missing_go_the_same_way_in_any_cutting(tmp_path):
    policy = "k = 3\ndelay = { rows = 20 }\nmissing = 'maybe'"
    table = with_gaps(TABLE)
    lives = []
    for name, width in (("whole", N_ROWS), ("cut", 37)):
        life = shard_run_of(tmp_path / name, table, policy=policy, is_fresh=True)
        for begin in range(0, N_ROWS, width):
            life.take(table.slice(begin, width), [11])
        life.take(is_end=True)
        lives.append(life)
    assert lives[0].public == lives[1].public
    assert lives[0].judge(table).verdict == "kept"


def test_types_are_those_of_the_columns_even_where_the_first_rows_lack_them(tmp_path):
    nothing = pa.table({"ward": pa.nulls(5, pa.string())})
    table = TABLE.slice(0, 5).set_column(4, "ward", nothing["ward"])
    life = shard_run_of(tmp_path)
    life.take(table)
    life.take(TABLE.slice(5, 100))
    life.take(is_end=True)
    assert {row["ward"] for row in life.public} >= {"A", "B", "C"}


def test_a_shard_publishes_the_declared_columns(tmp_path):
    life = shard_run_of(tmp_path, publish="suppressed = 'root'")
    for batch in life.begin(life.next(), TABLE):
        assert batch.schema.equals(life.shard_job.public)
        assert not any(pa.types.is_dictionary(field.type) for field in batch.schema)
    assert "person" not in life.shard_job.public.names


# -- repetitions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_fresh", [True, False], ids=["another process", "the same"])
def test_an_epoch_repeated_gives_the_same_bytes(tmp_path, is_fresh):
    life = shard_run_of(tmp_path, is_fresh=is_fresh)
    for begin in (0, 80, 160):
        table, epoch = TABLE.slice(begin, 80), life.next(at=float(begin))
        first = rows_of(life.begin(epoch, table, [30]))
        state = life.state(epoch)
        assert rows_of(life.begin(epoch, table, [30])) == first
        assert life.state(epoch) == state
        life.finish(epoch, 80, first)
    assert len(life.public) > 100


@pytest.mark.parametrize("is_fresh", [True, False], ids=["another process", "the same"])
@pytest.mark.parametrize("n_read", [0, 1, 3])
def test_an_attempt_that_ends_in_the_middle_spoils_nothing(tmp_path, n_read, is_fresh):
    whole = run_shard_over(tmp_path / "whole", [80, 160], [30])
    life = shard_run_of(tmp_path / "torn", is_fresh=is_fresh)
    for begin in (0, 80, 160):
        table, epoch = TABLE.slice(begin, 80), life.next()
        # Nobody reads on, as after a kill of the reader.
        attempt = life.begin(epoch, table, [30, 40, 50, 60])
        for _ in range(n_read):
            next(attempt)
        attempt.close()
        # What brings the rows fails.
        attempt = run_shard(
            life.shard_job, epoch, 0, broken(batches_of(table, TABLE.schema, [30, 60]))
        )
        with pytest.raises(ShoalError, match="ValueError in"):
            rows_of(attempt)
        found = rows_of(life.begin(epoch, table, [30]))
        life.finish(epoch, 80, found)
    life.take(is_end=True)
    assert life.public == whole.public
    assert unsharded(life.lines)[0].keys() == unsharded(whole.lines)[0].keys()


def broken(batches: list[pa.RecordBatch]) -> Any:
    yield from batches[:-1]
    raise ValueError("a canary in a coal mine")


def test_an_attempt_that_ends_in_the_middle_leaves_no_figures(tmp_path):
    life = shard_run_of(tmp_path)
    epoch = life.next()
    attempt = life.begin(epoch, TABLE)
    next(attempt)
    attempt.close()
    with pytest.raises(CheckpointError, match="its rows weren't written"):
        life.commits.figures(epoch, life.plan)
    rows_of(life.begin(epoch, TABLE))
    (figures,) = life.commits.figures(epoch, life.plan)
    assert figures["n_out"] > 0
    assert figures["n_bytes"] == path_of(tmp_path / "state/shard-000", "state", 0).stat().st_size


def test_a_state_in_memory_is_of_this_very_file(tmp_path):
    # A worker of Spark's outlives a job, and may meet another one in the same folder.
    one, other = shard_run_of(tmp_path / "one"), shard_run_of(tmp_path / "other")
    one.take(TABLE.slice(0, 80))
    other.take(people(80, seed=5).select(COLUMNS))
    # As if the one had been here, up to the epoch of the same number.
    shard._cached[str(other.shard_job.folder), 0] = shard._cached[str(one.shard_job.folder), 0]
    other.take(people(80, seed=6).select(COLUMNS))
    state = other.state()
    again = shard_run_of(tmp_path / "again", is_fresh=True)
    again.take(people(80, seed=5).select(COLUMNS))
    again.take(people(80, seed=6).select(COLUMNS))
    assert (other.public, state) == (again.public, again.state())


def test_a_state_in_memory_serves_the_next_epoch_alone(tmp_path, monkeypatch):
    life, loads = shard_run_of(tmp_path), []
    restore = RunCore.restore
    monkeypatch.setattr(RunCore, "restore", lambda *all: loads.append(1) or restore(*all))
    life.take(TABLE.slice(0, 80))
    life.take(TABLE.slice(80, 80))
    assert not loads
    life.is_fresh = True
    life.take(TABLE.slice(160, 80))
    assert loads == [1]


def test_the_number_of_states_in_memory_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(shard, "MOST_CACHED", 2)
    for i in range(4):
        shard_run_of(tmp_path / str(i)).take(TABLE.slice(0, 30))
    assert len(shard._cached) == 2


def test_a_missing_state_is_reported(tmp_path):
    life = shard_run_of(tmp_path, is_fresh=True)
    life.take(TABLE.slice(0, 80))
    path_of(tmp_path / "state/shard-000", "state", 0).unlink()
    with pytest.raises(ResourceError, match="can't be read"):
        life.take(TABLE.slice(80, 80))


# -- rows that can't be used -----------------------------------------------------------------------

BAD = TABLE.slice(0, 60).set_column(
    1,
    "age",
    [[None if i in (7, 31) else age for i, age in enumerate(TABLE["age"].to_pylist()[:60])]],
)


def quarantined(folder: Path, name: str) -> list[dict[str, Any]]:
    path = folder / "job.quarantine.jsonl" / name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_bad_rows_are_set_apart_in_a_file_of_the_epoch(tmp_path):
    life = shard_run_of(tmp_path)
    life.take(TABLE.slice(0, 60))
    epoch = life.next()
    first = rows_of(life.begin(epoch, BAD, [20]))
    for _ in range(2):
        # Repeated, it is written over.
        assert rows_of(life.begin(epoch, BAD, [44])) == first
        found = quarantined(tmp_path, "batch-0000000001-shard-000.jsonl")
        assert [row["row"] for row in found] == [67, 91]
    life.finish(epoch, 60, first)
    life.take(is_end=True)
    assert [path.name for path in (tmp_path / "job.quarantine.jsonl").iterdir()] == [
        "batch-0000000001-shard-000.jsonl"
    ]
    # The row as it was, without the columns that are ours.
    assert json.loads(found[0]["raw"]).keys() == set(COLUMNS)
    outcomes = {line["row"]: line["outcome"] for line in life.lines}
    assert {row for row, outcome in outcomes.items() if outcome == "quarantined"} == {67, 91}
    assert len(outcomes) == 120
    (figures,) = life.commits.figures(life.last, life.plan)
    assert figures["summary"]["n_in"] == 120
    report = life.judge(pa.concat_tables([TABLE.slice(0, 60), BAD]))
    assert report.verdict == "kept", str(report)


def test_what_an_attempt_hasnt_finished_is_forgotten_with_the_epoch(tmp_path):
    life = shard_run_of(tmp_path)
    epoch, folder = life.next(), tmp_path / "job.quarantine.jsonl"
    attempt = life.begin(epoch, BAD, [40])
    next(attempt)
    (left,) = folder.iterdir()
    assert left.name.startswith(".")
    attempt.close()
    assert not list(folder.iterdir())
    others = [
        folder / f".7-{name}-shard-000.jsonl" for name in ("batch-0000000001", f"{epoch.name}-end")
    ]
    for other in others:
        other.touch()
    rows_of(life.begin(epoch, BAD, [40]))
    # Of one that was killed it is there.
    left.touch()
    drop_unfinished(folder, epoch)
    assert set(folder.iterdir()) == {folder / f"{epoch.name}-shard-000.jsonl", *others}
    drop_unfinished(tmp_path / "missing", epoch)


def test_lines_that_arent_rows_are_set_apart_as_they_are(tmp_path):
    life = shard_run_of(tmp_path)
    table = TABLE.slice(0, 60)
    torn = {3: 'person-1,41,"ber', 59: "\x00"}
    life.take(table, [2, 30], corrupt=torn)
    found = quarantined(tmp_path, "batch-0000000000-shard-000.jsonl")
    assert [(row["row"], row["raw"]) for row in found] == [*torn.items()]
    assert {row["reason"] for row in found} == {"it can't be read as a row"}
    life.take(is_end=True)
    assert life.judge(table, unread=torn).verdict == "kept"
    assert len(life.lines) == 60


def test_a_column_for_torn_lines_without_any_is_harmless(tmp_path):
    life = shard_run_of(tmp_path)
    life.take(TABLE, corrupt={})
    assert not (tmp_path / "job.quarantine.jsonl").exists()


def test_without_a_trace_rows_are_counted_in_the_epoch(tmp_path):
    life = shard_run_of(tmp_path, traced=False)
    life.take(BAD, [20])
    found = quarantined(tmp_path, "batch-0000000000-shard-000.jsonl")
    assert [row["row"] for row in found] == [7, 31]
    assert not list((tmp_path / "state").rglob("trace*"))


def test_a_job_that_says_so_stops_at_a_bad_row(tmp_path):
    life = shard_run_of(tmp_path, quarantine=None)
    with pytest.raises(DataError, match=r"batch-0000000000: .*age.* The job says to stop"):
        life.take(BAD)
    assert not list((tmp_path / "state").rglob("figures*"))


def test_a_row_is_late_by_the_time_of_all_shards(tmp_path):
    timed = people(60)
    policy = STREAM + "\nlateness = 5"
    life = shard_run_of(tmp_path, timed, schema=TIMED, policy=policy)
    life.take(timed.slice(10, 10))
    # Another shard is further on.
    life.take(timed.slice(30, 10), latest=37.0)
    found = quarantined(tmp_path, "batch-0000000001-shard-000.jsonl")
    assert [row["row"] for row in found] == [10, 11]


# -- time ------------------------------------------------------------------------------------------


def test_by_the_wall_clock_what_is_due_leaves_without_any_row(tmp_path):
    life = shard_run_of(tmp_path, policy=WALL, publish="suppressed = 'root'", is_fresh=True)
    assert life.take(TABLE.slice(0, 40), at=100.0) == []
    assert life.take(at=109.0) == []
    assert len(life.take(at=110.0)) == 40
    assert {(line["arrived_s"], line["published_s"]) for line in life.lines} == {(100.0, 110.0)}
    assert life.take(at=120.0) == []
    assert life.judge(TABLE.slice(0, 40)).verdict == "kept"


def test_what_would_be_due_before_the_next_epoch_leaves_in_this_one(tmp_path):
    life = shard_run_of(tmp_path, policy=WALL, publish="suppressed = 'root'", lead=2.0)
    life.take(TABLE.slice(0, 40), at=100.0)
    assert life.take(at=107.9) == []
    assert len(life.take(at=108.0)) == 40
    assert {line["published_s"] for line in life.lines} == {108.0}


def test_time_passes_in_a_shard_without_rows(tmp_path):
    timed = people(60)
    options = {"schema": TIMED, "policy": STREAM, "publish": "suppressed = 'root'"}
    life = shard_run_of(tmp_path, timed, **options)
    life.take(timed.slice(0, 20), at=1000.0)
    assert not life.public
    # Another shard has seen a row of the second 45: what came before 15 is due.
    found = life.take(at=1001.0, latest=45.0)
    assert len(found) >= 16
    assert {line["published_s"] for line in life.lines} <= {30.0 + i for i in range(16)} | {45.0}
    # It doesn't go back, and rows that are stamped earlier come no earlier.
    life.take(timed.slice(20, 10), at=1002.0, latest=40.0)
    life.take(at=1003.0, is_end=True)
    arrived = [line["arrived_s"] for line in by_row(life.lines)]
    assert arrived == [float(i) for i in range(20)] + [45.0] * 10
    (figures,) = life.commits.figures(life.last, life.plan)
    assert figures["latest"] == 45.0


def test_at_the_end_all_is_decided_and_the_stream_may_resume(tmp_path):
    life = shard_run_of(
        tmp_path, policy="k = 3\ndelay = { rows = 200 }", publish="suppressed = 'root'"
    )
    life.take(TABLE.slice(0, 80))
    assert len(life.public) < 80
    end = life.take(is_end=True)
    assert life.last.name == "batch-0000000000-end"
    assert end
    assert len(life.public) == 80
    life.take(TABLE.slice(80, 80))
    life.take(is_end=True)
    assert len(life.public) == 160
    assert life.judge(TABLE.slice(0, 160)).verdict == "kept"


def test_pseudonyms_are_the_same_when_an_epoch_is_repeated_and_change_as_the_job_says(tmp_path):
    publish = "pseudonym = { rotate = 100 }"
    schema = "subject = 'person'\n[schema.quasi]\ntown = { hierarchy = 'town.csv' }\n"
    life = shard_run_of(
        tmp_path, schema=schema, policy="z = 3\nwindow = { rows = 50 }", publish=publish,
        name="z-anonymity", traced=False,
    )  # fmt: skip
    names = []
    for i in range(3):
        epoch = life.next(secret=f"{i:064x}")
        found = rows_of(life.begin(epoch, TABLE.slice(80 * i, 80), [40]))
        assert rows_of(life.begin(epoch, TABLE.slice(80 * i, 80), [40])) == found
        life.finish(epoch, 80, found)
        names.append({row["pseudonym"] for row in found})
    assert all(names)
    assert names[0] & names[1]
    assert not names[0] & names[2]


# -- secrets ---------------------------------------------------------------------------------------

KEY, OTHER = bytes(range(32)).hex(), bytes(32).hex()
SEALED = "seed = 7\ncheckpoint = { folder = 'state', seal = 'env:SHOAL_TEST_KEY' }"


def test_a_sealed_state_needs_its_key(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_TEST_KEY", KEY)
    life = shard_run_of(tmp_path, run=SEALED, is_fresh=True, traced=False)
    life.take(TABLE.slice(0, 80))
    held = [path for path in (tmp_path / "state").rglob("*-0*") if path.is_file()]
    assert held
    for path in held:
        assert b"person-" not in path.read_bytes()
        assert b"ward" not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for key in (OTHER, None):
        monkeypatch.setenv("SHOAL_TEST_KEY", key) if key else monkeypatch.delenv("SHOAL_TEST_KEY")
        with pytest.raises(CheckpointError, match=r"key|seal"):
            rows_of(life.begin(life.next(), TABLE.slice(80, 80)))
    monkeypatch.setenv("SHOAL_TEST_KEY", KEY)
    life.take(TABLE.slice(80, 160))
    life.take(is_end=True)
    assert len(life.public) > 100


def test_a_shard_has_one_thread_unless_the_job_asks_for_more(tmp_path):
    job = shard_run_of(tmp_path, name="tide").shard_job
    assert job.anonymizer.workers == 0
    assert job.core(b"seed")._engine._threads.n == 1


def test_a_state_of_another_job_is_refused(tmp_path):
    life = shard_run_of(tmp_path, is_fresh=True)
    life.take(TABLE.slice(0, 80))
    life.shard_job = dataclasses.replace(
        life.shard_job, digests=life.shard_job.digests | {"policy": "another"}
    )
    with pytest.raises(CheckpointError, match=r"\[policy\] is not as it was"):
        life.take(TABLE.slice(80, 80))


CANARY = "canary-4711"


def failing(*_: Any) -> Any:
    raise KeyError(CANARY)


def led_to(*_: Any) -> Any:
    try:
        failing()
    except KeyError as error:
        raise DataError("age: 1 value is out of range.") from error


@pytest.mark.parametrize("fails", [failing, led_to], ids=["foreign", "ours"])
def test_no_failure_quotes_a_value(tmp_path, monkeypatch, fails, caplog):
    import traceback

    caplog.set_level(logging.DEBUG)
    life = shard_run_of(tmp_path)
    monkeypatch.setattr(RunCore, "take_in", fails)
    with pytest.raises(ShoalError) as raised:
        life.take(TABLE)
    # As Spark writes it to its logs: with all that has led to it.
    shown = "".join(traceback.format_exception(raised.value))
    assert CANARY not in shown + caplog.text
    if fails is failing:
        assert "KeyError in test_shard.py, line" in str(raised.value)
        assert "in a shard of batch-0000000000" in str(raised.value)


def test_a_developer_may_see_all_of_a_failure(tmp_path, monkeypatch):
    life = shard_run_of(tmp_path)
    monkeypatch.setattr(RunCore, "take_in", failing)
    monkeypatch.setenv("SHOAL_DEBUG", "1")
    with pytest.raises(KeyError, match=CANARY):
        life.take(TABLE)


def test_no_repr_or_log_shows_a_value_or_a_key(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("SHOAL_TEST_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    table = TABLE.set_column(4, "ward", [[CANARY] * N_ROWS])
    life = shard_run_of(tmp_path, table, run=SEALED)
    life.take(table)
    opened = Shard(life.shard_job, 0)
    opened.load(life.next())
    shown = repr(life.shard_job) + repr(life.next(secret=KEY)) + repr(opened) + caplog.text
    for secret in (CANARY, "person-", KEY, "SHOAL_TEST_KEY"):
        assert secret not in shown


# -- seeds -----------------------------------------------------------------------------------------


def test_shards_draw_by_themselves_and_a_single_one_as_the_job_does(tmp_path):
    life = shard_run_of(tmp_path)
    assert shard_seed(life.plan, 0) == bytes.fromhex(life.plan.seed)
    several = dataclasses.replace(life.plan, n_shards=3)
    seeds = {shard_seed(several, number) for number in range(3)}
    assert len(seeds) == 3
    assert shard_seed(life.plan, 0) not in seeds


def test_the_shard_is_the_one_that_the_first_row_names(tmp_path):
    job = job_of(tmp_path)
    life = ShardRun(shard_job_of(job, TABLE.schema), n_shards=3, number=2)
    life.take(TABLE, [50])
    life.take(is_end=True)
    assert {line["shard"] for line in life.lines} == {2}
    assert {line["group"] % (1 << 20) for line in life.lines if line["group"] is not None} == {2}
    assert [path.name for path in sorted((tmp_path / "state").glob("shard-*/state-*"))] == [
        "state-0000000000",
        "state-0000000001",
    ]
    assert life.judge(TABLE).verdict == "kept"


def test_an_epoch_and_a_job_can_be_pickled(tmp_path):
    from pyspark import cloudpickle

    shard_job, epoch = shard_run_of(tmp_path).shard_job, Epoch(2, 0, 0, True, 1.5, 1.5, None)
    there: tuple[ShardJob, Epoch] = cloudpickle.loads(cloudpickle.dumps((shard_job, epoch)))
    assert there[1] == epoch
    assert there[0].public == shard_job.public


def test_a_machine_with_other_code_decides_nothing(tmp_path, monkeypatch):
    job = job_of(tmp_path)
    life = ShardRun(shard_job_of(job, TABLE.schema, code=own_code(job.anonymizer)))
    assert life.take(TABLE)
    monkeypatch.setattr(shard_jobs, "own_code", lambda _: "another")
    with pytest.raises(CheckpointError, match="another version of Shoal than the driver"):
        life.take(TABLE)


# -- pseudonyms ------------------------------------------------------------------------------------

EVENTS = "subject = 'person'\ntime = 'at'\n[schema.quasi]\ntown = { hierarchy = 'town.csv' }\n"


def test_pseudonyms_dont_depend_on_how_spark_cuts_its_batches(tmp_path):
    # The size of Arrow batches is a setting, and may be another one in a repetition.
    table = people(60).select(["person", "town", "at"])
    found = []
    for name, cuts in (("whole", []), ("cut", [3, 9, 31])):
        job = job_of(
            tmp_path / name, name="z-anonymity", schema=EVENTS,
            policy="z = 2\nwindow = { seconds = 1000 }", publish="pseudonym = { rotate = 10 }",
        )  # fmt: skip
        life = ShardRun(shard_job_of(job, table.schema, traced=False))
        found.append(life.take(table, cuts, secret="5e" * 32))
    assert len({row["pseudonym"] for row in found[0]}) > 30
    assert found[0] == found[1]


# -- rows that can't be used -----------------------------------------------------------------------


def test_two_machines_with_processes_of_one_number_set_rows_apart(tmp_path, monkeypatch):
    # Both at once, where Spark tries a task a second time before the first one has ended.
    monkeypatch.setattr("os.getpid", lambda: 7)
    job = job_of(tmp_path)
    life = ShardRun(shard_job_of(job, TABLE.schema, traced=False, quarantine=tmp_path / "bad"))
    epoch = life.next()
    shard_ios = [
        ShardIO(life.shard_job, 0, shard_folder(life.shard_job.folder, 0), epoch) for _ in range(2)
    ]
    for shard_io in shard_ios:
        shard_io.quarantine([BadRow(0, "age is missing", b"{}")], [None])
    for shard_io in shard_ios:
        shard_io.close()
    (path,) = (tmp_path / "bad").iterdir()
    assert len(path.read_text().splitlines()) == 1


# -- two clocks ------------------------------------------------------------------------------------


def test_the_time_of_the_stream_isnt_taken_for_that_of_the_clock(tmp_path):
    # Stamps may be in milliseconds, or of a calendar of their own; here a clock tells what is due.
    table = people(12).select([*COLUMNS, "at"])
    job = job_of(
        tmp_path, schema='time = "at"\n' + SCHEMA,
        policy="k = 3\ndelay = { rows = 1000, seconds = 10, clock = 'wall' }",
    )  # fmt: skip
    life = ShardRun(shard_job_of(job, table.schema, traced=False))
    life.take(table, at=100.0)
    assert life.take(at=101.0, latest=1.7e12) == []
    assert life.take(at=102.0, latest=1.7e12) == []
    assert len(life.take(at=110.0, latest=1.7e12)) > 3
