"""The columns that JSON messages of a topic have, found by reading some of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from shoal.errors import ResourceError
from shoal.io.kafka.reader import PartitionReader
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.values import json_rows

__all__ = ["JsonNames", "describe_messages", "names_of"]

#: How many messages are read for the names of columns, and the maximum number of such names.
MOST_MESSAGES, MOST_NAMES = 2000, 500
#: How long, in seconds, to wait for messages that the broker says are there.
IDLE_SECONDS = 10.0


@dataclass(frozen=True)
class JsonNames:
    """What the first messages of a topic have in common.

    Parameters
    ----------
    columns
        The fields with plain values, in the order in which they appear.
    nested
        The fields that have objects or arrays; they can't be columns.
    is_envelope
        Whether messages are changes of a database, in Debezium's form. Columns are then those of
        the row.
    """

    columns: tuple[str, ...]
    nested: tuple[str, ...]
    is_envelope: bool


def describe_messages(settings: KafkaSettings) -> JsonNames:
    """Read the oldest messages of a topic, and return which columns they have.

    Raises
    ------
    ResourceError
        If there is no such topic, no broker, or no message with a column.
    """
    reader = PartitionReader(settings, threading.Event())
    try:
        found = names_of(json_rows(_values(reader)))
    finally:
        reader.close()
    if not found.columns:
        raise ResourceError(
            f"{settings.where}: has no messages in JSON to draft a job from. Send some first, or "
            "name the registry with their schema (--registry)."
        )
    return found


def _values(reader: PartitionReader) -> list[bytes | None]:
    reader.topic.open()
    reader.start({partition: reader.bounds(partition)[0] for partition in reader.partitions()})
    values: list[bytes | None] = []
    end = time.monotonic() + IDLE_SECONDS
    while len(values) < MOST_MESSAGES and time.monotonic() < end:
        messages = reader.take(MOST_MESSAGES - len(values))
        if messages:
            end = time.monotonic() + IDLE_SECONDS
        elif reader.lag() == 0:
            break
        values += [message.value() for message in messages]
    return values


def names_of(rows: Iterable[dict[str, Any]]) -> JsonNames:
    """Return the names of the fields of rows, or of the rows in envelopes.

    >>> names_of([{"id": 1, "tags": []}, {"id": None, "age": 39}])
    JsonNames(columns=('id', 'age'), nested=('tags',), is_envelope=False)
    >>> names_of([{"op": "c", "before": None, "after": {"id": 1}}, {"status": "BEGIN", "id": "7"}])
    JsonNames(columns=('id',), nested=(), is_envelope=True)
    """
    plain = [_payload(row) for row in rows]
    changed = [row["after"] for row in plain if _is_change(row)]
    names: dict[str, bool] = {}
    for row in _objects(changed) if changed else plain:
        for name, value in row.items():
            if name in names or len(names) < MOST_NAMES:
                names[name] = names.get(name, False) or isinstance(value, dict | list)
    columns = tuple(name for name, is_nested in names.items() if not is_nested)
    nested = tuple(name for name, is_nested in names.items() if is_nested)
    return JsonNames(columns, nested, bool(changed))


def _objects(values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    return (value for value in values if isinstance(value, dict))


def _payload(row: dict[str, Any]) -> dict[str, Any]:
    """Return what is in a message that Kafka Connect has written with its schema."""
    payload = row.get("payload")
    return payload if row.keys() == {"schema", "payload"} and isinstance(payload, dict) else row


def _is_change(row: dict[str, Any]) -> bool:
    return row.keys() >= {"before", "after", "op"} or row.keys() >= {"after", "op", "source"}
