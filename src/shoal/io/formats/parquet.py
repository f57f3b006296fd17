"""Parquet files."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet

from shoal.errors import ResourceError
from shoal.io.base import BATCH_ROWS
from shoal.io.format import Format
from shoal.io.streams import Input, read_errors
from shoal.io.typed import CODED, TypedSink, TypedSource, coded_batch, used_only

__all__ = ["ROW_GROUP_ROWS", "ParquetSink", "ParquetSource"]

#: The number of rows in a row group.
ROW_GROUP_ROWS = 131072


class ParquetSource(TypedSource):
    """Rows of a Parquet file, in the types it has.

    Text columns that the file stores as dictionaries are read as dictionaries, where that is
    cheap. A pipe or a compressed file is first copied to an unnamed temporary file, which only
    this process can reach: Parquet has its metadata at the end.
    """

    label = "Parquet"
    broken = "it isn't a whole Parquet file"

    def __init__(
        self,
        source: Input,
        columns: Sequence[str] | None = None,
        *,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._raw = source.seekable_file or _spooled(source)
        try:
            self._open(source, columns, batch_rows)
        except BaseException:
            if self._raw is not source.seekable_file:
                self._raw.close()
            raise

    def _open(self, source: Input, columns: Sequence[str] | None, batch_rows: int) -> None:
        raw = self._raw
        with read_errors(source.name, self.broken):
            file = pa.parquet.ParquetFile(raw, pre_buffer=False)
            schema = file.schema_arrow
        super().__init__(source, schema, columns, batch_rows)
        with read_errors(source.name, self.broken):
            self._file = pa.parquet.ParquetFile(
                raw,
                metadata=file.metadata,
                # A pre-buffer would keep the whole file in memory until it is closed.
                pre_buffer=False,
                read_dictionary=[n for n in self.columns if _is_cheap_dictionary(file, n)],
            )

    def close(self) -> None:
        """Close the file, and the temporary copy if there is one."""
        if self._raw is not self._source.seekable_file:
            self._raw.close()
        super().close()

    @property
    def n_rows(self) -> int:
        """The number of rows in the file."""
        n_rows: int = self._file.metadata.num_rows
        return n_rows

    def _batches(self, n_skipped: int) -> tuple[int, Iterator[pa.RecordBatch]]:
        # Row groups that are skipped as a whole are never read.
        n_rows = group = 0
        metadata = self._file.metadata
        while group < metadata.num_row_groups:
            if n_rows + metadata.row_group(group).num_rows > n_skipped:
                break
            n_rows += metadata.row_group(group).num_rows
            group += 1
        batches = self._file.iter_batches(
            batch_size=self._batch_rows,
            row_groups=list(range(group, metadata.num_row_groups)),
            columns=list(self.columns),
            use_threads=False,
        )
        return n_rows, batches


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
    """Return whether the first row group stores a text column as short dictionary codes only."""
    metadata = file.metadata
    place = file.schema_arrow.get_field_index(name)
    kind = file.schema_arrow.field(place).type
    if not pa.types.is_string(kind) or metadata.num_row_groups == 0:
        return False
    places = range(len(file.schema.names))
    i = next((i for i in places if file.schema.column(i).path == name), None)
    if i is None:
        return False
    # Where this metadata is damaged, Python's view of it ends the process; a reader raises.
    next(file.iter_batches(batch_size=1, row_groups=[0], columns=[name], use_threads=False), None)
    group = metadata.row_group(0)
    column = group.column(i)
    if not column.has_dictionary_page:
        return False
    # Two bytes a value: no room for texts besides a small dictionary.
    return bool(column.total_uncompressed_size < 2 * group.num_rows)


class ParquetSink(TypedSink):
    """Rows as a Parquet file, in row groups of `ROW_GROUP_ROWS`.

    The file depends on the rows only, not on the batches they came in. Text that comes as
    dictionaries is written without looking at the text of each row; of a dictionary only what the
    rows use is written.

    Guarantee: the file can be read only after `close`, which writes its footer; `flush` makes
    nothing visible. An abrupt end leaves a file that can't be read.
    """

    def __init__(self, output: Any, schema: pa.Schema) -> None:
        super().__init__(output, schema)
        self._batches: list[pa.RecordBatch] = []
        self._n_rows = 0
        # The columns as they are written: some as dictionaries. Known when the first rows come.
        self._coded: pa.Schema | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some rows; they are written when a row group is full."""
        if self._coded is None:
            self._open([batch.schema.field(field.name).type for field in self._schema])
        self._batches.append(coded_batch(batch, self._coded))
        self._n_rows += batch.num_rows
        while self._n_rows >= ROW_GROUP_ROWS:
            self._write_group(ROW_GROUP_ROWS)

    def flush(self) -> None:
        """Do nothing: a row group can't be read before the file is finished."""

    def _open(self, given: Sequence[Any]) -> None:
        fields = [
            field.with_type(CODED) if _is_coded(field.type, kind) else field
            for field, kind in zip(self._schema, given, strict=True)
        ]
        self._coded = pa.schema(fields)
        self._writer = pa.parquet.ParquetWriter(
            self._output, self._coded, compression="zstd", store_schema=False
        )
        # Arrow reads the types from here: plain text is read as such, however it was written.
        types = base64.b64encode(self._schema.serialize().to_pybytes()).decode("ascii")
        self._writer.add_key_value_metadata({"ARROW:schema": types})

    def _write_rest(self) -> None:
        if self._coded is None:
            self._open(self._schema.types)
        if self._n_rows:
            self._write_group(self._n_rows)

    def _write_group(self, n_rows: int) -> None:
        table = pa.Table.from_batches(self._batches, self._coded)
        rest = table.slice(n_rows)
        self._batches, self._n_rows = rest.to_batches(), rest.num_rows
        # One chunk: where pages end must not depend on where batches did.
        columns = [_whole(column) for column in table.slice(0, n_rows).columns]
        group = pa.Table.from_arrays(columns, schema=self._coded)
        self._writer.write_table(group, row_group_size=n_rows)


def _is_coded(kind: Any, given: Any) -> bool:
    """Return whether text that is given in this type is written from its dictionary."""
    is_text = pa.types.is_dictionary(given) and pa.types.is_string(given.value_type)
    return bool(is_text and pa.types.is_string(kind))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; a dictionary holds what its rows use, in the order of use."""
    array = pa.concat_arrays(column.chunks)
    return used_only(array) if pa.types.is_dictionary(array.type) else array


FORMATS = (Format("parquet", ("parquet", "pq"), ParquetSource, ParquetSink, spark="parquet"),)
