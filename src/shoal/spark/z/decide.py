"""One of several shards of z-anonymity: it counts and decides its own values, and no others.

Its engine is that of the job, and decides as if it saw all rows: a part of a row carries the clock
of the whole stream, and no decision depends on values of other shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.engine.decisions import HIDDEN, MISSING
from shoal.engine.kernels.arrays import Any1, Bools, Ints
from shoal.engine.space import Codes
from shoal.engine.z.base import ZEngine
from shoal.errors import PromiseError
from shoal.spark.z.split import SplitRows
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["Decided", "ZShard"]


class Decided(NamedTuple):
    """Decisions about parts of rows: for each attribute the level, and how many are behind it.

    ``rows`` are positions among the valid rows; a value of another shard is missing.
    """

    rows: Ints
    levels: Ints
    n_behind: Ints

    def __repr__(self) -> str:
        return f"Decided({len(self.rows)} parts)"

    @staticmethod
    def schema(n_attributes: int) -> pa.Schema:
        """The columns of decided parts as a batch."""
        levels = [(f"level{i}", pa.int64()) for i in range(n_attributes)]
        n_behind = [(f"crowd{i}", pa.int64()) for i in range(n_attributes)]
        return pa.schema([("row", pa.int64()), *levels, *n_behind])

    def to_batch(self) -> pa.RecordBatch:
        """Convert to a batch."""
        columns = [self.rows, *self.levels.T, *self.n_behind.T]
        return pa.record_batch(
            [pa.array(column) for column in columns], schema=self.schema(self.levels.shape[1])
        )

    @classmethod
    def of_batch(cls, batch: pa.RecordBatch) -> Decided:
        """Convert from a batch."""
        rows, *rest = (np.array(column) for column in batch.columns)
        both = np.array(rest, np.int64).reshape(2, len(rest) // 2, len(rows))
        return cls(rows, both[0].T, both[1].T)

    @classmethod
    def joined(cls, pieces: Iterable[Decided], first: int, there: Bools) -> Decided:
        """Join the parts of rows.

        ``there`` says which values of each row, from row ``first`` on, aren't missing.

        Raises
        ------
        PromiseError
            If a value wasn't decided exactly once.
        """
        levels = np.where(there, HIDDEN, MISSING).astype(np.int64)
        n_behind, n_times = np.zeros_like(levels), np.zeros(levels.size, np.int64)
        n_unknown = 0
        for piece in pieces:
            of_part, of_cell = np.nonzero(piece.levels != MISSING)
            of_row = piece.rows[of_part] - first
            known = (of_row >= 0) & (of_row < len(levels))
            n_unknown += int(np.count_nonzero(~known))
            of_part, of_cell, of_row = of_part[known], of_cell[known], of_row[known]
            levels[of_row, of_cell] = piece.levels[of_part, of_cell]
            n_behind[of_row, of_cell] = piece.n_behind[of_part, of_cell]
            cell = of_row * levels.shape[1] + of_cell
            n_times += np.bincount(cell, minlength=levels.size)
        if wrong := n_unknown + int(np.count_nonzero(n_times != there.reshape(-1))):
            raise PromiseError(
                f"{wrong} values were not decided by one shard each; nothing of their rows was "
                "published. This is a bug: please report it."
            )
        return cls(np.arange(first, first + len(levels)), levels, n_behind)


class ZShard:
    """Count and decide the values of one shard.

    Parameters
    ----------
    schema, policy, anonymizer, seed
        Those of the job.
    """

    def __init__(
        self, schema: Schema, policy: Policy, anonymizer: ZAnonymizer, seed: bytes
    ) -> None:
        engine = anonymizer.start(schema, policy, seed=seed)
        assert isinstance(engine, ZEngine)
        engine.be_a_shard()
        self._engine = engine

    def __repr__(self) -> str:
        return f"ZShard({self.n_exposures} exposures)"

    @property
    def n_exposures(self) -> int:
        """How many different exposures (a subject, a value) are in the window of this shard."""
        return self._engine.n_exposures

    def decide(self, parts: SplitRows) -> Decided:
        """Decide parts of rows, which are in the order of their rows."""
        n = len(parts.rows)
        codes = Codes(
            np.empty((n, 0)), parts.subjects, np.empty((n, 0), np.int64), parts.clock, parts.keys
        )
        decisions = self._engine.push(codes)
        return Decided(parts.rows, decisions.levels, decisions.n_behind)

    def forget(self, clock: float) -> None:
        """Drop exposures that have left the window at a time, as a row at that time would."""
        keys = np.zeros((1, sum(self._engine.space.n_levels)), np.int64)
        one = np.zeros(1, np.int64)
        self.decide(SplitRows(one, one, one, np.array([clock]), keys))

    def shown(self, z: int) -> tuple[Ints, Ints]:
        """Return the subjects in the window, and a number for what each would show under a z."""
        return self._engine.shown(z)

    def follow(self, z: int) -> None:
        """Use another z from now on."""
        self._engine.follow(z)

    def snapshot(self) -> dict[str, Any1]:
        """Return a copy of all that later decisions depend on."""
        return self._engine.snapshot()

    def restore(self, arrays: Mapping[str, Any1]) -> None:
        """Restore a snapshot of a shard of the same job."""
        self._engine.restore(arrays)
