"""One shard of a stream whose values are counted in several: it decides its cells, and no others.

Its engine is that of the recipe, and decides as if it saw all rows: a part has the clock of the
whole stream, and nothing that another shard has matters for its cells.
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

__all__ = ["CellShard", "Decided"]


class Decided(NamedTuple):
    """What was decided about parts of rows: of each attribute its rung, and those behind it.

    ``rows`` are positions among the valid rows; a cell of another shard is missing.
    """

    rows: Ints
    levels: Ints
    crowds: Ints

    def __repr__(self) -> str:
        return f"Decided({len(self.rows)} parts)"

    @staticmethod
    def schema(n_attributes: int) -> pa.Schema:
        """The columns of decided parts as a batch."""
        levels = [(f"level{i}", pa.int64()) for i in range(n_attributes)]
        crowds = [(f"crowd{i}", pa.int64()) for i in range(n_attributes)]
        return pa.schema([("row", pa.int64()), *levels, *crowds])

    def to_batch(self) -> pa.RecordBatch:
        """As a batch."""
        columns = [self.rows, *self.levels.T, *self.crowds.T]
        return pa.record_batch(
            [pa.array(column) for column in columns], schema=self.schema(self.levels.shape[1])
        )

    @classmethod
    def of_batch(cls, batch: pa.RecordBatch) -> Decided:
        """From a batch."""
        rows, *rest = (np.array(column) for column in batch.columns)
        both = np.array(rest, np.int64).reshape(2, len(rest) // 2, len(rows))
        return cls(rows, both[0].T, both[1].T)

    @classmethod
    def joined(cls, pieces: Iterable[Decided], first: int, there: Bools) -> Decided:
        """Put the parts of rows together again.

        ``there`` tells which cells of each row, from row ``first`` on, aren't missing.

        Raises
        ------
        PromiseError
            If a cell wasn't decided once: nothing is known about it then.
        """
        levels = np.where(there, HIDDEN, MISSING).astype(np.int64)
        crowds, n_times = np.zeros_like(levels), np.zeros(levels.size, np.int64)
        n_strange = 0
        for piece in pieces:
            of_part, of_cell = np.nonzero(piece.levels != MISSING)
            of_row = piece.rows[of_part] - first
            known = (of_row >= 0) & (of_row < len(levels))
            n_strange += int(np.count_nonzero(~known))
            of_part, of_cell, of_row = of_part[known], of_cell[known], of_row[known]
            levels[of_row, of_cell] = piece.levels[of_part, of_cell]
            crowds[of_row, of_cell] = piece.crowds[of_part, of_cell]
            cell = of_row * levels.shape[1] + of_cell
            n_times += np.bincount(cell, minlength=levels.size)
        if wrong := n_strange + int(np.count_nonzero(n_times != there.reshape(-1))):
            raise PromiseError(
                f"{wrong} values were not decided by one shard each; nothing of their rows was "
                "published. This is a bug: please report it."
            )
        return cls(np.arange(first, first + len(levels)), levels, crowds)


class CellShard:
    """Count and decide the cells of one shard.

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
        return f"CellShard({self.n_exposures} exposures)"

    @property
    def n_exposures(self) -> int:
        """How many different exposures (a subject, a value) are in the window of this shard."""
        return self._engine.n_exposures

    def decide(self, parts: SplitRows) -> Decided:
        """Decide parts of rows, which come in the order of their rows."""
        n = len(parts.rows)
        codes = Codes(
            np.empty((n, 0)), parts.subjects, np.empty((n, 0), np.int64), parts.clock, parts.cells
        )
        decisions = self._engine.push(codes)
        return Decided(parts.rows, decisions.levels, decisions.crowds)

    def forget(self, clock: float) -> None:
        """Let go of what is in the window no more at some time, as a row then would."""
        nothing = np.zeros((1, sum(self._engine.space.rungs)), np.int64)
        one = np.zeros(1, np.int64)
        self.decide(SplitRows(one, one, one, np.array([clock]), nothing))

    def shown(self, z: int) -> tuple[Ints, Ints]:
        """Who is in the window, and a number for what would be published of each under some z."""
        return self._engine.shown(z)

    def follow(self, z: int) -> None:
        """Decide by another z from now on."""
        self._engine.follow(z)

    def snapshot(self) -> dict[str, Any1]:
        """All that later decisions depend on, as a copy."""
        return self._engine.snapshot()

    def restore(self, arrays: Mapping[str, Any1]) -> None:
        """Go back to a snapshot of a shard of the same job."""
        self._engine.restore(arrays)
