"""The tasks of a batch of z-anonymity on several shards, as functions without Spark.

A batch is cut into slices of consecutive rows, one for each task. `ZTasks.encoder` encodes the rows
of a slice; `ZTasks.measure` counts them, so that the driver knows where each slice starts;
`ZTasks.split` splits them by value; a `ZShard` decides; `ZTasks.join` joins the rows again.
The result doesn't depend on how the batch is cut, and each function depends on its arguments only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.arrow.codec import Encoded
from shoal.arrow.order import Departures
from shoal.arrow.release import Publish
from shoal.engine.kernels.arrays import Any1, Floats
from shoal.engine.space import Codes
from shoal.engine.z.window import FARTHEST
from shoal.io.base import Chunk
from shoal.run.core import RunCore
from shoal.run.encoder import ChunkEncoder, EncodedChunk, codec_for, codec_key
from shoal.spark.z.decide import Decided, ZShard
from shoal.spark.z.encode import EncodedRows, joined_chunks
from shoal.spark.z.join import Joining, ZChange
from shoal.spark.z.split import Slice, SplitRows, split_rows
from shoal.spec.ladder import n_levels
from shoal.spec.policy import Policy, Window
from shoal.spec.schema import Schema

__all__ = ["BatchContext", "EstimatePoint", "JoinedSlice", "ZTasks"]


class BatchContext(NamedTuple):
    """What all tasks of a batch know.

    Parameters
    ----------
    at
        When its rows arrived, by the clock.
    types
        The types of the payload.
    names
        The pseudonyms before it, from `shoal.arrow.pseudonyms.Pseudonyms.snapshot`.
    secret
        What pseudonyms that change in it are derived from.
    changes
        The z in force before its first row, and where it changes.
    """

    at: float
    types: pa.Schema
    names: dict[str, Any1] = {}  # noqa: RUF012 (never modified)
    secret: bytes = b""
    changes: tuple[ZChange, ...] = ()

    def __repr__(self) -> str:
        return f"BatchContext(at={self.at})"


class EstimatePoint(NamedTuple):
    """A row before which the window is estimated, with the clock, the slot and the time there.

    Slots divide the clock into the intervals between two estimates.
    """

    row: int
    clock: float
    slot: int
    time: float


class JoinedSlice(NamedTuple):
    """A slice after the join: its encoded rows, the rows that leave (None: none do), its figures.

    ``figures`` is the state of a `shoal.metrics.Summary`.
    """

    taken: EncodedChunk
    departures: Departures | None
    figures: dict[str, Any]

    def __repr__(self) -> str:
        return f"JoinedSlice({len(self.taken.inputs)} rows, {len(self.taken.bad)} bad)"


@dataclasses.dataclass(frozen=True)
class ZTasks:
    """The tasks of a job.

    Parameters
    ----------
    schema, policy, anonymizer, publish
        The parts of the job.
    seed
        The source of its randomness; the same as long as the job lives.
    n_shards
        How many engines count.
    with_subject
        Whether rows carry their subject, for a trace.
    """

    schema: Schema
    policy: Policy
    anonymizer: ZAnonymizer
    publish: Publish
    seed: bytes = dataclasses.field(repr=False)
    n_shards: int
    with_subject: bool = False

    @property
    def n_levels(self) -> list[int]:
        """How many levels each attribute has."""
        return [n_levels(quasi.domain) for quasi in self.schema.quasi]

    def shard(self) -> ZShard:
        """Return a shard that has counted nothing."""
        return ZShard(self.schema, self.policy, self.anonymizer, self.seed)

    def encoder(self, batch: BatchContext, begin: Slice) -> ChunkEncoder:
        """Return an encoder of the rows after ``begin``, which also finds late ones."""
        policy = self.policy
        codec = codec_for(
            self.schema, policy, self.publish, key=codec_key(self.seed),
            with_subject=self.with_subject, types=batch.types,
        )  # fmt: skip
        return ChunkEncoder(codec, self.schema, policy.lateness, policy.ahead, begin.latest)

    def measure(self, batch: BatchContext, n_rows: int, codes: Codes, begin: Slice) -> Slice:
        """Measure a slice that starts after ``begin``.

        If rows may be late, the number of valid ones depends on the latest time before them;
        nothing else does.
        """
        times = self._on_time(batch, codes, begin).times
        found = Slice(n_rows, len(times))
        if not len(times) or self.schema.time is None:
            return found
        return found._replace(latest=float(times.max()), first=float(times[0]))

    def split(self, batch: BatchContext, codes: Codes, begin: Slice) -> SplitRows:
        """Split the rows of a slice by value."""
        codes = self._on_time(batch, codes, begin)
        clock = self.clock(codes.times, begin)
        return split_rows(codes, clock, begin.n_valid, self.n_levels, self.n_shards)

    def estimate_points(
        self, batch: BatchContext, codes: Codes, begin: Slice, origin: float
    ) -> list[EstimatePoint]:
        """Return where in a slice the window may have to be estimated.

        ``origin`` is the clock at the first row of the stream.
        """
        times = self._on_time(batch, codes, begin).times
        clock = self.clock(times, begin)
        window = self.policy.window
        assert isinstance(window, Window)
        length = window.seconds or float(window.rows)
        step = length / self.anonymizer.estimates
        slots = np.floor(np.clip((clock - origin - length) / step, -1.0, FARTHEST))
        new = np.flatnonzero(np.diff(slots, prepend=-1) > 0)
        latest = np.maximum.accumulate(np.maximum(times, begin.latest))
        return [
            EstimatePoint(begin.n_valid + i, float(clock[i]), int(slots[i]), float(latest[i]))
            for i in new.tolist()
        ]

    def clock(self, times: Floats, begin: Slice) -> Floats:
        """Return what the window counts at each row: times, or numbers of rows."""
        if isinstance(self.policy.window, Window) and self.policy.window.seconds is None:
            first = begin.n_valid
            rows: Floats = np.arange(first, first + len(times), dtype=np.float64)
            return rows
        # A row stamped earlier than one before it arrived no earlier.
        return np.maximum.accumulate(np.maximum(times, begin.latest))

    def join(
        self,
        batch: BatchContext,
        rows: Sequence[EncodedRows],
        begin: Slice,
        pieces: Sequence[Decided],
        figures: Mapping[str, Any] | None = None,
    ) -> JoinedSlice:
        """Join the rows of a slice.

        ``pieces`` are the decisions of shards about them; the new figures are added to ``figures``.
        """
        core = self._core(pieces, batch.changes, begin.n_valid)
        core.start_at(begin.n_valid, begin.latest, batch.names)
        if figures is not None:
            core.summary.restore(figures)
        encoder = self.encoder(batch, begin)
        first = begin.n_inputs if self.with_subject else 0
        taken = joined_chunks(
            [encoder.set_apart(_moved(chunk, first), encoded, batch.at) for chunk, encoded in rows]
        )
        departures = core.take_in(taken, batch.at, batch.secret)
        return JoinedSlice(taken, departures, core.summary.state())

    def _on_time(self, batch: BatchContext, codes: Codes, begin: Slice) -> Codes:
        """Return the codes of rows that aren't late."""
        encoded = Encoded(codes, {}, np.arange(len(codes.times)), {})
        return self.encoder(batch, begin).without_late(encoded).codes

    def _core(
        self, pieces: Sequence[Decided] = (), changes: Sequence[ZChange] = (), first: int = 0
    ) -> RunCore:
        return RunCore(
            self.schema,
            self.policy,
            Joining(pieces=pieces, changes=changes, first=first),
            self.publish,
            self.seed,
            by_clock=False,
            with_subject=self.with_subject,
        )


def _moved(chunk: Chunk, by: int) -> Chunk:
    """Add a number to the positions of all rows of a chunk."""
    bad = [dataclasses.replace(row, row=row.row + by) for row in chunk.bad]
    return dataclasses.replace(chunk, rows=chunk.rows + by, bad=bad)
