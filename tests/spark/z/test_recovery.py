"""Values that several shards count: what fails tells nothing, and no row is overlooked."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.release import Publish
from shoal.errors import DataError, ShoalError
from shoal.run.state.versions import Versions
from shoal.spark.columns import TICK, order_column
from shoal.spark.ledger import Ledger, Plan, Turn, shard_folder
from shoal.spark.shard_job import ShardJob
from shoal.spark.z.encode import N_ROWS, SLICE
from shoal.spark.z.head import CellHead
from shoal.spark.z.shard import CellTurn, _whole, tasks_of
from shoal.spark.z.split import Stretch
from shoal.spec.policy import Policy, Window, ZAnonymity
from tests.spark.z.test_plan import Cluster
from tests.spark.z.world import SEED, Case, story

N_SHARDS = 2
ORDER = order_column(0)


def turn_of(folder: Path, case: Case, **options: Any) -> CellTurn:
    """The first turn of a job, as its tasks know it."""
    job = {"policy": "ab"}
    ledger, plan = Ledger(folder / "state", job=job, seal=None), Plan(N_SHARDS, None, SEED.hex())
    ledger.add_plan(plan)
    recipe = ShardJob(
        case.schema, case.policy, ZAnonymizer(**case.knobs), case.publish, case.table().schema,
        ledger.folder, job, None, N_SHARDS, folder / "bad", traced=False, **options,
    )  # fmt: skip
    batch = CellHead(tasks_of(recipe, plan)).batch(0.0, recipe.types)
    return CellTurn(recipe, Turn(0, None, 0, False, 0.0, 0.0, None), plan, batch)


def rows_of(case: Case, order: list[int]) -> pa.Table:
    """The rows of a stretch, with what tells their order."""
    rows = pa.table(case.table())
    rows = rows.append_column(TICK, pa.nulls(len(rows), pa.bool_()))
    rows = rows.append_column(SLICE, pa.array([0] * len(rows), pa.int32()))
    return rows.append_column(ORDER, pa.array(order, pa.int64()))


def test_what_has_led_to_a_failure_isnt_told(tmp_path):
    at = turn_of(tmp_path, story(3))

    def task(batches: object) -> Any:
        try:
            yield from {"p7": 1}["canary"]  # type: ignore[misc]
        except KeyError as error:
            raise ShoalError("ours") from error

    with pytest.raises(ShoalError, match=r"^ours$") as failed:
        list(at.quietly(task)(iter([])))
    assert "canary" not in "".join(traceback.format_exception(failed.value))


def test_other_code_than_the_drivers_decides_nothing(tmp_path):
    at = turn_of(tmp_path, story(3), code="another")
    with pytest.raises(ShoalError, match="another version of Shoal than the driver"):
        list(at.quietly(lambda batches: iter([]))(iter([])))


def test_columns_of_an_order_that_somebody_names(tmp_path):
    case = story(8, cuts=())
    at = turn_of(tmp_path, case, order=(ORDER,))
    (line,) = pa.Table.from_batches(at.encode(rows_of(case, [*range(8)]).to_batches())).to_pylist()
    assert line[N_ROWS] == 8
    with pytest.raises(DataError, match="1 rows stand at the same place"):
        list(at.encode(rows_of(case, [0, 1, 2, 3, 3, 5, 6, 7]).to_batches()))


def test_lines_that_dont_fit_into_one_batch_are_never_left_out():
    # Offsets of text are numbers of 32 bits: of more than 2 GiB, a table makes several batches.
    # (Of this text nobody ever reads a byte, so that it takes no memory.)
    n_bytes = 1100 << 20
    text = pa.py_buffer(np.zeros(n_bytes, np.uint8))
    places = pa.py_buffer(np.array([0, n_bytes], np.int32))
    batch = pa.record_batch({"note": pa.StringArray.from_buffers(1, places, text)})
    with pytest.raises(pa.ArrowException):
        _whole([batch, batch])
    assert _whole([batch.slice(0, 0), batch.slice(0, 1)]).num_rows == 1


def test_rows_that_a_single_shard_has_counted_are_gone_beyond():
    case = story(30, publish=Publish(pseudonym=Pseudonym(5)), cuts=())
    head = CellHead(case.tasks(N_SHARDS))
    head.resume([Stretch(10, 9, 4.0, 1.0)], bytes(32))
    key = head.snapshot().arrays["names.key"]
    head.go_beyond(25, 9.5)
    assert head.before == Stretch(25, 25, 9.5, 9.5)
    assert head.begins([Stretch(2, 2, 3.0, 3.0), Stretch()])[1] == Stretch(27, 27, 9.5, 9.5)
    # Its period may be over, and its key must be nowhere any more.
    assert key.any()
    assert not head.snapshot().arrays["names.key"].any()
    head.go_beyond(25, None)
    assert head.before.latest == -np.inf


# -- on Spark --------------------------------------------------------------------------------------


def test_shards_of_another_plan_follow_the_z_in_force(spark, tmp_path):
    policy = Policy(ZAnonymity(2), window=Window(rows=25), missing="maybe")
    knobs = {"probability": 0.7, "estimates": 1}
    # The window is looked at before row 25, and in the second batch not at all.
    case = story(35, policy=policy, knobs=knobs, cuts=(28,))
    cluster = Cluster(spark, tmp_path, case, traced=False)
    first, second = case.batches()
    cluster.live(Turn(0, None, 0, False, 0.0, 0.0, None), first)
    cluster.plan = Plan(2, None, bytes(range(1, 17)).hex(), 3)
    cluster.ledger.add_plan(cluster.plan)
    cluster.live(Turn(2, None, 1, False, 10.0, 10.0, None, n_in=28), second)
    heads = Versions(cluster.ledger.folder, "head", job=cluster.recipe.job, seal=None)
    z = heads.load(2).facts["z"]
    assert z > policy.z
    for shard in (3, 4):
        folder = shard_folder(cluster.ledger.folder, shard)
        states = Versions(folder, "state", job=cluster.recipe.job, seal=None)
        assert states.load(2).arrays["place"]["z"].tolist() == [z]
