"""Check whether bytes and strings are UTF-8."""

from __future__ import annotations

__all__ = ["is_utf8", "is_utf8_text"]


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8.

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
    """Return whether a string can be encoded as UTF-8: it has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
