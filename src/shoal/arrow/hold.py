"""The payload of rows that aren't decided, in Arrow, by position; forgotten on decision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from shoal.engine.kernels.arrays import Bools, Ints

__all__ = ["ARRIVED_S", "ROW", "Hold"]

# Columns that are held beside the payload. No column of a user can have such a name.
ROW, ARRIVED_S = "\0row", "\0arrived_s"

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
        self._pieces: list[_Piece] = []
        self._next = 0

    def __len__(self) -> int:
        return sum(int(piece.undecided.sum()) for piece in self._pieces)

    def __repr__(self) -> str:
        return f"Hold({len(self)} rows)"

    def put(self, batch: pa.RecordBatch) -> None:
        """Keep the next rows; they get the next positions."""
        if batch.num_rows == 0:
            return
        piece = _Piece(np.arange(self._next, self._next + batch.num_rows), batch)
        last = self._pieces[-1] if self._pieces else None
        if last is not None and len(last.rows) + len(piece.rows) <= SMALL:
            self._pieces[-1] = last.joined(piece)
        else:
            self._pieces.append(piece)
        self._next += batch.num_rows

    def take(self, rows: Ints) -> pa.RecordBatch:
        """Give the payload of decided rows, in their order, and forget it."""
        starts = [piece.rows[0] for piece in self._pieces]
        home = np.searchsorted(starts, rows, side="right") - 1
        pieces, places = [], []
        for i in np.unique(home):
            piece = self._pieces[i]
            places.append(np.flatnonzero(home == i))
            within = np.searchsorted(piece.rows, rows[places[-1]])
            pieces.append(piece.batch.take(pa.array(within)))
            piece.undecided[within] = False
        self._pieces = [piece for piece in self._pieces if piece.undecided.any()]
        if len(pieces) == 1:
            return pieces[0]
        back = np.empty(len(rows), np.int64)
        back[np.concatenate(places)] = np.arange(len(rows))
        return pa.concat_batches(pieces).take(pa.array(back))

    def rest(self) -> tuple[Ints, pa.RecordBatch | None]:
        """The positions and the payload of all that is still held."""
        if not self._pieces:
            return np.empty(0, np.int64), None
        positions = [piece.rows[piece.undecided] for piece in self._pieces]
        batches = [piece.batch.filter(pa.array(piece.undecided)) for piece in self._pieces]
        return np.concatenate(positions), pa.concat_batches(batches)

    def restore(self, upcoming: int, rows: Ints, batch: pa.RecordBatch | None) -> None:
        """Hold what `rest` gave, with ``upcoming`` the position of the next row."""
        self._next = upcoming
        self._pieces = [_Piece(rows, batch)] if batch is not None and len(rows) else []

    @property
    def upcoming(self) -> int:
        """The position that the next row will have."""
        return self._next

    @property
    def oldest(self) -> int:
        """The oldest position that is held, or the next one if none is."""
        if not self._pieces:
            return self._next
        first = self._pieces[0]
        return int(first.rows[first.undecided.argmax()])


class _Piece:
    """Some rows that came together: their positions, their payload, and which aren't decided."""

    __slots__ = ("batch", "rows", "undecided")

    def __init__(self, rows: Ints, batch: Any, undecided: Bools | None = None) -> None:
        self.rows = rows
        self.batch = batch
        self.undecided = np.ones(len(rows), np.bool_) if undecided is None else undecided

    def joined(self, other: _Piece) -> _Piece:
        return _Piece(
            np.concatenate((self.rows, other.rows)),
            pa.concat_batches([self.batch, other.batch]),
            np.concatenate((self.undecided, other.undecided)),
        )
