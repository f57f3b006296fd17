"""What the tasks of a batch do where values are counted in several shards, one function each.

A batch is cut into stretches of consecutive rows, one for each task. `CellTasks.survey` tells how
long a stretch is, so that whoever sees all of them knows where each begins; `CellTasks.parts` takes
its rows apart; a `CellShard` decides; `CellTasks.join` puts rows together again.
How the batch is cut doesn't matter, and everything follows from what a function is given.
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
from shoal.spark.z.decide import CellShard, Decided
from shoal.spark.z.encode import EncodedRows, joined_chunks
from shoal.spark.z.join import JoinedTurn, Joining
from shoal.spark.z.split import SplitRows, Stretch, apart
from shoal.spec.ladder import n_rungs
from shoal.spec.policy import Policy, Window
from shoal.spec.schema import Schema

__all__ = ["Batch", "CellTasks", "Joined", "Moment"]


class Batch(NamedTuple):
    """What all tasks of a batch know.

    Parameters
    ----------
    at
        When its rows arrived, by the clock.
    types
        The types of the payload.
    names
        The pseudonyms before it: what `shoal.arrow.pseudonyms.Pseudonyms.snapshot` gives.
    secret
        What pseudonyms that change in it are made of.
    turns
        The z in force before its first row, and where that changes.
    """

    at: float
    types: pa.Schema
    names: dict[str, Any1] = {}  # noqa: RUF012 (nothing is ever put in)
    secret: bytes = b""
    turns: tuple[JoinedTurn, ...] = ()

    def __repr__(self) -> str:
        return f"Batch(at={self.at})"


class Moment(NamedTuple):
    """Before which row the window is looked at, for which time by counting; clock and time then."""

    row: int
    clock: float
    slot: int
    time: float


class Joined(NamedTuple):
    """What becomes of a stretch: its rows as they came in, as they leave (None: none do), figures.

    ``figures`` is the state of a `shoal.metrics.Summary`.
    """

    taken: EncodedChunk
    departures: Departures | None
    figures: dict[str, Any]

    def __repr__(self) -> str:
        return f"Joined({len(self.taken.inputs)} rows, {len(self.taken.bad)} bad)"


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
    with_subject
        Whether rows carry their subject, for a trace.
    """

    schema: Schema
    policy: Policy
    anonymizer: ZAnonymizer
    publishing: Publish
    seed: bytes = dataclasses.field(repr=False)
    n_shards: int
    with_subject: bool = False

    @property
    def rungs(self) -> list[int]:
        """How many rungs each attribute has."""
        return [n_rungs(quasi.domain) for quasi in self.schema.quasi]

    def shard(self) -> CellShard:
        """A shard that has counted nobody."""
        return CellShard(self.schema, self.policy, self.anonymizer, self.seed)

    def encoder(self, batch: Batch, begin: Stretch) -> ChunkEncoder:
        """Return an encoder of the rows after others, which also finds those that are too late."""
        policy = self.policy
        codec = codec_for(
            self.schema, policy, self.publishing, key=codec_key(self.seed),
            with_subject=self.with_subject, types=batch.types,
        )  # fmt: skip
        return ChunkEncoder(codec, self.schema, policy.lateness, policy.ahead, begin.latest)

    def survey(self, batch: Batch, n_rows: int, codes: Codes, begin: Stretch) -> Stretch:
        """Tell how long a stretch is that begins after another one.

        Where rows may be too late, how many are valid depends on the latest time before them; all
        else doesn't.
        """
        times = self._on_time(batch, codes, begin).times
        found = Stretch(n_rows, len(times))
        if not len(times) or self.schema.time is None:
            return found
        return found._replace(latest=float(times.max()), first=float(times[0]))

    def parts(self, batch: Batch, codes: Codes, begin: Stretch) -> SplitRows:
        """Take the rows of a stretch apart."""
        codes = self._on_time(batch, codes, begin)
        clock = self.clock(codes.times, begin)
        return apart(codes, clock, begin.n_valid, self.rungs, self.n_shards)

    def moments(self, batch: Batch, codes: Codes, begin: Stretch, origin: float) -> list[Moment]:
        """Where in a stretch the window may have to be looked at.

        ``origin`` is what the clock told when the first row of all came.
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

    def join(
        self,
        batch: Batch,
        rows: Sequence[EncodedRows],
        begin: Stretch,
        pieces: Sequence[Decided],
        figures: Mapping[str, Any] | None = None,
    ) -> Joined:
        """Put the rows of a stretch together.

        ``pieces`` is what shards have decided about them; ``figures`` are those before, to which
        these are added.
        """
        core = self._core(pieces, batch.turns, begin.n_valid)
        core.start_at(begin.n_valid, begin.latest, batch.names)
        if figures is not None:
            core.summary.restore(figures)
        encoder = self.encoder(batch, begin)
        first = begin.n_inputs if self.with_subject else 0
        taken = joined_chunks(
            [encoder.set_apart(_moved(chunk, first), encoded, batch.at) for chunk, encoded in rows]
        )
        departures = core.take_in(taken, batch.at, batch.secret)
        return Joined(taken, departures, core.summary.state())

    def _on_time(self, batch: Batch, codes: Codes, begin: Stretch) -> Codes:
        """The codes of rows that don't come too late."""
        encoded = Encoded(codes, {}, np.arange(len(codes.times)), {})
        return self.encoder(batch, begin).without_late(encoded).codes

    def _core(
        self, pieces: Sequence[Decided] = (), turns: Sequence[JoinedTurn] = (), first: int = 0
    ) -> RunCore:
        return RunCore(
            self.schema,
            self.policy,
            Joining(pieces=pieces, turns=turns, first=first),
            self.publishing,
            self.seed,
            by_clock=False,
            with_subject=self.with_subject,
        )


def _moved(chunk: Chunk, by: int) -> Chunk:
    """A chunk whose rows lie further on in the input."""
    bad = [dataclasses.replace(row, row=row.row + by) for row in chunk.bad]
    return dataclasses.replace(chunk, rows=chunk.rows + by, bad=bad)
