"""The parts of a job that a shard needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from shoal.arrow.codec import Codec
from shoal.arrow.publishing import make_publisher
from shoal.arrow.release import Publish, Publisher
from shoal.arrow.z.release import ZPublisher
from shoal.engine.base import Anonymizer
from shoal.errors import CheckpointError
from shoal.run.core import RunCore
from shoal.run.decision_code import decision_digest
from shoal.run.encoder import codec_for
from shoal.run.state.seal import Seal
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["ShardJob", "own_code"]

#: What makes rows of files and of messages for Spark.
READERS = ("shoal.io.files.spark", "shoal.io.kafka.spark")


def own_code(anonymizer: Anonymizer) -> str:
    """Return a digest of the code that decides on this machine.

    Rows are numbered by the totals of the summary, so it is a part. A machine that decides doesn't
    know where rows come from, so all that reads them is.
    """
    algorithm = type(anonymizer).__module__
    return decision_digest("shoal.spark.driver", "shoal.metrics.summary", algorithm, *READERS)


@dataclass(frozen=True)
class ShardJob:
    """The parts of a job that a shard needs; it is sent to where the shard runs.

    Parameters
    ----------
    schema, policy, anonymizer, publish
        The columns, the promise, the algorithm, and the form of a release.
    columns
        The Arrow schema of the rows.
    folder, digests, seal
        Where the state is, the digests of the job that it depends on, where the key of its seal is.
    n_shards
        How many shards there are.
    quarantine
        The folder for bad rows; None: they end the job.
    traced
        Whether lines for a trace are written.
    order
        The columns of the order of rows, where a user says that they are different in every row:
        this is checked.
    code
        A digest of the driver's code that decides; empty: it isn't checked.
    """

    schema: Schema
    policy: Policy
    anonymizer: Anonymizer
    publish: Publish
    columns: pa.Schema
    folder: Path
    digests: Mapping[str, str] = field(repr=False)
    seal: str | None = field(repr=False)
    n_shards: int
    quarantine: Path | None
    traced: bool
    order: tuple[str, ...] = ()
    code: str = ""

    @property
    def by_wall(self) -> bool:
        """Whether rows are due by the clock and not by the times in the stream."""
        return self.policy.delay is not None and self.policy.delay.by_wall(self.schema)

    @cached_property
    def types(self) -> pa.Schema:
        """The types of the payload, which follow from those of the columns."""
        codec = self.codec()
        codec.encode(
            pa.RecordBatch.from_pylist([], schema=self.columns).select(self.schema.columns)
        )
        return codec.types

    @property
    def public(self) -> pa.Schema:
        """The columns of the output."""
        return self.publisher().schema

    def core(self, seed: bytes) -> RunCore:
        """Return a new core, with the types of the payload fixed."""
        # Every shard publishes in the same types, whatever its first row has. Other shards run on
        # this machine, too.
        return RunCore(
            self.schema, self.policy, self.anonymizer.beside_others(), self.publish, seed,
            by_clock=self.by_wall, with_subject=self.traced, types=self.types,
        )  # fmt: skip

    def codec(self) -> Codec:
        """Return a codec for values alone: its key is no secret."""
        return codec_for(
            self.schema, self.policy, self.publish, key=bytes(8), with_subject=self.traced
        )

    def publisher(self) -> Publisher | ZPublisher:
        """Return a new publisher, which makes releases."""
        return make_publisher(
            self.schema, self.publish, self.types,
            with_gaps=self.policy.missing == "maybe", per_value=self.policy.per_value,
        )  # fmt: skip

    def check_code(self) -> None:
        """Refuse to decide with other code than the driver's.

        Raises
        ------
        CheckpointError
            If this process has another version: a repetition elsewhere might decide differently.
        """
        if self.code and self.code != own_code(self.anonymizer):
            raise CheckpointError(
                "this machine has another version of Shoal than the driver, and might decide "
                "differently about the same rows. Install the same version on all machines."
            )

    def open_seal(self) -> Seal | None:
        """Open the seal; its key is read on this machine, and is never sent."""
        return None if self.seal is None else Seal.from_spec(self.seal)
