"""Read the envelopes of changes in JSON, with or without a schema in each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from shoal.io.kafka.debezium import PLACEHOLDERS, Convert, converters, is_unavailable
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
from shoal.io.kafka.parsed import Values, load_json

__all__ = ["JsonEnvelopes"]

_UNAVAILABLE = frozenset(PLACEHOLDERS)
_ENCODE = json.JSONEncoder().encode


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
    ) -> tuple[Opened, Sequence[int]]:
        opened = Opened({}, {}, {})
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
            elif op not in (*SKIPPED_OPS, *CHANGING_OPS) and (what := not_a_change(envelope)):
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
                except (KeyError, TypeError, ValueError):
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
                return unchanged(name)
            if value is not None and name in converts:
                try:
                    value = converts[name](value)
                except (KeyError, OverflowError, TypeError, ValueError):
                    return f"column {name} isn't a value of its type, or out of the range of times"
            row[name] = value
        return row
