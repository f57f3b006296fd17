"""Encode chunks of the source, and set apart the rows that can't be used."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrow.codec import Codec, Encoded, words
from shoal.arrow.columns import Complain
from shoal.arrow.release import Publish
from shoal.engine.kernels.arrays import Bools, Ints
from shoal.engine.space import Codes
from shoal.io.base import BadRow, Chunk, Position, Span
from shoal.io.readable import python_values
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["ChunkEncoder", "EncodedChunk", "codec_for", "codec_key"]

LATE = "it comes later than the allowed lateness"
AHEAD = "it comes from the future: its time lies further ahead than is allowed"


class EncodedChunk(NamedTuple):
    """An encoded chunk: good rows with their positions in the input, bad rows with reasons.

    ``at`` is its arrival time; ``n_rows`` and ``types`` are the state of the codec after it;
    ``spans``, ``position``, ``data`` and ``skipped`` are those of the chunk.
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
    data: bytes
    skipped: Mapping[str, int] = MappingProxyType({})

    def __repr__(self) -> str:
        return f"EncodedChunk({len(self.inputs)} rows, {len(self.bad)} bad)"


def codec_key(seed: bytes) -> bytes:
    """Derive the key of a codec from the seed of a run."""
    return hashlib.blake2b(seed, digest_size=8, person=b"shoal-codec").digest()


def codec_for(
    schema: Schema,
    policy: Policy,
    publish: Publish,
    *,
    key: bytes,
    with_subject: bool = False,
    n_rows: int = 0,
    types: pa.Schema | None = None,
    observe: Complain | None = None,
) -> Codec:
    """Return a codec that encodes what a policy and a release need; see `Codec`."""
    return Codec(
        schema,
        key=key,
        with_subject=with_subject,
        with_gaps=policy.missing != "quarantine",
        complete=policy.in_place(schema),
        compared=policy.compared(schema),
        per_value=policy.per_value,
        time_step=publish.time,
        named=publish.pseudonym is not None,
        n_rows=n_rows,
        types=types,
        observe=observe,
    )


class ChunkEncoder:
    """Encode chunks, and set apart rows that are too late or from the future.

    It changes with each chunk, so it belongs to one thread: the one that reads.

    Parameters
    ----------
    codec, schema
        Encodes rows, and their columns.
    lateness
        How many seconds a row's time may lie behind the latest time before it; None: any.
    ahead
        How many seconds a row's time may lie ahead of its chunk's arrival; None: any.
    latest
        The latest time of the rows before.
    """

    def __init__(
        self,
        codec: Codec,
        schema: Schema,
        lateness: float | None,
        ahead: float | None,
        latest: float = -np.inf,
    ) -> None:
        self._codec, self._schema = codec, schema
        self._lateness, self._ahead, self._latest = lateness, ahead, latest

    @property
    def types(self) -> pa.Schema:
        """The columns of the payload; text as long as no chunk was encoded."""
        return self._codec.types

    def encode(self, chunk: Chunk, at: float) -> EncodedChunk:
        """Encode a chunk that arrived at some time."""
        return self.set_apart(chunk, self.encode_rows(chunk, at), at)

    def encode_rows(self, chunk: Chunk, at: float) -> Encoded:
        """Encode the rows of a chunk; those from the future are bad."""
        encoded = self._codec.encode(chunk.batch)
        if self._ahead is None:
            return encoded
        # Checked first: such a time must not become the latest, or all rows after it are late.
        return _without(encoded, encoded.codes.times > at + self._ahead, AHEAD)

    def set_apart(self, chunk: Chunk, encoded: Encoded, at: float) -> EncodedChunk:
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
            chunk.data,
            chunk.skipped,
        )

    def without_late(self, encoded: Encoded) -> Encoded:
        """Make those rows bad that lie too far behind the latest time before them."""
        times = encoded.codes.times
        if self._lateness is None or not len(times):
            return encoded
        latest = np.maximum.accumulate(np.append(self._latest, times))
        self._latest = float(latest[-1])
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
    """Return rows that the codec refused, with their values as JSON for the quarantine file."""
    chosen = batch.take(pa.array(list(reasons)))
    columns = [python_values(column) for column in chosen.columns]
    names = batch.schema.names
    values = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return [
        BadRow(int(rows[i]), reason, json.dumps(value, default=str, ensure_ascii=False).encode())
        for (i, reason), value in zip(reasons.items(), values, strict=True)
    ]
