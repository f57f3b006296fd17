"""Arrow's own format: streams, and files by their magic number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from shoal.errors import ResourceError
from shoal.io.base import BATCH_ROWS, Chunk
from shoal.io.formats.plain import plain_batch
from shoal.io.formats.typed import choose_plain_columns, typed_chunks
from shoal.io.streams import Exact, Input, reading

__all__ = ["ArrowSink", "ArrowSource"]

_MAGIC = b"ARROW1"
_MAGIC_BYTES = 8
_TAIL_BYTES = 1 << 16
_BROKEN = "it isn't a whole Arrow stream or file"


class ArrowSource:
    """Rows of an Arrow stream or file, in the types it has.

    A file is a stream between two magic numbers, with a table of contents at the end, so both are
    read alike, from pipes too; a batch is given as soon as it has arrived.

    Parameters
    ----------
    source
        Where the bytes come from.
    columns
        The columns to read; None for all.
    batch_rows
        How many rows a chunk has at most; longer batches are cut.
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
        self._bytes = Exact(source)
        with reading(source.name, _BROKEN):
            self._is_file = self._bytes.peek(_MAGIC_BYTES).startswith(_MAGIC)
            if self._is_file:
                self._bytes.read(_MAGIC_BYTES)
            self._reader = pa.ipc.open_stream(pa.PythonFile(self._bytes, "r"))
            schema = self._reader.schema
        self.schema_names = tuple(schema.names)
        self.columns = choose_plain_columns(schema, columns, source.name)

    def describe(self) -> str:
        """What is read, for a message."""
        return f"{self._source.name} (Arrow, {len(self.schema_names)} columns)"

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()

    def skip(self, n_rows: int) -> None:
        """Leave out the first rows."""
        self._n_skipped = n_rows

    def __iter__(self) -> Iterator[Chunk]:
        n_rows = 0
        while True:
            with reading(self._source.name, _BROKEN):
                try:
                    batch = self._reader.read_next_batch().select(list(self.columns))
                except StopIteration:
                    break
            n_more = min(batch.num_rows, max(0, self._n_skipped - n_rows))
            batch, n_rows = batch.slice(n_more), n_rows + n_more
            yield from typed_chunks(batch, n_rows, self._batch_rows, self._source.name)
            n_rows += batch.num_rows
        if self._is_file and not self._has_tail():
            raise ResourceError(f"{self._source.name}: can't be read: {_BROKEN}.")

    def _has_tail(self) -> bool:
        # A stream may end between two batches; a file that does has lost its end.
        tail = b""
        while data := self._bytes.read(_TAIL_BYTES):
            tail = (tail + data)[-len(_MAGIC) :]
        return tail == _MAGIC


class ArrowSink:
    """Rows as an Arrow stream, a message for each batch written.

    Guarantee: after `flush` every row written so far has been handed to the operating system, in
    whole messages, and a reader of the stream can have them, unless it is compressed, which is
    whole after `close` only. An abrupt end leaves the messages up to the last flush, and maybe a
    part of one more.
    """

    def __init__(self, output: Any, schema: pa.Schema) -> None:
        self._output = output
        self._schema = schema
        self._writer: Any = pa.ipc.new_stream(output, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some rows."""
        if batch.num_rows:
            self._writer.write_batch(plain_batch(batch, self._schema))

    def flush(self) -> None:
        """Hand all rows so far to the operating system."""
        self._output.flush()

    def close(self) -> None:
        """Mark the end of the stream and let go of the file."""
        if self._writer is None:
            return
        was_broken = self._output.broken
        try:
            self._writer.close()
        except ResourceError:
            # What went wrong has been told already.
            if not was_broken:
                raise
        finally:
            self._writer = None
            self._output.close()
