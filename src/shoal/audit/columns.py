"""Turn Arrow columns into arrays that can be compared, from any file format.

Text formats have no types: a number may be text in one file and a number in the other, and an
empty field may be null. So values are compared by what they mean. No error of a parser leaves this
module: its message would quote a value.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = [
    "Array",
    "canonical_text",
    "codes",
    "column",
    "combined_codes",
    "distinct_codes",
    "encoded",
    "integers",
    "is_bytes",
    "is_missing",
    "is_number",
    "is_text",
    "mask",
    "not_finite_alike",
    "numbers",
    "positions",
    "same",
    "shared_codes",
    "take",
    "trace_text",
    "visible_text",
]

#: A whole number with a decimal point, and a fraction that ends in zeros.
_WHOLE, _FRACTION = re.compile(r"[+-]?[0-9]+\.0*"), re.compile(r"[+-]?[0-9]*\.[0-9]*[1-9]0+")

#: An Arrow array. Arrow's own type hints differ too much from version to version to be relied on.
Array: TypeAlias = Any


def is_text(kind: Any) -> bool:
    """Return whether a type is text; a dictionary of text is."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_number(kind: Any) -> bool:
    """Return whether a type is numeric."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def is_bytes(kind: Any) -> bool:
    """Return whether a type is binary, of fixed or of variable length."""
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def column(table: pa.Table, name: str) -> Array | None:
    """Return the first column of that name as one plain array, empty text as null, or None."""
    names = table.schema.names
    if name not in names:
        return None
    chunked = table.column(names.index(name))
    if pa.types.is_dictionary(chunked.type):
        chunked = chunked.cast(chunked.type.value_type)
    if is_text(chunked.type):
        chunked = chunked.cast(pa.large_string())
    elif is_bytes(chunked.type):
        chunked = chunked.cast(pa.large_binary())
    array: Array = (
        pa.concat_arrays(chunked.chunks) if chunked.chunks else pa.array([], chunked.type)
    )
    if is_text(array.type):
        array = pc.if_else(pc.equal(array, pa.scalar("")), pa.scalar(None, array.type), array)
    return array


def is_missing(array: Array) -> NDArray[np.bool_]:
    """Return which values are missing: null, or text of blanks only.

    >>> is_missing(pa.array(["x", None, "", "  "])).tolist()
    [False, True, True, True]
    """
    if is_text(array.type):
        array = pc.utf8_trim_whitespace(array)
        return mask(pc.equal(array, "").fill_null(True))
    if is_bytes(array.type):
        return mask(pc.equal(pc.binary_length(array.cast(pa.large_binary())), 0).fill_null(True))
    return mask(array.is_null())


def take(array: Array, positions: NDArray[np.int64]) -> Array:
    """Return the elements at these positions."""
    indices: Array = pa.array(positions)
    return array.take(indices)


def encoded(array: Array) -> tuple[NDArray[np.int64], list[Any]]:
    """Return the codes of an array, as `codes` does, and the value of each code."""
    found: Array = pc.dictionary_encode(array, null_encoding="encode")
    indices = np.asarray(found.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    return indices, found.dictionary.to_pylist()


def codes(array: Array) -> NDArray[np.int64]:
    """Number the different values of an array from 0; null is a value of its own.

    >>> codes(pa.array(["b", None, "b", "a"])).tolist()
    [0, 1, 0, 2]
    """
    found: Array = pc.dictionary_encode(array, null_encoding="encode")
    return np.asarray(found.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def distinct_codes(array: Array) -> NDArray[np.int64]:
    """Number what an outsider would take for different subjects or sensitive values.

    One person may be written in several ways (7 and 7.0, with and without blanks, é as one or as
    two characters), and must not count as several.

    >>> distinct_codes(pa.array(["7", " 7.0", None, "", "8"])).tolist()
    [0, 0, 1, 1, 2]
    """
    return shared_codes(array)[0]


def shared_codes(*arrays: Array) -> tuple[NDArray[np.int64], ...]:
    """Number the values of several columns as `distinct_codes` does, with the same numbers in all.

    >>> [numbers.tolist() for numbers in shared_codes(pa.array(["7", "8"]), pa.array([8, 9]))]
    [[0, 1], [1, 2]]
    """
    numbers_of: dict[object, int] = {}
    found = []
    for array in arrays:
        indices, values = encoded(array)
        spelling = [
            numbers_of.setdefault(canonical_text(value), len(numbers_of)) for value in values
        ]
        found.append(np.asarray(spelling, dtype=np.int64)[indices])
    return tuple(found)


def canonical_text(value: object) -> str:
    """Return the one text for all ways to write a value.

    >>> canonical_text(7.0), canonical_text(" 7.50 "), canonical_text(None)
    ('7', '7.5', '')
    """
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        value = int(value) if value.is_integer() else "" if math.isnan(value) else value
    text = visible_text(value)
    # Leading zeros distinguish codes; trailing ones behind a point don't distinguish numbers.
    if _WHOLE.fullmatch(text) or _FRACTION.fullmatch(text):
        text = text.rstrip("0").removesuffix(".")
    return text


def visible_text(value: object) -> str:
    """Return the one text for all that reads the same; numbers that are text stay as they are.

    >>> visible_text(" 7.50 "), visible_text(None)
    ('7.50', '')
    """
    text = "" if value is None else str(value)
    if not text.isascii():
        # An invisible character may stand between two that are one when composed.
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
        text = unicodedata.normalize("NFC", text)
    return text.strip()


def trace_text(array: Array) -> Array:
    """Return values as a trace has them: Arrow's text, bytes in hexadecimal digits.

    >>> trace_text(pa.array([True, None])).to_pylist(), trace_text(pa.array([b"\\xff"])).to_pylist()
    (['true', None], ['ff'])
    """
    if is_bytes(array.type):
        texts = [None if value is None else value.hex() for value in array.to_pylist()]
        return pa.array(texts, pa.large_string())
    return array.cast(pa.large_string())


def combined_codes(*keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the different combinations of several arrays of codes, from 0.

    >>> combined_codes(np.array([0, 0, 1]), np.array([5, 5, 5])).tolist()
    [0, 0, 1]
    """
    joint = codes(pa.array(keys[0]))
    for key in keys[1:]:
        width = int(key.max(initial=0)) + 1
        joint = codes(pa.array(joint * width + key))
    return joint


def integers(array: Array) -> NDArray[np.int64]:
    """Return whole numbers, with -1 for null and for what isn't a whole number."""
    found = numbers(array)
    with np.errstate(invalid="ignore"):
        good = np.isfinite(found) & (found == np.floor(found)) & (np.abs(found) < 2.0**53)
    return np.where(good, found, -1).astype(np.int64)


def numbers(array: Array) -> NDArray[np.float64]:
    """Return numbers as float64, parsed from text, times as seconds; NaN for anything else.

    >>> numbers(pa.array(["1", " 2.5", "x", None])).tolist()
    [1.0, 2.5, nan, nan]
    """
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("s"))
    kind = array.type
    if pa.types.is_timestamp(kind):
        ticks = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        return numbers(array.cast(pa.int64())) / ticks
    if is_text(kind):
        trimmed = pc.utf8_trim_whitespace(array)
        try:
            array = trimmed.cast(pa.float64())
        except pa.ArrowInvalid:
            return _parsed(trimmed)
    elif not is_number(kind):
        return np.full(len(array), np.nan)
    plain = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(plain, dtype=np.float64)


def _parsed(array: Array) -> NDArray[np.float64]:
    indices, texts = encoded(array)
    parsed = np.full(len(texts), np.nan)
    for code, text in enumerate(texts):
        try:
            parsed[code] = float(text)
        except (TypeError, ValueError):
            continue
    return parsed[indices]


def same(one: Array, other: Array) -> NDArray[np.bool_]:
    """Return row by row whether two columns hold the same value; null equals null only.

    >>> same(pa.array(["1", "x", None]), pa.array([1, 2, None])).tolist()
    [True, False, True]
    """
    nulls = mask(pc.is_null(one)) & mask(pc.is_null(other))
    kinds = (one.type, other.type)
    if any(map(pa.types.is_null, kinds)):
        # Arrow compares nothing with a column of nulls.
        return nulls
    numeric = [is_number(kind) for kind in kinds]
    whole = all(map(pa.types.is_integer, kinds))
    if not whole and (all(numeric) or (any(numeric) and any(map(is_text, kinds)))):
        equal = _equal_numbers(one, other)
    else:
        try:
            if kinds[0] != kinds[1]:
                one, other = (pc.utf8_lower(a.cast(pa.large_string())) for a in (one, other))
            found: Array = pc.equal(one, other)
            equal = mask(found.fill_null(False))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            # Lists, maps, or bytes that are no text: Arrow doesn't compare them.
            equal = np.array(
                [a == b for a, b in zip(one.to_pylist(), other.to_pylist(), strict=True)], np.bool_
            )
    return equal | nulls


def not_finite_alike(shown: Array, given: Array) -> NDArray[np.bool_]:
    """Return where a number that isn't finite is published as text has it.

    JSON has no infinities and no NaN, and writes null; CSV writes ``nan``, which is no number.

    >>> not_finite_alike(pa.array([None, "nan", "7"]), pa.array([np.inf, np.nan, np.nan])).tolist()
    [True, True, False]
    """
    if not is_number(given.type):
        return np.zeros(len(given), np.bool_)
    values = numbers(given)
    alike = mask(pc.is_null(shown)) & mask(pc.is_valid(given)) & ~np.isfinite(values)
    if is_text(shown.type):
        is_nan = mask(pc.equal(pc.utf8_lower(shown), "nan").fill_null(False))
        alike |= is_nan & mask(pc.is_valid(given)) & np.isnan(values)
    return np.asarray(alike, dtype=np.bool_)


def _equal_numbers(one: Array, other: Array) -> NDArray[np.bool_]:
    left, right = numbers(one), numbers(other)
    both_nan = np.isnan(left) & np.isnan(right)
    # A text that can't be parsed is NaN here as well, so a null or a NaN must stand on both sides.
    real_nan = mask(pc.is_valid(one)) & mask(pc.is_valid(other))
    for array in (one, other):
        real_nan &= is_number(array.type)
    return np.asarray((left == right) | (both_nan & real_nan), dtype=np.bool_)


def mask(array: Array) -> NDArray[np.bool_]:
    """Return an Arrow array of booleans as a NumPy array."""
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)


def positions(array: Array, names: Sequence[str], unknown: int) -> NDArray[np.int64]:
    """Return where each text is among the names; -1 for null."""
    indices, texts = encoded(array)
    place = {name: i for i, name in enumerate(names)} | {None: -1}
    return np.array([place.get(text, unknown) for text in texts], dtype=np.int64)[indices]
