"""The kinds of values that columns of messages have, and what happens when one changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

__all__ = ["KINDS", "arrow_type", "fits", "scale_of"]

#: Kinds, and the Arrow types of their columns. There is one of decimals for each scale.
KINDS: Mapping[str, Any] = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp in nanoseconds": pa.timestamp("ns", "UTC"),
    "local timestamp": pa.timestamp("us"),
    "local timestamp in nanoseconds": pa.timestamp("ns"),
}
_DECIMAL = "decimal of scale "


def arrow_type(kind: str) -> Any:
    """Return the Arrow type of a kind.

    >>> arrow_type("text"), arrow_type("decimal of scale 2")
    (DataType(string), Decimal128Type(decimal128(38, 2)))
    """
    scale = scale_of(kind)
    return KINDS[kind] if scale is None else pa.decimal128(38, scale)


def scale_of(kind: str) -> int | None:
    """Return the scale of a decimal; None for other kinds."""
    return int(kind.removeprefix(_DECIMAL)) if kind.startswith(_DECIMAL) else None


def fits(kind: str, known: str) -> bool:
    """Return whether values of a kind can be read into a column of a known one.

    >>> fits("integer", "number"), fits("number", "integer")
    (True, False)
    """
    return kind == known or (kind == "integer" and known == "number")
