"""The payload of rows that aren't decided, in Arrow, by position; forgotten on decision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from shoal.kernels.arrays import Bools, Ints

__all__ = ["Hold"]

#: Batches smaller than this are put together, so that a trickle of rows doesn't leave thousands.
SMALL = 1024


class Hold:
    """Keep what will be published beside the boxes until a row is decided.

    >>> hold = Hold()
    >>> hold.put(pa.record_batch({"ward": ["a", "b", "c"]}))
    >>> hold.take(np.array([2, 0])).to_pydict()
    {'ward': ['c', 'a']}
    >>> hold
    Hold(1 rows)
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._batches: list[Any] = []
        self._undecided: list[Bools] = []
        self._next = 0

    def __len__(self) -> int:
        return sum(int(mask.sum()) for mask in self._undecided)

    def __repr__(self) -> str:
        return f"Hold({len(self)} rows)"

    def put(self, batch: pa.RecordBatch) -> None:
        """Keep the next rows; they get the next positions."""
        if batch.num_rows == 0:
            return
        mask = np.ones(batch.num_rows, np.bool_)
        if self._batches and self._batches[-1].num_rows + batch.num_rows <= SMALL:
            self._batches[-1] = pa.concat_batches([self._batches[-1], batch])
            self._undecided[-1] = np.concatenate((self._undecided[-1], mask))
        else:
            self._starts.append(self._next)
            self._batches.append(batch)
            self._undecided.append(mask)
        self._next += batch.num_rows

    def take(self, rows: Ints) -> pa.RecordBatch:
        """Give the payload of decided rows, in their order, and forget it."""
        home = np.searchsorted(self._starts, rows, side="right") - 1
        pieces, places = [], []
        for i in np.unique(home):
            places.append(np.flatnonzero(home == i))
            within = rows[places[-1]] - self._starts[i]
            pieces.append(self._batches[i].take(pa.array(within)))
            self._undecided[i][within] = False
        self._forget()
        if len(pieces) == 1:
            return pieces[0]
        back = np.empty(len(rows), np.int64)
        back[np.concatenate(places)] = np.arange(len(rows))
        return pa.concat_batches(pieces).take(pa.array(back))

    def rest(self) -> tuple[Ints, pa.RecordBatch | None]:
        """The positions and the payload of all that is still held."""
        positions = [
            start + np.flatnonzero(mask)
            for start, mask in zip(self._starts, self._undecided, strict=True)
        ]
        batches = [
            batch.filter(pa.array(mask))
            for batch, mask in zip(self._batches, self._undecided, strict=True)
        ]
        if not batches:
            return np.empty(0, np.int64), None
        return np.concatenate(positions), pa.concat_batches(batches)

    @property
    def oldest(self) -> int:
        """The oldest position that is held, or the next one if none is."""
        if not self._starts:
            return self._next
        return self._starts[0] + int(self._undecided[0].argmax())

    def _forget(self) -> None:
        alive = [i for i, mask in enumerate(self._undecided) if mask.any()]
        if len(alive) < len(self._starts):
            self._starts = [self._starts[i] for i in alive]
            self._batches = [self._batches[i] for i in alive]
            self._undecided = [self._undecided[i] for i in alive]
