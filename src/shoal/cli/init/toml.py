"""Write TOML: strings, keys, and lines with a comment."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable

__all__ = ["comment", "line", "listed", "quote", "quote_key"]


def quote(text: str) -> str:
    r"""Write a string of TOML.

    >>> print(quote('say "hi"'))
    "say \"hi\""
    """
    # JSON escapes what TOML does, save the delete character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def quote_key(text: str) -> str:
    """Write a key of TOML, with quotes if it needs them.

    >>> print(quote_key("age"), quote_key("date of birth"))
    age "date of birth"
    """
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else quote(text)


def listed(names: Iterable[str]) -> str:
    """Write strings with commas between them."""
    return ", ".join(quote(name) for name in names)


def comment(text: str) -> list[str]:
    """Write a text as lines of comments."""
    return textwrap.wrap(text, 100, initial_indent="# ", subsequent_indent="# ")


def line(text: str, remark: str = "") -> str:
    """Write a line with a comment behind it."""
    return f"{text:<38} # {remark}" if remark else text
