"""A turn of z-anonymity with several shards, as a plan of DataFrames.

Rows are cut into stretches by their order, and surveyed, so that each stretch knows where it
begins. Then they are taken apart; cells go to their shards, which decide; what was decided goes
back to the stretches, which publish in the order of arrival. Where z follows the stream, shards
stop before every row at which the window is looked at, and are told the z that was found.
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
from shoal.spark.columns import TICK
from shoal.spark.ledger import Plan, Turn, shard_folder
from shoal.spark.shard_job import ShardJob
from shoal.spark.z.encode import CODES, LINE, N_ROWS, SLICE, EncodedRows
from shoal.spark.z.head import CellHead, Estimate
from shoal.spark.z.join import JoinedTurn as ZTurn
from shoal.spark.z.shard import CellTurn, Kept, Segment, tasks_of
from shoal.spark.z.split import Stretch
from shoal.spark.z.tasks import Moment

__all__ = ["live_cells"]

log = logging.getLogger("shoal.spark")

#: So many looks at the window can be told apart in a turn.
MOST_LOOKS = 1 << 20


def live_cells(
    spark: SparkSession,
    recipe: ShardJob,
    turn: Turn,
    plan: Plan,
    rows: DataFrame,
    order: Sequence[str],
    write: Callable[[DataFrame, str], None],
) -> None:
    """Live through a turn: publish its rows, and leave the states and figures of all shards.

    Parameters
    ----------
    spark, recipe, turn, plan
        The session, and what is to be done.
    rows
        The rows of the batch, of which there may be none.
    order
        The columns that tell their order.
    write
        What writes the public rows of a turn.
    """
    _Turn(spark, recipe, turn, plan).live(rows, order, write)


class _Turn:
    """One turn, in the driver."""

    def __init__(self, spark: SparkSession, recipe: ShardJob, turn: Turn, plan: Plan) -> None:
        self._spark, self._recipe, self._turn, self._plan = spark, recipe, turn, plan
        self._heads = Versions(recipe.folder, "head", job=recipe.job, seal=recipe.open_seal())
        self._secret = bytes.fromhex(turn.secret)
        self._head = CellHead(tasks_of(recipe, plan))
        self._before = [n for n in self._heads.numbers() if n < turn.number]
        if self._before:
            # Another plan counts anew, but rows are numbered and named as before.
            found = self._heads.load(self._before[-1])
            self._head.restore(CoreState(found.facts, found.arrays, found.batches))
        if self._head.before.n_inputs != turn.n_in:
            self._head.go_beyond(turn.n_in, turn.latest)
        self._kept: list[DataFrame] = []

    def live(
        self, rows: DataFrame, order: Sequence[str], write: Callable[[DataFrame, str], None]
    ) -> None:
        head = self._head
        batch = head.batch(self._turn.at, self._recipe.types, self._secret)
        at = CellTurn(self._recipe, self._turn, self._plan, batch)
        n_stretches = self._plan.n_shards
        try:
            # Which rows are one stretch doesn't matter, but all that follows must cut them alike.
            ranged = rows.repartitionByRange(n_stretches, *order).sortWithinPartitions(*order)
            cut = ranged.withColumn(SLICE, F.spark_partition_id())
            encoded = self._keep(self._mapped(cut, at, EncodedRows.schema(), at.encode))
            # Payload and rows aren't needed before they are published.
            codes = encoded.select(SLICE, LINE, N_ROWS, CODES)
            stretches = self._surveyed(codes, at)
            if self._recipe.policy.lateness is not None:
                # How many of them are too late is known once the latest time before them is.
                stretches = self._surveyed(codes, replace(at, begins=head.begins(stretches)))
            at = replace(at, begins=head.begins(stretches))
            parts = self._mapped(codes, at, at.parts_schema, at.parts)
            decided, at = self._decided(codes, parts, at, stretches)
            told = encoded.unionByName(decided, allowMissingColumns=True).unionByName(
                self._control(SLICE).drop(TICK), allowMissingColumns=True
            )
            joined = told.repartitionById(n_stretches, SLICE)
            write(self._mapped(joined, at, self._recipe.public, at.publish), self._turn.name)
        finally:
            for kept in self._kept:
                kept.unpersist()
        self._finish(stretches)

    def _surveyed(self, codes: DataFrame, at: CellTurn) -> list[Stretch]:
        """How long each stretch is."""
        found = [Stretch()] * self._plan.n_shards
        for line in self._mapped(codes, at, at.survey_schema, at.survey).toArrow().to_pylist():
            stretch = line.pop("stretch")
            found[stretch] = Stretch(**line)
        return found

    # -- deciding --------------------------------------------------------------------------------

    def _decided(
        self, codes: DataFrame, parts: DataFrame, at: CellTurn, stretches: list[Stretch]
    ) -> tuple[DataFrame, CellTurn]:
        """What shards decide, and the turn as it is known after all looks at the window."""
        turn = self._turn
        before = None if turn.parent is None else Kept("state", turn.parent)
        looks = self._due(codes, at, stretches)
        if looks:
            parts = self._keep(parts)
        found: list[DataFrame] = []
        estimates: list[Estimate] = []
        z_turns = list(at.batch.turns)
        # Shards that begin anew know the policy's z; what is promised may have grown meanwhile.
        first, z = 0, self._head.z if before is None and self._head.looks else None
        for i, look in enumerate(looks):
            after = Kept("look", turn.number * MOST_LOOKS + i)
            segment = Segment(before, after, z, look.clock)
            of_segment = parts.where((F.col("row") >= first) & (F.col("row") < look.row))
            found.append(self._keep(self._of_shards(of_segment, at, segment)))
            # The states after it are needed now.
            found[-1].count()
            estimates.append(self._look(at, look, after))
            first, z, before = look.row, self._head.z, after
            z_turns.append(ZTurn(look.row, z))
        segment = Segment(before, Kept("state", turn.number), z)
        found.append(self._of_shards(parts.where(F.col("row") >= first), at, segment))
        batch = at.batch._replace(turns=tuple(z_turns))
        return reduce(DataFrame.unionByName, found), replace(at, batch=batch, looks=estimates)

    def _due(self, codes: DataFrame, at: CellTurn, stretches: list[Stretch]) -> list[Moment]:
        """Before which rows the window is looked at."""
        if not self._head.looks:
            return []
        origin = self._head.origin(stretches)
        told = self._mapped(codes, at, at.moments_schema, at.moments, origin).toArrow().to_pylist()
        moments = sorted((Moment(**line) for line in told), key=lambda moment: moment.row)
        return self._head.due(moments)

    def _of_shards(self, parts: DataFrame, at: CellTurn, segment: Segment) -> DataFrame:
        told = parts.unionByName(self._control("shard"), allowMissingColumns=True)
        sorted_ = told.repartitionById(self._plan.n_shards, "shard").sortWithinPartitions("row")
        return self._mapped(sorted_.drop(TICK), at, at.decided_schema, at.decide, segment)

    def _look(self, at: CellTurn, look: Moment, kept: Kept) -> Estimate:
        """Look at the window of all shards, and let z follow it."""

        def ask(z: int) -> list[tuple[Ints, Ints]]:
            shards = self._control("shard").repartitionById(self._plan.n_shards, "shard")
            told = self._mapped(shards, at, at.shown_schema, at.shown, kept, z).toArrow()
            return [(np.asarray(told.column("subject")), np.asarray(told.column("shown")))]

        found = self._head.look(look, ask)
        row, _, before, z, n_subjects, *_ = found
        if z != before:
            event(log, logging.INFO, "z changed", before=before, z=z, row=row, subjects=n_subjects)
        return found

    # -- inside ----------------------------------------------------------------------------------

    def _mapped(
        self,
        lines: DataFrame,
        at: CellTurn,
        schema: pa.Schema,
        task: Callable[..., Iterator[pa.RecordBatch]],
        *told: Any,
    ) -> DataFrame:
        return lines.mapInArrow(at.quietly(task, *told), from_arrow_schema(schema))

    def _control(self, name: str) -> DataFrame:
        """A line for each shard or stretch that names it: so all of them are run."""
        return self._spark.range(self._plan.n_shards, numPartitions=1).select(
            F.col("id").cast("int").alias(name), F.lit(True).alias(TICK)
        )

    def _keep(self, lines: DataFrame) -> DataFrame:
        self._kept.append(lines.persist())
        return lines

    def _finish(self, stretches: list[Stretch]) -> None:
        """Keep what later turns depend on, and forget what no repetition needs."""
        recipe, number = self._recipe, self._turn.number
        self._head.resume(stretches, self._secret)
        state = self._head.snapshot()
        self._heads.save(number, state.facts, state.arrays, state.batches)
        if self._before:
            self._heads.drop_before(self._before[-1])
        for shard in range(self._plan.n_shards):
            folder = shard_folder(recipe.folder, self._plan.first_shard + shard)
            looks = Versions(folder, "look", job=recipe.job, seal=recipe.open_seal())
            looks.drop_before(number * MOST_LOOKS)
