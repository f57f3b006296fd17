"""One run in the thread of its caller: rows in, tables of public rows out.

It has the encoder, the core and the publisher of a `Run`, and none of its threads, queues and
files.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import pyarrow as pa

from shoal.arrow.labels import Labels
from shoal.arrow.order import Departures
from shoal.arrow.publishing import make_publisher
from shoal.arrow.release import Publisher
from shoal.arrow.z.release import ZPublisher
from shoal.errors import ShoalError
from shoal.io.base import BadRow, Chunk
from shoal.run.clock import Clock
from shoal.run.core import CoreState, RunCore
from shoal.run.encoder import EncodedChunk
from shoal.run.frame_kinds import plain_table
from shoal.run.pipeline import Pipeline

__all__ = ["InlineRun"]


class InlineRun:
    """Encode, decide and label, one call after the other.

    Parameters
    ----------
    pipeline
        The columns, the policy, the anonymizer, and how releases look.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        schema, policy, publish = pipeline.schema, pipeline.policy, pipeline.publish
        policy.check(schema)
        publish.check(policy, schema)
        if not policy.per_value:
            # Refused now, and not when the first rows leave.
            Labels(schema, publish.numeric)
        self._pipeline = pipeline
        #: Whether the delay is measured by the wall clock.
        self.by_wall = policy.delay is not None and policy.delay.by_wall(schema)
        self.core = RunCore(
            schema,
            policy,
            pipeline.anonymizer,
            publish,
            secrets.token_bytes(32) if pipeline.seed is None else pipeline.seed,
            by_clock=self.by_wall,
            with_subject=False,
        )
        self.clock = Clock(pipeline.clock)
        self._encoder = self.core.encoder()
        self._publisher: Publisher | ZPublisher | None = None
        self._seq = 0
        # Not from the seed: anyone who knows that could undo the pseudonyms.
        self._ratchet = secrets.token_bytes(32)

    # -- rows in ---------------------------------------------------------------------------------

    def encode(self, chunks: list[Chunk]) -> tuple[list[EncodedChunk], list[BadRow]]:
        """Return encoded chunks, and the bad rows of chunks that have no others.

        The rows must be taken in next, or be forgotten with `forget`.
        """
        at = self.clock()
        try:
            # A chunk without rows mustn't set the types of the columns.
            encoded = [self._encoder.encode(chunk, at) for chunk in chunks if chunk.batch.num_rows]
        except pa.ArrowException as error:
            # Arrow's messages quote values.
            kind = type(error).__name__
            raise ShoalError(f"rows: a batch can't be used ({kind})") from None
        return encoded, [row for chunk in chunks if not chunk.batch.num_rows for row in chunk.bad]

    def forget(self) -> None:
        """Forget what was encoded and isn't taken in."""
        self._encoder = self.core.encoder()

    def take_in(self, chunks: list[EncodedChunk]) -> list[Departures | None]:
        """Decide about encoded rows; return what leaves."""
        return [
            self.core.take_in(
                chunk, self.clock(), self._new_secret() if self.core.needs_secret(chunk) else b""
            )
            for chunk in chunks
        ]

    def move_to(self, seconds: float) -> None:
        """Set the time of the stream, if it is later than that of the latest row."""
        if seconds > self.core.latest:
            self.core.latest = seconds
            self._encoder = self.core.encoder()

    # -- releases out ----------------------------------------------------------------------------

    def table(self, departures: list[Departures | None]) -> Any:
        """Return the public rows of what leaves, as an Arrow table; None if there are none."""
        batches = []
        for leaving in departures:
            if leaving is not None:
                release, _ = self._publisher_of().release(leaving)
                if release.n_rows:
                    batches.append(release.batch)
        return plain_table(batches, self._publisher_of().schema) if batches else None

    def _publisher_of(self) -> Publisher | ZPublisher:
        if self._publisher is None:
            assert self.core.types is not None
            policy = self._pipeline.policy
            self._publisher = make_publisher(
                self._pipeline.schema, self._pipeline.publish, self.core.types, first=self._seq,
                with_gaps=policy.missing == "maybe", per_value=policy.per_value,
            )  # fmt: skip
        return self._publisher

    # -- snapshots -------------------------------------------------------------------------------

    def snapshot(self) -> CoreState:
        """Return a copy of all that later releases depend on."""
        facts, arrays, batches = self.core.snapshot()
        facts |= {
            "seq": self._seq if self._publisher is None else self._publisher.upcoming,
            "clock": self.clock() if self.by_wall else None,
            "ratchet": self._ratchet.hex(),
        }
        return CoreState(facts, arrays, batches)

    def restore(self, state: CoreState) -> None:
        """Continue from a snapshot of the same pipeline."""
        self.core.restore(state)
        self._encoder = self.core.encoder()
        self._seq, self._publisher = int(state.facts["seq"]), None
        self._ratchet = bytes.fromhex(state.facts["ratchet"])
        if state.facts["clock"] is not None:
            self.clock.resume(state.facts["clock"])

    def _new_secret(self) -> bytes:
        """Return the next secret of pseudonyms.

        They are drawn from a chain, so that a replay after a restore draws the same ones. Each step
        forgets the former: who reads a snapshot can't derive the pseudonyms of earlier periods.
        """
        secret, self._ratchet = (
            hashlib.blake2b(purpose, key=self._ratchet, digest_size=32).digest()
            for purpose in (b"secret", b"next")
        )
        return secret
