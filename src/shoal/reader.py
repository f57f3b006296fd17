"""The reading thread of a run: chunks of the source, encoded, ahead of the thread that decides."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.codec import Codec, Encoded, words
from shoal.errors import ShoalError
from shoal.io.base import BadRow, Chunk, Position, Replayable, Source, Span
from shoal.kernels.arrays import Bools, Ints
from shoal.schema import Schema
from shoal.space import Codes

__all__ = ["Reader", "Taken"]

#: How many batches may wait to be decided.
QUEUE = 4
#: How often, in seconds, a waiting thread looks whether it should stop.
LOOK = 0.1
LATE = "it comes later than the allowed lateness"
AHEAD = "it comes from the future: its time lies further ahead than is allowed"


class Taken(NamedTuple):
    """A chunk, encoded: good rows with their positions in the input, bad rows with reasons.

    ``at`` is when it arrived; ``n_rows`` and ``types`` are what the codec knew after it; ``spans``
    and ``position`` are those of the chunk.
    """

    encoded: Encoded
    inputs: Ints
    bad: list[BadRow]
    bad_subjects: list[Any]
    types: pa.Schema
    n_rows: int
    at: float
    spans: tuple[Span, ...]
    position: Position | None

    def __repr__(self) -> str:
        return f"Taken({len(self.inputs)} rows, {len(self.bad)} bad)"


class Reader:
    """Read and encode in a thread of its own.

    Parameters
    ----------
    source, codec, schema
        What is read, what encodes it, and its columns.
    clock
        Tells when a chunk arrived.
    lateness
        By how many seconds a row's time may lie behind the latest one before it; None: any.
    ahead
        By how many seconds a row's time may lie ahead of when its chunk arrived; None: any.
    """

    def __init__(
        self,
        source: Source,
        codec: Codec,
        schema: Schema,
        clock: Callable[[], float],
        lateness: float | None,
        ahead: float | None,
    ) -> None:
        self._source, self._codec, self._schema = source, codec, schema
        self._clock, self._lateness, self._ahead = clock, lateness, ahead
        #: The latest time that a row has had.
        self.latest = -np.inf
        self._queue: queue.Queue[Taken | BaseException | None] = queue.Queue(QUEUE)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, name="shoal-reader", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; a source that can be told is told. May be called by a signal."""
        self._stopped.set()
        if isinstance(self._source, Replayable):
            self._source.stop()

    def get(self, timeout: float) -> Taken | BaseException | None:
        """The next chunk; None at the end, or the error that reading ended with.

        Raises
        ------
        queue.Empty
            If there is none in time.
        """
        return self._queue.get(timeout=timeout)

    def again(self, source: Replayable, spans: Sequence[Span], at: float) -> Taken:
        """Take once more what was taken before; before `start` only."""
        return self._taken(source.replay(spans), at)

    @property
    def source(self) -> Source:
        """What is read."""
        return self._source

    def _read(self) -> None:
        try:
            for chunk in self._source:
                if not self._offer(self._taken(chunk, self._clock())):
                    return
            self._offer(None)
        except pa.ArrowException as error:
            # Arrow's messages quote values.
            kind = type(error).__name__
            self._offer(ShoalError(f"{self._source.describe()}: a batch can't be used ({kind})"))
        except BaseException as error:
            self._offer(error)

    def _offer(self, item: Taken | BaseException | None) -> bool:
        """Put something in the queue unless the run is being stopped."""
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=LOOK)
                return True
            except queue.Full:
                continue
        return False

    def _taken(self, chunk: Chunk, at: float) -> Taken:
        encoded = self._codec.encode(chunk.batch)
        if self._ahead is not None:
            # First of all: such a time must not become the latest, or every row after it is late.
            encoded = _without(encoded, encoded.codes.times > at + self._ahead, AHEAD)
        if self._lateness is not None:
            encoded = self._without_late(encoded, self._lateness)
        bad = list(chunk.bad)
        subjects: list[Any] = [None] * len(bad)
        if encoded.reasons:
            bad += _bad_rows(chunk.batch, chunk.rows, encoded.reasons)
            subjects += self._subjects_of(chunk.batch, list(encoded.reasons))
        order = sorted(range(len(bad)), key=lambda i: bad[i].row)
        return Taken(
            encoded,
            chunk.rows[encoded.good],
            [bad[i] for i in order],
            [subjects[i] for i in order],
            self._codec.types,
            self._codec.n_rows,
            at,
            chunk.spans,
            chunk.position,
        )

    def _without_late(self, encoded: Encoded, lateness: float) -> Encoded:
        """Set apart the rows that are too far behind the latest time."""
        times = encoded.codes.times
        if not len(times):
            return encoded
        latest = np.maximum.accumulate(np.append(self.latest, times))
        self.latest = float(latest[-1])
        return _without(encoded, times < latest[:-1] - lateness, LATE)

    def _subjects_of(self, batch: pa.RecordBatch, rows: list[int]) -> list[Any]:
        name = self._schema.subject
        if name is None:
            return [None] * len(rows)
        subjects: list[Any] = words(batch.column(name).take(pa.array(rows))).to_pylist()
        return subjects


def _without(encoded: Encoded, wrong: Bools, reason: str) -> Encoded:
    if not wrong.any():
        return encoded
    right = np.flatnonzero(~wrong)
    codes = encoded.codes
    reasons = encoded.reasons | dict.fromkeys(encoded.good[wrong].tolist(), reason)
    return Encoded(
        Codes(
            codes.values[right],
            codes.subjects[right],
            codes.sensitive[right],
            codes.times[right],
            codes.cells[right] if len(codes.cells) else codes.cells,
        ),
        {name: column.take(pa.array(right)) for name, column in encoded.payload.items()},
        encoded.good[right],
        dict(sorted(reasons.items())),
    )


def _bad_rows(batch: pa.RecordBatch, rows: Ints, reasons: dict[int, str]) -> list[BadRow]:
    """Rows that the codec refused, with their values as JSON for the quarantine file."""
    values = batch.take(pa.array(list(reasons))).to_pylist()
    return [
        BadRow(int(rows[i]), reason, json.dumps(value, default=str, ensure_ascii=False).encode())
        for (i, reason), value in zip(reasons.items(), values, strict=True)
    ]
