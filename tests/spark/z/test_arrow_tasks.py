"""The tasks of an epoch with several shards of cells, run as Spark does, but without it."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path as File
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.arrow.codec import Codec, Encoded
from shoal.errors import DataError, ShoalError
from shoal.spark.columns import CORRUPT, TICK, order_column
from shoal.spark.commits import CommitLog, Epoch, Plan, shard_folder
from shoal.spark.shard_io import trace_path
from shoal.spark.shard_job import ShardJob
from shoal.spark.z.arrow_tasks import (
    DECIDED_ROW,
    ArrowTasks,
    Segment,
    StateVersion,
    _whole,
    tasks_of,
)
from shoal.spark.z.driver_state import DriverState
from shoal.spark.z.encode import N_ROWS, SLICE, EncodedRows
from shoal.spark.z.join import ZChange
from shoal.spark.z.split import Slice
from shoal.spark.z.tasks import EstimatePoint
from shoal.spec.policy import Policy, Window, ZAnonymity
from tests.spark.z.world import SEED, Case, Found, one_engine, settled, story, tidy

N_SHARDS = 2
ORDER = order_column(0)


def table(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(list(batches), schema)


def control(lines: pa.Table, name: str, number: int) -> pa.Table:
    """Lines after one that names the shard or the slice."""
    values = {name: [number], TICK: [True]}
    first = pa.table({key: values[key] for key in values if key in lines.schema.names})
    return pa.concat_tables([first, lines], promote_options="permissive")


def cut(case: Case, rows: pa.RecordBatch, at: int) -> list[pa.Table]:
    """Two slices of a batch."""
    found = []
    for i, (a, b) in enumerate(pairwise([0, at, rows.num_rows])):
        part = pa.table(rows.slice(a, b - a))
        part = part.append_column(TICK, pa.nulls(len(part), pa.bool_()))
        part = part.append_column(CORRUPT, pa.nulls(len(part), pa.string()))
        found.append(part.append_column(SLICE, pa.array([i] * len(part), pa.int32())))
    return found


class Epochs:
    """What the driver does, without Spark."""

    def __init__(self, folder: File, case: Case) -> None:
        self._case = case
        self.commits, self.shard_job, self.plan = settled(folder, case, N_SHARDS, traced=True)
        self._state = DriverState(tasks_of(self.shard_job, self.plan))
        self.found = Found()

    def run(self, number: int, rows: pa.RecordBatch) -> None:
        state, parent = self._state, 2 * number - 2 if number else None
        epoch = Epoch(2 * number, parent, 0, False, self._case.at(number), 0.0, None)
        batch = state.context(epoch.at, self.shard_job.types)
        at = ArrowTasks(self.shard_job, epoch, self.plan, batch)
        encoded = [
            table(at.encode(rows.to_batches(max_chunksize=7)), EncodedRows.schema())
            for rows in cut(self._case, rows, rows.num_rows // 3)
        ]
        for _ in range(2):
            slices = [Slice()] * N_SHARDS
            for lines in encoded:
                for line in table(at.measure(lines.to_batches()), at.slices_schema).to_pylist():
                    which = line.pop("slice")
                    slices[which] = Slice(**line)
            at = dataclasses.replace(at, begins=state.begins(slices))
        decided, at = self._decided(at, encoded, slices)
        for i, rows_of_slice in enumerate(encoded):
            mine = decided.filter(pa.compute.equal(decided.column(SLICE), i))
            lines = control(
                pa.concat_tables([mine, rows_of_slice], promote_options="permissive"), SLICE, i
            )
            public = table(at.publish(lines.to_batches()), self.shard_job.public)
            self.found.public += public.to_pylist()
            folder = shard_folder(self.shard_job.folder, i)
            if data := trace_path(folder, epoch).read_bytes():
                self.found.trace += pa.ipc.open_stream(data).read_all().to_pylist()
        self.found.figures = self.commits.figures(epoch, self.plan)
        state.advance(slices)

    def _decided(
        self, at: ArrowTasks, encoded: list[pa.Table], slices: list[Slice]
    ) -> tuple[pa.Table, ArrowTasks]:
        number, state = at.epoch.number, self._state
        parts = pa.concat_tables(
            table(at.split(lines.to_batches()), at.parts_schema) for lines in encoded
        )
        before = None if at.epoch.parent is None else StateVersion("state", at.epoch.parent)
        points: list[EstimatePoint] = []
        if state.adapts_z:
            origin = state.origin(slices)
            possible = (
                table(at.estimate_points(origin, lines.to_batches()), at.points_schema)
                for lines in encoded
            )
            points = state.due(EstimatePoint(**line) for t in possible for line in t.to_pylist())
        found, estimates, changes, first, z = [], [], list(at.batch.changes), 0, None
        for i, point in enumerate(points):
            version = StateVersion("estimate", 1000 * number + i)
            segment = Segment(before, version, z, point.clock)
            found += self._of_shards(at, segment, parts, first, point.row)
            estimates.append(
                state.estimate(
                    point,
                    lambda z, version=version: [self._shown(at, version, z, i) for i in (0, 1)],
                )
            )
            before, first, z = version, point.row, state.z
            changes.append(ZChange(point.row, z))
        segment = Segment(before, StateVersion("state", number), z)
        found += self._of_shards(at, segment, parts, first, 2**62)
        batch = at.batch._replace(changes=tuple(changes))
        return pa.concat_tables(found), dataclasses.replace(at, batch=batch, estimates=estimates)

    def _of_shards(
        self, at: ArrowTasks, segment: Segment, parts: pa.Table, first: int, after: int
    ) -> list[pa.Table]:
        found = []
        for i in range(N_SHARDS):
            row = parts.column("row")
            here = pa.compute.and_(pa.compute.less(row, after), pa.compute.less_equal(first, row))
            mine = parts.filter(pa.compute.and_(here, pa.compute.equal(parts.column("shard"), i)))
            lines = control(mine, "shard", i).cast(at.parts_schema)
            found.append(table(at.decide(segment, lines.to_batches()), at.decided_schema))
        return found

    def _shown(self, at: ArrowTasks, version: StateVersion, z: int, shard: int) -> tuple[Any, Any]:
        found = table(
            at.shown(version, z, pa.table({"shard": [shard]}).to_batches()), at.shown_schema
        )
        return found.column("subject").to_numpy(), found.column("shown").to_numpy()


@pytest.mark.parametrize(
    ("window", "knobs"),
    [
        (Window(seconds=8), {}),
        (Window(rows=12), {"probability": 0.7, "estimates": 1}),
        (Window(seconds=5), {"probability": 0.5, "estimates": 2}),
    ],
)
def test_tasks_do_what_one_engine_does(window, knobs, tmp_path):
    policy = Policy(ZAnonymity(3), window=window, missing="maybe", lateness=2.0)
    case = story(60, policy=policy, knobs=knobs, cuts=(35, 36))
    epochs = Epochs(tmp_path, case)
    for number, rows in enumerate(case.batches()):
        epochs.run(number, rows)
    one = one_engine(case)
    assert epochs.found.public == one.public
    lines = [{n: v for n, v in line.items() if n != "seq"} for line in epochs.found.lines()]
    assert tidy(lines) == tidy([{n: v for n, v in x.items() if n != "seq"} for x in one.lines()])
    assert sum(shard["summary"]["n_in"] for shard in epochs.found.figures) == 60
    looks = [shard["summary"]["cells"]["n_estimates"] for shard in epochs.found.figures]
    assert looks == [len(one.estimates) if knobs else 0, 0]
    assert bool(knobs) == (len({line["z"] for line in one.trace if line["z"]}) > 1)
    assert (tmp_path / "bad").is_dir()


def test_a_line_that_cant_be_read_counts_as_a_row(tmp_path):
    case = story(8, cuts=())
    epochs = Epochs(tmp_path, case)
    at = ArrowTasks(
        epochs.shard_job, Epoch(0, None, 0, False, 0.0, 0.0, None), epochs.plan,
        DriverState(tasks_of(epochs.shard_job, epochs.plan)).context(0.0, epochs.shard_job.types),
    )  # fmt: skip
    (_, rows) = cut(case, case.table(), 0)
    torn = rows.set_column(
        rows.schema.get_field_index(CORRUPT), CORRUPT, pa.array([None] * 7 + ["{"], pa.string())
    )
    (line,), (whole,) = (
        table(at.measure(at.encode(given.to_batches())), at.slices_schema).to_pylist()
        for given in (torn, rows)
    )
    assert (line["n_inputs"], line["n_valid"]) == (8, whole["n_valid"] - 1)
    (packed,) = table(at.encode(torn.to_batches()), EncodedRows.schema()).to_pylist()
    (bad,) = EncodedRows.of_line(packed).chunk.bad
    assert (bad.row, bad.reason, bad.raw) == (7, "it can't be read as a row", b"{")


def test_each_row_is_encoded_once(tmp_path, monkeypatch):
    case = story(60, knobs={"probability": 0.5, "estimates": 2}, cuts=(35,))
    epochs, sizes = Epochs(tmp_path, case), []
    encode = Codec.encode

    def counted(codec: Codec, batch: pa.RecordBatch) -> Encoded:
        sizes.append(batch.num_rows)
        return encode(codec, batch)

    monkeypatch.setattr(Codec, "encode", counted)
    for number, rows in enumerate(case.batches()):
        epochs.run(number, rows)
    assert sum(sizes) == 60


@pytest.mark.parametrize("debug", [False, True])
def test_the_error_of_a_task_holds_no_value(debug, tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_DEBUG", "1") if debug else monkeypatch.delenv("SHOAL_DEBUG", False)
    _, shard_job, plan = settled(tmp_path, story(3), N_SHARDS, traced=False)

    def task(batches: object) -> Any:
        yield from {"p7": 1}["p8"]  # type: ignore[misc]

    at = ArrowTasks(shard_job, Epoch(0, None, 0, False, 0.0, 0.0, None), plan, None)  # type: ignore[arg-type]
    expected = (KeyError, "p8") if debug else (ShoalError, r"^KeyError in .*, line \d+, in a shard")
    with pytest.raises(expected[0], match=expected[1]):
        list(at.wrapped(task)(iter([])))


def test_a_shoal_error_is_raised_as_it_is(tmp_path):
    _, shard_job, plan = settled(tmp_path, story(3), N_SHARDS, traced=False)
    at = ArrowTasks(shard_job, Epoch(0, None, 0, False, 0.0, 0.0, None), plan, None)  # type: ignore[arg-type]

    def task(batches: object) -> Any:
        raise ShoalError("ours")
        yield

    with pytest.raises(ShoalError, match=r"^ours$"):
        list(at.wrapped(task)(iter([])))


def test_decided_lines_can_be_distinguished_from_rows(tmp_path):
    _, shard_job, plan = settled(tmp_path, story(3), N_SHARDS, traced=False)
    at = ArrowTasks(shard_job, Epoch(0, None, 0, False, 0.0, 0.0, None), plan, None)  # type: ignore[arg-type]
    assert at.decided_schema.names[:2] == [SLICE, DECIDED_ROW]


def epoch_of(folder: File, case: Case, **options: Any) -> ArrowTasks:
    """The first epoch of a job, as its tasks know it."""
    job = {"policy": "ab"}
    commits = CommitLog(folder / "state", job=job, seal=None)
    plan = Plan(N_SHARDS, None, SEED.hex())
    commits.add_plan(plan)
    shard_job = ShardJob(
        case.schema, case.policy, ZAnonymizer(**case.knobs), case.publish, case.table().schema,
        commits.folder, job, None, N_SHARDS, folder / "bad", traced=False, **options,
    )  # fmt: skip
    batch = DriverState(tasks_of(shard_job, plan)).context(0.0, shard_job.types)
    return ArrowTasks(shard_job, Epoch(0, None, 0, False, 0.0, 0.0, None), plan, batch)


def rows_of(case: Case, order: list[int]) -> pa.Table:
    """The rows of a slice, with what tells their order."""
    rows = pa.table(case.table())
    rows = rows.append_column(TICK, pa.nulls(len(rows), pa.bool_()))
    rows = rows.append_column(SLICE, pa.array([0] * len(rows), pa.int32()))
    return rows.append_column(ORDER, pa.array(order, pa.int64()))


def test_the_cause_of_an_error_is_dropped(tmp_path):
    at = epoch_of(tmp_path, story(3))

    def task(batches: object) -> Any:
        try:
            yield from {"p7": 1}["canary"]  # type: ignore[misc]
        except KeyError as error:
            raise ShoalError("ours") from error

    with pytest.raises(ShoalError, match=r"^ours$") as failed:
        list(at.wrapped(task)(iter([])))
    assert "canary" not in "".join(traceback.format_exception(failed.value))


def test_other_code_than_the_drivers_decides_nothing(tmp_path):
    at = epoch_of(tmp_path, story(3), code="another")
    with pytest.raises(ShoalError, match="another version of Shoal than the driver"):
        list(at.wrapped(lambda batches: iter([]))(iter([])))


def test_columns_of_an_order_that_a_user_names(tmp_path):
    case = story(8, cuts=())
    at = epoch_of(tmp_path, case, order=(ORDER,))
    (line,) = pa.Table.from_batches(at.encode(rows_of(case, [*range(8)]).to_batches())).to_pylist()
    assert line[N_ROWS] == 8
    with pytest.raises(DataError, match="1 rows have the same position"):
        list(at.encode(rows_of(case, [0, 1, 2, 3, 3, 5, 6, 7]).to_batches()))


@pytest.mark.nightly
def test_lines_that_dont_fit_into_one_batch_are_never_left_out():
    # Offsets of text are numbers of 32 bits: of more than 2 GiB, a table makes several batches.
    # (No byte of this text is ever read, so it takes no memory.)
    n_bytes = 1100 << 20
    text = pa.py_buffer(np.zeros(n_bytes, np.uint8))
    places = pa.py_buffer(np.array([0, n_bytes], np.int32))
    batch = pa.record_batch({"note": pa.StringArray.from_buffers(1, places, text)})
    with pytest.raises(pa.ArrowException):
        _whole([batch, batch])
    assert _whole([batch.slice(0, 0), batch.slice(0, 1)]).num_rows == 1
