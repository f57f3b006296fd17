"""What a shard must know of a job."""

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


def own_code(anonymizer: Anonymizer) -> str:
    """Return a digest of the code that decides on this machine.

    Rows are numbered by the totals of the summary, so it is a part.
    """
    algorithm = type(anonymizer).__module__
    return decision_digest("shoal.spark.driver", "shoal.metrics.summary", algorithm)


@dataclass(frozen=True)
class ShardJob:
    """All that a shard must know of a job; it travels to wherever the shard runs.

    Parameters
    ----------
    schema, policy, anonymizer, publish
        The columns, the promise, what keeps it, and how a release looks.
    columns
        The Arrow schema of the rows.
    folder, job, seal
        Where the state is, the digests it depends on, and where the key of its seal is.
    n_shards
        How many shards there are.
    quarantine
        The folder for rows that can't be used; None: they end the job.
    traced
        Whether lines for a trace are written.
    order
        The columns of the order of rows, where somebody says that they are different in every row:
        it is looked whether they are.
    code
        A digest of the code that decides, as the driver has it; empty: it isn't looked at.
    """

    schema: Schema
    policy: Policy
    anonymizer: Anonymizer
    publish: Publish
    columns: pa.Schema
    folder: Path
    job: Mapping[str, str] = field(repr=False)
    seal: str | None = field(repr=False)
    n_shards: int
    quarantine: Path | None
    traced: bool
    order: tuple[str, ...] = ()
    code: str = ""

    @property
    def by_wall(self) -> bool:
        """Whether a clock, and not the stream, tells when rows are due."""
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
        """A new core, whose types are bound."""
        # Every shard publishes in the same types, whatever its first row is like.
        return RunCore(
            self.schema, self.policy, self.anonymizer, self.publish, seed,
            by_clock=self.by_wall, with_subject=self.traced, types=self.types,
        )  # fmt: skip

    def codec(self) -> Codec:
        """Return a codec for values alone: its key is no secret."""
        return codec_for(
            self.schema, self.policy, self.publish, key=bytes(8), with_subject=self.traced
        )

    def publisher(self) -> Publisher | ZPublisher:
        """What makes releases."""
        return make_publisher(
            self.schema, self.publish, self.types,
            with_gaps=self.policy.missing == "maybe", per_value=self.policy.per_value,
        )  # fmt: skip

    def check_code(self) -> None:
        """Refuse to decide by other code than the driver has, here where this runs.

        Raises
        ------
        CheckpointError
            If it is another version: a repetition on another machine might decide otherwise.
        """
        if self.code and self.code != own_code(self.anonymizer):
            raise CheckpointError(
                "this machine has another version of Shoal than the driver, and might decide "
                "otherwise about the same rows. Install the same version on all machines."
            )

    def open_seal(self) -> Seal | None:
        """The seal, whose key is looked for where this runs: it doesn't travel."""
        return None if self.seal is None else Seal.from_spec(self.seal)
