"""Hold the payload of undecided rows, in Arrow, by position, and drop it on decision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from shoal.engine.kernels.arrays import Bools, Ints

__all__ = ["ARRIVED_S", "ROW", "Hold"]

# Columns that are held beside the payload. No column of a user can have these names.
ROW, ARRIVED_S = "\0row", "\0arrived_s"

#: Batches up to this size are merged, so that single rows don't become thousands of batches.
SMALL = 1024


class Hold:
    """Keep the payload of rows until they are decided.

    >>> hold = Hold()
    >>> hold.put(pa.record_batch({"ward": ["a", "b", "c"]}))
    >>> hold.take(np.array([2, 0])).to_pydict()
    {'ward': ['c', 'a']}
    >>> hold
    Hold(1 rows)
    """

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._next = 0

    def __len__(self) -> int:
        return sum(int(block.undecided.sum()) for block in self._blocks)

    def __repr__(self) -> str:
        return f"Hold({len(self)} rows)"

    def put(self, batch: pa.RecordBatch) -> None:
        """Add rows; they get the next positions."""
        if batch.num_rows == 0:
            return
        block = _Block(np.arange(self._next, self._next + batch.num_rows), batch)
        last = self._blocks[-1] if self._blocks else None
        if last is not None and len(last.rows) + len(block.rows) <= SMALL:
            self._blocks[-1] = last.joined(block)
        else:
            self._blocks.append(block)
        self._next += batch.num_rows

    def take(self, rows: Ints) -> pa.RecordBatch:
        """Remove decided rows, at least one; return their payload, in the given order."""
        starts = [block.rows[0] for block in self._blocks]
        if rows.min() >= starts[-1]:
            # All are in the last block.
            home, used = None, [len(starts) - 1]
        else:
            home = np.searchsorted(starts, rows, side="right") - 1
            used = np.flatnonzero(np.bincount(home)).tolist()
        batches, places = [], []
        for i in used:
            block = self._blocks[i]
            places.append(np.arange(len(rows)) if home is None else np.flatnonzero(home == i))
            within = block.places(rows[places[-1]])
            batches.append(block.batch.take(pa.array(within)))
            block.undecided[within] = False
        self._blocks = [block for block in self._blocks if block.undecided.any()]
        if len(batches) == 1:
            return batches[0]
        back = np.empty(len(rows), np.int64)
        back[np.concatenate(places)] = np.arange(len(rows))
        return pa.concat_batches(batches).take(pa.array(back))

    def rest(self) -> tuple[Ints, pa.RecordBatch | None]:
        """Return the positions and the payload of all held rows."""
        if not self._blocks:
            return np.empty(0, np.int64), None
        positions = [block.rows[block.undecided] for block in self._blocks]
        batches = [block.batch.filter(pa.array(block.undecided)) for block in self._blocks]
        return np.concatenate(positions), pa.concat_batches(batches)

    def restore(self, upcoming: int, rows: Ints, batch: pa.RecordBatch | None) -> None:
        """Hold what `rest` returned; ``upcoming`` is the position of the next row."""
        self._next = upcoming
        self._blocks = [] if batch is None else [_Block(rows, batch)]

    @property
    def upcoming(self) -> int:
        """The position that the next row will have."""
        return self._next

    @property
    def oldest(self) -> int:
        """The oldest held position, or the next one if none is held."""
        if not self._blocks:
            return self._next
        first = self._blocks[0]
        return int(first.rows[first.undecided.argmax()])


class _Block:
    """Rows with their positions, their payload, and which of them are undecided."""

    __slots__ = ("batch", "is_gapless", "rows", "undecided")

    def __init__(self, rows: Ints, batch: Any, undecided: Bools | None = None) -> None:
        self.rows = rows
        self.batch = batch
        self.undecided = np.ones(len(rows), np.bool_) if undecided is None else undecided
        self.is_gapless = int(rows[-1] - rows[0]) == len(rows) - 1

    def places(self, rows: Ints) -> Ints:
        """Return where rows of this block are in it."""
        return rows - self.rows[0] if self.is_gapless else np.searchsorted(self.rows, rows)

    def joined(self, other: _Block) -> _Block:
        return _Block(
            np.concatenate((self.rows, other.rows)),
            pa.concat_batches([self.batch, other.batch]),
            np.concatenate((self.undecided, other.undecided)),
        )
