"""Find the attacks of this package by name.

A public class with a ``name`` in a file of this folder is an attack; nothing is listed by hand. The
files are scanned, not imported.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from shoal.attacks.base import Attack
from shoal.scan import Entry, named, scan

__all__ = ["Entry", "entries", "find", "names"]


@cache
def entries() -> tuple[Entry, ...]:
    """Return all attacks, ordered by name."""
    return scan(__package__, Path(__file__).parent)


def names() -> tuple[str, ...]:
    """Return the names of all attacks, in alphabetical order."""
    return tuple(entry.name for entry in entries())


def find(name: str) -> type[Attack]:
    """Return the attack of that name.

    >>> find("linking").needs_trace
    True
    """
    found: type[Attack] = named(entries(), name, key="attacks", what="an attack")
    return found
