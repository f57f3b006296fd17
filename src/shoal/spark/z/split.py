"""Rows split by value, so that each value is counted in one of several shards.

All values below one label at the top of a ladder are in one shard, with all subjects behind them.
A shard can't know the clock of the whole stream, which depends on all earlier rows: it is passed
along with the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.hashing import scattered
from shoal.engine.space import Codes

__all__ = ["Slice", "SplitRows", "shards_of", "split_rows"]

#: Added to keys before they are hashed: shards must not follow the hash of the engines' tables.
SALT = np.uint64(0x5348_4F41_4C5F_5348)


class Slice(NamedTuple):
    """Consecutive rows of a stream: how many there are, and their times.

    Parameters
    ----------
    n_inputs, n_valid
        The number of all rows, and of valid ones.
    latest
        The latest time of a valid row; minus infinity if there is none.
    first
        The time of the first valid row, NaN if there is none.

    >>> Slice(5, 4, 7.0, 6.0).then(Slice(2, 2, 6.5, 6.5))
    Slice(n_inputs=7, n_valid=6, latest=7.0, first=6.0)
    """

    n_inputs: int = 0
    n_valid: int = 0
    latest: float = -np.inf
    first: float = np.nan

    def then(self, other: Slice) -> Slice:
        """Return this slice and the next one as one."""
        return Slice(
            self.n_inputs + other.n_inputs,
            self.n_valid + other.n_valid,
            max(self.latest, other.latest),
            self.first if self.n_valid else other.first,
        )


class SplitRows(NamedTuple):
    """Parts of rows, in the order of the rows: one part for each shard that has values of a row.

    ``rows`` are positions among the valid rows, ``clock`` is that of the whole stream, and ``keys``
    are those of `Codes` with 0 for values in other shards.
    """

    shards: Ints
    rows: Ints
    subjects: Ints
    clock: Floats
    keys: Ints

    def __repr__(self) -> str:
        return f"SplitRows({len(self.rows)} parts)"

    @staticmethod
    def schema(n_keys: int) -> pa.Schema:
        """The columns of parts as a batch."""
        keys = [(f"key{i}", pa.int64()) for i in range(n_keys)]
        plain = [("shard", pa.int32()), ("row", pa.int64()), ("subject", pa.int64())]
        return pa.schema([*plain, ("clock", pa.float64()), *keys])

    def to_batch(self) -> pa.RecordBatch:
        """Convert to a batch."""
        schema = self.schema(self.keys.shape[1])
        columns = (self.shards, self.rows, self.subjects, self.clock, *self.keys.T)
        return pa.record_batch(
            [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
        )

    @classmethod
    def of_batch(cls, batch: pa.RecordBatch) -> SplitRows:
        """Convert from a batch; arrays are writable and contiguous."""
        shards, rows, subjects, clock, *columns = (np.array(column) for column in batch.columns)
        keys = np.ascontiguousarray(np.column_stack(columns))
        return cls(shards.astype(np.int64), rows, subjects, clock, keys)

    def of_shard(self, shard: int) -> SplitRows:
        """Return the parts of one shard."""
        here = self.shards == shard
        return SplitRows(*(column[here] for column in self))


def shards_of(keys: Ints, n_levels: Sequence[int], n_shards: int) -> Ints:
    """Return the shard of each value, by row and attribute; -1: the value is missing.

    A key is already a keyed hash of the label, its attribute and its level.

    >>> keys = np.array([[11, 5, 21], [12, 5, 21], [0, 0, 22]])  # a ladder of two, and one of one
    >>> homes = shards_of(keys, [2, 1], n_shards=1000)
    >>> homes[0].tolist() == homes[1].tolist(), int(homes[2, 0])
    (True, -1)
    """
    tops = keys[:, np.cumsum(n_levels) - 1]
    homes = scattered(tops.astype(np.uint64) + SALT) % np.uint64(n_shards)
    return np.where(tops == 0, -1, homes.astype(np.int64))


def split_rows(
    codes: Codes, clock: Floats, first: int, n_levels: Sequence[int], n_shards: int
) -> SplitRows:
    """Split rows, the first of which is valid row ``first`` of the stream.

    A row whose values are all missing has no part.
    """
    homes = shards_of(codes.keys, n_levels, n_shards)
    of_row, of_value = np.nonzero(homes >= 0)
    parts, part_of = np.unique(of_row * n_shards + homes[of_row, of_value], return_inverse=True)
    row_of, shards = np.divmod(parts, n_shards)
    keys = np.zeros((len(parts), codes.keys.shape[1]), np.int64)
    begin = 0
    for attribute, n in enumerate(n_levels):
        here = of_value == attribute
        columns = slice(begin, begin + n)
        keys[part_of.reshape(-1)[here], columns] = codes.keys[of_row[here], columns]
        begin += n
    return SplitRows(shards, first + row_of, codes.subjects[row_of], clock[row_of], keys)
