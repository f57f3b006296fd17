"""Which values every parser reads in the same way, and which may be read differently."""

from __future__ import annotations

import math
import re

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.audit.columns import Array, encoded, is_text, numbers, take

__all__ = ["EXACT", "MOMENT", "NUMBER", "is_unclear", "of_another_type"]

Mask = NDArray[np.bool_]

#: Numbers and times that every parser reads in the same way.
WHOLE = re.compile(r"-?[0-9]{1,15}")
NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
#: Text that every reader takes for text: it begins with a letter, and is no boolean or null.
_TEXT = re.compile(r"(?!(?i:true|false|nan|null|none|na|inf|infinity)$)[^\W\d_].*", re.DOTALL)
#: Floats above it can't distinguish people.
EXACT = 2.0**53


def is_unclear(array: Array, *plain: re.Pattern[str]) -> Mask:
    """Return which texts parsers may read differently."""
    if not is_text(array.type):
        return np.zeros(len(array), dtype=np.bool_)
    indices, values = encoded(array)
    unclear = [
        value is not None and not any(one.fullmatch(value.strip()) for one in plain)
        for value in values
    ]
    return np.array(unclear, dtype=np.bool_)[indices]


def of_another_type(array: Array, places: NDArray[np.int64]) -> Mask:
    """Return which values may not have fitted the type that a column had at first.

    Readers infer types part by part, so a column of numbers may become text later. A column of text
    that begins with letters takes everything.
    """
    nothing = np.zeros(len(places), dtype=np.bool_)
    given, shown = array.drop_null(), take(array, places)
    if not len(given) or pa.types.is_integer(array.type) or pa.types.is_boolean(array.type):
        return nothing
    first = given[0].as_py()
    if is_text(array.type):
        if _TEXT.fullmatch(first):
            return nothing
        for number in (WHOLE, NUMBER):
            if number.fullmatch(first):
                return is_unclear(shown, number)
    if pa.types.is_floating(array.type):
        is_broken = np.modf(numbers(shown))[0] != 0
        return is_broken if math.isfinite(first) and first.is_integer() else nothing
    return np.asarray(shown.is_valid())
