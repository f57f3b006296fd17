"""Publish rows as MQTT messages, at least once, with numbers by which a reader drops doubles."""

from __future__ import annotations

import io
import threading
from typing import Any

import pyarrow as pa

from shoal.errors import ResourceError
from shoal.io.base import CommitMark
from shoal.io.formats.jsonl import JsonSink
from shoal.io.mqtt.client import Link, paho
from shoal.io.mqtt.settings import MqttSettings
from shoal.io.text.splitter import row_ends

__all__ = ["ROW", "MqttSink"]

#: The user property that has the number of a row in the output, from 0.
ROW = "row"
#: The maximum number of messages that wait for the broker.
MOST_WAITING = 1000
#: How often, in seconds, a waiting call checks whether it should stop.
POLL = 0.1


class MqttSink:
    """Rows as messages of a topic, one to a message, as JSON, at QoS 1.

    Guarantee: each row is published at least once. The broker has all rows before a checkpoint
    counts them as published; after a crash those since the last checkpoint are published again, bit
    by bit the same, in the same order and with the same numbers (user property ``row``). A reader
    that drops numbers it has had gets each row exactly once.

    While no broker answers, `write` and `commit` wait for one, until `stop`.

    Parameters
    ----------
    settings
        The topic.
    client
        The client identifier.
    schema
        The columns of the output.
    mark
        What `commit` returned last; None or empty: from the beginning.

    Raises
    ------
    ResourceError
        If no broker answers, or it refuses the connection.
    """

    #: Nothing is known of what the topic has.
    n_ahead = 0

    def __init__(
        self, settings: MqttSettings, client: str, schema: pa.Schema, mark: CommitMark | None
    ) -> None:
        self._where, self._topic = settings.where, settings.topic
        self._next = int(mark["rows"]) if mark else 0
        self._memory = io.BytesIO()
        self._lines = JsonSink(self._memory, schema)
        # Each is counted by one thread only.
        self._n_sent = self._n_acknowledged = 0
        self._acknowledged = threading.Event()
        self._stopped = threading.Event()
        self._closed = False
        self._up = threading.Event()
        self._link = Link(settings, client, lambda _client, _present: self._up.set(), keep=False)
        self._link.client.on_publish = self._on_publish
        self._link.start()
        try:
            while not self._up.wait(POLL):
                self._link.check()
        except BaseException:
            self.abandon()
            raise

    @property
    def is_away(self) -> bool:
        """Whether no broker answers."""
        return self._link.away

    def write(self, batch: pa.RecordBatch) -> None:
        """Publish some rows."""
        self._lines.write(batch)
        data = self._memory.getvalue()
        self._memory.seek(0)
        self._memory.truncate()
        library, begin = paho(), 0
        for end in row_ends(data).tolist():
            properties = library.properties.Properties(library.packettypes.PacketTypes.PUBLISH)
            properties.UserProperty = (ROW, str(self._next))
            self._wait(MOST_WAITING)
            self._n_sent += 1
            # While there is no connection, the client keeps the message.
            self._link.client.publish(self._topic, data[begin : end - 1], 1, False, properties)
            self._next += 1
            begin = end

    def flush(self) -> None:
        """Do nothing: rows are on their way as soon as they are written."""

    def commit(self) -> CommitMark:
        """Wait until the broker has all rows so far; return the mark to resume from."""
        self._wait(1)
        return {"rows": self._next}

    def stop(self) -> None:
        """End any waiting for a broker, with `ResourceError`. Any thread may call this."""
        self._stopped.set()

    def abandon(self) -> None:
        """Disconnect at once."""
        if not self._closed:
            self._closed = True
            self._link.close()

    def close(self) -> None:
        """Wait until the broker has all rows, and disconnect. Closing twice does no harm."""
        if self._closed:
            return
        try:
            self._wait(1)
        finally:
            self.abandon()

    def _wait(self, most: int) -> None:
        """Wait until fewer than this many messages wait for the broker."""
        while True:
            self._acknowledged.clear()
            self._link.check()
            if self._n_sent - self._n_acknowledged < most:
                return
            if self._stopped.is_set():
                raise ResourceError(f"{self._where}: stopped while no broker answers.")
            self._acknowledged.wait(POLL)

    def _on_publish(self, _client: Any, _data: Any, _mid: Any, reason: Any, _more: Any) -> None:
        if reason.is_failure:
            self._link.fail(
                f"the broker refuses a message: {reason}. Check its permissions and limits."
            )
        self._n_acknowledged += 1
        self._acknowledged.set()
