"""Find the values that say they are text and aren't UTF-8."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

__all__ = ["broken_rows", "is_utf8", "is_utf8_text"]


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8.

    >>> is_utf8("é".encode()), is_utf8("é".encode("latin-1"))
    (True, False)
    """
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_utf8_text(text: str) -> bool:
    """Whether a text can be written as UTF-8: it has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def broken_rows(array: pa.Array) -> Iterable[int]:
    """Give the places of values that aren't UTF-8 in an array of text, dictionary or not.

    Raises
    ------
    pyarrow.ArrowInvalid
        If the array is broken in any other way.
    """
    try:
        array.validate(full=True)
        if pa.types.is_dictionary(array.type):
            array.dictionary.validate(full=True)
    except pa.ArrowInvalid:
        array.validate()
        values = array.dictionary if pa.types.is_dictionary(array.type) else array
        if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            raise
        plain = pa.binary() if pa.types.is_string(values.type) else pa.large_binary()
        byte_ranges = values.view(plain)
        byte_ranges.validate(full=True)
        broken = {
            place
            for place, value in enumerate(byte_ranges)
            if value.is_valid and not is_utf8(value.as_py())
        }
        if not pa.types.is_dictionary(array.type):
            return sorted(broken)
        array.indices.validate(full=True)
        return [place for place, code in enumerate(array.indices.to_pylist()) if code in broken]
    return ()
