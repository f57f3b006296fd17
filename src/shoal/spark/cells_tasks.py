"""What the tasks of a batch do where values are counted in several shards, one function each.

A batch is cut into stretches of consecutive rows, one for each task. `CellTasks.survey` tells how
long a stretch is, so that whoever sees all of them knows where each begins; `CellTasks.parts` takes
its rows apart; a `CellShard` decides; `CellTasks.publish` puts rows together and makes them public.
How the batch is cut doesn't matter, and everything follows from what a function is given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.algorithms.z_anonymity import ZAnonymous
from shoal.deciding import Decider, State
from shoal.hold import ARRIVED_S, ROW
from shoal.intake import Intake, Taken
from shoal.io.base import BadRow, Chunk
from shoal.kernels.arrays import Any1, Floats
from shoal.kernels.reach import FARTHEST
from shoal.ladder import n_rungs
from shoal.policy import Policy, Window
from shoal.release import Publish
from shoal.releasing import publisher_of, subject_type, subjects_in
from shoal.schema import Schema
from shoal.spark.cells_apart import Parts, Stretch, apart
from shoal.spark.cells_decide import CellShard, Decided
from shoal.spark.cells_join import Joining, Turn
from shoal.trace_cells import CellTracer, cell_trace_schema

__all__ = ["Batch", "CellTasks", "Moment", "Published"]


class Batch(NamedTuple):
    """What all tasks of a batch know.

    Parameters
    ----------
    at
        When its rows arrived, by the clock.
    types
        The types of the payload; None: they are those of the rows.
    names
        The pseudonyms before it: what `shoal.pseudonyms.Pseudonyms.snapshot` gives.
    secret
        What pseudonyms that change in it are made of.
    turns
        The z in force before its first row, and where that changes.
    """

    at: float
    types: pa.Schema | None = None
    names: dict[str, Any1] = {}  # noqa: RUF012 (nothing is ever put in)
    secret: bytes = b""
    turns: tuple[Turn, ...] = ()

    def __repr__(self) -> str:
        return f"Batch(at={self.at})"


class Moment(NamedTuple):
    """Before which row the window is looked at, for which time by counting; clock and time then."""

    row: int
    clock: float
    slot: int
    time: float


class Published(NamedTuple):
    """What becomes of a stretch: public rows, bad rows, the lines of the trace, and figures.

    ``figures`` are the state of a `shoal.metrics.Summary` that has counted this stretch alone.
    """

    public: pa.RecordBatch
    bad: list[BadRow]
    trace: pa.Table | None
    figures: dict[str, Any]

    def __repr__(self) -> str:
        return f"Published({self.public.num_rows} rows, {len(self.bad)} bad)"


@dataclasses.dataclass(frozen=True)
class CellTasks:
    """What the tasks of a job do.

    Parameters
    ----------
    schema, policy, anonymizer, publishing
        The parts of the job.
    seed
        Where its randomness comes from; the same as long as the job lives.
    n_shards
        How many engines count.
    with_trace
        Whether a trace is written.
    """

    schema: Schema
    policy: Policy
    anonymizer: ZAnonymous
    publishing: Publish
    seed: bytes = dataclasses.field(repr=False)
    n_shards: int
    with_trace: bool = False

    @property
    def rungs(self) -> list[int]:
        """How many rungs each attribute has."""
        return [n_rungs(quasi.domain) for quasi in self.schema.quasi]

    def shard(self) -> CellShard:
        """A shard that has counted nobody."""
        return CellShard(self.schema, self.policy, self.anonymizer, self.seed)

    def types(self, rows: pa.RecordBatch) -> pa.Schema:
        """The types of the payload, as the first rows of a stream have them."""
        return self._taken(self._decider(), Batch(0.0), rows, Stretch()).types

    def survey(self, batch: Batch, rows: pa.RecordBatch, begin: Stretch) -> Stretch:
        """Tell how long a stretch is that begins after another one.

        Where rows may be too late, how many are valid depends on the latest time before them; all
        else doesn't.
        """
        taken = self._taken(self._decider(), batch, rows, begin)
        times = taken.encoded.codes.times
        found = Stretch(rows.num_rows, len(times))
        if not len(times) or self.schema.time is None:
            return found
        return found._replace(latest=float(times.max()), first=float(times[0]))

    def parts(self, batch: Batch, rows: pa.RecordBatch, begin: Stretch) -> Parts:
        """Take the rows of a stretch apart."""
        codes = self._taken(self._decider(), batch, rows, begin).encoded.codes
        clock = self.clock(codes.times, begin)
        return apart(codes, clock, begin.n_valid, self.rungs, self.n_shards)

    def moments(
        self, batch: Batch, rows: pa.RecordBatch, begin: Stretch, origin: float
    ) -> list[Moment]:
        """Where in a stretch the window may have to be looked at.

        ``origin`` is what the clock told when the first row of all came.
        """
        times = self._taken(self._decider(), batch, rows, begin).encoded.codes.times
        clock = self.clock(times, begin)
        window = self.policy.window
        assert isinstance(window, Window)
        length = window.seconds or float(window.rows)
        step = length / self.anonymizer.estimates
        slots = np.floor(np.clip((clock - origin - length) / step, -1.0, FARTHEST))
        new = np.flatnonzero(np.diff(slots, prepend=-1) > 0)
        latest = np.maximum.accumulate(np.maximum(times, begin.latest))
        return [
            Moment(begin.n_valid + i, float(clock[i]), int(slots[i]), float(latest[i]))
            for i in new.tolist()
        ]

    def clock(self, times: Floats, begin: Stretch) -> Floats:
        """What the window counts: when rows have come, or how many have."""
        if isinstance(self.policy.window, Window) and self.policy.window.seconds is None:
            first = begin.n_valid
            rows: Floats = np.arange(first, first + len(times), dtype=np.float64)
            return rows
        # A row that is stamped earlier than one before it has arrived no earlier.
        return np.maximum.accumulate(np.maximum(times, begin.latest))

    def publish(
        self,
        batch: Batch,
        rows: pa.RecordBatch,
        begin: Stretch,
        pieces: Sequence[Decided],
        first: int = 0,
    ) -> Published:
        """Put the rows of a stretch together and make them public.

        ``pieces`` is what shards have decided about them, ``first`` the place of the first public
        row in the output, which the trace tells.
        """
        decider = self._decider(pieces, batch.turns)
        taken = self._taken(decider, batch, rows, begin)
        arranged = decider.take_in(taken, batch.at, batch.secret)
        publisher = publisher_of(
            self.schema, self.publishing, taken.types, first=first, one_by_one=True
        )
        lines = _Lines()
        subject = subject_type(self.schema, taken.types) if self.with_trace else pa.string()
        tracer = CellTracer(lines, subject, self.schema)
        if self.with_trace and taken.bad:
            inputs = np.array([row.row for row in taken.bad])
            tracer.quarantined(inputs, pa.array(taken.bad_subjects, subject))
        public = publisher.schema.empty_table()
        if arranged is not None:
            release, seq = publisher.release(arranged)
            public = pa.Table.from_batches([release.batch]).cast(publisher.schema)
            if self.with_trace:
                payload = arranged.payload
                inputs, arrived_s = (np.asarray(payload.column(name)) for name in (ROW, ARRIVED_S))
                people = subjects_in(self.schema, payload)
                tracer.decided(arranged, inputs, arrived_s, people, seq)
        return Published(
            public.combine_chunks().to_batches()[0] if len(public) else _empty(publisher.schema),
            taken.bad,
            pa.Table.from_batches(lines.batches, cell_trace_schema(subject))
            if self.with_trace
            else None,
            decider.summary.state(),
        )

    def _decider(self, pieces: Sequence[Decided] = (), turns: Sequence[Turn] = ()) -> Decider:
        return Decider(
            self.schema,
            self.policy,
            Joining(pieces=pieces, turns=turns),
            self.publishing,
            self.seed,
            by_clock=False,
            with_subject=self.with_trace,
        )

    def _taken(self, decider: Decider, batch: Batch, rows: pa.RecordBatch, begin: Stretch) -> Taken:
        """Take a stretch in as if all before it had been."""
        facts, arrays, batches = decider.snapshot()
        facts["upcoming"] = begin.n_valid
        facts["latest"] = begin.latest if np.isfinite(begin.latest) else None
        arrays["engine.place"]["upcoming"] = begin.n_valid
        arrays |= {f"names.{name}": array for name, array in batch.names.items()}
        if batch.types is not None:
            batches["types"] = _empty(batch.types)
        decider.restore(State(facts, arrays, batches))
        intake = Intake(decider.codec, self.schema, self.policy.lateness, self.policy.ahead)
        intake.latest = begin.latest
        inputs = np.arange(begin.n_inputs, begin.n_inputs + rows.num_rows)
        return intake.take(Chunk(rows, inputs, []), batch.at)


class _Lines:
    """The lines of a trace, kept."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some lines."""
        self.batches.append(batch)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)
