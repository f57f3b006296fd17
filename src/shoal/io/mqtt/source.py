"""Read rows of MQTT topics, which the broker gives out once: the journal keeps them.

A message is acknowledged when the journal has it on the disk. What is acknowledged in vain, because
the connection or the process ends first, comes again: with the flag DUP, its former packet
identifier, its topic and its payload. It is dropped if it equals the latest message of that
identifier among the last `WINDOW` ones. No other message can come again: the broker has at most
`WINDOW` that aren't acknowledged, and acknowledgements go out in the order of arrival.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import struct
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shoal.errors import CheckpointError, ShoalError
from shoal.events import event, sentence
from shoal.io.base import Chunk, Position, Span
from shoal.io.mqtt.client import LOG, Link, paho
from shoal.io.mqtt.settings import MqttSettings
from shoal.io.mqtt.topics import TopicPattern
from shoal.io.mqtt.values import Values

__all__ = ["MqttSource"]

#: The maximum number of messages that are delivered and not acknowledged.
WINDOW = 500
#: About the maximum number of bytes in a chunk.
MOST_BYTES = 16 << 20
#: How often, in seconds, a waiting iteration checks whether it should stop.
POLL = 0.05
#: The head of a message in the data of a chunk: packet identifier, and the lengths of topic and
#: payload.
_HEAD = struct.Struct(">HHI")


@dataclass(slots=True)
class _Message:
    """A message that has arrived; ``number`` 0 is one that isn't acknowledged (QoS 0)."""

    number: int
    topic: str = field(repr=False)
    payload: bytes = field(repr=False)
    digest: str = ""
    #: The connection on which it came last.
    epoch: int = 0
    #: The number of its row, when it has one.
    row: int = -1
    is_stored: bool = False

    def __repr__(self) -> str:
        return f"_Message(number={self.number}, n_bytes={len(self.payload)})"


class _Recent:
    """The last `WINDOW` messages, by packet identifier."""

    def __init__(self) -> None:
        self._messages: OrderedDict[int, _Message] = OrderedDict()

    def find(self, number: int, digest: str) -> _Message | None:
        found = self._messages.get(number)
        return found if found is not None and found.digest == digest else None

    def add(self, message: _Message) -> None:
        if message.number:
            self._messages.pop(message.number, None)
            self._messages[message.number] = message
            if len(self._messages) > WINDOW:
                self._messages.popitem(last=False)

    def clear(self) -> None:
        self._messages.clear()

    def plain(self) -> str:
        """Return them as a text, the oldest first."""
        return " ".join(f"{number}:{m.digest}" for number, m in self._messages.items())

    @classmethod
    def of(cls, plain: str) -> _Recent:
        """Return what `plain` returned: messages that the journal has."""
        recent = cls()
        for each in plain.split():
            number, _, digest = each.partition(":")
            recent.add(_Message(int(number), "", b"", digest, epoch=-1, is_stored=True))
        return recent


class MqttSource:
    """Rows of the messages of a topic, with wildcards or not: a message is a row.

    Guarantee: no message at QoS 1 is lost that the broker has accepted for the session. Each is
    taken in exactly once if the broker gives out packet identifiers in turn; else a message may be
    dropped wrongly that equals an earlier one in identifier, topic and payload, and whose first
    delivery was lost. A message at QoS 0 may be lost on the way.

    The broker keeps a session under the name of the client, also while no job runs. While no broker
    answers, the source waits. It connects when it is iterated.

    Parameters
    ----------
    settings
        The topic and the format of its messages.
    client
        The client identifier.
    columns
        The columns to read.

    Raises
    ------
    JobError
        If a column is named that no message can have.
    """

    def __init__(self, settings: MqttSettings, client: str, columns: Sequence[str]) -> None:
        self._settings, self._client = settings, client
        self._filter = TopicPattern(settings.topic).filter
        self._values = Values(settings, columns)
        self.schema_names = self._values.names
        self._link = Link(settings, client, self._on_up, window=WINDOW)
        self._link.client.on_message = self._on_message
        self._link.client.on_subscribe = self._on_subscribe
        self._stopped = threading.Event()
        # Without it, who has a digest could try out payloads. `shoal checkpoint show` prints
        # positions, but no text of this length.
        self._salt = secrets.token_hex(48)
        self._row = 0
        # What the next position is made of: only what chunks have.
        self._taken = _Recent()
        # What arrives, and what waits for the journal; shared with the thread of the client.
        self._lock = threading.Condition()
        self._recent = _Recent()
        self._arrived: deque[_Message] = deque()
        self._unstored: deque[_Message] = deque()
        self._has_session = self._has_warned = self._started = False

    def begins_at(self) -> Position:
        """Return the position before the first chunk."""
        return self.position

    @property
    def position(self) -> Position:
        """The position after the last chunk."""
        return {
            "rows": self._row,
            "kinds": self._values.kinds,
            "salt": self._salt,
            "recent": self._taken.plain(),
        }

    def describe(self) -> str:
        """Return the topic and its format, for messages."""
        return f"{self._settings.where} ({self._settings.format})"

    def seek(self, position: Position) -> None:
        """Continue after a chunk of this source."""
        self._row = int(position["rows"])
        self._salt = str(position["salt"])
        self._values.restore(position["kinds"])
        self._taken = _Recent.of(position["recent"])
        self._has_session = self._row > 0

    def replay(self, spans: Sequence[Span]) -> Chunk:
        """Raise `CheckpointError`: messages can't be read again."""
        raise CheckpointError(f"{self._settings.where}: messages can't be read again.")

    def replay_data(self, data: bytes) -> Chunk:
        """Return the chunk that had this data."""
        messages, at = [], 0
        while at < len(data):
            number, n_topic, n_payload = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            topic, at = data[at : at + n_topic].decode(), at + n_topic
            payload, at = data[at : at + n_payload], at + n_payload
            message = _Message(number, topic, payload, epoch=-1, is_stored=True)
            message.digest = self._digest(message)
            messages.append(message)
        self._has_session = True
        return self._chunk(messages)

    def __iter__(self) -> Iterator[Chunk]:
        if not self._started:
            self._recent = _Recent.of(self._taken.plain())
            self._started = True
            self._link.start()
        while not self._stopped.is_set():
            with self._lock:
                if not self._arrived:
                    self._lock.wait(POLL)
                messages = self._take()
            if messages:
                yield self._chunk(messages)
            self._link.check()

    def _take(self) -> list[_Message]:
        messages: list[_Message] = []
        n_bytes = 0
        while self._arrived and n_bytes < MOST_BYTES:
            message = self._arrived.popleft()
            message.row = self._row + len(messages)
            n_bytes += len(message.payload)
            messages.append(message)
            self._unstored.append(message)
        return messages

    def _chunk(self, messages: list[_Message]) -> Chunk:
        first = self._row
        rows = self._values.read([(m.topic, m.payload) for m in messages], first)
        self._row += len(messages)
        for message in messages:
            self._taken.add(message)
        data = []
        for message in messages:
            topic = message.topic.encode()
            data += [
                _HEAD.pack(message.number, len(topic), len(message.payload)), topic, message.payload
            ]  # fmt: skip
        span = Span("messages", first, self._row)
        return Chunk(rows.batch, rows.rows, rows.bad, (span,), self.position, b"".join(data))

    def acknowledge(self, position: Position) -> None:
        """Acknowledge all messages up to a position: they are on the disk."""
        with self._lock:
            while self._unstored and self._unstored[0].row < int(position["rows"]):
                message = self._unstored.popleft()
                message.is_stored = True
                # What came on a connection that is lost comes again.
                if message.number and message.epoch == self._link.epoch:
                    self._link.client.ack(message.number, 1)

    @property
    def is_away(self) -> bool:
        """Whether no broker answers."""
        return self._link.away

    def stop(self) -> None:
        """End the iteration soon. Any thread may call this."""
        self._stopped.set()

    def lag(self) -> int | None:
        """Return None: a broker doesn't tell how many messages wait."""
        return None

    def close(self) -> None:
        """Close the connection; the broker keeps the session. Closing twice does no harm."""
        self._stopped.set()
        if self._started:
            self._started = False
            self._link.close()

    def _digest(self, message: _Message) -> str:
        digest = hashlib.blake2b(key=bytes.fromhex(self._salt), digest_size=12)
        topic = message.topic.encode()
        digest.update(struct.pack(">I", len(topic)) + topic)
        digest.update(message.payload)
        return digest.hexdigest()

    # -- callbacks of the client -------------------------------------------------------------------

    def _on_up(self, client: Any, is_present: bool) -> None:
        if not is_present:
            with self._lock:
                # A new session begins with identifiers of its own.
                self._recent.clear()
                if self._has_session:
                    sentence(
                        LOG,
                        logging.WARNING,
                        "session lost",
                        f"{self._settings.where}: the broker has forgotten the session of "
                        f"{self._client}: messages that came while it wasn't connected are lost, "
                        "and rows may come twice",
                    )
        self._has_session = True
        # What was retained before is no event of now, and would come again with each subscription.
        options = paho().subscribeoptions.SubscribeOptions(qos=1, retainHandling=2)
        client.subscribe(self._filter, options=options)

    def _on_subscribe(self, _client: Any, _data: Any, _mid: Any, codes: Any, _more: Any) -> None:
        for code in codes:
            if code.is_failure:
                self._link.fail(
                    f"the broker refuses the subscription: {code}. Check its permissions."
                )
            elif code.value < 1:
                self._link.fail("the broker grants QoS 0 only, at which messages may be lost.")

    def _on_message(self, client: Any, _data: Any, came: Any) -> None:
        try:
            self._receive(client, came)
        except (ShoalError, UnicodeError, MemoryError) as error:
            self._link.fail(f"a message can't be received ({type(error).__name__}).")

    def _receive(self, client: Any, came: Any) -> None:
        number = came.mid if came.qos else 0
        message = _Message(number, came.topic, bytes(came.payload), epoch=self._link.epoch)
        message.digest = self._digest(message)
        with self._lock:
            if number and came.dup:
                known = self._recent.find(number, message.digest)
                if known is not None:
                    known.epoch = self._link.epoch
                    if known.is_stored:
                        client.ack(number, 1)
                    event(LOG, logging.DEBUG, "message delivered again")
                    return
            self._recent.add(message)
            self._arrived.append(message)
            self._lock.notify()
        if not number and not self._has_warned:
            self._has_warned = True
            sentence(
                LOG,
                logging.WARNING,
                "messages without acknowledgement",
                f"{self._settings.where}: messages are published at QoS 0, and may be lost on the "
                "way. Publish them at QoS 1",
            )
