"""Values that several shards count: what fails tells nothing, and no row is overlooked."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.algorithms.z_anonymity import ZAnonymous
from shoal.errors import DataError, ShoalError
from shoal.spark.cells_head import CellHead
from shoal.spark.cells_shard import STRETCH, CellTurn, _whole, tasks_of
from shoal.spark.columns import TICK, order_column
from shoal.spark.ledger import Ledger, Plan, Turn
from shoal.spark.recipe import Recipe

from .cells_world import SEED, Case, story

N_SHARDS = 2
ORDER = order_column(0)


def turn_of(folder: Path, case: Case, **options: Any) -> CellTurn:
    """The first turn of a job, as its tasks know it."""
    job = {"policy": "ab"}
    ledger, plan = Ledger(folder / "state", job=job, seal=None), Plan(N_SHARDS, None, SEED.hex())
    ledger.add_plan(plan)
    recipe = Recipe(
        case.schema, case.policy, ZAnonymous(**case.knobs), case.publish, case.table().schema,
        ledger.folder, job, None, N_SHARDS, folder / "bad", traced=False, **options,
    )  # fmt: skip
    batch = CellHead(tasks_of(recipe, plan)).batch(0.0, recipe.types)
    return CellTurn(recipe, Turn(0, None, 0, False, 0.0, 0.0, None), plan, batch)


def rows_of(case: Case, order: list[int]) -> pa.Table:
    """The rows of a stretch, with what tells their order."""
    rows = pa.table(case.table())
    rows = rows.append_column(TICK, pa.nulls(len(rows), pa.bool_()))
    rows = rows.append_column(STRETCH, pa.array([0] * len(rows), pa.int32()))
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
    (line,) = pa.Table.from_batches(at.survey(rows_of(case, [*range(8)]).to_batches())).to_pylist()
    assert line["n_inputs"] == 8
    with pytest.raises(DataError, match="1 rows stand at the same place"):
        list(at.survey(rows_of(case, [0, 1, 2, 3, 3, 5, 6, 7]).to_batches()))


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
