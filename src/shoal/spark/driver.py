"""What the driver does with a batch: it deals rows out, has them decided, and keeps the books.

A turn is exact whatever is killed meanwhile, because all that it depends on is noted before
(`shoal.spark.ledger`), because rows come to a shard in an order that doesn't depend on who brought
them, and because what is written is named after the turn and written over.
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
from shoal.errors import CheckpointError, ParameterError
from shoal.events import event
from shoal.metrics import Summary
from shoal.run.clock import Clock, steady
from shoal.run.core import summary_of
from shoal.run.recovery import SavedCheckpoint
from shoal.spark.columns import ROW, SHARD, TICK, order_column
from shoal.spark.failures import retold
from shoal.spark.ledger import Done, Ledger, Plan, Turn
from shoal.spark.order import Ordered, numbered
from shoal.spark.places import Places
from shoal.spark.routing import shard_of
from shoal.spark.shard import step
from shoal.spark.shard_io import drop_unfinished
from shoal.spark.shard_job import ShardJob
from shoal.spark.trace import gather_lines
from shoal.spark.z.plan import live_cells

__all__ = ["Driver", "StoppedError", "Write"]

log = logging.getLogger("shoal.spark")

#: What writes the public rows of a turn, given the turn's name; written again, they are written
#: over.
Write: TypeAlias = Callable[[DataFrame, str], None]
#: How many rows the map of places is learned from.
SAMPLE = 100_000
SAMPLE_SEED = 0
#: Nothing leaves earlier before it is due than this share of the delay.
MOST_LEAD = 0.5
#: A map isn't learned from fewer rows for each shard than this. Until there are as many in a
#: batch, all rows go to the first shard: so few it can bear.
FEW = 1_000


class StoppedError(Exception):
    """A batch isn't begun, because the job is to stop."""


class Driver:
    """Live through the turns of a job.

    Parameters
    ----------
    recipe
        What the shards must know.
    ledger
        Where it stands.
    ordered
        The stream: how its rows are put in order.
    write
        What writes public rows.
    interval
        How many seconds lie between two batches, at least.
    seed
        For repeatable runs; without it randomness is the operating system's.
    trace
        The folder of the trace; None for none.
    watch
        Called with the figures after each turn.
    sample
        Rows from which the map of places is learned; None: those of the first batch.
    has_ticks
        Whether there are batches without rows, that time may go on.
    """

    def __init__(
        self,
        spark: SparkSession,
        recipe: ShardJob,
        ledger: Ledger,
        *,
        ordered: Ordered,
        write: Write,
        interval: float,
        seed: bytes | None = None,
        trace: Path | None = None,
        watch: Callable[[Summary], None] | None = None,
        sample: DataFrame | None = None,
        has_ticks: bool = False,
    ) -> None:
        self._spark, self._recipe, self._ledger = spark, recipe, ledger
        self._ordered = ordered
        n_order = ordered.n_columns + ordered.as_read
        self._order = [order_column(i) for i in range(n_order)]
        self._write, self._seed, self._trace, self._watch = write, seed, trace, watch
        self._sample, self._has_ticks = sample, has_ticks
        self._public = from_arrow_schema(recipe.public)
        self._clock = Clock(steady)
        self._interval, self._took = interval, 0.0
        self._busy = threading.Lock()
        self._is_stopping = False
        #: What the last batch failed with, before Spark has put it into words of its own.
        self.failure: BaseException | None = None
        #: The figures of the whole job, and how many rows are in its output.
        self.summary, self.n_written = summary_of(recipe.schema, recipe.policy), 0
        #: The states of all shards after the last turn, as far as this driver knows.
        self.saved: SavedCheckpoint | None = None
        if (last := ledger.last_done) is not None:
            done = ledger.done(last)
            self._clock.resume(done.at)
            self.summary.restore(done.summary)
            self.n_written = done.n_out

    # -- turns -----------------------------------------------------------------------------------

    def batch(self, df: DataFrame, batch_id: int) -> None:
        """Live through a micro-batch: what Spark calls."""
        with self._busy:
            try:
                if self._is_stopping:
                    raise StoppedError
                turn = self._ledger.noted(2 * batch_id)
                if self._ledger.is_done(2 * batch_id):
                    # All is written; Spark alone doesn't know. What it began from may be gone.
                    return
                rows = df.where(F.col(TICK).isNull())
                if self._ordered.as_read:
                    rows = numbered(rows, self._ordered.n_columns)
                if turn is None:
                    if self._has_ticks and self._is_idle(rows):
                        self._ledger.skip(2 * batch_id)
                        return
                    turn = self._begin(2 * batch_id, rows)
                self._live(turn, rows)
            except StoppedError as stopped:
                # Nothing has failed: whoever waits for the end mustn't be told so.
                self.failure = stopped
                raise
            except BaseException as error:
                self.failure = retold(error)
                raise self.failure from None

    def end(self) -> None:
        """The stream has ended: have all that is held decided, under the promise."""
        last = self._ledger.last_done
        # What is published value by value is never held.
        if last is None or last % 2 or self._recipe.policy.per_value:
            return
        turn = self._begin(last + 1, None)
        self._live(turn, None)

    def finish_pending(self) -> None:
        """Finish the end of a stream that was begun before a crash."""
        if (turn := self._ledger.pending_end) is not None:
            self._live(turn, None)

    def migrate(self, n_shards: int) -> None:
        """Publish what is held, and deal rows out anew from the next batch on."""
        # A batch that is finished after this, by the plan of before, would leave rows behind.
        self._ledger.check_finished()
        self.end()
        number = self._ledger.newest_plan
        before = None if number is None else self._ledger.plan(number)
        first = 0 if before is None else before.first_shard + before.n_shards
        summary = None if before is None else self.summary.state()
        self._ledger.add_plan(Plan(n_shards, None, self._new_seed(first), first, summary))

    def ensure_plan(self, n_shards: int) -> None:
        """Have a plan for so many shards, or refuse if the job has another one."""
        number = self._ledger.newest_plan
        if number is None:
            self._ledger.add_plan(Plan(n_shards, None, self._new_seed(0)))
            return
        if (there := self._ledger.plan(number).n_shards) != n_shards:
            raise CheckpointError(
                f"{self._ledger.folder}: the job has {there} shards and is to have {n_shards}; "
                "what they hold can't be dealt out anew unseen. `shoal spark JOB --migrate` "
                "publishes what is held, under the promise, and goes on with the new number."
            )

    def hold_on(self, stop: Callable[[], None]) -> None:
        """Begin no more batches, let the one that runs end, then call ``stop``."""
        self._is_stopping = True
        with self._busy:
            # The batch that ran has ended, and no other gets further than to see that it must not.
            pass
        # Without the lock: Spark waits for a batch that it may have called, which waits for it.
        stop()

    # -- inside ----------------------------------------------------------------------------------

    def _new_seed(self, first_shard: int) -> str:
        if self._seed is None:
            return secrets.token_hex(32)
        # With a fixed seed another plan mustn't draw what the one before has drawn.
        return (self._seed + (b"%d" % first_shard if first_shard else b"")).hex()

    def _begin(self, number: int, rows: DataFrame | None) -> Turn:
        """Note a new turn."""
        ledger, last = self._ledger, self._ledger.last_done
        ledger.check_follows(number)
        before = None if last is None else ledger.done(last)
        plan, is_placed = self._plan_for(rows)
        same = before is not None and before.plan == plan
        turn = Turn(
            number,
            last if same else None,
            plan,
            is_placed,
            at := self._clock(),
            at + self._lead(),
            None if before is None else before.latest,
            0 if before is None else before.n_in,
            0 if before is None else before.n_out,
            secrets.token_hex(32) if self._recipe.publish.pseudonym is not None else "",
            self._recipe.code,
        )
        ledger.begin(turn)
        return turn

    def _lead(self) -> float:
        """How many seconds before it is due what is due leaves: until the next turn is through."""
        delay = self._recipe.policy.delay
        seconds = 0.0 if delay is None or delay.seconds is None else delay.seconds
        return min(max(self._interval, self._took), MOST_LEAD * seconds)

    def _is_idle(self, rows: DataFrame) -> bool:
        """Whether a batch has no rows, and nothing is due: then there is nothing to keep."""
        last = self._ledger.last_done
        if last is not None:
            done = self._ledger.done(last)
            reached = self._clock() + self._lead() if self._recipe.by_wall else done.latest
            if done.deadline is not None and reached is not None and done.deadline <= reached:
                return False
        return bool(rows.isEmpty())

    def _plan_for(self, rows: DataFrame | None) -> tuple[int, bool]:
        """The plan that is in force, and whether its map of places is known by now."""
        number = self._ledger.newest_plan
        assert number is not None
        plan = self._ledger.plan(number)
        if plan.n_shards == 1 or self._recipe.policy.per_value:
            return number, False
        if plan.places is None and rows is not None:
            places = self._learned(rows, plan.n_shards)
            if places is None:
                return number, False
            self._ledger.complete_plan(number, places.state())
            return number, True
        return number, plan.places is not None

    def _learned(self, rows: DataFrame, n_shards: int) -> Places | None:
        """The map of places, learned from a sample, or from the first rows that come."""
        recipe = self._recipe
        columns = [F.col(f"`{name}`") for name in recipe.schema.columns]
        # Any rows would do, if they aren't the first ones.
        if self._sample is None:
            by_chance = F.xxhash64(*self._order)
            some = rows.select(*columns, by_chance.alias(SHARD)).orderBy(SHARD)
        else:
            some = self._sample.select(*columns, F.rand(SAMPLE_SEED).alias(SHARD)).orderBy(SHARD)
        found = some.limit(SAMPLE).drop(SHARD).toArrow()
        codec = recipe.codec()
        if self._sample is None:
            found = found.cast(recipe.columns)
        values = [codec.encode(batch).codes.values for batch in found.to_batches()]
        n = sum(len(part) for part in values)
        if n < FEW * n_shards and self._sample is None:
            event(log, logging.INFO, "too few rows for a map", rows=n, shards=n_shards)
            return None
        if not n:
            raise ParameterError("sample", "has no row that can be used", got=f"{found.num_rows:,}")
        event(log, logging.INFO, "places learned", rows=n, shards=n_shards)
        return Places.learn(Space(recipe.schema, recipe.policy), np.concatenate(values), n_shards)

    def _live(self, turn: Turn, rows: DataFrame | None) -> None:
        if turn.code != self._recipe.code:
            raise CheckpointError(
                f"{self._ledger.folder}: {turn.name} was interrupted, and another version of Shoal "
                "is to repeat it. It might decide otherwise about rows that are out already. Let "
                "the former version finish the batch; then change the version."
            )
        if turn.at > self._clock():
            # Whoever noted it had a clock that is ahead of ours.
            self._clock.resume(turn.at)
        plan = self._ledger.plan(turn.plan)
        if self._recipe.policy.per_value and plan.n_shards > 1:
            assert rows is not None
            live_cells(self._spark, self._recipe, turn, plan, rows, self._order, self._write)
        else:
            dealt = self._dealt(turn, plan, rows)
            told = partial(step, self._recipe, turn, plan.first_shard)
            self._write(dealt.mapInArrow(told, self._public), turn.name)
        self._finish(turn, plan, self._ledger.figures(turn, plan))

    def _dealt(self, turn: Turn, plan: Plan, rows: DataFrame | None) -> DataFrame:
        """Rows where they belong, in their order, each shard's after one that names the shard."""
        # So every shard is run, also those that no row has come to.
        dealt = self._spark.range(plan.n_shards, numPartitions=1).select(
            F.col("id").cast("int").alias(SHARD), F.lit(True).alias(TICK)
        )
        if rows is not None:
            if self._recipe.traced:
                rows = self._numbered(turn, rows)
            rows = rows.withColumn(SHARD, self._shard(turn, plan, rows))
            dealt = rows.unionByName(dealt, allowMissingColumns=True)
        else:
            dealt = dealt.select("*", *self._nothing())
        dealt = dealt.repartitionById(plan.n_shards, SHARD).sortWithinPartitions(*self._order)
        # What has put rows in order needn't go all the way to Python, path of the file and all.
        return dealt.drop(*(name for name in self._order if name not in self._recipe.order))

    def _nothing(self) -> list[Column]:
        """The columns of rows, where there are none."""
        names = from_arrow_schema(self._recipe.columns)
        columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in names]
        columns += [F.lit(None).cast("long").alias(name) for name in self._order]
        return [*columns, F.lit(None).cast("long").alias(ROW)] if self._recipe.traced else columns

    def _shard(self, turn: Turn, plan: Plan, rows: DataFrame) -> Column:
        if not turn.is_placed or plan.places is None:
            return F.lit(0)
        return shard_of(Places.restored(plan.places), self._recipe.schema, rows.schema)

    def _numbered(self, turn: Turn, rows: DataFrame) -> DataFrame:
        """Rows with their position in the whole input. One task counts: a trace has its price."""
        position = F.row_number().over(Window.orderBy(*self._order)) + F.lit(turn.n_in - 1)
        return rows.withColumn(ROW, position.cast("long"))

    def _finish(self, turn: Turn, plan: Plan, figures: list[dict[str, Any]]) -> None:
        recipe = self._recipe
        if self._trace is not None:
            gather_lines(self._trace, self._ledger.folder, turn, plan, figures)
        total = summary_of(recipe.schema, recipe.policy)
        if plan.summary is not None:
            total.restore(plan.summary)
        for shard in figures:
            part = summary_of(recipe.schema, recipe.policy)
            part.restore(shard["summary"])
            total.merge(part)
        due = [shard["deadline"] for shard in figures if shard.get("deadline") is not None]
        known = [shard["latest"] for shard in figures if shard["latest"] is not None]
        if turn.latest is not None:
            known.append(turn.latest)
        done = Done(
            turn.at,
            max(known, default=None),
            min(due, default=None),
            turn.plan,
            total.n_in,
            turn.n_out + sum(shard["n_out"] for shard in figures),
            total.state(),
        )
        self._ledger.finish(turn, done)
        if recipe.quarantine is not None:
            drop_unfinished(recipe.quarantine, turn)
        self.summary, self.n_written = total, done.n_out
        n_bytes, seconds = sum(s["n_bytes"] for s in figures), self._clock() - turn.at
        self.saved = SavedCheckpoint(turn.number, n_bytes, self._clock(), seconds)
        self._took = seconds
        event(log, logging.INFO, "turn done", number=turn.number, rows_in=total.n_in)
        if self._watch is not None:
            self._watch(total)
