"""Read the envelopes of change data capture: a message is a change of a row, as Debezium writes it.

Each message becomes exactly one of three things: a row, a bad row, or a message that is skipped and
counted with its reason. Only the row after a change is ever read, never the one before it.
"""

from __future__ import annotations

import dataclasses
import json
import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.io.base import BadRow
from shoal.io.kafka.debezium import PLACEHOLDERS, Convert, converters, is_unavailable
from shoal.io.kafka.parsed import ParsedRows, Values, load_json
from shoal.io.kafka.schemas.avro import SchemaTextError, parse_avro
from shoal.io.kafka.schemas.client import Registered, Registry
from shoal.io.kafka.schemas.cursor import Cursor, Ints
from shoal.io.kafka.schemas.values import Maker, RegisteredValues, SchemaReader
from shoal.io.kafka.settings import KafkaSettings

__all__ = ["AvroEnvelopes", "Envelopes", "JsonEnvelopes"]

#: Why a message is no row, without being wrong.
UPDATE, DELETE, TOMBSTONE = "update", "delete", "tombstone"
MOVED = "change of a primary key"
SUPERSEDED = "superseded by a later change"
_SKIPPED_OPS = {"t": "truncate", "m": "logical message"}
#: A create, a row of a snapshot, an update, and a delete, which becomes no row.
_CHANGING_OPS = ("c", "r", "u", "d")
#: A change of a primary key is a delete and a create, which has this header.
_OLD_KEY = "__debezium.oldkey"

NO_ENVELOPE = "not an envelope of a change: it has no op"
UNKNOWN = "its op isn't known"
NO_ROW = "an envelope without the row after the change"
NO_KEY = 'it has no key, and input.changes = "latest" finds the versions of a row by it'
#: In an Avro message the column that has the kind of the change. No column of a job is named so.
_OP = "(op)"
_UNAVAILABLE = frozenset(PLACEHOLDERS)
_ENCODE = json.JSONEncoder().encode


class _Opened(NamedTuple):
    """What messages are, by their places: each is in one of the three."""

    ops: dict[int, str]
    skipped: dict[int, str]
    wrong: dict[int, str]

    def note(self, place: int, op: str | None) -> bool:
        """Note what a message is by the op of its envelope; return whether it changes a row."""
        if op in _SKIPPED_OPS:
            self.skipped[place] = _SKIPPED_OPS[op]
        elif op in _CHANGING_OPS:
            self.ops[place] = op
        else:
            self.wrong[place] = NO_ENVELOPE if op is None else UNKNOWN
        return place in self.ops


class Envelopes(Values):
    """Envelopes of changes, of which some become rows.

    Parameters
    ----------
    columns
        The columns to read, of the row after the change.
    changes
        Which changes are rows: ``inserts`` (with the rows of a snapshot), ``every`` (updates too),
        or ``latest`` (as ``every``, but of changes of one key that are read together only the last
        one, and none if that is a delete).
    """

    #: Reads the rows after changes.
    _values: Values

    def __init__(self, columns: Sequence[str], changes: str) -> None:
        self.names = tuple(columns)
        self._changes = changes

    @property
    def kinds(self) -> dict[str, list[str]]:
        """The kinds of values that each column has had."""
        return self._values.kinds

    def restore(self, kinds: dict[str, list[str]]) -> None:
        """Set what had been learned about types."""
        self._values.restore(kinds)

    @property
    def is_away(self) -> bool:
        """Whether no registry answers."""
        return self._values.is_away

    def close(self) -> None:
        """Close the connection to the registry, if there is one."""
        self._values.close()

    def read_messages(
        self, messages: Sequence[Any], first_row: int, lost: Sequence[int] | None = None
    ) -> ParsedRows:
        """Parse messages."""
        values = [message.value() for message in messages]
        tombstones = [place for place, value in enumerate(values) if value is None]
        opened, missing = self._open(values, lost)
        opened.skipped.update(dict.fromkeys(tombstones, TOMBSTONE))
        taken = self._choose(opened, messages)
        batch, kept = self._rows(taken, opened.wrong)
        # What is skipped has no number: numbers are those of rows, good and bad.
        numbers = np.full(len(messages), -1, np.int64)
        both = sorted([*kept, *opened.wrong])
        numbers[both] = first_row + np.arange(len(both))
        bad = [
            BadRow(int(numbers[place]), opened.wrong[place], values[place])
            for place in sorted(opened.wrong)
        ]
        skipped = Counter(opened.skipped[place] for place in sorted(opened.skipped))
        return ParsedRows(batch, numbers[kept], bad, tuple(missing), skipped)

    def read(
        self,
        values: Sequence[bytes | None],
        first_row: int,
        lost: Sequence[int] | None = None,
    ) -> ParsedRows:
        """Parse messages without keys and headers."""
        return self.read_messages([_Bare(value) for value in values], first_row, lost)

    def _choose(self, opened: _Opened, messages: Sequence[Any]) -> list[int]:
        """Return the places of the changes that become rows; note why others don't."""
        last: dict[tuple[int, bytes | None], int] = {}
        if self._changes == "latest":
            for place in sorted([*opened.ops, *opened.skipped]):
                if place in opened.ops or opened.skipped[place] == TOMBSTONE:
                    last[_identity(messages[place])] = place
        taken = []
        for place, op in sorted(opened.ops.items()):
            why = None
            if op == "d":
                why = DELETE
            elif self._changes == "inserts":
                is_moved = op == "c" and _OLD_KEY in dict(messages[place].headers() or ())
                why = UPDATE if op == "u" else MOVED if is_moved else None
            elif self._changes == "latest":
                if messages[place].key() is None:
                    opened.wrong[place] = NO_KEY
                    continue
                why = SUPERSEDED if last[_identity(messages[place])] > place else None
            if why is None:
                taken.append(place)
            else:
                opened.skipped[place] = why
        return taken

    @abstractmethod
    def _open(
        self, values: Sequence[bytes | None], lost: Sequence[int] | None
    ) -> tuple[_Opened, Sequence[int]]:
        """Return what messages are, those that are None left out, and which schemas are lost."""

    @abstractmethod
    def _rows(self, taken: list[int], wrong: dict[int, str]) -> tuple[pa.RecordBatch, list[int]]:
        """Return the rows of changes, and their places; note those that can't be read."""


class _Bare:
    """A message that is a value alone."""

    def __init__(self, value: bytes | None) -> None:
        self._value = value

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return None

    def headers(self) -> None:
        return None

    def partition(self) -> int:
        return 0


def _identity(message: Any) -> tuple[int, bytes | None]:
    """Return what all changes of one row share: they are in one partition, under one key."""
    return message.partition(), message.key()


#: The fields of a transaction marker and of a schema change. Rows of a table may have some of them.
_MARKER = {"status", "id", "event_count", "data_collections", "ts_ms"}
_SCHEMA_CHANGE = {
    "source", "ts_ms", "databaseName", "schemaName", "ddl", "tableChanges", "position", "status",
}  # fmt: skip


def _not_a_change(fields: Any) -> str | None:
    """Return what Debezium's other messages are, by the names of their fields; None if unknown.

    >>> _not_a_change({"status": "BEGIN", "id": "571:53195829", "ts_ms": 1})
    'transaction marker'
    >>> _not_a_change({"status": "admitted", "id": 7, "age": 39})
    """
    names = set(fields)
    if "after" in names:
        return None
    if {"op", "message"} <= names:
        return _SKIPPED_OPS["m"]
    if {"status", "id"} <= names <= _MARKER:
        return "transaction marker"
    if names <= _SCHEMA_CHANGE and ({"ddl", "source"} <= names or "tableChanges" in names):
        return "schema change"
    return "heartbeat" if names == {"ts_ms"} else None


def _unchanged(name: str) -> str:
    return (
        f"column {name} has no value: an update left it as it was, and the database didn't send "
        "it (REPLICA IDENTITY FULL sends it)"
    )


class JsonEnvelopes(Envelopes):
    """Envelopes in JSON, with or without a schema in each.

    Parameters
    ----------
    values
        Parses rows as lines of JSON.
    changes
        Which changes are rows.

    >>> from shoal.io.kafka.values import JsonValues
    >>> values = JsonEnvelopes(JsonValues(["age"]), "inserts")
    >>> rows = values.read([b'{"op": "c", "after": {"age": 39}}', b'{"op": "d", "after": null}'], 0)
    >>> rows.batch["age"].to_pylist(), rows.skipped
    ([39], Counter({'delete': 1}))
    """

    def __init__(self, values: Values, changes: str) -> None:
        super().__init__(values.names, changes)
        self._values = values
        self._after: dict[int, tuple[Any, Mapping[str, Convert]]] = {}
        #: The bytes of the latest schema, up to the payload, and how its values are converted.
        self._head = b""
        self._converts: Mapping[str, Convert] = {}

    def _open(
        self, values: Sequence[bytes | None], lost: Sequence[int] | None
    ) -> tuple[_Opened, Sequence[int]]:
        opened = _Opened({}, {}, {})
        self._after.clear()
        for place, value in enumerate(values):
            if value is None:
                continue
            envelope, converts = self._envelope(value)
            if envelope is None:
                opened.skipped[place] = TOMBSTONE
                continue
            if isinstance(envelope, str):
                opened.wrong[place] = envelope
                continue
            op = envelope.get("op")
            if op is not None and not isinstance(op, str):
                opened.wrong[place] = UNKNOWN
            elif op not in (*_SKIPPED_OPS, *_CHANGING_OPS) and (what := _not_a_change(envelope)):
                opened.skipped[place] = what
            elif opened.note(place, op):
                self._after[place] = envelope.get("after"), converts
        return opened, ()

    def _envelope(self, value: bytes) -> tuple[dict[str, Any] | str | None, Mapping[str, Convert]]:
        """Return what is in a message, and how the values of its row are converted.

        That is an object, None if it is a null with a schema, or why there is none.
        """
        whole, converts = None, self._converts
        if self._head and value.startswith(self._head):
            # The same schema as before, which is longer than the rest.
            whole = load_json(b"{" + value[len(self._head) :])
        if not isinstance(whole, dict) or whole.keys() != {"payload"}:
            # What is found must not depend on what was read before: a replay begins elsewhere.
            whole, converts = load_json(value), {}
            if isinstance(whole, dict) and whole.keys() >= {"schema", "payload"}:
                try:
                    converts = converters(whole["schema"], self.names)
                except (KeyError, OverflowError, TypeError, ValueError):
                    return "its schema isn't one of Kafka Connect", {}
                self._keep(value, whole["schema"], converts)
            elif isinstance(whole, dict):
                return whole, {}
        payload = whole.get("payload", "") if isinstance(whole, dict) else ""
        is_right = payload is None or isinstance(payload, dict)
        return (payload if is_right else "not a JSON object"), converts

    def _keep(self, value: bytes, schema: Any, converts: Mapping[str, Convert]) -> None:
        """Keep a schema, if the bytes up to the payload are just that."""
        head, comma, _ = value.partition(b',"payload":')
        if comma and schema is not None and load_json(head + b"}") == {"schema": schema}:
            self._head, self._converts = head + b",", converts

    def _rows(self, taken: list[int], wrong: dict[int, str]) -> tuple[pa.RecordBatch, list[int]]:
        rows, places = [], []
        for place in taken:
            row = self._plain(*self._after[place])
            if isinstance(row, str):
                wrong[place] = row
            else:
                rows.append(row)
                places.append(place)
        self._after.clear()
        # As one message of many lines, which are parsed together.
        lines = "\n".join(map(_ENCODE, rows)).encode()
        parsed = self._values.read([lines] if rows else [], 0)
        wrong |= {places[row.row]: row.reason for row in parsed.bad}
        return parsed.batch, [places[row] for row in parsed.rows.tolist()]

    def _plain(self, after: Any, converts: Mapping[str, Convert]) -> dict[str, Any] | str:
        """Return the wanted values of a row, or why they can't be read."""
        if not isinstance(after, dict):
            return NO_ROW
        if not converts:
            row = {name: after.get(name) for name in self.names}
            with suppress(TypeError):  # A list or an object: the row is a bad one.
                if _UNAVAILABLE.isdisjoint(row.values()):
                    return row
        row = {}
        for name in self.names:
            value = after.get(name)
            if isinstance(value, str) and is_unavailable(value):
                return _unchanged(name)
            if value is not None and name in converts:
                try:
                    value = converts[name](value)
                except (KeyError, OverflowError, TypeError, ValueError):
                    return f"column {name} isn't a value of its type, or out of the range of times"
            row[name] = value
        return row


class AvroEnvelopes(Envelopes):
    """Envelopes in Avro, with their schemas in a registry.

    The parameters are those of `RegisteredValues`.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        columns: Sequence[str],
        stopped: threading.Event,
        registry: Registry | None = None,
    ) -> None:
        assert settings.changes is not None
        super().__init__(columns, settings.changes)
        paths = {name: f"after.{settings.fields.get(name, name)}" for name in columns}
        inner = dataclasses.replace(settings, fields=paths | {_OP: "op"})
        self._values: _EnvelopeValues = _EnvelopeValues(inner, (*columns, _OP), stopped, registry)
        self._batch = pa.record_batch([], names=[])
        self._at: dict[int, int] = {}

    def _open(
        self, values: Sequence[bytes | None], lost: Sequence[int] | None
    ) -> tuple[_Opened, Sequence[int]]:
        there = [place for place, value in enumerate(values) if value is not None]
        parsed = self._values.read([values[place] for place in there], 0, lost)
        opened = _Opened({}, {}, {there[row.row]: row.reason for row in parsed.bad})
        for row, what in self._values.others.items():
            del opened.wrong[there[row]]
            opened.skipped[there[row]] = what
        places = [there[row] for row in parsed.rows.tolist()]
        for place, op in zip(places, parsed.batch.column(_OP).to_pylist(), strict=True):
            opened.note(place, op)
        self._batch = parsed.batch
        self._at = {place: row for row, place in enumerate(places)}
        return opened, parsed.lost

    def _rows(self, taken: list[int], wrong: dict[int, str]) -> tuple[pa.RecordBatch, list[int]]:
        rows = pa.array([self._at[place] for place in taken], pa.int64())
        batch = self._batch.select(list(self.names)).take(rows)
        self._batch = self._batch.slice(0, 0)
        is_there = np.zeros(len(taken), np.bool_)
        for column in batch.columns:
            is_there |= np.asarray(column.is_valid())
        # A change that has no row; in a row of a person some column has a value.
        wrong |= {taken[row]: NO_ROW for row in np.flatnonzero(~is_there).tolist()}
        is_good = is_there
        for name, column in zip(self.names, batch.columns, strict=True):
            if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
                found = pc.is_in(column, pa.array(PLACEHOLDERS).cast(column.type))
                lost = np.flatnonzero(np.asarray(found) & is_good)
                wrong |= {taken[row]: _unchanged(name) for row in lost.tolist()}
                is_good[lost] = False
        if not is_good.all():
            batch = batch.filter(pa.array(is_good))
        return batch, [place for place, good in zip(taken, is_good, strict=True) if good]


class _Other(str):
    """What messages of a schema are that aren't changes."""


class _EnvelopeValues(RegisteredValues):
    """The messages of schemas of envelopes; those of Debezium's other schemas are told apart."""

    #: The places of messages that aren't changes, and what they are. They are bad rows too.
    others: dict[int, str]

    def read(
        self,
        values: Sequence[bytes | None],
        first_row: int,
        lost: Sequence[int] | None = None,
    ) -> ParsedRows:
        """Parse messages."""
        self.others = {}
        return super().read(values, first_row, lost)

    def _make(self, schema: Registered) -> Maker:
        try:
            fields = parse_avro(schema.text, schema.references.values()).fields
        except SchemaTextError:
            return super()._make(schema)
        what = _not_a_change(fields)
        if what is None:
            return super()._make(schema)
        other = _Other(what)
        return lambda _: other

    def _read_some(
        self,
        number: int,
        reader: SchemaReader | str,
        who: Ints,
        cursor: Cursor,
        found: list[tuple[Ints, dict[str, pa.Array]]],
        wrong: dict[int, str],
    ) -> None:
        if isinstance(reader, _Other):
            self.others |= dict.fromkeys(who.tolist(), str(reader))
        super()._read_some(number, reader, who, cursor, found, wrong)
