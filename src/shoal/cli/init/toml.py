"""Write TOML: lists of strings, and lines with a comment."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from shoal.job.toml import quote

__all__ = ["comment", "line", "listed"]


def listed(names: Iterable[str]) -> str:
    """Write strings with commas between them."""
    return ", ".join(quote(name) for name in names)


def comment(text: str) -> list[str]:
    """Write a text as lines of comments."""
    return textwrap.wrap(text, 100, initial_indent="# ", subsequent_indent="# ")


def line(text: str, remark: str = "") -> str:
    """Write a line with a comment behind it."""
    return f"{text:<38} # {remark}" if remark else text
