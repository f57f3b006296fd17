"""Where the rows of a shard come in and go out: as Spark gives them, and as it takes them."""

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
from shoal.spark.ledger import Turn
from shoal.spark.shard_job import ShardJob
from shoal.spec.hierarchy import Hierarchy

__all__ = ["MOST_SHARDS", "ShardIO", "drop_unfinished", "lines_path"]

#: Groups of different shards, of all plans, are told apart by so many.
MOST_SHARDS = 1 << 20


class ShardIO:
    """Where rows come in and go out: the shape that Spark gives them, and the one it takes."""

    def __init__(self, recipe: ShardJob, number: int, folder: Path, turn: Turn) -> None:
        self._recipe, self._folder, self._turn = recipe, folder, turn
        self._publisher = recipe.publisher()
        self._categories = [
            quasi.name for quasi in recipe.schema.quasi if isinstance(quasi.domain, Hierarchy)
        ]
        self._n_in = 0
        self._before: pa.RecordBatch | None = None
        self._bad: QuarantineWriter | None = None
        self._bad_path = self._aside = Path()
        self._lines: list[pa.RecordBatch] = []
        self._tracer = None
        if recipe.traced:
            self._tracer = make_tracer(
                recipe.schema,
                self,
                subject_type(recipe.schema, recipe.types),
                per_value=recipe.policy.per_value,
                # Also of a single shard: after a migration there may be others.
                shard=(number, MOST_SHARDS),
            )

    @property
    def n_out(self) -> int:
        """How many rows were published."""
        return int(self._publisher.upcoming)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take lines of the trace."""
        self._lines.append(batch)

    def chunk(self, batch: pa.RecordBatch) -> Chunk:
        """The rows of a batch of Spark's, without those that carry nothing but time."""
        ticks = batch.column(TICK)
        rows = batch if ticks.null_count == len(ticks) else batch.filter(ticks.is_null())
        n = rows.num_rows
        if ROW in rows.schema.names:
            places = np.asarray(rows.column(ROW)).astype(np.int64)
        else:
            places = np.arange(self._n_in, self._n_in + n)
        self._n_in += n
        if self._recipe.order:
            self._check_order(rows.select(self._recipe.order))
        columns = self._recipe.columns
        kept = self._told_apart(rows.select(columns.names).cast(columns))
        corrupt = rows.column(CORRUPT) if CORRUPT in rows.schema.names else None
        if corrupt is None or corrupt.null_count == n:
            return Chunk(kept, places, [])
        torn = np.asarray(corrupt.is_valid())
        bad = [
            BadRow(int(places[i]), "it can't be read as a row", str(corrupt[i].as_py()).encode())
            for i in np.flatnonzero(torn).tolist()
        ]
        return Chunk(kept.filter(pa.array(~torn)), places[~torn], bad)

    def _told_apart(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The same with a dictionary of each category, so that the codec looks at a text once."""
        for name in self._categories:
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, name, rows.column(place).dictionary_encode())
        return rows

    def _check_order(self, order: pa.RecordBatch) -> None:
        """Refuse rows that stand at the same place: they might change places in a repetition."""
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
                f"{self._turn.name}: {np.count_nonzero(same):,} rows stand at the same place as "
                "another one, by the columns of `order`, so that a repetition might decide "
                "otherwise. Name columns that together are different in every row."
            )

    def leaving(self, departures: Departures | None) -> Iterator[pa.RecordBatch]:
        """Give what is public of rows that leave, as Spark takes it."""
        if departures is None:
            return
        release, seq = self._publisher.release(departures)
        if self._tracer is not None:
            payload = departures.payload
            inputs, arrived_s = (np.asarray(payload.column(name)) for name in (HELD_ROW, ARRIVED_S))
            subjects = subjects_in(self._recipe.schema, payload)
            self._tracer.decided(departures, inputs, arrived_s, subjects, seq)
        if release.n_rows:
            yield _plain(release.batch, self._publisher.schema)

    def quarantine(self, bad: list[BadRow], subjects: list[Any]) -> None:
        """Set rows apart that can't be used, or end the job."""
        folder = self._recipe.quarantine
        if folder is None:
            raise DataError(
                f"{self._turn.name}: {bad[0].reason}. The job says to stop at a bad row; "
                'bad_rows.action = "quarantine" sets them apart and goes on.'
            )
        if self._bad is None:
            folder.mkdir(0o700, parents=True, exist_ok=True)
            name = f"{self._turn.name}-{self._folder.name}.jsonl"
            self._bad_path = folder / name
            # Processes of two machines may have the same number.
            self._aside = folder / f".{os.getpid()}-{secrets.token_hex(4)}-{name}"
            self._bad = QuarantineWriter(self._aside)
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
            self._aside.unlink(missing_ok=True)

    def close(self) -> None:
        """Have on the disk what goes beside the output."""
        if self._bad is not None:
            self._bad.close()
            with self._aside.open("rb") as file:
                os.fsync(file.fileno())
            rename_synced(self._aside, self._bad_path)
        if self._recipe.traced:
            write_lines(lines_path(self._folder, self._turn), self._lines)


def lines_path(folder: Path, turn: Turn) -> Path:
    """Where a shard leaves its lines of the trace for the driver."""
    return folder / f"trace-{turn.number:010}"


def drop_unfinished(quarantine: Path, turn: Turn) -> None:
    """Forget bad rows that attempts at a turn have written down and not finished."""
    for left in quarantine.glob(f".*-{turn.name}-shard-*"):
        left.unlink(missing_ok=True)


def write_lines(path: Path, lines: list[pa.RecordBatch]) -> None:
    """Write lines of a trace to a private file, whole or not at all."""
    output = pa.BufferOutputStream()
    if lines:
        with pa.ipc.new_stream(output, lines[0].schema) as writer:
            for batch in lines:
                writer.write_batch(batch)
    tag = f".{os.getpid()}-{secrets.token_hex(4)}"
    with atomic_write(path, private=True, tag=tag) as file:
        file.write(memoryview(output.getvalue()))


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A release without dictionaries, which Spark doesn't take."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.record_batch(
        [column.cast(field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )
