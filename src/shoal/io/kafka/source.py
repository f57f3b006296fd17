"""Read rows of a Kafka topic, which can be read again from any position."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from shoal.errors import PUBLISHES_AGAIN, CheckpointError, JobError, Problem
from shoal.events import sentence
from shoal.io.base import BATCH_ROWS, Chunk, Position, Span
from shoal.io.kafka.client import LOG
from shoal.io.kafka.parsed import ParsedRows
from shoal.io.kafka.reader import PartitionReader, lost_schemas, partition_of, span_of
from shoal.io.kafka.schemas.client import AwayError
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.values import values_for

__all__ = ["KafkaSource"]

#: The maximum number of messages, and about the maximum number of bytes, in a chunk.
MOST_MESSAGES, MOST_BYTES = 20_000, 16 << 20
#: The number of messages of the first fetch, while their number of rows is unknown.
FIRST_MESSAGES = 10
#: How often, in seconds, to check for new partitions.
LOOK_SECONDS = 60.0


class KafkaSource:
    """Rows of the messages of a topic, of all its partitions or of those that are named.

    A chunk is what arrived together, by partition and offset; its spans are offsets. Nothing is
    stored at the broker: the caller keeps the position. Only committed messages are read. A message
    that can't be read is one bad row; an offset that no longer exists ends the iteration with
    `CheckpointError`, and so does a topic that was deleted and created again. While no broker
    answers, the source waits.

    A partition that is added to the topic later isn't read before the next start, with a warning.
    It is then read from its beginning.

    Parameters
    ----------
    settings
        The topic and the format of its messages.
    columns
        The columns to read. One that a JSON object lacks is null in that row.
    batch_rows
        About the maximum number of rows in a chunk; a message is never divided.

    Raises
    ------
    JobError
        If a partition is named that the topic doesn't have.
    ResourceError
        If there is no such topic, or no broker.
    """

    def __init__(
        self, settings: KafkaSettings, columns: Sequence[str], *, batch_rows: int = BATCH_ROWS
    ) -> None:
        self._settings = settings
        self._batch_rows = batch_rows
        self._stopped = threading.Event()
        self._values = values_for(settings, columns, self._stopped)
        self.schema_names = self._values.names
        self._closed = False
        self._n_messages = FIRST_MESSAGES
        self._row = 0
        #: Messages without a row, before the first one.
        self._waiting: list[Any] = []
        try:
            self._reader = PartitionReader(settings, self._stopped)
        except BaseException:
            self._values.close()
            raise
        try:
            self._n_partitions, owned = self._owned()
            self._reader.topic.open()
            bounds = {partition: self._reader.bounds(partition) for partition in owned}
        except BaseException:
            self.close()
            raise
        which = 0 if settings.start == "earliest" else 1
        self._reader.start({partition: both[which] for partition, both in bounds.items()})
        self._looked = time.monotonic()

    def _owned(self) -> tuple[int, list[int]]:
        there = self._reader.partitions()
        named = self._settings.partitions
        if missing := sorted(set(named or ()) - set(there)):
            raise JobError(
                Problem(
                    "partitions",
                    f"topic {self._settings.topic} has {len(there)}, from 0 to {there[-1]}",
                    ", ".join(map(str, missing)),
                )
            )
        return len(there), list(there if named is None else sorted(named))

    @property
    def position(self) -> Position:
        """The position after the last chunk; before the first chunk, where it begins."""
        position = {
            "streams": {str(p): offset for p, offset in sorted(self._reader.next.items())},
            "rows": self._row,
            "kinds": self._values.kinds,
        }
        topic = self._reader.topic.id
        return position if topic is None else position | {"topic": topic}

    def begins_at(self) -> Position:
        """Return where it begins: what ``start`` meant when it was opened."""
        return self.position

    def describe(self) -> str:
        """Return the topic and its format, for messages."""
        n = len(self._reader.next)
        partitions = f"{n} of {self._n_partitions} partitions"
        return f"{self._settings.where} ({self._settings.format}, {partitions})"

    def __iter__(self) -> Iterator[Chunk]:
        while not self._stopped.is_set():
            messages = self._reader.take(self._n_messages)
            if messages:
                try:
                    chunk = self._typed_chunk(messages)
                except AwayError:
                    # Stopped while it waited for the registry: these messages are read next time.
                    if self._stopped.is_set():
                        return
                    raise
                if chunk is not None:
                    yield chunk
            self._look()
            self._reader.topic.look()

    def seek(self, position: Position) -> None:
        """Continue from a position that one of this source's chunks had.

        Raises
        ------
        CheckpointError
            If the messages that come next are gone, other partitions were owned, or the topic was
            created again.
        """
        self._reader.topic.expect(position.get("topic"))
        streams = {int(name): int(offset) for name, offset in position["streams"].items()}
        owned = self._reader.next
        if lost := sorted(streams.keys() - owned.keys()):
            raise CheckpointError(
                f"{self._settings.where}: the checkpoint was taken with partition "
                f"{', '.join(map(str, lost))}, which this job doesn't own. Held rows come from "
                "there: own it as before, or start over: docs/checkpoints.md says from where."
            )
        offsets = {}
        for partition in owned:
            low, high = self._reader.bounds(partition)
            # A partition that is new since then has no row that was ever read.
            offsets[partition] = streams.get(partition, low)
            if not low <= offsets[partition] <= high:
                raise CheckpointError(
                    f"{self._settings.where}: the checkpoint resumes from offset "
                    f"{offsets[partition]} of partition {partition}, which has offsets {low} to "
                    f"{high}: retention has removed rows, or it is another topic of the same "
                    "name. Start over with an empty checkpoint folder and another job name. "
                    f"{PUBLISHES_AGAIN}."
                )
        self._row = int(position["rows"])
        self._values.restore(position["kinds"])
        self._reader.start(offsets)

    def replay(self, spans: Sequence[Span]) -> Chunk:
        """Read the rows of these spans again, which come next.

        Raises
        ------
        CheckpointError
            If one of their messages is gone.
        """
        partitions = [partition_of(span) for span in spans]
        strange = [str(partition) for partition in partitions if partition not in self._reader.next]
        if strange:
            raise CheckpointError(
                f"{self._settings.where}: the journal has rows of partition "
                f"{', '.join(strange)}, which this job doesn't own. Own it as before."
            )
        lost = [number for span in spans for number in lost_schemas(span)]
        return self._chunk(self._reader.take_spans(spans), lost)

    @property
    def is_away(self) -> bool:
        """Whether no broker answers, or no schema registry."""
        return self._reader.is_away or self._values.is_away

    def stop(self) -> None:
        """End the iteration soon. Any thread may call this."""
        self._stopped.set()

    def lag(self) -> int | None:
        """Return the total lag over all partitions; None if unknown."""
        return None if self._closed else self._reader.lag()

    def close(self) -> None:
        """Close the connection. Closing twice does no harm."""
        if not self._closed:
            self._closed = True
            self._reader.close()
            self._values.close()

    def _typed_chunk(self, messages: list[Any]) -> Chunk | None:
        """Return a chunk; None if no row has told the types of the columns yet.

        The first chunk decides of which types published columns are. So messages that are all
        skipped wait for the first row, and come in one chunk with it.
        """
        kinds = self._values.kinds
        chunk = self._chunk(messages)
        is_empty = bool(chunk.skipped) and not len(chunk.rows) and not chunk.bad
        if is_empty and not self._row and any(map(pa.types.is_null, chunk.batch.schema.types)):
            self._waiting += messages
            n_bytes = sum(len(message.value() or b"") for message in self._waiting)
            if len(self._waiting) < MOST_MESSAGES and n_bytes < MOST_BYTES:
                return None
            messages = []
        if self._waiting:
            self._row -= len(chunk.rows) + len(chunk.bad)
            self._values.restore(kinds)
            # As a replay reads them.
            both = sorted(self._waiting + messages, key=lambda m: (m.partition(), m.offset()))
            self._waiting = []
            return self._chunk(both)
        return chunk

    def _chunk(self, messages: list[Any], lost: Sequence[int] | None = None) -> Chunk:
        rows = self._values.read_messages(messages, self._row, lost)
        self._row += rows.n_rows
        self._adapt(messages, rows)
        spans = _spans(messages, rows.lost)
        return Chunk(
            rows.batch, rows.rows, rows.bad, spans, self.position, skipped=dict(rows.skipped)
        )

    def _adapt(self, messages: list[Any], rows: ParsedRows) -> None:
        """Choose the size of the next fetch from the size of these messages."""
        n_bytes = sum(len(message.value() or b"") for message in messages)
        per_message = max(rows.n_rows / len(messages), 1)
        by_bytes = MOST_BYTES * len(messages) // max(n_bytes, 1)
        by_rows = int(self._batch_rows / per_message)
        self._n_messages = max(1, min(MOST_MESSAGES, by_rows, by_bytes))

    def _look(self) -> None:
        """Warn of new partitions, if the job owns all."""
        if self._settings.partitions is not None or time.monotonic() < self._looked + LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        n_partitions = self._reader.count_partitions()
        if n_partitions is not None and n_partitions > self._n_partitions:
            sentence(
                LOG,
                logging.WARNING,
                "partitions added",
                f"{self._settings.where}: has {n_partitions} partitions now, and had "
                f"{self._n_partitions}: the new ones are read after the next start, from their "
                "beginning",
            )
            self._n_partitions = n_partitions


def _spans(messages: list[Any], lost: Sequence[int]) -> tuple[Span, ...]:
    """Return the spans of messages that are sorted by partition and offset.

    Schemas that weren't there are noted in the first one.
    """
    by_partition = itertools.groupby(messages, key=lambda message: int(message.partition()))
    spans: list[Span] = []
    for partition, found in by_partition:
        offsets = [message.offset() for message in found]
        noted = () if spans else lost
        spans.append(span_of(partition, offsets[0], offsets[-1] + 1, len(offsets), noted))
    return tuple(spans)
