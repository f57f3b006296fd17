"""Turn public rows into the values of messages."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.ipc

from shoal.errors import JobError, Problem, ResourceError
from shoal.io.formats.csv import CsvSink
from shoal.io.formats.jsonl import JsonSink
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.text.sink import TextSink
from shoal.io.text.splitter import row_ends
from shoal.io.typed import plain_batch

__all__ = ["Payload", "Payloads", "payloads_for"]

#: The maximum size of a message unless the job sets it; librdkafka's default.
MESSAGE_BYTES = 1_000_000
#: An upper limit of what a message needs besides its value.
OVERHEAD_BYTES = 512


class Payload(NamedTuple):
    """The value of one message, the number of its first row, and how many rows it has."""

    first: int
    n_rows: int
    data: bytes

    def __repr__(self) -> str:
        return f"Payload(first={self.first}, n_rows={self.n_rows}, n_bytes={len(self.data)})"


class Payloads(ABC):
    """Cuts batches into messages; where one ends depends only on row numbers and lengths.

    Parameters
    ----------
    settings
        The maximum number of rows and bytes of a message.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._where = settings.where
        self._rows = settings.rows
        most = int(settings.settings.get("message.max.bytes", MESSAGE_BYTES))
        self._most = max(1, most - OVERHEAD_BYTES)

    def open(self) -> None:
        """Prepare for the first row, once the topic is known to be the right one."""
        return

    def stop(self) -> None:
        """End any waiting. Any thread may call this."""
        return

    def cut(self, batch: pa.RecordBatch, first: int) -> Iterator[Payload]:
        """Yield the messages of a batch whose first row has this number.

        Raises
        ------
        ResourceError
            If a single row is longer than a message may be.
        """
        self._take(batch)
        begin, n_rows = 0, batch.num_rows
        while begin < n_rows:
            end = min(n_rows, begin + self._rows - (first + begin) % self._rows)
            yield from self._fit(begin, end, first)
            begin = end

    def _fit(self, begin: int, end: int, first: int) -> Iterator[Payload]:
        data = self._value(begin, end)
        if len(data) <= self._most:
            yield Payload(first + begin, end - begin, data)
        elif end - begin == 1:
            raise ResourceError(
                f"{self._where}: a row makes a message of {len(data)} bytes, and {self._most} are "
                "allowed. Raise settings.message.max.bytes, and the topic's max.message.bytes."
            )
        else:
            middle = (begin + end) // 2
            yield from self._fit(begin, middle, first)
            yield from self._fit(middle, end, first)

    @abstractmethod
    def _take(self, batch: pa.RecordBatch) -> None:
        """Prepare a batch, once."""

    @abstractmethod
    def _value(self, begin: int, end: int) -> bytes:
        """Return these rows of the batch as the value of a message."""


def payloads_for(settings: KafkaSettings, schema: pa.Schema) -> Payloads:
    """Return what makes messages of a format.

    Raises
    ------
    JobError
        If the format can't carry the columns, or the settings name others.
    """
    if settings.registry is not None:
        from shoal.io.kafka.schemas.payloads import RegisteredPayloads

        return RegisteredPayloads(settings, schema)
    if settings.format == "json":
        return _Lines(settings, JsonSink, schema, None)
    if settings.format == "arrow":
        return _Arrow(settings, schema)
    if settings.columns is not None and settings.columns != tuple(schema.names):
        raise JobError(
            Problem(
                "columns",
                "must be those of the output, in their order, if they are given for it",
                ", ".join(settings.columns),
                f"Leave it out, or write {', '.join(schema.names)}",
            )
        )
    return _Lines(settings, CsvSink, schema, b",")


class _Lines(Payloads):
    """Lines of text, rendered once for the whole batch and then cut."""

    def __init__(
        self,
        settings: KafkaSettings,
        sink: type[TextSink],
        schema: pa.Schema,
        delimiter: bytes | None,
    ) -> None:
        super().__init__(settings)
        self._memory = io.BytesIO()
        self._sink = sink(self._memory, schema)
        self._delimiter = delimiter
        header = self._rendered()
        # Where the settings name the fields, a header would be read as a row.
        self._header = b"" if settings.columns is not None else header
        self._data = b""
        self._ends: list[int] = []

    def _rendered(self) -> bytes:
        """Return what the sink has written, and clear it."""
        data = self._memory.getvalue()
        self._memory.seek(0)
        self._memory.truncate()
        return data

    def _take(self, batch: pa.RecordBatch) -> None:
        self._sink.write(batch)
        self._data = self._rendered()
        self._ends = [0, *row_ends(self._data, self._delimiter).tolist()]

    def _value(self, begin: int, end: int) -> bytes:
        # Without the newline at the end: one row is one line, or one object.
        return self._header + self._data[self._ends[begin] : self._ends[end] - 1]


class _Arrow(Payloads):
    """An IPC stream for each message."""

    def __init__(self, settings: KafkaSettings, schema: pa.Schema) -> None:
        super().__init__(settings)
        self._schema = schema
        self._batch = pa.RecordBatch.from_pylist([], schema=schema)

    def _take(self, batch: pa.RecordBatch) -> None:
        self._batch = plain_batch(batch, self._schema)

    def _value(self, begin: int, end: int) -> bytes:
        memory = pa.BufferOutputStream()
        with pa.ipc.new_stream(memory, self._schema) as writer:
            writer.write_batch(self._batch.slice(begin, end - begin))
        data: bytes = memory.getvalue().to_pybytes()
        return data
