"""A driver that is stopped, restarted, migrated or replaced at bad moments, without Spark."""

from __future__ import annotations

import dataclasses
import logging
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.errors import CheckpointError
from shoal.run.clock import Clock
from shoal.run.core import summary_of
from shoal.run.state.versions import Versions
from shoal.spark import shard
from shoal.spark.commits import Commit, CommitLog, Epoch, Plan, shard_folder
from shoal.spark.driver import Driver, StoppedError
from shoal.spark.order import OrderedStream
from shoal.spark.query import _digests
from tests.spark.world import COLUMNS, job_of, shard_job_of
from tests.world import people

TABLE = people(60).select(COLUMNS)


@pytest.fixture(autouse=True)
def no_cached_state():
    shard._cached.clear()


class World:
    """A job whose epochs are that are never run."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.job = job_of(folder)
        self.shard_job = shard_job_of(self.job, TABLE.schema, traced=False, **options)
        self.commits = CommitLog(self.shard_job.folder, job=self.shard_job.digests, seal=None)
        if self.commits.newest_plan is None:
            self.commits.add_plan(Plan(2, None, "c0ffee"))

    def driver(self) -> Driver:
        """Another driver of the same job."""
        nothing: Any = None
        return Driver(
            nothing, self.shard_job, self.commits, ordered=OrderedStream(nothing, 1, False),
            write=lambda rows, epoch: None, interval=1.0,
        )  # fmt: skip

    def epoch(self, number: int, parent: int | None = None, at: float = 1.0) -> Epoch:
        return Epoch(number, parent, 0, False, at, at, None, code=self.shard_job.code)

    def done(self, epoch: Epoch) -> None:
        summary = summary_of(self.job.schema, self.job.policy).state()
        self.commits.begin(epoch)
        self.commits.add_commit(epoch, Commit(epoch.at, None, None, epoch.plan, 0, 0, summary))


# -- batches without rows --------------------------------------------------------------------------


@pytest.mark.parametrize("n_before", [0, 1, 2])
def test_a_batch_that_was_skipped_may_come_again(tmp_path, n_before):
    # Killed after the note and before Spark has written down that the batch is over.
    world = World(tmp_path)
    for number in range(n_before):
        world.done(world.epoch(2 * number, 2 * number - 2 if number else None))
    commits = world.commits
    commits.skip(2 * n_before)
    commits.skip(2 * n_before)
    # Meanwhile something may be due: then it is an epoch.
    commits.check_follows(2 * n_before)
    commits.skip(2 * n_before + 2)
    for wrong in (2 * n_before, 2 * n_before + 6):
        with pytest.raises(CheckpointError, match="files are missing"):
            commits.check_follows(wrong)
    commits.check_follows(2 * n_before + 4)


# -- Spark's own checkpoint ------------------------------------------------------------------------


@pytest.mark.parametrize("is_done", [False, True], ids=["interrupted", "done"])
@pytest.mark.parametrize("now", [None, 'v1\n{}\n{"logOffset":5}'], ids=["gone", "another"])
def test_a_batch_with_other_offsets_is_refused(tmp_path, is_done, now):
    # After a loss of power, or of the folder: what is in the batch now may be more than was.
    world = World(tmp_path)
    path = world.commits.folder / "spark" / "offsets" / "0"
    path.parent.mkdir(parents=True)
    path.write_text('v1\n{}\n{"logOffset":4}')
    world.commits.begin(world.epoch(0))
    assert world.commits.begun(0) is not None
    if is_done:
        world.done(world.epoch(0))
    if now is None:
        path.unlink()
    else:
        path.write_text(now)
    with pytest.raises(CheckpointError, match="Spark's own checkpoint isn't the one"):
        world.driver().batch(None, 0)  # type: ignore[arg-type]


def test_a_batch_that_is_done_is_over_when_spark_asks_for_it_again(tmp_path):
    world = World(tmp_path)
    path = world.commits.folder / "spark" / "offsets" / "0"
    path.parent.mkdir(parents=True)
    path.write_text("v1\n{}\n{}")
    world.done(world.epoch(0))
    world.driver().batch(None, 0)  # type: ignore[arg-type]
    assert world.commits.last_commit == 0


# -- migrations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_done", [0, 2], ids=["the first batch", "the first after an end"])
def test_a_migration_doesnt_leave_the_rows_of_an_interrupted_batch_behind(tmp_path, n_done):
    # There is nothing to end before it, but the batch that will be finished by the former plan
    # holds rows, and the next one begins with other shards.
    world = World(tmp_path)
    if n_done:
        world.done(world.epoch(0))
        world.done(world.epoch(1, 0))
    world.commits.begin(world.epoch(n_done, n_done - 1 if n_done else None))
    with pytest.raises(CheckpointError, match=r"was interrupted.*Run the job once more"):
        world.driver().migrate(3)
    assert world.commits.newest_plan == 0


def test_a_migration_after_an_end_makes_a_plan(tmp_path):
    world = World(tmp_path)
    world.done(world.epoch(0))
    world.done(world.epoch(1, 0))
    world.driver().migrate(3)
    assert world.commits.plan(1).n_shards == 3
    assert world.commits.plan(1).first_shard == 2


# -- stopping --------------------------------------------------------------------------------------


def test_a_batch_that_spark_calls_while_it_is_stopped_doesnt_wait_for_it(tmp_path):
    # Spark waits for the batch to return before it has stopped.
    driver = World(tmp_path).driver()
    found: list[BaseException] = []

    def batch() -> None:
        try:
            driver.batch(None, 0)  # type: ignore[arg-type]
        except BaseException as error:
            found.append(error)

    def stop() -> None:
        called = threading.Thread(target=batch, daemon=True)
        called.start()
        called.join(20)
        assert not called.is_alive()

    driver.stop_after_batch(stop)
    assert [type(error) for error in found] == [StoppedError]


# -- time ------------------------------------------------------------------------------------------


def test_time_doesnt_run_back_after_an_epoch_of_another_machine(tmp_path, monkeypatch):
    world = World(tmp_path)
    epoch = world.epoch(0, at=1_000.0)
    world.commits.begin(epoch)
    driver = world.driver()
    driver._clock = Clock(lambda: 990.0)
    monkeypatch.setattr(driver, "_routed", lambda *_: _Rows())
    monkeypatch.setattr(world.commits, "figures", lambda *_: [])
    driver._run(epoch, None)
    assert driver._begin(2, None).at >= 1_000.0


class _Rows:
    """Rows that are never read."""

    def mapInArrow(self, *_: Any) -> _Rows:
        return self


def test_the_next_driver_knows_when_the_last_batch_began(tmp_path):
    world = World(tmp_path)
    assert world.driver().batch_at is None
    world.done(world.epoch(0, at=17.0))
    world.commits.begin(world.epoch(2, 0, at=29.0))
    assert world.driver().batch_at == 17.0


# -- what is shown ---------------------------------------------------------------------------------


def leave_figures(world: World, epoch: Epoch, n_in: list[int]) -> None:
    """What the shards leave after an epoch, as far as the driver reads it."""
    for number, n in enumerate(n_in):
        summary = summary_of(world.job.schema, world.job.policy)
        summary.n_in = n
        folder = shard_folder(world.commits.folder, number)
        files = Versions(folder, "figures", job=world.shard_job.digests, seal=None)
        files.save(epoch.number, {"summary": summary.state()})


def test_the_next_driver_shows_the_rows_of_each_shard_before_its_first_batch(tmp_path):
    world = World(tmp_path)
    assert world.driver().shards == ()
    leave_figures(world, epoch := world.epoch(0), [300, 500])
    world.done(epoch)
    # A batch that was interrupted has left some of its own.
    world.commits.begin(later := world.epoch(2, 0))
    leave_figures(world, later, [900])
    assert [each.n_in for each in world.driver().shards] == [300, 500]


def test_shards_of_another_plan_arent_shown(tmp_path):
    world = World(tmp_path)
    leave_figures(world, epoch := world.epoch(0), [300, 500])
    world.done(epoch)
    leave_figures(world, end := world.epoch(1, 0), [300, 500])
    world.done(end)
    driver = world.driver()
    assert len(driver.shards) == 2
    driver.migrate(3)
    assert driver.shards == ()
    assert world.driver().shards == ()


def test_damaged_figures_are_no_reason_to_refuse_a_job(tmp_path, caplog):
    world = World(tmp_path)
    leave_figures(world, epoch := world.epoch(0), [300, 500])
    world.done(epoch)
    (world.commits.folder / "shard-001" / "figures-0000000000").write_bytes(b"torn")
    with caplog.at_level(logging.WARNING, "shoal"):
        assert world.driver().shards == ()
    assert [record.message for record in caplog.records] == ["figures ignored"]


# -- other code ------------------------------------------------------------------------------------


def test_an_epoch_isnt_repeated_by_other_code(tmp_path, monkeypatch):
    world = World(tmp_path, code="1.0 aa11")
    epoch = dataclasses.replace(world.epoch(0), code="0.9 bb22")
    world.commits.begin(epoch)
    driver = world.driver()
    monkeypatch.setattr(driver, "_routed", lambda *_: pytest.fail("rows were dealt out"))
    with pytest.raises(CheckpointError, match="another version of Shoal is to repeat it"):
        driver._run(world.commits.begun(0), None)  # type: ignore[arg-type]


def test_new_epochs_record_the_code(tmp_path):
    world = World(tmp_path, code="1.0 aa11")
    assert world.driver()._begin(0, None).code == "1.0 aa11"
    assert world.commits.begun(0).code == "1.0 aa11"  # type: ignore[union-attr]


# -- order -----------------------------------------------------------------------------------------


def test_another_order_is_another_job(tmp_path):
    job = job_of(tmp_path)

    def digest(order: list[str] | int) -> str:
        return _digests(job, TABLE.schema, order, traced=False)["order"]

    assert digest(["a", "b"]) == digest(["a", "b"])
    assert len({digest(["a", "b"]), digest(["b", "a"]), digest(["a", "c"]), digest(2)}) == 4


def test_other_types_are_another_job(tmp_path):
    job = job_of(tmp_path)
    other = TABLE.schema.set(1, pa.field("age", pa.float64()))
    first, second = (_digests(job, columns, 2, traced=False) for columns in (TABLE.schema, other))
    assert {name for name in first if first[name] != second[name]} == {"columns"}
