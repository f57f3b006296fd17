"""Input and output of a shard: Spark's batches to chunks, releases to Spark's batches."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.arrow.hold import ARRIVED_S
from shoal.arrow.hold import ROW as HELD_ROW
from shoal.arrow.order import Departures
from shoal.arrow.publishing import fitting, make_tracer, subject_type, subjects_in
from shoal.errors import DataError
from shoal.io.base import BadRow, Chunk
from shoal.io.files.atomic import atomic_write, rename_synced
from shoal.io.files.private import QuarantineWriter
from shoal.spark.columns import CORRUPT, ROW, TICK
from shoal.spark.commits import Epoch
from shoal.spark.shard_job import ShardJob
from shoal.spec.hierarchy import Hierarchy

__all__ = ["GROUP_STRIDE", "ShardIO", "drop_unfinished", "trace_path"]

#: Groups are numbered in steps of this, so that no two shards of any plans share a number.
GROUP_STRIDE = 1 << 20


class ShardIO:
    """Convert the rows of one shard in one epoch, and write its bad rows and its trace."""

    def __init__(self, job: ShardJob, number: int, folder: Path, epoch: Epoch) -> None:
        self._job, self._folder, self._epoch = job, folder, epoch
        self._publisher = job.publisher()
        self._categories = [
            quasi.name for quasi in job.schema.quasi if isinstance(quasi.domain, Hierarchy)
        ]
        self._n_in = 0
        self._before: pa.RecordBatch | None = None
        self._bad: QuarantineWriter | None = None
        self._bad_path = self._partial = Path()
        self._lines: list[pa.RecordBatch] = []
        self._tracer = None
        if job.traced:
            self._tracer = make_tracer(
                job.schema,
                self,
                subject_type(job.schema, job.types),
                per_value=job.policy.per_value,
                # For a single shard too: after a migration there may be more.
                shard=(number, GROUP_STRIDE),
            )

    @property
    def n_out(self) -> int:
        """How many rows were published."""
        return int(self._publisher.upcoming)

    def write(self, batch: pa.RecordBatch) -> None:
        """Keep lines of the trace until `close`."""
        self._lines.append(batch)

    def chunk(self, batch: pa.RecordBatch) -> Chunk:
        """Return the rows of a Spark batch, without ticks."""
        ticks = batch.column(TICK)
        rows = batch if ticks.null_count == len(ticks) else batch.filter(ticks.is_null())
        n = rows.num_rows
        if ROW in rows.schema.names:
            positions = np.asarray(rows.column(ROW)).astype(np.int64)
        else:
            positions = np.arange(self._n_in, self._n_in + n)
        self._n_in += n
        if self._job.order:
            self._check_order(rows.select(self._job.order))
        columns = self._job.columns
        kept = self._dictionary_encoded(rows.select(columns.names).cast(columns))
        corrupt = rows.column(CORRUPT) if CORRUPT in rows.schema.names else None
        if corrupt is None or corrupt.null_count == n:
            return Chunk(kept, positions, [])
        torn = np.asarray(corrupt.is_valid())
        bad = [
            BadRow(int(positions[i]), "it can't be read as a row", str(corrupt[i].as_py()).encode())
            for i in np.flatnonzero(torn).tolist()
        ]
        return Chunk(kept.filter(pa.array(~torn)), positions[~torn], bad)

    def _dictionary_encoded(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Encode categories as dictionaries, so that the codec reads each text once."""
        for name in self._categories:
            i = rows.schema.get_field_index(name)
            rows = rows.set_column(i, name, rows.column(i).dictionary_encode())
        return rows

    def _check_order(self, order: pa.RecordBatch) -> None:
        """Refuse two rows of the same position: a repetition might swap them."""
        if self._before is not None:
            order = pa.concat_batches([self._before, order])
        if order.num_rows < 2:
            self._before = order
            return
        self._before = order.slice(order.num_rows - 1)
        same = np.ones(order.num_rows - 1, np.bool_)
        for column in order.columns:
            codes = column.dictionary_encode(null_encoding="encode").indices
            same &= np.diff(np.asarray(codes)) == 0
        if same.any():
            raise DataError(
                f"{self._epoch.name}: {np.count_nonzero(same):,} rows have the same position as "
                "another one, by the columns of `order`, so that a repetition might decide "
                "differently. Name columns that together are different in every row."
            )

    def release(self, departures: Departures | None) -> Iterator[pa.RecordBatch]:
        """Return the public columns of rows that leave, as Spark takes them."""
        if departures is None:
            return
        public, seq = self._publisher.release(departures)
        if self._tracer is not None:
            payload = departures.payload
            inputs, arrived_s = (np.asarray(payload.column(name)) for name in (HELD_ROW, ARRIVED_S))
            subjects = subjects_in(self._job.schema, payload)
            self._tracer.decided(departures, inputs, arrived_s, subjects, seq)
        if public.n_rows:
            yield _plain(public.batch, self._publisher.schema)

    def quarantine(self, bad: list[BadRow], subjects: list[Any]) -> None:
        """Write bad rows to the quarantine, or end the job where it says so."""
        folder = self._job.quarantine
        if folder is None:
            raise DataError(
                f"{self._epoch.name}: {bad[0].reason}. The job says to stop at a bad row; "
                'bad_rows.action = "quarantine" writes them to a file and continues.'
            )
        if self._bad is None:
            folder.mkdir(0o700, parents=True, exist_ok=True)
            name = f"{self._epoch.name}-{self._folder.name}.jsonl"
            self._bad_path = folder / name
            # Processes on two machines may have the same id.
            self._partial = folder / f".{os.getpid()}-{secrets.token_hex(4)}-{name}"
            self._bad = QuarantineWriter(self._partial)
        self._bad.write(bad)
        if self._tracer is not None:
            lines = pa.array([fitting(s, self._tracer.subject) for s in subjects],
                             self._tracer.subject)  # fmt: skip
            self._tracer.quarantined(np.array([row.row for row in bad]), lines)

    def __enter__(self) -> ShardIO:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None and self._bad is not None:
            self._bad.close()
            self._partial.unlink(missing_ok=True)

    def close(self) -> None:
        """Write quarantine and trace to the disk."""
        if self._bad is not None:
            self._bad.close()
            with self._partial.open("rb") as file:
                os.fsync(file.fileno())
            rename_synced(self._partial, self._bad_path)
        if self._job.traced:
            write_trace(trace_path(self._folder, self._epoch), self._lines)


def trace_path(folder: Path, epoch: Epoch) -> Path:
    """The file in which a shard leaves its lines of the trace for the driver."""
    return folder / f"trace-{epoch.number:010}"


def drop_unfinished(quarantine: Path, epoch: Epoch) -> None:
    """Delete the quarantine files that failed attempts at an epoch left unfinished."""
    for left in quarantine.glob(f".*-{epoch.name}-shard-*"):
        left.unlink(missing_ok=True)


def write_trace(path: Path, lines: list[pa.RecordBatch]) -> None:
    """Write lines of a trace to a private file, atomically."""
    output = pa.BufferOutputStream()
    if lines:
        with pa.ipc.new_stream(output, lines[0].schema) as writer:
            for batch in lines:
                writer.write_batch(batch)
    tag = f".{os.getpid()}-{secrets.token_hex(4)}"
    with atomic_write(path, private=True, tag=tag) as file:
        file.write(memoryview(output.getvalue()))


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Decode dictionaries, which Spark doesn't take."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.record_batch(
        [column.cast(field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )
