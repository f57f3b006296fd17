"""Find the attacks of this package by name.

A public class with a ``name`` in a file of this folder is an attack; nothing is listed by hand. The
files are scanned, not imported.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from shoal.attacks.base import Attack
from shoal.errors import ParameterError, did_you_mean

__all__ = ["Entry", "entries", "find", "names"]


class Entry(NamedTuple):
    """An attack: its name, its class, and the module of that, not yet imported."""

    name: str
    class_name: str
    module: str

    def load(self) -> type[Attack]:
        """Import the module and return the class."""
        found: type[Attack] = getattr(importlib.import_module(self.module), self.class_name)
        return found


@cache
def entries() -> tuple[Entry, ...]:
    """Return all attacks, ordered by name."""
    return tuple(sorted(e for path in Path(__file__).parent.glob("*.py") for e in _scan(path)))


def _scan(path: Path) -> Iterator[Entry]:
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for line in node.body:
                match line:
                    case ast.AnnAssign(ast.Name("name"), value=ast.Constant(str(name))):
                        yield Entry(name, node.name, f"{__package__}.{path.stem}")


def names() -> tuple[str, ...]:
    """Return the names of all attacks, in alphabetical order."""
    return tuple(entry.name for entry in entries())


def find(name: str) -> type[Attack]:
    """Return the attack of that name.

    >>> find("linking").needs_trace
    True
    """
    for entry in entries():
        if entry.name == name:
            return entry.load()
    raise ParameterError(
        "attacks", "isn't the name of an attack", got=repr(name), fix=did_you_mean(name, names())
    )
