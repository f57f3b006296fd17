"""What tasks do on Spark where values are counted in several shards: batches of Spark's in and out.

Each is a function of its rows, of states that the turn before has left, and of what the driver
knows, so that a repetition gives the same bytes. How they follow each other is in
`shoal.spark.z.plan`. The i-th stretch of a turn leaves its figures where the i-th shard leaves its
state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.engine.decisions import ESTIMATE
from shoal.engine.space import Codes
from shoal.io.base import Chunk
from shoal.run.core import summary_of
from shoal.run.state.folder import path_of
from shoal.run.state.versions import Versions
from shoal.spark.columns import PREFIX
from shoal.spark.failures import quietly
from shoal.spark.ledger import Plan, Turn, shard_folder
from shoal.spark.shard_io import ShardIO
from shoal.spark.shard_job import ShardJob
from shoal.spark.z.decide import CellShard, Decided
from shoal.spark.z.encode import LINE, N_ROWS, SLICE, EncodedRows, codes_of, joined_codes
from shoal.spark.z.head import Estimate
from shoal.spark.z.split import SplitRows, Stretch
from shoal.spark.z.tasks import Batch, CellTasks

__all__ = ["PART", "SLICE", "CellTurn", "Kept", "Segment", "tasks_of"]

#: The row that something was decided about; missing in all other lines.
PART = f"{PREFIX}decided_row"


class Kept(NamedTuple):
    """Where a shard keeps a state: of which kind it is, and its number."""

    kind: str
    number: int


class Segment(NamedTuple):
    """What shards do with their cells between two looks at the window.

    Parameters
    ----------
    before, after
        The state that they begin from (None: they begin anew), and the one that they leave.
    z
        What they decide by; None: as before.
    clock
        What the clock tells at the look that follows; None: there is none.
    """

    before: Kept | None
    after: Kept
    z: int | None = None
    clock: float | None = None


def tasks_of(recipe: ShardJob, plan: Plan) -> CellTasks:
    """What the tasks of a job do."""
    assert isinstance(recipe.anonymizer, ZAnonymizer)
    return CellTasks(
        recipe.schema, recipe.policy, recipe.anonymizer, recipe.publish,
        bytes.fromhex(plan.seed), plan.n_shards, recipe.traced,
    )  # fmt: skip


@dataclass(frozen=True)
class CellTurn:
    """A turn, as its tasks know it; it travels to wherever they run.

    Parameters
    ----------
    recipe, turn, plan
        What they must know of the job.
    batch
        What the driver knows.
    begins
        What comes before each stretch; as long as that isn't known, nothing.
    looks
        The looks that were taken at the window.
    """

    recipe: ShardJob
    turn: Turn
    plan: Plan
    batch: Batch
    begins: Sequence[Stretch] = ()
    looks: Sequence[Estimate] = field(default=(), repr=False)

    @property
    def tasks(self) -> CellTasks:
        """What its tasks do."""
        return tasks_of(self.recipe, self.plan)

    # -- the columns of what comes out -------------------------------------------------------------

    @property
    def survey_schema(self) -> pa.Schema:
        """Of `survey`."""
        whole, number = pa.int64(), pa.float64()
        kinds = [("stretch", pa.int32()), ("n_inputs", whole), ("n_valid", whole)]
        return pa.schema([*kinds, ("latest", number), ("first", number)])

    @property
    def moments_schema(self) -> pa.Schema:
        """Of `moments`."""
        whole, number = pa.int64(), pa.float64()
        return pa.schema([("row", whole), ("clock", number), ("slot", whole), ("time", number)])

    @property
    def parts_schema(self) -> pa.Schema:
        """Of `parts`."""
        return SplitRows.schema(sum(self.tasks.rungs))

    @property
    def decided_schema(self) -> pa.Schema:
        """Of `decide`."""
        names = [
            pa.field(f"{PREFIX}decided_{column.name}", column.type)
            for column in Decided.schema(len(self.recipe.schema.quasi))
        ]
        return pa.schema([(SLICE, pa.int32()), *names])

    @property
    def shown_schema(self) -> pa.Schema:
        """Of `shown`."""
        return pa.schema([("subject", pa.int64()), ("shown", pa.int64())])

    # -- what Spark runs -------------------------------------------------------------------------

    def encode(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Encode the rows of a stretch."""
        encoder = self.tasks.encoder(self.batch, Stretch())
        shard_io: ShardIO | None = None
        for line, rows in enumerate(batch for batch in batches if batch.num_rows):
            stretch = int(rows.column(SLICE)[0].as_py())
            shard_io = shard_io or self._shard_io(stretch)
            chunk = shard_io.chunk(rows)
            encoded = EncodedRows(chunk, encoder.encode_rows(chunk, self.batch.at))
            late = self.recipe.policy.lateness is not None
            yield encoded.to_batch(stretch, line, with_source=late)

    def survey(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Tell how long a stretch is."""
        for stretch, n_rows, codes in self._codes(batches):
            begin = self.begins[stretch] if self.begins else Stretch()
            found = self.tasks.survey(self.batch, n_rows, codes, begin)
            yield _line(self.survey_schema, (stretch, *found))

    def moments(self, origin: float, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Tell where in a stretch the window may have to be looked at."""
        for stretch, _, codes in self._codes(batches):
            for moment in self.tasks.moments(self.batch, codes, self.begins[stretch], origin):
                yield _line(self.moments_schema, moment)

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of a stretch apart."""
        for stretch, _, codes in self._codes(batches):
            yield self.tasks.parts(self.batch, codes, self.begins[stretch]).to_batch()

    def decide(
        self, segment: Segment, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Decide the cells of a shard, in the order of rows; before them a line names the shard."""
        lines = _whole(batches)
        states = self._states(int(lines.column("shard")[0].as_py()), segment.after.kind)
        shard = self._shard(int(lines.column("shard")[0].as_py()), segment.before)
        if segment.z is not None:
            shard.follow(segment.z)
        decided = shard.decide(SplitRows.of_batch(lines.filter(lines.column("row").is_valid())))
        if segment.clock is not None:
            shard.forget(segment.clock)
        states.save(segment.after.number, {}, shard.snapshot())
        firsts = [begin.n_valid for begin in self.begins]
        # Of stretches that begin with the same row all but the last have none.
        stretches = np.searchsorted(firsts, decided.rows, side="right") - 1
        yield pa.record_batch(
            [pa.array(stretches, pa.int32()), *decided.to_batch().columns],
            schema=self.decided_schema,
        )

    def shown(
        self, kept: Kept, z: int, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Tell what a shard would show under some z."""
        number = int(_whole(batches).column("shard")[0].as_py())
        found = self._shard(number, kept).shown(z)
        yield pa.record_batch([pa.array(column) for column in found], schema=self.shown_schema)

    def publish(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Put the rows of a stretch together, and give what is public of them.

        There are a line that names the stretch, encoded rows, and what was decided, in any order.
        """
        names = self.decided_schema.names[1:]
        stretch, encoded, decided = -1, [], []
        for batch in batches:
            stretch = int(batch.column(SLICE)[0].as_py())
            decided.append(
                Decided.of_batch(batch.select(names).filter(batch.column(PART).is_valid()))
            )
            encoded += batch.filter(batch.column(LINE).is_valid()).to_pylist()
        rows = [EncodedRows.of_line(line) for line in sorted(encoded, key=lambda line: line[LINE])]
        shard_io, begin = self._shard_io(stretch), self.begins[stretch]
        joined = self.tasks.join(
            self.batch, rows or [self._no_rows()], begin, decided, self._figures(stretch)
        )
        if joined.taken.bad:
            shard_io.quarantine(joined.taken.bad, joined.taken.bad_subjects)
        yield from shard_io.leaving(joined.departures)
        shard_io.close()
        summary = summary_of(self.recipe.schema, self.recipe.policy)
        summary.restore(joined.figures)
        if stretch == 0 and summary.cells is not None:
            summary.cells.look(np.array(self.looks, ESTIMATE))
        number = self.plan.first_shard + stretch
        folder = shard_folder(self.recipe.folder, number)
        times = joined.taken.encoded.codes.times
        latest = float(np.max(times, initial=begin.latest)) if len(times) else begin.latest
        # Last of all: that it is there says that all else is.
        self._states(stretch, "figures").save(
            self.turn.number,
            {
                "summary": summary.state(),
                "latest": latest if np.isfinite(latest) else None,
                "n_out": shard_io.n_out,
                "n_bytes": path_of(folder, "state", self.turn.number).stat().st_size,
            },
        )

    def quietly(
        self, task: Callable[..., Iterator[pa.RecordBatch]], *told: Any
    ) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """A task, as Spark runs it; see `shoal.spark.failures.quietly`."""

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            self.recipe.check_code()
            return quietly(task(*told, batches), self.turn.name)

        return run

    # -- inside ----------------------------------------------------------------------------------

    def _codes(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, Codes]]:
        """The stretch that the lines of a task are, how many rows it has, and their codes."""
        if lines := [line for batch in batches for line in batch.to_pylist()]:
            n_rows = sum(line[N_ROWS] for line in lines)
            yield lines[0][SLICE], n_rows, joined_codes(map(codes_of, lines))

    def _no_rows(self) -> EncodedRows:
        """A stretch without rows, encoded."""
        empty = pa.RecordBatch.from_pylist([], schema=self.recipe.columns)
        chunk = Chunk(empty, np.empty(0, np.int64), [])
        return EncodedRows(chunk, self.tasks.encoder(self.batch, Stretch()).encode_rows(chunk, 0.0))

    def _shard_io(self, stretch: int) -> ShardIO:
        number = self.plan.first_shard + stretch
        return ShardIO(self.recipe, number, shard_folder(self.recipe.folder, number), self.turn)

    def _states(self, shard: int, kind: str) -> Versions:
        folder = shard_folder(self.recipe.folder, self.plan.first_shard + shard)
        return Versions(folder, kind, job=self.recipe.job, seal=self.recipe.open_seal())

    def _shard(self, number: int, kept: Kept | None) -> CellShard:
        """A shard as it was."""
        shard = self.tasks.shard()
        if kept is not None:
            shard.restore(self._states(number, kept.kind).load(kept.number).arrays)
        return shard

    def _figures(self, stretch: int) -> dict[str, Any] | None:
        if self.turn.parent is None:
            return None
        facts = self._states(stretch, "figures").load(self.turn.parent).facts
        figures: dict[str, Any] = facts["summary"]
        return figures


def _whole(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """All lines of a task as one batch."""
    # What doesn't fit into one batch is a failure here, and not a second batch that nobody sees.
    found: pa.RecordBatch = pa.concat_batches(list(batches))
    return found


def _line(schema: pa.Schema, values: tuple[Any, ...]) -> pa.RecordBatch:
    columns = [pa.array([v], f.type) for v, f in zip(values, schema, strict=True)]
    return pa.record_batch(columns, schema=schema)
