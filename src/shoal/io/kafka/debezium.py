"""The values of Debezium's JSON: what a field's schema says about them, and how they are written.

Debezium writes dates and times as numbers, and exact decimals as bytes. With the schema in the
message they become texts that say the same: ``2024-02-29``, ``2024-02-29T12:30:00``, ``12.50``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

__all__ = ["PLACEHOLDERS", "Convert", "converters", "is_unavailable"]

#: What Debezium sends in place of a large value that an update didn't change.
PLACEHOLDERS = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")


@dataclass(frozen=True, slots=True)
class Convert:
    """Makes a plain value, a text, of one that is stored otherwise.

    A call raises `ValueError`, `TypeError`, `OverflowError` or `KeyError` if it can't be one.
    """

    #: What is stored.
    stored: pa.DataType
    make: Callable[[Any], str]

    def __call__(self, value: Any) -> str:
        """Return the text."""
        return self.make(value)


_EPOCH = datetime(1970, 1, 1)
_MOST_DIGITS = 38
#: The most characters that so many digits take.
_MOST_BASE64 = 24


def is_unavailable(value: object) -> bool:
    """Return whether a value isn't there, since the database didn't send it.

    >>> is_unavailable("__debezium_unavailable_value"), is_unavailable("a text")
    (True, False)
    """
    return value in PLACEHOLDERS


def converters(schema: Any, columns: Sequence[str]) -> dict[str, Convert]:
    """Return how the values of columns are converted, as the schema of an envelope says.

    Columns whose values stay as they are aren't in it.

    >>> born = {"field": "born", "type": "int32", "name": "io.debezium.time.Date"}
    >>> row = {"field": "after", "type": "struct", "fields": [born]}
    >>> converters({"type": "struct", "fields": [row]}, ["born"])["born"](19782)
    '2024-02-29'
    """
    fields = {field["field"]: field for field in _fields(schema) if "field" in field}
    row = {field["field"]: field for field in _fields(fields.get("after")) if "field" in field}
    found = {}
    for name in columns:
        convert = _convert(row[name]) if name in row else None
        if convert is not None:
            found[name] = convert
    return found


def _fields(schema: Any) -> list[dict[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return [one for one in fields if isinstance(one, dict)] if isinstance(fields, list) else []


def _convert(field: Mapping[str, Any]) -> Convert | None:
    name = field.get("name")
    if name == "org.apache.kafka.connect.data.Decimal":
        parameters = field.get("parameters")
        scale = int(parameters["scale"]) if isinstance(parameters, dict) else 0
        return Convert(pa.string(), lambda value: _decimal(value, scale))
    return _CONVERTS.get(name) if isinstance(name, str) else None


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _date(value: Any) -> str:
    return (date(1970, 1, 1) + timedelta(days=_whole(value))).isoformat()


def _moment(per_second: int, zone: Any = None) -> Convert:
    def convert(value: Any) -> str:
        # Nanoseconds are cut off: times are read in microseconds.
        micros = _whole(value) * 1_000_000 // per_second
        return (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=zone).isoformat()

    return Convert(pa.int64(), convert)


def _time(per_second: int) -> Convert:
    def convert(value: Any) -> str:
        micros = _whole(value) * 1_000_000 // per_second
        if not 0 <= micros < 86_400_000_000:
            raise ValueError
        return (_EPOCH + timedelta(microseconds=micros)).time().isoformat()

    return Convert(pa.int64(), convert)


def _decimal(value: Any, scale: int) -> str:
    """Return a decimal as text; it is the base64 of a signed number of its smallest units."""
    if not isinstance(value, str):
        raise TypeError
    if len(value) > _MOST_BASE64:
        raise ValueError
    try:
        data = base64.b64decode(value, validate=True)
    except binascii.Error:
        raise ValueError from None
    number = Decimal(int.from_bytes(data, "big", signed=True))
    if not data or len(number.as_tuple().digits) > _MOST_DIGITS or abs(scale) > _MOST_DIGITS:
        raise ValueError
    return f"{number.scaleb(-scale, Context(prec=2 * _MOST_DIGITS)):f}"


def _variable(value: Any) -> str:
    return _decimal(value["value"], _whole(value["scale"]))


_VARIABLE = pa.struct([("scale", pa.int64()), ("value", pa.string())])
_CONVERTS: dict[str, Convert] = {
    "io.debezium.time.Date": Convert(pa.int64(), _date),
    "org.apache.kafka.connect.data.Date": Convert(pa.int64(), _date),
    "io.debezium.time.Timestamp": _moment(1000),
    "io.debezium.time.MicroTimestamp": _moment(1_000_000),
    "io.debezium.time.NanoTimestamp": _moment(1_000_000_000),
    "org.apache.kafka.connect.data.Timestamp": _moment(1000, UTC),
    "io.debezium.time.Time": _time(1000),
    "io.debezium.time.MicroTime": _time(1_000_000),
    "io.debezium.time.NanoTime": _time(1_000_000_000),
    "org.apache.kafka.connect.data.Time": _time(1000),
    "io.debezium.data.VariableScaleDecimal": Convert(_VARIABLE, _variable),
}
