"""Read messages of assigned partitions: the next ones, or exactly those of given spans."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from shoal.errors import PUBLISHES_AGAIN, CheckpointError, ResourceError, ShoalError
from shoal.io.base import Span
from shoal.io.kafka.client import OPEN_SECONDS, Connection, confluent
from shoal.io.kafka.settings import KafkaSettings, unless_set
from shoal.io.kafka.topic import TopicWatch

__all__ = ["PartitionReader", "lost_schemas", "partition_of", "span_of"]

#: The timeout, in seconds, of one fetch.
WAIT = 0.05
#: The maximum number of buffered messages of a partition while those of another are needed.
STASH = 10_000
#: How messages are prefetched: enough that parsing never waits, few enough that memory stays small.
FETCHING = {"queued.max.messages.kbytes": 32768, "fetch.queue.backoff.ms": 5}
#: How often, in seconds, the ends of partitions are noted, from which the lag is computed.
ENDS_SECONDS = 0.2
#: How long, in seconds, a partition may end before messages that it had, before they count as lost.
GONE_SECONDS = 10.0
#: The number of messages of one fetch in a replay.
AT_ONCE = 1000


def span_of(
    partition: int, begin: int, end: int, n_messages: int, lost: Sequence[int] = ()
) -> Span:
    """Return the span of messages, with their number if some offsets in between have none.

    ``lost`` are the ids of schemas that the registry didn't have when the messages were read: a
    replay must not find them either.

    >>> span_of(0, 7, 10, 3), span_of(0, 7, 10, 2)
    (Span(stream='0', begin=7, end=10), Span(stream='0/2', begin=7, end=10))
    >>> lost_schemas(span_of(0, 7, 10, 2, [17, 4]))
    (17, 4)
    """
    number = f"/{n_messages}" if n_messages < end - begin else ""
    mark = f"?{','.join(map(str, lost))}" if lost else ""
    return Span(f"{partition}{number}{mark}", begin, end)


def partition_of(span: Span) -> int:
    """Return the partition of a span."""
    return int(span.stream.partition("?")[0].partition("/")[0])


def lost_schemas(span: Span) -> tuple[int, ...]:
    """Return the ids of the schemas that weren't there when a span was read."""
    ids = span.stream.partition("?")[2]
    return tuple(map(int, ids.split(","))) if ids else ()


def _n_messages(span: Span) -> int:
    number = span.stream.partition("?")[0].partition("/")[2]
    return int(number) if number else span.end - span.begin


class PartitionReader:
    """Reads the assigned partitions, and no others, from given offsets.

    Partitions are assigned, not subscribed to: none is taken away by a rebalance, and no offset is
    kept at the broker. An offset that no longer exists is an error, never skipped.

    Parameters
    ----------
    settings
        The topic, and where it is.
    stopped
        Set to end a call that waits.
    """

    def __init__(self, settings: KafkaSettings, stopped: threading.Event) -> None:
        self._library = confluent()
        self._settings = settings
        self._stopped = stopped
        self._connection = Connection(settings)
        #: Whether the topic is still the same one.
        self.topic = TopicWatch(
            settings, self._connection, "Rows that were held or not yet read are gone with it."
        )
        self._consumer = self._connection.consumer(
            group_id="shoal",
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            auto_offset_reset="error",
            isolation_level="read_committed",
            enable_partition_eof=True,
            allow_auto_create_topics=False,
            max_poll_interval_ms=86_400_000,
            **unless_set(settings, FETCHING),
        )
        self._assigned = False
        self._paused: set[int] = set()
        self._stash: dict[int, deque[Any]] = {}
        #: The next offset of each partition that hasn't been returned.
        self.next: dict[int, int] = {}
        #: The offset up to which each partition is known to have no more messages.
        self._seen: dict[int, int] = {}
        # The offset after the last one of each partition, as far as the client knows. Replaced,
        # never changed: any thread may read it.
        self._ends: dict[int, int] = {}
        self._ends_at = 0.0

    def partitions(self, seconds: float = OPEN_SECONDS) -> list[int]:
        """Return the partitions of the topic."""
        return self._connection.partitions(self._consumer, seconds)

    def bounds(self, partition: int) -> tuple[int, int]:
        """Return the first offset that exists, and the one after the last."""
        place = self._library.TopicPartition(self._settings.topic, partition)
        try:
            low, high = self._consumer.get_watermark_offsets(place, timeout=OPEN_SECONDS)
        except self._library.KafkaException as error:
            raise self._connection.failure(error.args[0]) from None
        return low, high

    def start(self, offsets: Mapping[int, int]) -> None:
        """Read from these offsets on."""
        self.next = dict(offsets)
        self._assigned = False

    @property
    def is_away(self) -> bool:
        """Whether no broker answers."""
        return self._connection.away

    def lag(self) -> int | None:
        """Return the total lag over all partitions, or None if the broker hasn't reported it.

        Any thread may call this: the client isn't asked. It makes one call at a time, and a thread
        that asked it while another one waits for messages would stop both.
        """
        ends, n_waiting = self._ends, 0
        for partition, offset in list(self.next.items()):
            if ends.get(partition, -1) < 0:
                return None
            # The last offsets may be transaction markers, which are never returned.
            n_waiting += max(0, ends[partition] - max(offset, self._seen.get(partition, 0)))
        return n_waiting

    def _note_ends(self) -> None:
        """Ask the client for what it knows of the ends of partitions, now and then."""
        if time.monotonic() < self._ends_at + ENDS_SECONDS:
            return
        self._ends_at = time.monotonic()
        ends = {}
        for partition in self.next:
            place = self._library.TopicPartition(self._settings.topic, partition)
            try:
                _, ends[partition] = self._consumer.get_watermark_offsets(place, cached=True)
            except self._library.KafkaException:
                ends[partition] = -1
        self._ends = ends

    def take(self, n_messages: int) -> list[Any]:
        """Return at most ``n_messages`` that have arrived, by partition and offset."""
        self._assign()
        if self._paused:
            self._resume(self._paused)
        if not any(self._stash.values()):
            self._fetch(n_messages)
        taken: list[Any] = []
        for partition in sorted(self._stash):
            stash = self._stash[partition]
            while stash and len(taken) < n_messages:
                taken.append(stash.popleft())
        for message in taken:
            self.next[message.partition()] = message.offset() + 1
        return taken

    def take_spans(self, spans: Sequence[Span]) -> list[Any]:
        """Return exactly the messages of these spans, in their order.

        Raises
        ------
        CheckpointError
            If a message no longer exists.
        """
        needs = {partition_of(span): span for span in spans}
        if any(span.begin < self.next[partition] for partition, span in needs.items()):
            self.start(self.next | {partition: span.begin for partition, span in needs.items()})
        self._assign()
        self._resume(self._paused & needs.keys())
        taken: dict[int, list[Any]] = {partition: [] for partition in needs}
        came = time.monotonic()
        while True:
            for partition, span in needs.items():
                self._move(span, self._stash[partition], taken[partition])
            short = [p for p, span in needs.items() if self._is_short(taken[p], span)]
            if not short:
                break
            if self._stopped.is_set():
                raise ResourceError(f"{self._settings.where}: stopped while reading again.")
            if short[0] in self._seen and time.monotonic() > came + GONE_SECONDS:
                raise self._gone(short[0], needs[short[0]].begin)
            if self._fetch(AT_ONCE) or self._connection.away:
                came = time.monotonic()
            self._pause({p for p, s in self._stash.items() if len(s) > STASH and p not in needs})
        for partition, span in needs.items():
            if len(taken[partition]) != _n_messages(span):
                raise self._gone(partition, span.begin)
            self.next[partition] = span.end
        return [message for partition in needs for message in taken[partition]]

    def _is_short(self, taken: list[Any], span: Span) -> bool:
        return not taken or taken[-1].offset() < span.end - 1

    def _move(self, span: Span, stash: deque[Any], taken: list[Any]) -> None:
        while stash and stash[0].offset() < span.end:
            taken.append(stash.popleft())
        is_cut = bool(taken) and taken[0].offset() != span.begin
        partition = partition_of(span)
        seen = self._seen.get(partition, 0)
        is_over = bool(stash) or seen >= span.end
        if is_cut or (is_over and self._is_short(taken, span)):
            raise self._gone(partition, span.begin)

    def _gone(self, partition: int, offset: int) -> CheckpointError:
        return CheckpointError(
            f"{self._settings.where}: partition {partition} no longer has the messages from "
            f"offset {offset} on from which the checkpoint resumes; retention or compaction has "
            "removed them, or it is another topic of the same name. Held rows can't be rebuilt: "
            "start over with an empty checkpoint folder and another job name. "
            f"{PUBLISHES_AGAIN}."
        )

    def close(self) -> None:
        """Close the connection."""
        self._ends = {}
        self.topic.close()
        self._consumer.close()

    def _assign(self) -> None:
        if self._assigned:
            return
        self._stash = {partition: deque() for partition in self.next}
        self._seen.clear()
        self._paused.clear()
        places = self._library.TopicPartition
        self._consumer.assign([places(self._settings.topic, p, o) for p, o in self.next.items()])
        self._assigned = True

    def _pause(self, partitions: set[int]) -> None:
        if new := partitions - self._paused:
            self._consumer.pause(
                [self._library.TopicPartition(self._settings.topic, p) for p in new]
            )
            self._paused |= new

    def _resume(self, partitions: set[int]) -> None:
        if partitions:
            places = [self._library.TopicPartition(self._settings.topic, p) for p in partitions]
            self._consumer.resume(places)
            self._paused = self._paused - partitions

    def _fetch(self, n_messages: int) -> int:
        """Fetch messages into the buffers; return the number of messages and events."""
        got = self._consumer.consume(n_messages, WAIT)
        self._note_ends()
        self._connection.check()
        if got:
            self._connection.answered()
        elif self._connection.away:
            # Silence may mean no broker, or one that is back and has nothing new.
            self.count_partitions()
        stashes = self._stash
        for message in got:
            error = message.error()
            if error is None:
                stashes[message.partition()].append(message)
            else:
                self._note(message, error)
        return len(got)

    def count_partitions(self) -> int | None:
        """Return the current number of partitions; None if no broker answers at once."""
        try:
            answer = self._consumer.list_topics(self._settings.topic, timeout=WAIT)
        except self._library.KafkaException:
            return None
        self._connection.answered()
        return len(answer.topics[self._settings.topic].partitions)

    def _note(self, message: Any, error: Any) -> None:
        """Handle an event that came instead of a message."""
        kinds = self._library.KafkaError
        if error.code() == kinds._PARTITION_EOF:
            self._seen[message.partition()] = message.offset()
        elif error.code() in (kinds._AUTO_OFFSET_RESET, kinds.OFFSET_OUT_OF_RANGE):
            raise self._out_of_range(message.partition())
        elif not error.retriable() and error.code() not in (kinds._TRANSPORT, kinds._TIMED_OUT):
            raise self._connection.failure(error)

    def _out_of_range(self, partition: int) -> ShoalError:
        return CheckpointError(
            f"{self._settings.where}: partition {partition} no longer has offset "
            f"{self.next[partition]}, which comes next; retention has removed rows before they "
            "were read, or the topic was created again. Rows are lost: raise the topic's "
            "retention, and start over with an empty checkpoint folder and another job name. "
            f"{PUBLISHES_AGAIN}."
        )
