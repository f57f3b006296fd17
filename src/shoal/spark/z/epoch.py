"""An epoch of z-anonymity on several shards, as DataFrames.

Rows are cut into slices by their order, encoded, and measured, so that each slice knows where it
starts. Then they are split by value; shards decide the values; the decisions go back to the slices,
which publish in the order of arrival. Where z adapts to the stream, shards stop before every row at
which the window is estimated, and get the new z.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from shoal.engine.kernels.arrays import Ints
from shoal.events import event
from shoal.run.core import CoreState
from shoal.run.state.versions import Versions
from shoal.spark.commits import Epoch, Plan, shard_folder
from shoal.spark.shard_job import ShardJob
from shoal.spark.z.arrow_tasks import ArrowTasks, Segment, StateVersion, tasks_of
from shoal.spark.z.driver_state import DriverState, Estimate
from shoal.spark.z.encode import CODES, LINE, N_ROWS, SLICE, EncodedRows
from shoal.spark.z.join import ZChange
from shoal.spark.z.split import Slice
from shoal.spark.z.tasks import EstimatePoint

__all__ = ["run_epoch"]

log = logging.getLogger("shoal.spark")

#: How many estimates of the window can be numbered in an epoch.
MOST_ESTIMATES = 1 << 20


def run_epoch(
    spark: SparkSession,
    job: ShardJob,
    epoch: Epoch,
    plan: Plan,
    rows: DataFrame,
    order: Sequence[str],
    write: Callable[[DataFrame, str], None],
) -> None:
    """Publish the rows of an epoch, and save the states and figures of all shards.

    Parameters
    ----------
    spark, job, epoch, plan
        The session, and what is to be done.
    rows
        The rows of the batch, of which there may be none.
    order
        The columns that define their order.
    write
        What writes the public rows of an epoch.
    """
    _EpochRun(spark, job, epoch, plan).run(rows, order, write)


class _EpochRun:
    """One epoch, in the driver."""

    def __init__(self, spark: SparkSession, job: ShardJob, epoch: Epoch, plan: Plan) -> None:
        self._spark, self._job, self._epoch, self._plan = spark, job, epoch, plan
        self._versions = Versions(job.folder, "driver", job=job.digests, seal=job.open_seal())
        self._secret = bytes.fromhex(epoch.secret)
        self._state = DriverState(tasks_of(job, plan))
        self._before = [n for n in self._versions.numbers() if n < epoch.number]
        if self._before:
            # Shards of another plan start empty, but rows keep their numbers and pseudonyms.
            found = self._versions.load(self._before[-1])
            self._state.restore(CoreState(found.facts, found.arrays, found.batches))
        if self._state.so_far.n_inputs != epoch.n_in:
            self._state.skip_to(epoch.n_in, epoch.latest)
        self._cached: list[DataFrame] = []

    def run(
        self, rows: DataFrame, order: Sequence[str], write: Callable[[DataFrame, str], None]
    ) -> None:
        state = self._state
        batch = state.context(self._epoch.at, self._job.types, self._secret)
        tasks = ArrowTasks(self._job, self._epoch, self._plan, batch)
        n_slices = self._plan.n_shards
        try:
            # The cuts don't matter, but all later tasks must see the same ones.
            ranged = rows.repartitionByRange(n_slices, *order).sortWithinPartitions(*order)
            cut = ranged.withColumn(SLICE, F.spark_partition_id())
            encoded = self._cache(self._map(cut, tasks, EncodedRows.schema(), tasks.encode))
            # Payload and rows aren't needed before they are published.
            codes = encoded.select(SLICE, LINE, N_ROWS, CODES)
            slices = self._measure(codes, tasks)
            if self._job.policy.lateness is not None:
                # How many rows are late is known once the latest time before them is.
                slices = self._measure(codes, replace(tasks, begins=state.begins(slices)))
            tasks = replace(tasks, begins=state.begins(slices))
            decided, tasks = self._decide(codes, tasks, slices)
            lines = encoded.unionByName(decided, allowMissingColumns=True).unionByName(
                self._control(SLICE), allowMissingColumns=True
            )
            joined = lines.repartitionById(n_slices, SLICE)
            write(self._map(joined, tasks, self._job.public, tasks.publish), self._epoch.name)
        finally:
            for lines in self._cached:
                lines.unpersist()
        self._finish(slices)

    def _measure(self, codes: DataFrame, tasks: ArrowTasks) -> list[Slice]:
        """Measure each slice."""
        found = [Slice()] * self._plan.n_shards
        for line in self._collect(codes, tasks, tasks.slices_schema, tasks.measure):
            number = line.pop("slice")
            found[number] = Slice(**line)
        return found

    # -- deciding --------------------------------------------------------------------------------

    def _decide(
        self, codes: DataFrame, tasks: ArrowTasks, slices: list[Slice]
    ) -> tuple[DataFrame, ArrowTasks]:
        """Return what shards decide, and the tasks with all estimates of the window."""
        epoch, state = self._epoch, self._state
        parts = self._map(codes, tasks, tasks.parts_schema, tasks.split)
        before = None if epoch.parent is None else StateVersion("state", epoch.parent)
        points = self._due(codes, tasks, slices)
        if points:
            parts = self._cache(parts)
        found: list[DataFrame] = []
        estimates: list[Estimate] = []
        changes = list(tasks.batch.changes)
        # Empty shards have the policy's z; the z in force may be higher.
        first, z = 0, state.z if before is None and state.adapts_z else None
        for i, point in enumerate(points):
            after = StateVersion("estimate", epoch.number * MOST_ESTIMATES + i)
            segment = Segment(before, after, z, point.clock)
            of_segment = parts.where((F.col("row") >= first) & (F.col("row") < point.row))
            found.append(self._cache(self._of_shards(of_segment, tasks, segment)))
            # The states after it are needed now.
            found[-1].count()
            estimates.append(self._estimate(tasks, point, after))
            first, z, before = point.row, state.z, after
            changes.append(ZChange(point.row, z))
        segment = Segment(before, StateVersion("state", epoch.number), z)
        found.append(self._of_shards(parts.where(F.col("row") >= first), tasks, segment))
        batch = tasks.batch._replace(changes=tuple(changes))
        decided = reduce(DataFrame.unionByName, found)
        return decided, replace(tasks, batch=batch, estimates=estimates)

    def _due(self, codes: DataFrame, tasks: ArrowTasks, slices: list[Slice]) -> list[EstimatePoint]:
        """Return the rows before which the window is estimated."""
        if not self._state.adapts_z:
            return []
        origin = self._state.origin(slices)
        lines = self._collect(codes, tasks, tasks.points_schema, tasks.estimate_points, origin)
        points = sorted((EstimatePoint(**line) for line in lines), key=lambda point: point.row)
        return self._state.due(points)

    def _of_shards(self, parts: DataFrame, tasks: ArrowTasks, segment: Segment) -> DataFrame:
        """Have shards decide parts of rows."""
        lines = parts.unionByName(self._control("shard"), allowMissingColumns=True)
        routed = lines.repartitionById(self._plan.n_shards, "shard").sortWithinPartitions("row")
        return self._map(routed, tasks, tasks.decided_schema, tasks.decide, segment)

    def _estimate(self, tasks: ArrowTasks, point: EstimatePoint, version: StateVersion) -> Estimate:
        """Estimate the window over all shards, and adapt z to it."""

        def shown(z: int) -> list[tuple[Ints, Ints]]:
            shards = self._control("shard").repartitionById(self._plan.n_shards, "shard")
            found = self._map(shards, tasks, tasks.shown_schema, tasks.shown, version, z).toArrow()
            return [(np.asarray(found.column("subject")), np.asarray(found.column("shown")))]

        found = self._state.estimate(point, shown)
        row, _, before, z, n_subjects, *_ = found
        if z != before:
            event(log, logging.INFO, "z changed", before=before, z=z, row=row, subjects=n_subjects)
        return found

    # -- inside ----------------------------------------------------------------------------------

    def _map(
        self,
        lines: DataFrame,
        tasks: ArrowTasks,
        schema: pa.Schema,
        task: Callable[..., Iterator[pa.RecordBatch]],
        *more: Any,
    ) -> DataFrame:
        return lines.mapInArrow(tasks.wrapped(task, *more), from_arrow_schema(schema))

    def _collect(self, *of_map: Any) -> list[dict[str, Any]]:
        """Run `_map`, and return its lines."""
        lines: list[dict[str, Any]] = self._map(*of_map).toArrow().to_pylist()
        return lines

    def _control(self, name: str) -> DataFrame:
        """Return a line for each shard or slice that names it, so that all of them run."""
        return self._spark.range(self._plan.n_shards, numPartitions=1).select(
            F.col("id").cast("int").alias(name)
        )

    def _cache(self, lines: DataFrame) -> DataFrame:
        self._cached.append(lines.persist())
        return lines

    def _finish(self, slices: list[Slice]) -> None:
        """Save what later epochs depend on, and drop what no repetition needs."""
        job, number = self._job, self._epoch.number
        self._state.advance(slices, self._secret)
        state = self._state.snapshot()
        self._versions.save(number, state.facts, state.arrays, state.batches)
        if self._before:
            self._versions.drop_before(self._before[-1])
        for shard in range(self._plan.n_shards):
            folder = shard_folder(job.folder, self._plan.first_shard + shard)
            estimates = Versions(folder, "estimate", job=job.digests, seal=job.open_seal())
            estimates.drop_before(number * MOST_ESTIMATES)
