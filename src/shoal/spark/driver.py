"""The driver of a job: it routes the rows of a batch to shards, runs them, and commits the result.

An epoch is exactly-once whatever is killed meanwhile: all that it depends on is recorded before
(`shoal.spark.commits`), rows come to a shard in an order that doesn't depend on the tasks that read
them, and the output is named after the epoch and overwritten.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from shoal.engine.space import Space
from shoal.errors import CheckpointError, ParameterError, ResourceError
from shoal.events import event
from shoal.metrics import Summary
from shoal.run.clock import Clock, steady
from shoal.run.core import summary_of
from shoal.run.recovery import SavedCheckpoint
from shoal.spark.columns import ROW, SHARD, TICK, order_column
from shoal.spark.commits import Commit, CommitLog, Epoch, Plan
from shoal.spark.failures import original_error
from shoal.spark.order import OrderedStream, with_read_order
from shoal.spark.partition_map import PartitionMap
from shoal.spark.routing import shard_of
from shoal.spark.shard import run_shard
from shoal.spark.shard_io import drop_unfinished
from shoal.spark.shard_job import ShardJob
from shoal.spark.trace import merge_traces
from shoal.spark.z.epoch import run_epoch

__all__ = ["Driver", "StoppedError", "Write"]

log = logging.getLogger("shoal.spark")

#: A function that writes the public rows of an epoch, given the epoch's name; a repetition
#: overwrites them.
Write: TypeAlias = Callable[[DataFrame, str], None]
#: How many rows the partition map is learned from.
SAMPLE = 100_000
SAMPLE_SEED = 0
#: Rows leave before they are due by at most this share of the delay.
MOST_LEAD = 0.5
#: The partition map is learned from at least this many rows for each shard. Until a batch has
#: them, all rows go to the first shard.
FEW = 1_000


class StoppedError(Exception):
    """Raised in place of a batch when the job is stopping."""


class Driver:
    """Run the epochs of a job.

    Parameters
    ----------
    job
        The parts of the job that shards need.
    commits
        The log of what is begun and committed.
    ordered
        The stream, and how its rows are ordered.
    write
        What writes public rows.
    interval
        The least number of seconds between two batches.
    seed
        For repeatable runs; without it randomness comes from the operating system.
    trace
        The folder of the trace; None for none.
    watch
        Called with the figures after each epoch.
    sample
        Rows from which the partition map is learned; None: those of the first batch.
    has_ticks
        Whether there are batches without rows, so that time passes.
    """

    def __init__(
        self,
        spark: SparkSession,
        job: ShardJob,
        commits: CommitLog,
        *,
        ordered: OrderedStream,
        write: Write,
        interval: float,
        seed: bytes | None = None,
        trace: Path | None = None,
        watch: Callable[[Summary], None] | None = None,
        sample: DataFrame | None = None,
        has_ticks: bool = False,
    ) -> None:
        self._spark, self._job, self._commits = spark, job, commits
        self._ordered = ordered
        n_order = ordered.n_columns + ordered.as_read
        self._order = [order_column(i) for i in range(n_order)]
        self._write, self._seed, self._trace, self._watch = write, seed, trace, watch
        self._sample, self._has_ticks = sample, has_ticks
        self._public = from_arrow_schema(job.public)
        self._clock = Clock(steady)
        self._interval, self._last_seconds = interval, 0.0
        self._busy = threading.Lock()
        self._is_stopping = False
        #: The error of the last batch, before Spark wraps it.
        self.failure: BaseException | None = None
        #: The figures of the whole job, and how many rows are in its output.
        self.summary, self.n_written = summary_of(job.schema, job.policy), 0
        #: When the last committed epoch began, in seconds since 1970.
        self.batch_at: float | None = None
        #: The states of all shards after the last epoch, as far as this driver knows.
        self.saved: SavedCheckpoint | None = None
        #: The figures of each shard since the plan began; none before its first epoch, or of one.
        self.shards: tuple[Summary, ...] = ()
        if (last := commits.last_commit) is not None:
            commit = commits.commit(last)
            self._clock.resume(commit.at)
            self.summary.restore(commit.summary)
            self.n_written, self.batch_at = commit.n_out, commit.at
            self.shards = self._last_shards(last, commit)

    # -- epochs ----------------------------------------------------------------------------------

    def batch(self, df: DataFrame, batch_id: int) -> None:
        """Process a micro-batch; called by Spark."""
        with self._busy:
            try:
                if self._is_stopping:
                    raise StoppedError
                epoch = self._commits.begun(2 * batch_id)
                if self._commits.is_committed(2 * batch_id):
                    # All is written, but Spark doesn't know. Its states may be gone.
                    return
                rows = df.where(F.col(TICK).isNull())
                if self._ordered.as_read:
                    rows = with_read_order(rows, self._ordered.n_columns)
                if epoch is None:
                    if self._has_ticks and self._is_idle(rows):
                        self._commits.skip(2 * batch_id)
                        return
                    epoch = self._begin(2 * batch_id, rows)
                self._run(epoch, rows)
            except StoppedError as stopped:
                # Not a failure: `Publishing.wait` must not report it as one.
                self.failure = stopped
                raise
            except BaseException as error:
                self.failure = original_error(error)
                raise self.failure from None

    def end(self) -> None:
        """Decide all rows that are held, under the promise, since the stream has ended."""
        last = self._commits.last_commit
        # Where each value is decided on its own, no row is held.
        if last is None or last % 2 or self._job.policy.per_value:
            return
        epoch = self._begin(last + 1, None)
        self._run(epoch, None)

    def finish_pending(self) -> None:
        """Finish an end of the stream that was begun before a crash."""
        if (epoch := self._commits.pending_end) is not None:
            self._run(epoch, None)

    def migrate(self, n_shards: int) -> None:
        """Publish what is held, and route rows by a new plan from the next batch on."""
        # A batch finished later by the former plan would leave rows behind.
        self._commits.check_finished()
        self.end()
        number = self._commits.newest_plan
        before = None if number is None else self._commits.plan(number)
        first = 0 if before is None else before.first_shard + before.n_shards
        summary = None if before is None else self.summary.state()
        self._commits.add_plan(Plan(n_shards, None, self._new_seed(first), first, summary))
        self.shards = ()

    def ensure_plan(self, n_shards: int) -> None:
        """Make the first plan, or refuse a number of shards other than the plan's."""
        number = self._commits.newest_plan
        if number is None:
            self._commits.add_plan(Plan(n_shards, None, self._new_seed(0)))
            return
        if (there := self._commits.plan(number).n_shards) != n_shards:
            raise CheckpointError(
                f"{self._commits.folder}: the job has {there} shards and is to have {n_shards}; "
                "the rows that they hold can't be moved. `shoal spark JOB --migrate` "
                "publishes what is held, under the promise, and continues with the new number."
            )

    def stop_after_batch(self, stop: Callable[[], None]) -> None:
        """Begin no more batches, wait for the running one, then call ``stop``."""
        self._is_stopping = True
        with self._busy:
            # The running batch has ended; any later one sees that it must not begin.
            pass
        # Without the lock: Spark waits for a batch it has called, which may wait for the lock.
        stop()

    # -- inside ----------------------------------------------------------------------------------

    def _new_seed(self, first_shard: int) -> str:
        if self._seed is None:
            return secrets.token_hex(32)
        # With a fixed seed another plan must not draw the same numbers again.
        return (self._seed + (b"%d" % first_shard if first_shard else b"")).hex()

    def _begin(self, number: int, rows: DataFrame | None) -> Epoch:
        """Record a new epoch."""
        commits, last = self._commits, self._commits.last_commit
        commits.check_follows(number)
        before = None if last is None else commits.commit(last)
        plan, is_partitioned = self._plan_for(rows)
        same = before is not None and before.plan == plan
        epoch = Epoch(
            number,
            last if same else None,
            plan,
            is_partitioned,
            at := self._clock(),
            at + self._lead(),
            None if before is None else before.latest,
            0 if before is None else before.n_in,
            0 if before is None else before.n_out,
            secrets.token_hex(32) if self._job.publish.pseudonym is not None else "",
            self._job.code,
        )
        commits.begin(epoch)
        return epoch

    def _lead(self) -> float:
        """How many seconds early rows leave: those due before the next epoch ends."""
        delay = self._job.policy.delay
        seconds = 0.0 if delay is None or delay.seconds is None else delay.seconds
        return min(max(self._interval, self._last_seconds), MOST_LEAD * seconds)

    def _is_idle(self, rows: DataFrame) -> bool:
        """Whether a batch has no rows and nothing is due, so that it needs no epoch."""
        last = self._commits.last_commit
        if last is not None:
            commit = self._commits.commit(last)
            reached = self._clock() + self._lead() if self._job.by_wall else commit.latest
            if commit.deadline is not None and reached is not None and commit.deadline <= reached:
                return False
        return bool(rows.isEmpty())

    def _plan_for(self, rows: DataFrame | None) -> tuple[int, bool]:
        """The number of the plan in force, and whether its partition map is known."""
        number = self._commits.newest_plan
        assert number is not None
        plan = self._commits.plan(number)
        if plan.n_shards == 1 or self._job.policy.per_value:
            return number, False
        if plan.partition_map is None and rows is not None:
            partition_map = self._learn_map(rows, plan.n_shards)
            if partition_map is None:
                return number, False
            self._commits.complete_plan(number, partition_map.state())
            return number, True
        return number, plan.partition_map is not None

    def _learn_map(self, rows: DataFrame, n_shards: int) -> PartitionMap | None:
        """Learn the partition map from the sample or from these rows; None if they are too few."""
        job = self._job
        columns = [F.col(f"`{name}`") for name in job.schema.columns]
        # A random choice, since the first rows may be alike.
        if self._sample is None:
            random = F.xxhash64(*self._order)
            some = rows.select(*columns, random.alias(SHARD)).orderBy(SHARD)
        else:
            some = self._sample.select(*columns, F.rand(SAMPLE_SEED).alias(SHARD)).orderBy(SHARD)
        found = some.limit(SAMPLE).drop(SHARD).toArrow()
        codec = job.codec()
        if self._sample is None:
            found = found.cast(job.columns)
        values = [codec.encode(batch).codes.values for batch in found.to_batches()]
        n = sum(len(part) for part in values)
        if n < FEW * n_shards and self._sample is None:
            event(log, logging.INFO, "too few rows for a partition map", rows=n, shards=n_shards)
            return None
        if not n:
            raise ParameterError("sample", "has no row that can be used", got=f"{found.num_rows:,}")
        event(log, logging.INFO, "partition map learned", rows=n, shards=n_shards)
        return PartitionMap.learn(Space(job.schema, job.policy), np.concatenate(values), n_shards)

    def _run(self, epoch: Epoch, rows: DataFrame | None) -> None:
        if epoch.code != self._job.code:
            raise CheckpointError(
                f"{self._commits.folder}: {epoch.name} was interrupted, and another version of "
                "Shoal is to repeat it. It might decide differently about rows that are out "
                "already. Let the former version finish the batch; then change the version."
            )
        if epoch.at > self._clock():
            # It was recorded on a machine whose clock is ahead of this one.
            self._clock.resume(epoch.at)
        plan = self._commits.plan(epoch.plan)
        if self._job.policy.per_value and plan.n_shards > 1:
            assert rows is not None
            run_epoch(self._spark, self._job, epoch, plan, rows, self._order, self._write)
        else:
            routed = self._routed(epoch, plan, rows)
            task = partial(run_shard, self._job, epoch, plan.first_shard)
            self._write(routed.mapInArrow(task, self._public), epoch.name)
        self._finish(epoch, plan, self._commits.figures(epoch, plan))

    def _routed(self, epoch: Epoch, plan: Plan, rows: DataFrame | None) -> DataFrame:
        """Route rows to their shards, in order, after a tick that names the shard."""
        # A tick for each shard, so that all of them run, those without rows too.
        routed = self._spark.range(plan.n_shards, numPartitions=1).select(
            F.col("id").cast("int").alias(SHARD), F.lit(True).alias(TICK)
        )
        if rows is not None:
            if self._job.traced:
                rows = self._with_row_numbers(epoch, rows)
            rows = rows.withColumn(SHARD, self._shard_column(epoch, plan, rows))
            routed = rows.unionByName(routed, allowMissingColumns=True)
        else:
            routed = routed.select("*", *self._null_columns())
        routed = routed.repartitionById(plan.n_shards, SHARD).sortWithinPartitions(*self._order)
        # The columns of the order aren't needed in Python unless they are checked there.
        return routed.drop(*(name for name in self._order if name not in self._job.order))

    def _null_columns(self) -> list[Column]:
        """The columns of rows, all null, for an epoch without rows."""
        names = from_arrow_schema(self._job.columns)
        columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in names]
        columns += [F.lit(None).cast("long").alias(name) for name in self._order]
        return [*columns, F.lit(None).cast("long").alias(ROW)] if self._job.traced else columns

    def _shard_column(self, epoch: Epoch, plan: Plan, rows: DataFrame) -> Column:
        if not epoch.is_partitioned or plan.partition_map is None:
            return F.lit(0)
        return shard_of(PartitionMap.restored(plan.partition_map), self._job.schema, rows.schema)

    def _with_row_numbers(self, epoch: Epoch, rows: DataFrame) -> DataFrame:
        """Add the position in the whole input. A single task counts: a trace has its price."""
        position = F.row_number().over(Window.orderBy(*self._order)) + F.lit(epoch.n_in - 1)
        return rows.withColumn(ROW, position.cast("long"))

    def _summaries(self, figures: list[dict[str, Any]]) -> list[Summary]:
        """The figures of each shard."""
        parts = []
        for shard in figures:
            part = summary_of(self._job.schema, self._job.policy)
            part.restore(shard["summary"])
            parts.append(part)
        return parts

    def _last_shards(self, last: int, commit: Commit) -> tuple[Summary, ...]:
        """The figures of each shard after the last epoch of an earlier run, to be shown."""
        commits = self._commits
        if commit.plan != commits.newest_plan:
            return ()
        plan = commits.plan(commit.plan)
        if plan.n_shards == 1:
            return ()
        try:
            return tuple(self._summaries(commits.figures(commits.epoch(last), plan)))
        except (CheckpointError, ResourceError) as error:
            # No later epoch depends on them.
            event(log, logging.WARNING, "figures ignored", error=error)
            return ()

    def _finish(self, epoch: Epoch, plan: Plan, figures: list[dict[str, Any]]) -> None:
        job = self._job
        if self._trace is not None:
            merge_traces(self._trace, self._commits.folder, epoch, plan, figures)
        total = summary_of(job.schema, job.policy)
        if plan.summary is not None:
            total.restore(plan.summary)
        parts = self._summaries(figures)
        for part in parts:
            total.merge(part)
        due = [shard["deadline"] for shard in figures if shard.get("deadline") is not None]
        known = [shard["latest"] for shard in figures if shard["latest"] is not None]
        if epoch.latest is not None:
            known.append(epoch.latest)
        commit = Commit(
            epoch.at,
            max(known, default=None),
            min(due, default=None),
            epoch.plan,
            total.n_in,
            epoch.n_out + sum(shard["n_out"] for shard in figures),
            total.state(),
        )
        self._commits.add_commit(epoch, commit)
        if job.quarantine is not None:
            drop_unfinished(job.quarantine, epoch)
        self.summary, self.n_written, self.batch_at = total, commit.n_out, commit.at
        self.shards = tuple(parts) if len(parts) > 1 else ()
        n_bytes, seconds = sum(s["n_bytes"] for s in figures), self._clock() - epoch.at
        self.saved = SavedCheckpoint(epoch.number, n_bytes, self._clock(), seconds)
        self._last_seconds = seconds
        event(log, logging.INFO, "epoch committed", number=epoch.number, rows_in=total.n_in)
        if self._watch is not None:
            self._watch(total)
