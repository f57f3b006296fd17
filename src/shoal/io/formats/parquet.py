"""Parquet files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet

from shoal.errors import ResourceError
from shoal.io.base import BATCH_ROWS, Chunk
from shoal.io.formats.plain import plain_batch
from shoal.io.formats.typed import choose_plain_columns, typed_chunks
from shoal.io.streams import Input, reading

__all__ = ["ROW_GROUP_ROWS", "ParquetSink", "ParquetSource"]

#: How many rows a row group has.
ROW_GROUP_ROWS = 131072
_BROKEN = "it isn't a whole Parquet file"


class ParquetSource:
    """Rows of a Parquet file, in the types it has.

    Columns of text that the file holds as dictionaries come as dictionaries, where that is cheap.
    A pipe or a compressed file is first copied to an unnamed temporary file, which only this
    process can reach: Parquet begins at its end.

    Parameters
    ----------
    source
        Where the bytes come from.
    columns
        The columns to read; None for all.
    batch_rows
        How many rows a chunk has at most.
    """

    def __init__(
        self,
        source: Input,
        columns: Sequence[str] | None = None,
        *,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._source = source
        self._batch_rows = batch_rows
        self._n_skipped = 0
        raw = source.seekable_file or _spooled(source)
        self._raw = raw
        with reading(source.name, _BROKEN):
            file = pa.parquet.ParquetFile(raw, pre_buffer=False)
            schema = file.schema_arrow
        self.schema_names = tuple(schema.names)
        self.columns = choose_plain_columns(schema, columns, source.name)
        with reading(source.name, _BROKEN):
            self._file = pa.parquet.ParquetFile(
                raw,
                metadata=file.metadata,
                # What is buffered ahead stays in memory until the file is closed: all of it.
                pre_buffer=False,
                read_dictionary=[n for n in self.columns if _is_cheap_dictionary(file, n)],
            )

    def describe(self) -> str:
        """What is read, for a message."""
        return f"{self._source.name} (Parquet, {len(self.schema_names)} columns)"

    def close(self) -> None:
        """Let go of the file."""
        if self._raw is not self._source.seekable_file:
            self._raw.close()
        self._source.close()

    @property
    def n_rows(self) -> int:
        """How many rows the file has."""
        n_rows: int = self._file.metadata.num_rows
        return n_rows

    def skip(self, n_rows: int) -> None:
        """Leave out the first rows; whole row groups of them are never read."""
        self._n_skipped = n_rows

    def __iter__(self) -> Iterator[Chunk]:
        n_rows = group = 0
        metadata = self._file.metadata
        while group < metadata.num_row_groups:
            if n_rows + metadata.row_group(group).num_rows > self._n_skipped:
                break
            n_rows += metadata.row_group(group).num_rows
            group += 1
        with reading(self._source.name, _BROKEN):
            batches = self._file.iter_batches(
                batch_size=self._batch_rows,
                row_groups=list(range(group, metadata.num_row_groups)),
                columns=list(self.columns),
                use_threads=False,
            )
        while True:
            with reading(self._source.name, _BROKEN):
                batch = next(batches, None)
            if batch is None:
                return
            batch = batch.select(list(self.columns))
            n_more = min(batch.num_rows, max(0, self._n_skipped - n_rows))
            batch, n_rows = batch.slice(n_more), n_rows + n_more
            yield from typed_chunks(batch, n_rows, self._batch_rows, self._source.name)
            n_rows += batch.num_rows


def _spooled(source: Input) -> IO[bytes]:
    file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the source
    try:
        while data := source.read(1 << 20):
            file.write(data)
        file.seek(0)
    except OSError as error:
        file.close()
        raise ResourceError(
            f"{source.name}: can't be copied to a temporary file: "
            f"{os.strerror(error.errno or 0)}. Parquet can't be read from a pipe as it comes."
        ) from None
    return file


def _is_cheap_dictionary(file: Any, name: str) -> bool:
    """Whether a column of text is held as short codes all over the first row group."""
    metadata = file.metadata
    place = file.schema_arrow.get_field_index(name)
    kind = file.schema_arrow.field(place).type
    if not pa.types.is_string(kind) or metadata.num_row_groups == 0:
        return False
    group = metadata.row_group(0)
    columns = map(group.column, range(group.num_columns))
    column = next((c for c in columns if c.path_in_schema == name), None)
    if column is None or not column.has_dictionary_page:
        return False
    # Two bytes a value: no room for texts besides a small dictionary.
    return bool(column.total_uncompressed_size < 2 * group.num_rows)


class ParquetSink:
    """Rows as a Parquet file, in row groups of `ROW_GROUP_ROWS`.

    The file depends on the rows alone, not on the batches they came in.

    Guarantee: the file can be read after `close`, which writes its footer, and not before;
    `flush` makes nothing visible. An abrupt end leaves a file that can't be read.
    """

    def __init__(self, output: Any, schema: pa.Schema) -> None:
        self._output = output
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._n_rows = 0
        self._writer: Any = pa.parquet.ParquetWriter(output, schema, compression="zstd")

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some rows; they are written when a row group is full."""
        self._batches.append(plain_batch(batch, self._schema))
        self._n_rows += batch.num_rows
        while self._n_rows >= ROW_GROUP_ROWS:
            self._write_group(ROW_GROUP_ROWS)

    def flush(self) -> None:
        """Do nothing: a row group can't be read before the file is finished."""

    def close(self) -> None:
        """Write the last rows and the footer, and let go of the file."""
        if self._writer is None:
            return
        was_broken = self._output.broken
        try:
            if self._n_rows and not was_broken:
                self._write_group(self._n_rows)
            self._writer.close()
        except ResourceError:
            # What went wrong has been told already.
            if not was_broken:
                raise
        finally:
            self._writer = None
            self._output.close()

    def _write_group(self, n_rows: int) -> None:
        table = pa.Table.from_batches(self._batches, self._schema)
        rest = table.slice(n_rows)
        self._batches, self._n_rows = rest.to_batches(), rest.num_rows
        # One chunk: where pages end must not depend on where batches did.
        self._writer.write_table(table.slice(0, n_rows).combine_chunks(), row_group_size=n_rows)
