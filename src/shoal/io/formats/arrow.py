"""Arrow's own format: streams, and files by their magic number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from shoal.errors import ResourceError
from shoal.io.base import BATCH_ROWS
from shoal.io.format import Format
from shoal.io.streams import ExactReader, Input, read_errors
from shoal.io.typed import TypedSink, TypedSource, plain_batch

__all__ = ["ArrowSink", "ArrowSource"]

_MAGIC = b"ARROW1"
_MAGIC_BYTES = 8
_TAIL_BYTES = 1 << 16


class ArrowSource(TypedSource):
    """Rows of an Arrow stream or file, in the types it has.

    A file is a stream between two magic numbers, with a table of contents at the end, so both are
    read alike, from pipes too; a batch is returned as soon as it has arrived. Batches longer than
    ``batch_rows`` are cut.
    """

    label = "Arrow"
    broken = "it isn't a whole Arrow stream or file"

    def __init__(
        self,
        source: Input,
        columns: Sequence[str] | None = None,
        *,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._bytes = ExactReader(source)
        with read_errors(source.name, self.broken):
            self._is_file = self._bytes.peek(_MAGIC_BYTES).startswith(_MAGIC)
            if self._is_file:
                self._bytes.read(_MAGIC_BYTES)
            self._reader = pa.ipc.open_stream(pa.PythonFile(self._bytes, "r"))
            schema = self._reader.schema
        super().__init__(source, schema, columns, batch_rows)

    def _batches(self, n_skipped: int) -> tuple[int, Iterator[pa.RecordBatch]]:
        return 0, self._read()

    def _read(self) -> Iterator[pa.RecordBatch]:
        yield from self._reader
        if self._is_file and not self._has_tail():
            raise ResourceError(f"{self._source.name}: can't be read: {self.broken}.")

    def _has_tail(self) -> bool:
        # A stream may end between two batches; a file that does has lost its end.
        tail = b""
        while data := self._bytes.read(_TAIL_BYTES):
            tail = (tail + data)[-len(_MAGIC) :]
        return tail == _MAGIC


class ArrowSink(TypedSink):
    """Rows as an Arrow stream, a message for each batch written.

    Guarantee: after `flush` every row written so far has been passed to the operating system, in
    whole messages, and a reader of the stream can read them; a compressed stream is whole only
    after `close`. An abrupt end leaves the messages up to the last flush, and maybe a part of one
    more.
    """

    def __init__(self, output: Any, schema: pa.Schema) -> None:
        super().__init__(output, schema)
        self._writer = pa.ipc.new_stream(output, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows as one message."""
        if batch.num_rows:
            self._writer.write_batch(plain_batch(batch, self._schema))

    def flush(self) -> None:
        """Pass all rows so far to the operating system."""
        self._output.flush()


FORMATS = (Format("arrow", ("arrow", "arrows", "ipc"), ArrowSource, ArrowSink),)
