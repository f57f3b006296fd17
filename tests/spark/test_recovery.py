"""A driver that is stopped, restarted, migrated or replaced at bad moments, without Spark."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.errors import CheckpointError
from shoal.io.base import BadRow
from shoal.run.clock import Clock
from shoal.run.core import summary_of
from shoal.spark import shard
from shoal.spark import shard_job as recipes
from shoal.spark.driver import Driver, StoppedError
from shoal.spark.ledger import Done, Ledger, Plan, Turn, shard_folder
from shoal.spark.order import Ordered
from shoal.spark.query import _digests
from shoal.spark.shard_io import ShardIO
from shoal.spark.shard_job import own_code
from tests.spark.world import COLUMNS, Life, job_of, recipe_of
from tests.world import SCHEMA, people

TABLE = people(60).select(COLUMNS)


@pytest.fixture(autouse=True)
def no_state_at_hand():
    shard._at_hand.clear()


class World:
    """A job whose turns are lived through by nobody."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.job = job_of(folder)
        self.recipe = recipe_of(self.job, TABLE.schema, traced=False, **options)
        self.ledger = Ledger(self.recipe.folder, job=self.recipe.job, seal=None)
        if self.ledger.newest_plan is None:
            self.ledger.add_plan(Plan(2, None, "c0ffee"))

    def driver(self) -> Driver:
        """Another driver of the same job."""
        nothing: Any = None
        return Driver(
            nothing, self.recipe, self.ledger, ordered=Ordered(nothing, 1, False),
            write=lambda rows, turn: None, interval=1.0,
        )  # fmt: skip

    def turn(self, number: int, parent: int | None = None, at: float = 1.0) -> Turn:
        return Turn(number, parent, 0, False, at, at, None, code=self.recipe.code)

    def done(self, turn: Turn) -> None:
        summary = summary_of(self.job.schema, self.job.policy).state()
        self.ledger.begin(turn)
        self.ledger.finish(turn, Done(turn.at, None, None, turn.plan, 0, 0, summary))


# -- batches without rows --------------------------------------------------------------------------


@pytest.mark.parametrize("n_before", [0, 1, 2])
def test_a_batch_that_was_skipped_may_come_again(tmp_path, n_before):
    # Killed after the note and before Spark has written down that the batch is over.
    world = World(tmp_path)
    for number in range(n_before):
        world.done(world.turn(2 * number, 2 * number - 2 if number else None))
    ledger = world.ledger
    ledger.skip(2 * n_before)
    ledger.skip(2 * n_before)
    # Meanwhile something may be due: then it is a turn.
    ledger.check_follows(2 * n_before)
    ledger.skip(2 * n_before + 2)
    for wrong in (2 * n_before, 2 * n_before + 6):
        with pytest.raises(CheckpointError, match="files are missing"):
            ledger.check_follows(wrong)
    ledger.check_follows(2 * n_before + 4)


# -- Spark's own checkpoint ------------------------------------------------------------------------


@pytest.mark.parametrize("is_done", [False, True], ids=["interrupted", "done"])
@pytest.mark.parametrize("now", [None, 'v1\n{}\n{"logOffset":5}'], ids=["gone", "another"])
def test_a_batch_that_spark_has_made_up_anew_is_refused(tmp_path, is_done, now):
    # After a loss of power, or of the folder: what is in the batch now may be more than was.
    world = World(tmp_path)
    path = world.ledger.folder / "spark" / "offsets" / "0"
    path.parent.mkdir(parents=True)
    path.write_text('v1\n{}\n{"logOffset":4}')
    world.ledger.begin(world.turn(0))
    assert world.ledger.noted(0) is not None
    if is_done:
        world.done(world.turn(0))
    if now is None:
        path.unlink()
    else:
        path.write_text(now)
    with pytest.raises(CheckpointError, match="Spark's own checkpoint isn't the one"):
        world.driver().batch(None, 0)  # type: ignore[arg-type]


def test_a_batch_that_is_done_is_over_when_spark_asks_for_it_again(tmp_path):
    world = World(tmp_path)
    path = world.ledger.folder / "spark" / "offsets" / "0"
    path.parent.mkdir(parents=True)
    path.write_text("v1\n{}\n{}")
    world.done(world.turn(0))
    world.driver().batch(None, 0)  # type: ignore[arg-type]
    assert world.ledger.last_done == 0


# -- migrations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_done", [0, 2], ids=["the first batch", "the first after an end"])
def test_a_migration_doesnt_leave_the_rows_of_an_interrupted_batch_behind(tmp_path, n_done):
    # There is nothing to end before it, but the batch that will be finished by the former plan
    # holds rows, and the next one begins with other shards.
    world = World(tmp_path)
    if n_done:
        world.done(world.turn(0))
        world.done(world.turn(1, 0))
    world.ledger.begin(world.turn(n_done, n_done - 1 if n_done else None))
    with pytest.raises(CheckpointError, match=r"was interrupted.*Run the job once more"):
        world.driver().migrate(3)
    assert world.ledger.newest_plan == 0


def test_a_migration_after_an_end_makes_a_plan(tmp_path):
    world = World(tmp_path)
    world.done(world.turn(0))
    world.done(world.turn(1, 0))
    world.driver().migrate(3)
    assert world.ledger.plan(1).n_shards == 3
    assert world.ledger.plan(1).first_shard == 2


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

    driver.hold_on(stop)
    assert [type(error) for error in found] == [StoppedError]


# -- time ------------------------------------------------------------------------------------------


def test_time_doesnt_run_back_after_a_turn_that_another_machine_has_noted(tmp_path, monkeypatch):
    world = World(tmp_path)
    turn = world.turn(0, at=1_000.0)
    world.ledger.begin(turn)
    driver = world.driver()
    driver._clock = Clock(lambda: 990.0)
    monkeypatch.setattr(driver, "_dealt", lambda *_: _Rows())
    monkeypatch.setattr(world.ledger, "figures", lambda *_: [])
    driver._live(turn, None)
    assert driver._begin(2, None).at >= 1_000.0


class _Rows:
    """Rows that nobody asks for."""

    def mapInArrow(self, *_: Any) -> _Rows:
        return self


# -- other code ------------------------------------------------------------------------------------


def test_a_turn_isnt_repeated_by_other_code(tmp_path, monkeypatch):
    world = World(tmp_path, code="1.0 aa11")
    turn = dataclasses.replace(world.turn(0), code="0.9 bb22")
    world.ledger.begin(turn)
    driver = world.driver()
    monkeypatch.setattr(driver, "_dealt", lambda *_: pytest.fail("rows were dealt out"))
    with pytest.raises(CheckpointError, match="another version of Shoal is to repeat it"):
        driver._live(world.ledger.noted(0), None)  # type: ignore[arg-type]


def test_new_turns_tell_the_code(tmp_path):
    world = World(tmp_path, code="1.0 aa11")
    assert world.driver()._begin(0, None).code == "1.0 aa11"
    assert world.ledger.noted(0).code == "1.0 aa11"  # type: ignore[union-attr]


def test_a_machine_with_other_code_decides_nothing(tmp_path, monkeypatch):
    life = Life(
        recipe_of(job_of(tmp_path), TABLE.schema, code=own_code(job_of(tmp_path).anonymizer))
    )
    assert life.take(TABLE)
    monkeypatch.setattr(recipes, "own_code", lambda _: "another")
    with pytest.raises(CheckpointError, match="another version of Shoal than the driver"):
        life.take(TABLE)


# -- order -----------------------------------------------------------------------------------------


def test_another_order_is_another_job(tmp_path):
    job = job_of(tmp_path)

    def told(order: list[str] | int) -> str:
        return _digests(job, TABLE.schema, order, traced=False)["order"]

    assert told(["a", "b"]) == told(["a", "b"])
    assert len({told(["a", "b"]), told(["b", "a"]), told(["a", "c"]), told(2)}) == 4


def test_other_types_are_another_job(tmp_path):
    job = job_of(tmp_path)
    other = TABLE.schema.set(1, pa.field("age", pa.float64()))
    first, second = (_digests(job, columns, 2, traced=False) for columns in (TABLE.schema, other))
    assert {name for name in first if first[name] != second[name]} == {"columns"}


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
        life = Life(recipe_of(job, table.schema, traced=False))
        found.append(life.take(table, cuts, secret="5e" * 32))
    assert len({row["pseudonym"] for row in found[0]}) > 30
    assert found[0] == found[1]


# -- rows that can't be used -----------------------------------------------------------------------


def test_two_machines_with_processes_of_one_number_set_rows_apart(tmp_path, monkeypatch):
    # Both at once, where Spark tries a task a second time before the first one has ended.
    monkeypatch.setattr("os.getpid", lambda: 7)
    job = job_of(tmp_path)
    life = Life(recipe_of(job, TABLE.schema, traced=False, quarantine=tmp_path / "bad"))
    turn = life.next()
    desks = [ShardIO(life.recipe, 0, shard_folder(life.recipe.folder, 0), turn) for _ in range(2)]
    for shard_io in desks:
        shard_io.quarantine([BadRow(0, "age is missing", b"{}")], [None])
    for shard_io in desks:
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
    life = Life(recipe_of(job, table.schema, traced=False))
    life.take(table, at=100.0)
    assert life.take(at=101.0, latest=1.7e12) == []
    assert life.take(at=102.0, latest=1.7e12) == []
    assert len(life.take(at=110.0, latest=1.7e12)) > 3
