"""Rows taken apart into cells, so that each value is counted in one of several shards.

All cells below one label of the top of a ladder are in one shard: whoever stands behind a rung is
found there, and nobody else. What a shard can't know is told: the clock of the whole stream, which
follows from all rows before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.hashing import scattered
from shoal.engine.space import Codes

__all__ = ["SplitRows", "Stretch", "apart", "shards_of"]

#: Added to keys before they are scattered: shards must not follow what tables are hashed by.
ASIDE = np.uint64(0x5348_4F41_4C5F_5348)


class Stretch(NamedTuple):
    """Some consecutive rows of a stream: how many they are, and when they came.

    Parameters
    ----------
    n_inputs, n_valid
        All rows, and those that can be used.
    latest
        The latest time of a valid row; minus infinity if there is none.
    first
        The time of the first valid row, NaN if there is none.

    >>> Stretch(5, 4, 7.0, 6.0).then(Stretch(2, 2, 6.5, 6.5))
    Stretch(n_inputs=7, n_valid=6, latest=7.0, first=6.0)
    """

    n_inputs: int = 0
    n_valid: int = 0
    latest: float = -np.inf
    first: float = np.nan

    def then(self, other: Stretch) -> Stretch:
        """This stretch and the one after it."""
        return Stretch(
            self.n_inputs + other.n_inputs,
            self.n_valid + other.n_valid,
            max(self.latest, other.latest),
            self.first if self.n_valid else other.first,
        )


class SplitRows(NamedTuple):
    """SplitRows of rows, in their order: of each row one part for each shard that has cells of it.

    ``rows`` are positions among the valid rows, ``clock`` is that of the whole stream, and
    ``cells`` are those of `Codes` with 0 for what is in other shards.
    """

    shards: Ints
    rows: Ints
    subjects: Ints
    clock: Floats
    cells: Ints

    def __repr__(self) -> str:
        return f"SplitRows({len(self.rows)} parts)"

    @staticmethod
    def schema(n_keys: int) -> pa.Schema:
        """The columns of parts as a batch."""
        keys = [(f"key{i}", pa.int64()) for i in range(n_keys)]
        plain = [("shard", pa.int32()), ("row", pa.int64()), ("subject", pa.int64())]
        return pa.schema([*plain, ("clock", pa.float64()), *keys])

    def to_batch(self) -> pa.RecordBatch:
        """As a batch."""
        schema = self.schema(self.cells.shape[1])
        columns = (self.shards, self.rows, self.subjects, self.clock, *self.cells.T)
        return pa.record_batch(
            [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
        )

    @classmethod
    def of_batch(cls, batch: pa.RecordBatch) -> SplitRows:
        """From a batch; arrays are writable and contiguous."""
        shards, rows, subjects, clock, *keys = (np.array(column) for column in batch.columns)
        cells = np.column_stack(keys) if len(rows) else np.empty((0, len(keys)), np.int64)
        return cls(shards.astype(np.int64), rows, subjects, clock, np.ascontiguousarray(cells))

    def of_shard(self, shard: int) -> SplitRows:
        """Those of one shard."""
        here = self.shards == shard
        return SplitRows(*(column[here] for column in self))


def shards_of(cells: Ints, rungs: Sequence[int], n_shards: int) -> Ints:
    """The shard of each cell, by row and attribute; -1: the value is missing.

    A key is a keyed hash of the label, its attribute and its level already.

    >>> cells = np.array([[11, 5, 21], [12, 5, 21], [0, 0, 22]])  # a ladder of two, and one of one
    >>> homes = shards_of(cells, [2, 1], n_shards=1000)
    >>> homes[0].tolist() == homes[1].tolist(), int(homes[2, 0])
    (True, -1)
    """
    tops = cells[:, np.cumsum(rungs) - 1]
    homes = scattered(tops.astype(np.uint64) + ASIDE) % np.uint64(n_shards)
    return np.where(tops == 0, -1, homes.astype(np.int64))


def apart(
    codes: Codes, clock: Floats, first: int, rungs: Sequence[int], n_shards: int
) -> SplitRows:
    """Take rows apart, the first of which is valid row ``first`` of the stream.

    A row of which all values are missing has no part.
    """
    homes = shards_of(codes.keys, rungs, n_shards)
    of_row, of_cell = np.nonzero(homes >= 0)
    lines, places = np.unique(of_row * n_shards + homes[of_row, of_cell], return_inverse=True)
    of_line, shards = np.divmod(lines, n_shards)
    cells = np.zeros((len(lines), codes.keys.shape[1]), np.int64)
    begin = 0
    for attribute, n_rungs in enumerate(rungs):
        here = of_cell == attribute
        keys = slice(begin, begin + n_rungs)
        cells[places.reshape(-1)[here], keys] = codes.keys[of_row[here], keys]
        begin += n_rungs
    return SplitRows(shards, first + of_line, codes.subjects[of_line], clock[of_line], cells)
