"""The tasks of z-anonymity on several shards as Spark runs them: Arrow batches in and out.

Each is a function of its rows, of states that the epoch before left, and of what the driver knows,
so that a repetition returns the same bytes. `shoal.spark.z.epoch` runs them. The i-th slice of an
epoch leaves its figures where the i-th shard leaves its state.
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
from shoal.spark.commits import Epoch, Plan, shard_folder
from shoal.spark.failures import without_values
from shoal.spark.shard_io import ShardIO
from shoal.spark.shard_job import ShardJob
from shoal.spark.z.decide import Decided, ZShard
from shoal.spark.z.driver_state import Estimate
from shoal.spark.z.encode import LINE, N_ROWS, SLICE, EncodedRows, codes_of, joined_codes
from shoal.spark.z.split import Slice, SplitRows
from shoal.spark.z.tasks import BatchContext, ZTasks

__all__ = ["DECIDED_ROW", "ArrowTasks", "Segment", "StateVersion", "tasks_of"]

#: The row that a decision is about; null in all other lines.
DECIDED_ROW = f"{PREFIX}decided_row"


class StateVersion(NamedTuple):
    """The kind and number under which shards save a state."""

    kind: str
    number: int


class Segment(NamedTuple):
    """The work of shards between two estimates of the window.

    Parameters
    ----------
    before, after
        The state that they start from (None: empty), and the one that they leave.
    z
        The z that they use; None: as before.
    clock
        The clock at the estimate that follows; None: there is none.
    """

    before: StateVersion | None
    after: StateVersion
    z: int | None = None
    clock: float | None = None


def tasks_of(job: ShardJob, plan: Plan) -> ZTasks:
    """Return the tasks of a job under a plan."""
    assert isinstance(job.anonymizer, ZAnonymizer)
    return ZTasks(
        job.schema, job.policy, job.anonymizer, job.publish,
        bytes.fromhex(plan.seed), plan.n_shards, job.traced,
    )  # fmt: skip


@dataclass(frozen=True)
class ArrowTasks:
    """The tasks of an epoch; it is sent to where they run.

    Parameters
    ----------
    job, epoch, plan
        The job, and what is recorded of the epoch.
    batch
        What the driver knows of the batch.
    begins
        What comes before each slice; empty until that is known.
    estimates
        The estimates of the window in this epoch.
    """

    job: ShardJob
    epoch: Epoch
    plan: Plan
    batch: BatchContext
    begins: Sequence[Slice] = ()
    estimates: Sequence[Estimate] = field(default=(), repr=False)

    @property
    def tasks(self) -> ZTasks:
        """The tasks without Spark."""
        return tasks_of(self.job, self.plan)

    # -- the columns of their results ----------------------------------------------------------

    @property
    def slices_schema(self) -> pa.Schema:
        """Of `measure`."""
        whole, number = pa.int64(), pa.float64()
        kinds = [("slice", pa.int32()), ("n_inputs", whole), ("n_valid", whole)]
        return pa.schema([*kinds, ("latest", number), ("first", number)])

    @property
    def points_schema(self) -> pa.Schema:
        """Of `estimate_points`."""
        whole, number = pa.int64(), pa.float64()
        return pa.schema([("row", whole), ("clock", number), ("slot", whole), ("time", number)])

    @property
    def parts_schema(self) -> pa.Schema:
        """Of `split`."""
        return SplitRows.schema(sum(self.tasks.n_levels))

    @property
    def decided_schema(self) -> pa.Schema:
        """Of `decide`."""
        names = [
            pa.field(f"{PREFIX}decided_{column.name}", column.type)
            for column in Decided.schema(len(self.job.schema.quasi))
        ]
        return pa.schema([(SLICE, pa.int32()), *names])

    @property
    def shown_schema(self) -> pa.Schema:
        """Of `shown`."""
        return pa.schema([("subject", pa.int64()), ("shown", pa.int64())])

    # -- what Spark runs -------------------------------------------------------------------------

    def encode(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Encode the rows of a slice; the only task that reads them."""
        encoder = self.tasks.encoder(self.batch, Slice())
        shard_io: ShardIO | None = None
        for line, rows in enumerate(batch for batch in batches if batch.num_rows):
            number = int(rows.column(SLICE)[0].as_py())
            shard_io = shard_io or self._shard_io(number)
            chunk = shard_io.chunk(rows)
            encoded = EncodedRows(chunk, encoder.encode_rows(chunk, self.batch.at))
            late = self.job.policy.lateness is not None
            yield encoded.to_batch(number, line, with_source=late)

    def measure(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Measure a slice."""
        for number, n_rows, codes in self._codes(batches):
            begin = self.begins[number] if self.begins else Slice()
            found = self.tasks.measure(self.batch, n_rows, codes, begin)
            yield _line(self.slices_schema, (number, *found))

    def estimate_points(
        self, origin: float, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Return where in a slice the window may have to be estimated."""
        for number, _, codes in self._codes(batches):
            begin = self.begins[number]
            for point in self.tasks.estimate_points(self.batch, codes, begin, origin):
                yield _line(self.points_schema, point)

    def split(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Split the rows of a slice by value."""
        for number, _, codes in self._codes(batches):
            yield self.tasks.split(self.batch, codes, self.begins[number]).to_batch()

    def decide(
        self, segment: Segment, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Decide the values of a shard, in the order of rows, after a line that names the shard."""
        lines = _whole(batches)
        number = int(lines.column("shard")[0].as_py())
        shard = self._shard(number, segment.before)
        if segment.z is not None:
            shard.follow(segment.z)
        decided = shard.decide(SplitRows.of_batch(lines.filter(lines.column("row").is_valid())))
        if segment.clock is not None:
            shard.forget(segment.clock)
        after = segment.after
        self._states(number, after.kind).save(after.number, {}, shard.snapshot())
        firsts = [begin.n_valid for begin in self.begins]
        # Of slices that start at the same row, all but the last are empty.
        slices = np.searchsorted(firsts, decided.rows, side="right") - 1
        yield pa.record_batch(
            [pa.array(slices, pa.int32()), *decided.to_batch().columns],
            schema=self.decided_schema,
        )

    def shown(
        self, version: StateVersion, z: int, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Return what a shard would show under a z."""
        number = int(_whole(batches).column("shard")[0].as_py())
        found = self._shard(number, version).shown(z)
        yield pa.record_batch([pa.array(column) for column in found], schema=self.shown_schema)

    def publish(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join the rows of a slice, and return what is public of them.

        Lines are encoded rows, decisions, and one that names the slice, in any order.
        """
        names = self.decided_schema.names[1:]
        number, encoded, decided = -1, [], []
        for batch in batches:
            number = int(batch.column(SLICE)[0].as_py()) if batch.num_rows else number
            here = batch.column(DECIDED_ROW).is_valid()
            decided.append(Decided.of_batch(batch.select(names).filter(here)))
            encoded += batch.filter(batch.column(LINE).is_valid()).to_pylist()
        rows = [EncodedRows.of_line(line) for line in sorted(encoded, key=lambda line: line[LINE])]
        shard_io, begin = self._shard_io(number), self.begins[number]
        joined = self.tasks.join(
            self.batch, rows or [self._no_rows()], begin, decided, self._figures(number)
        )
        if joined.taken.bad:
            shard_io.quarantine(joined.taken.bad, joined.taken.bad_subjects)
        yield from shard_io.release(joined.departures)
        shard_io.close()
        summary = summary_of(self.job.schema, self.job.policy)
        summary.restore(joined.figures)
        if number == 0 and summary.cells is not None:
            summary.cells.look(np.array(self.estimates, ESTIMATE))
        folder = shard_folder(self.job.folder, self.plan.first_shard + number)
        times = joined.taken.encoded.codes.times
        latest = float(np.max(times, initial=begin.latest)) if len(times) else begin.latest
        # Last: its presence means that all else is written.
        self._states(number, "figures").save(
            self.epoch.number,
            {
                "summary": summary.state(),
                "latest": latest if np.isfinite(latest) else None,
                "n_out": shard_io.n_out,
                "n_bytes": path_of(folder, "state", self.epoch.number).stat().st_size,
            },
        )

    def wrapped(
        self, task: Callable[..., Iterator[pa.RecordBatch]], *more: Any
    ) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return a task whose errors hold no values; ``more`` are its first arguments."""

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            self.job.check_code()
            return without_values(task(*more, batches), self.epoch.name)

        return run

    # -- inside ----------------------------------------------------------------------------------

    def _codes(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, Codes]]:
        """The slice of a task, how many rows it has, and their codes; nothing if it has none."""
        if lines := [line for batch in batches for line in batch.to_pylist()]:
            n_rows = sum(line[N_ROWS] for line in lines)
            yield lines[0][SLICE], n_rows, joined_codes(map(codes_of, lines))

    def _no_rows(self) -> EncodedRows:
        """Encode a slice without rows."""
        empty = pa.RecordBatch.from_pylist([], schema=self.job.columns)
        chunk = Chunk(empty, np.empty(0, np.int64), [])
        return EncodedRows(chunk, self.tasks.encoder(self.batch, Slice()).encode_rows(chunk, 0.0))

    def _shard_io(self, number: int) -> ShardIO:
        shard = self.plan.first_shard + number
        return ShardIO(self.job, shard, shard_folder(self.job.folder, shard), self.epoch)

    def _states(self, shard: int, kind: str) -> Versions:
        folder = shard_folder(self.job.folder, self.plan.first_shard + shard)
        return Versions(folder, kind, job=self.job.digests, seal=self.job.open_seal())

    def _shard(self, number: int, version: StateVersion | None) -> ZShard:
        """Load a shard, or return an empty one."""
        shard = self.tasks.shard()
        if version is not None:
            shard.restore(self._states(number, version.kind).load(version.number).arrays)
        return shard

    def _figures(self, number: int) -> dict[str, Any] | None:
        if self.epoch.parent is None:
            return None
        facts = self._states(number, "figures").load(self.epoch.parent).facts
        figures: dict[str, Any] = facts["summary"]
        return figures


def _whole(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """Concatenate all lines of a task to one batch."""
    # Lines that don't fit into one batch are an error here, and not a second batch that is ignored.
    found: pa.RecordBatch = pa.concat_batches(list(batches))
    return found


def _line(schema: pa.Schema, values: tuple[Any, ...]) -> pa.RecordBatch:
    columns = [pa.array([v], f.type) for v, f in zip(values, schema, strict=True)]
    return pa.record_batch(columns, schema=schema)
