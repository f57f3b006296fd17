"""Rows as they come in: encoded, with what can't be used set apart."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrow.codec import Codec, Encoded, words
from shoal.engine.kernels.arrays import Bools, Ints
from shoal.engine.space import Codes
from shoal.io.base import BadRow, Chunk, Position, Span
from shoal.spec.schema import Schema

__all__ = ["EncodedChunk", "Intake"]

LATE = "it comes later than the allowed lateness"
AHEAD = "it comes from the future: its time lies further ahead than is allowed"


class EncodedChunk(NamedTuple):
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
        return f"EncodedChunk({len(self.inputs)} rows, {len(self.bad)} bad)"


class Intake:
    """Encode chunks, and set apart what comes too late or from the future.

    Parameters
    ----------
    codec, schema
        What encodes rows, and their columns.
    lateness
        By how many seconds a row's time may lie behind the latest one before it; None: any.
    ahead
        By how many seconds a row's time may lie ahead of when its chunk arrived; None: any.
    """

    def __init__(
        self, codec: Codec, schema: Schema, lateness: float | None, ahead: float | None
    ) -> None:
        self._codec, self._schema = codec, schema
        self._lateness, self._ahead = lateness, ahead
        #: The latest time that a row has had.
        self.latest = -np.inf

    def take(self, chunk: Chunk, at: float) -> EncodedChunk:
        """Encode a chunk that arrived at some time."""
        return self.sort_out(chunk, self.encode(chunk, at), at)

    def encode(self, chunk: Chunk, at: float) -> Encoded:
        """Encode a chunk, without the rows from the future."""
        encoded = self._codec.encode(chunk.batch)
        if self._ahead is None:
            return encoded
        # First of all: such a time must not become the latest, or every row after it is late.
        return _without(encoded, encoded.codes.times > at + self._ahead, AHEAD)

    def sort_out(self, chunk: Chunk, encoded: Encoded, at: float) -> EncodedChunk:
        """Set apart the bad rows of an encoded chunk, and those that are too late."""
        encoded = self.without_late(encoded)
        bad = list(chunk.bad)
        subjects: list[Any] = [None] * len(bad)
        if encoded.reasons:
            bad += _bad_rows(chunk.batch, chunk.rows, encoded.reasons)
            subjects += self._subjects_of(chunk.batch, list(encoded.reasons))
        order = sorted(range(len(bad)), key=lambda i: bad[i].row)
        return EncodedChunk(
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

    def without_late(self, encoded: Encoded) -> Encoded:
        """Drop the rows whose time lies too far behind the latest one before them."""
        times = encoded.codes.times
        if self._lateness is None or not len(times):
            return encoded
        latest = np.maximum.accumulate(np.append(self.latest, times))
        self.latest = float(latest[-1])
        return _without(encoded, times < latest[:-1] - self._lateness, LATE)

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
            codes.keys[right] if len(codes.keys) else codes.keys,
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
