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

from shoal.clock import Clock, steady
from shoal.deciding import summary_of
from shoal.errors import CheckpointError
from shoal.events import event
from shoal.metrics import Summary
from shoal.space import Space
from shoal.spark.columns import ROW, SHARD, TICK, order_column
from shoal.spark.desk import drop_unfinished
from shoal.spark.failures import retold
from shoal.spark.ledger import Done, Ledger, Plan, Turn
from shoal.spark.lines import gather_lines
from shoal.spark.order import Ordered, numbered
from shoal.spark.places import Places
from shoal.spark.recipe import Recipe
from shoal.spark.routing import shard_of
from shoal.spark.shard import step

__all__ = ["Driver", "StoppedError", "Write"]

log = logging.getLogger("shoal.spark")

#: What writes the public rows of a turn, given the turn's name; written again, they are written
#: over.
Write: TypeAlias = Callable[[DataFrame, str], None]
#: How many rows the map of places is learned from.
SAMPLE = 100_000


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
    seed
        For repeatable runs; without it randomness is the operating system's.
    trace
        The folder of the trace; None for none.
    watch
        Called with the figures after each turn.
    """

    def __init__(
        self,
        spark: SparkSession,
        recipe: Recipe,
        ledger: Ledger,
        *,
        ordered: Ordered,
        write: Write,
        seed: bytes | None = None,
        trace: Path | None = None,
        watch: Callable[[Summary], None] | None = None,
    ) -> None:
        self._spark, self._recipe, self._ledger = spark, recipe, ledger
        self._ordered = ordered
        n_order = ordered.n_columns + ordered.as_read
        self._order = [order_column(i) for i in range(n_order)]
        self._write, self._seed, self._trace, self._watch = write, seed, trace, watch
        self._public = from_arrow_schema(recipe.public)
        self._clock = Clock(steady)
        self._busy = threading.Lock()
        self._is_stopping = False
        #: What the last batch failed with, before Spark has put it into words of its own.
        self.failure: BaseException | None = None
        #: The figures of the whole job, and the bytes of its states.
        self.summary, self.n_bytes = summary_of(recipe.schema, recipe.policy), 0
        if (last := ledger.last_done) is not None:
            done = ledger.done(last)
            self._clock.go_on(done.at)
            self.summary.restore(done.summary)

    # -- turns -----------------------------------------------------------------------------------

    def batch(self, df: DataFrame, batch_id: int) -> None:
        """Live through a micro-batch: what Spark calls."""
        with self._busy:
            try:
                if self._is_stopping:
                    raise StoppedError
                if self._ledger.is_done(2 * batch_id):
                    # All is written; Spark alone doesn't know. What it began from may be gone.
                    return
                rows = df.where(F.col(TICK).isNull())
                if self._ordered.as_read:
                    rows = numbered(rows, self._ordered.n_columns)
                turn = self._ledger.noted(2 * batch_id) or self._begin(2 * batch_id, rows)
                self._live(turn, rows)
            except BaseException as error:
                self.failure = retold(error)
                raise self.failure from None

    def end(self) -> None:
        """The stream has ended: have all that is held decided, under the promise."""
        last = self._ledger.last_done
        if last is None or last % 2:
            return
        turn = self._begin(last + 1, None)
        self._live(turn, None)

    def finish_pending(self) -> None:
        """Finish the end of a stream that was begun before a crash."""
        if (turn := self._ledger.pending_end) is not None:
            self._live(turn, None)

    def migrate(self, n_shards: int) -> None:
        """Publish what is held, and deal rows out anew from the next batch on."""
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
        plan = self._plan_for(rows)
        same = before is not None and before.plan == plan
        turn = Turn(
            number,
            last if same else None,
            plan,
            self._clock(),
            None if before is None else before.latest,
            0 if before is None else before.n_in,
            0 if before is None else before.n_out,
            secrets.token_hex(32) if self._recipe.publish.pseudonym is not None else "",
        )
        ledger.begin(turn)
        return turn

    def _plan_for(self, rows: DataFrame | None) -> int:
        """The plan that is in force; its map is learned from the first rows that come."""
        number = self._ledger.newest_plan
        assert number is not None
        plan = self._ledger.plan(number)
        if plan.n_shards == 1 or plan.places is not None or self._recipe.policy.z:
            return number
        places = None if rows is None else self._learned(rows, plan.n_shards)
        if places is not None:
            self._ledger.complete_plan(number, places.state())
        return number

    def _learned(self, rows: DataFrame, n_shards: int) -> Places | None:
        recipe = self._recipe
        names = [f"`{name}`" for name in recipe.schema.columns]
        # By a hash of where rows come from: any rows would do, if they aren't the first ones.
        by_chance = F.xxhash64(*(F.col(name) for name in self._order))
        sample = rows.select(*names, by_chance.alias(SHARD)).orderBy(SHARD).limit(SAMPLE).toArrow()
        codec = recipe.decider(bytes(32)).codec
        parts = sample.select(recipe.columns.names).cast(recipe.columns).to_batches()
        found = [codec.encode(batch).codes.values for batch in parts]
        if not any(map(len, found)):
            # Nobody has come, or bad rows alone.
            return None
        values = np.concatenate(found)
        event(log, logging.INFO, "places learned", rows=len(values), shards=n_shards)
        return Places.learn(Space(recipe.schema, recipe.policy), values, n_shards)

    def _live(self, turn: Turn, rows: DataFrame | None) -> None:
        plan = self._ledger.plan(turn.plan)
        dealt = self._dealt(turn, plan, rows)
        public = dealt.mapInArrow(partial(step, self._recipe, turn, plan.first_shard), self._public)
        self._write(public, turn.name)
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
            rows = rows.withColumn(SHARD, self._shard(plan, rows))
            dealt = rows.unionByName(dealt, allowMissingColumns=True)
        else:
            dealt = dealt.select("*", *self._nothing())
        return dealt.repartitionById(plan.n_shards, SHARD).sortWithinPartitions(*self._order)

    def _nothing(self) -> list[Column]:
        """The columns of rows, where there are none."""
        names = from_arrow_schema(self._recipe.columns)
        columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in names]
        columns += [F.lit(None).cast("long").alias(name) for name in self._order]
        return [*columns, F.lit(None).cast("long").alias(ROW)] if self._recipe.traced else columns

    def _shard(self, plan: Plan, rows: DataFrame) -> Column:
        if plan.places is None:
            # There is one shard, or there are no good rows yet.
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
        known = [shard["latest"] for shard in figures if shard["latest"] is not None]
        if turn.latest is not None:
            known.append(turn.latest)
        done = Done(
            turn.at,
            max(known, default=None),
            turn.plan,
            total.n_in,
            turn.n_out + sum(shard["n_out"] for shard in figures),
            total.state(),
        )
        self._ledger.finish(turn, done)
        if recipe.quarantine is not None:
            drop_unfinished(recipe.quarantine, turn)
        self.summary, self.n_bytes = total, sum(shard["n_bytes"] for shard in figures)
        event(log, logging.INFO, "turn done", number=turn.number, rows_in=total.n_in)
        if self._watch is not None:
            self._watch(total)
