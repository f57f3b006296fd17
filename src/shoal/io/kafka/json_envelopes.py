"""Read the envelopes of changes in JSON, with or without a schema in each."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from shoal.io.kafka.debezium import PLACEHOLDERS, Convert, converters, is_unavailable
from shoal.io.kafka.envelope_columns import read_changes
from shoal.io.kafka.envelopes import (
    CHANGING_OPS,
    NO_ROW,
    SKIPPED_OPS,
    TOMBSTONE,
    UNKNOWN,
    Envelopes,
    Opened,
    not_a_change,
    unchanged,
)
from shoal.io.kafka.parsed import LearnedValues, load_json

__all__ = ["JsonEnvelopes"]

_UNAVAILABLE = frozenset(PLACEHOLDERS)
_ENCODE = json.JSONEncoder().encode
#: How a message with a schema begins, and what is between its schema and its envelope.
_SCHEMA, _PAYLOAD = b'{"schema":', b'"payload":{'
_N_BEFORE = len(_PAYLOAD) - 1

#: The row after a change, and how its values are converted.
_After: TypeAlias = tuple[Any, Mapping[str, Convert]]


class _Group(NamedTuple):
    """Messages whose values are converted alike: their places, and the texts of their envelopes."""

    converts: Mapping[str, Convert]
    places: list[int]
    texts: list[bytes]


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

    #: Fewer messages are read one by one.
    _enough = 16

    def __init__(self, values: LearnedValues, changes: str) -> None:
        super().__init__(values.names, changes)
        self._values = self._rows_in_json = values
        self._after: dict[int, _After] = {}
        #: The bytes of the latest schema, up to the payload, and how its values are converted.
        self._head = b""
        self._converts: Mapping[str, Convert] = {}
        #: The messages, and those rows that were read column by column, by their places.
        self._messages: Sequence[bytes | None] = ()
        self._at: dict[int, int] = {}
        self._batches: list[pa.RecordBatch] = []

    def _open(
        self, values: Sequence[bytes | None], lost: Sequence[int] | None
    ) -> tuple[Opened, Sequence[int]]:
        opened = Opened({}, {}, {})
        self._clear()
        self._messages = values
        known = self._rows_in_json.known if len(values) >= self._enough else None
        if known is None:
            for place, value in enumerate(values):
                if value is not None:
                    self._open_one(place, value, opened)
            return opened, ()
        for group in self._groups(values, opened):
            changes = read_changes(group.texts, known, group.converts)
            places = [group.places[n] for n in changes.places]
            first = len(self._at)
            self._at.update(zip(places, itertools.count(first), strict=False))
            self._batches.append(changes.rows)
            opened.ops.update(zip(places, changes.ops, strict=True))
            if len(places) < len(group.places):
                for place in group.places:
                    value = values[place]
                    if place not in self._at and value is not None:
                        self._open_one(place, value, opened)
        return opened, ()

    def _groups(self, values: Sequence[bytes | None], opened: Opened) -> list[_Group]:
        """Sort messages by their schema; those that are in no group are opened."""
        places: list[int] = []
        texts: list[bytes] = []
        groups, current = [_Group({}, places, texts)], None
        head, begin, n_head = self._head, self._head + _PAYLOAD, len(self._head) + _N_BEFORE
        for place, value in enumerate(values):
            if value is None:
                continue
            if not value.startswith(_SCHEMA):
                places.append(place)
                texts.append(value)
            elif head and value.startswith(begin) and value.endswith(b"}}"):
                if current is None:
                    current = _Group(self._converts, [], [])
                    groups.append(current)
                current.places.append(place)
                current.texts.append(value[n_head:-1])
            else:
                self._open_one(place, value, opened)
                if self._head is not head:
                    head, current = self._head, None
                    begin, n_head = head + _PAYLOAD, len(head) + _N_BEFORE
        return [group for group in groups if group.places]

    def _open_one(self, place: int, value: bytes, opened: Opened) -> None:
        """Find out what a message is."""
        envelope, converts = self._envelope(value)
        if envelope is None:
            opened.skipped[place] = TOMBSTONE
            return
        if isinstance(envelope, str):
            opened.wrong[place] = envelope
            return
        op = envelope.get("op")
        if op is not None and not isinstance(op, str):
            opened.wrong[place] = UNKNOWN
        elif op not in (*SKIPPED_OPS, *CHANGING_OPS) and (what := not_a_change(envelope)):
            opened.skipped[place] = what
        elif opened.note(place, op):
            self._after[place] = envelope.get("after"), converts

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
        found = self._rows_of_columns(taken, wrong) if self._at else None
        if found is None:
            for place in taken:
                if place in self._at:
                    envelope, converts = self._envelope(self._messages[place] or b"")
                    assert isinstance(envelope, dict)
                    self._after[place] = envelope.get("after"), converts
            rows, places = self._plain_rows(taken, wrong)
            parsed = self._values.read([_lines(rows)] if rows else [], 0)
            wrong |= {places[row.row]: row.reason for row in parsed.bad}
            found = parsed.batch, [places[row] for row in parsed.rows.tolist()]
        self._clear()
        return found

    def _rows_of_columns(
        self, taken: list[int], wrong: dict[int, str]
    ) -> tuple[pa.RecordBatch, list[int]] | None:
        """Return the rows, of which most were read column by column; note those that can't be read.

        Returns None, and notes nothing, if a row isn't of the types that were learned: what they
        become depends on all rows of the messages.
        """
        at = self._at
        places, batches, unread = taken, self._batches, dict[int, str]()
        if others := [place for place in taken if place not in at]:
            rows, read = self._plain_rows(others, unread)
            if rows:
                batch = self._rows_in_json.read_known(_lines(rows))
                if batch is None:
                    return None
                at = at | dict(zip(read, itertools.count(len(at)), strict=False))
                batches = [*batches, batch]
            places = [place for place in taken if place in at]
        wrong |= unread
        whole = pa.concat_batches(batches) if len(batches) > 1 else batches[0]
        rows_at = np.fromiter(map(at.__getitem__, places), np.int64, len(places))
        if not np.array_equal(rows_at, np.arange(whole.num_rows)):
            whole = whole.take(pa.array(rows_at))
        return whole, places

    def _clear(self) -> None:
        self._after.clear()
        self._at, self._batches, self._messages = {}, [], ()

    def _plain_rows(
        self, taken: list[int], wrong: dict[int, str]
    ) -> tuple[list[dict[str, Any]], list[int]]:
        """Return the wanted values of opened rows, and their places; note why others have none."""
        rows, places = [], []
        for place in taken:
            row = self._plain(*self._after[place])
            if isinstance(row, str):
                wrong[place] = row
            else:
                rows.append(row)
                places.append(place)
        return rows, places

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
                return unchanged(name)
            if value is not None and name in converts:
                try:
                    value = converts[name](value)
                except (KeyError, OverflowError, TypeError, ValueError):
                    return f"column {name} isn't a value of its type, or out of the range of times"
            row[name] = value
        return row


def _lines(rows: list[dict[str, Any]]) -> bytes:
    """Return rows as one message of many lines, which are parsed together."""
    return "\n".join(map(_ENCODE, rows)).encode()
