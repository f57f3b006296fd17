"""Rows after the codec, as they travel between the tasks of a batch.

Every row is encoded once, by the task that reads it. The lines that this task returns are cached,
and all later tasks read them instead of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrow.codec import Encoded
from shoal.engine.space import Codes
from shoal.io.base import BadRow, Chunk
from shoal.run.encoder import EncodedChunk
from shoal.spark.columns import PREFIX

__all__ = [
    "CODES",
    "LINE",
    "N_ROWS",
    "SLICE",
    "EncodedRows",
    "codes_of",
    "joined_chunks",
    "joined_codes",
]

#: The slice that a line belongs to, its number there, and how many rows of the input it has.
SLICE, LINE, N_ROWS = f"{PREFIX}slice", f"{PREFIX}line", f"{PREFIX}n_rows"
#: The parts of a line, each an Arrow stream: codes and payload of the good rows, the positions of
#: all rows with what is wrong with them, and rows as they came.
CODES, PAYLOAD, ROWS, SOURCE = (
    f"{PREFIX}{name}" for name in ("codes", "payload", "rows", "source")
)
_ROWS = pa.schema([("row", pa.int64()), ("reason", pa.string()), ("raw", pa.binary())])


class EncodedRows(NamedTuple):
    """A chunk of a slice, and what the codec made of it."""

    chunk: Chunk
    encoded: Encoded

    def __repr__(self) -> str:
        return f"EncodedRows({len(self.encoded.good)} good rows)"

    @staticmethod
    def schema() -> pa.Schema:
        """The columns of a line."""
        numbers = [(SLICE, pa.int32()), (LINE, pa.int64()), (N_ROWS, pa.int64())]
        return pa.schema([*numbers, *((n, pa.binary()) for n in (CODES, PAYLOAD, ROWS, SOURCE))])

    def to_batch(self, slice_: int, line: int, *, with_source: bool) -> pa.RecordBatch:
        """Pack into a line.

        Bad rows come first, and are in it as they came, for the quarantine; ``with_source`` says
        that good ones are too.
        """
        chunk, (codes, payload, good, reasons) = self
        bad = np.array(list(reasons), np.int64)
        order = np.concatenate((bad, good))
        torn, n_good = chunk.bad, len(good)
        rows = pa.record_batch(
            [
                np.concatenate((np.array([row.row for row in torn], np.int64), chunk.rows[order])),
                pa.array(
                    [*(row.reason for row in torn), *reasons.values(), *[None] * n_good],
                    pa.string(),
                ),
                pa.array([*(row.raw for row in torn), *[None] * len(order)], pa.binary()),
            ],
            schema=_ROWS,
        )
        parts = (
            pa.record_batch(
                {"subject": codes.subjects, "time": codes.times}
                | {f"key{i}": column for i, column in enumerate(codes.keys.T)}
            ),
            pa.record_batch(payload),
            rows,
            chunk.batch.take(pa.array(order if with_source else bad)),
        )  # fmt: skip
        values = (slice_, line, rows.num_rows, *map(_packed, parts))
        return pa.record_batch(
            [pa.array([v], f.type) for v, f in zip(values, self.schema(), strict=True)],
            schema=self.schema(),
        )

    @classmethod
    def of_line(cls, line: dict[str, Any]) -> EncodedRows:
        """Unpack a line; rows are in another order, but good ones among themselves in the same."""
        rows, source = _unpacked(line[ROWS]), _unpacked(line[SOURCE])
        torn = np.asarray(rows.column("raw").is_valid())
        bad = [BadRow(**row) for row in rows.filter(pa.array(torn)).to_pylist()]
        rest = rows.filter(pa.array(~torn))
        reasons = rest.column("reason").drop_null().to_pylist()
        codes = codes_of(line)
        good = np.arange(len(reasons), rest.num_rows)
        payload = _unpacked(line[PAYLOAD])
        columns = dict(zip(payload.schema.names, payload.columns, strict=True))
        chunk = Chunk(source, np.array(rest.column("row")), bad)
        return cls(chunk, Encoded(codes, columns, good, dict(enumerate(reasons))))


def codes_of(line: dict[str, Any]) -> Codes:
    """Unpack the codes of a line; arrays are writable and contiguous."""
    subjects, times, *columns = (np.array(column) for column in _unpacked(line[CODES]).columns)
    n = len(subjects)
    keys = np.ascontiguousarray(np.column_stack(columns))
    return Codes(np.empty((n, 0)), subjects, np.empty((n, 0), np.int64), times, keys)


def joined_codes(codes: Iterable[Codes]) -> Codes:
    """Put the codes of consecutive lines together."""
    return Codes(*map(np.concatenate, zip(*codes, strict=True)))


def joined_chunks(chunks: Sequence[EncodedChunk]) -> EncodedChunk:
    """Put consecutive chunks together, of which there is at least one."""
    last = chunks[-1]
    payload = pa.concat_batches([pa.record_batch(chunk.encoded.payload) for chunk in chunks])
    columns = dict(zip(payload.schema.names, payload.columns, strict=True))
    inputs = np.concatenate([chunk.inputs for chunk in chunks])
    return last._replace(
        encoded=Encoded(
            joined_codes(chunk.encoded.codes for chunk in chunks), columns,
            np.arange(len(inputs)), {},
        ),
        inputs=inputs,
        bad=[row for chunk in chunks for row in chunk.bad],
        bad_subjects=[subject for chunk in chunks for subject in chunk.bad_subjects],
    )  # fmt: skip


def _packed(batch: pa.RecordBatch) -> bytes:
    output = pa.BufferOutputStream()
    with pa.ipc.new_stream(output, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = output.getvalue().to_pybytes()
    return data


def _unpacked(data: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(data).read_next_batch()
