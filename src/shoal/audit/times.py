"""Read times from any Arrow column, as seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.audit.columns import Array, encoded, is_number, is_text, numbers

__all__ = ["seconds"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)


def seconds(array: Array) -> NDArray[np.float64]:
    """Return times in seconds, from numbers, timestamps, or text; NaN for anything else.

    >>> seconds(pa.array(["5", "1970-01-01T00:01:00", "1970-01-01 01:00:00+01:00", "x"])).tolist()
    [5.0, 60.0, 0.0, nan]
    """
    kind = array.type
    if pa.types.is_timestamp(kind):
        micros = array.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        return numbers(micros) / 1e6
    found = numbers(array)
    if is_number(kind) or not is_text(kind) or not np.isnan(found).any():
        return found
    indices, words = encoded(pc.utf8_trim_whitespace(array))
    clock = np.array([_moment(word) for word in words], dtype=np.float64)
    return np.where(np.isnan(found), clock[indices], found)


def _moment(word: str | None) -> float:
    try:
        moment = datetime.fromisoformat(word or "")
    except ValueError:
        return float("nan")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return ((moment - _EPOCH) // _MICRO) / 1e6
