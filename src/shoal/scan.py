"""Find the named classes of a package without importing its modules."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from shoal.errors import ParameterError, did_you_mean

__all__ = ["Entry", "named", "scan"]


class Entry(NamedTuple):
    """A class with a ``name``: that name, the class, and its module, not yet imported."""

    name: str
    class_name: str
    module: str

    def load(self) -> Any:
        """Import the module and return the class."""
        return getattr(importlib.import_module(self.module), self.class_name)


def scan(package: str, folder: Path) -> tuple[Entry, ...]:
    """Return the public classes with a ``name`` in the files of a folder, ordered by name.

    Parameters
    ----------
    package
        The name of the package.
    folder
        Where its files are.
    """
    return tuple(sorted(e for path in folder.glob("*.py") for e in _entries(package, path)))


def _entries(package: str, path: Path) -> Iterator[Entry]:
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for line in node.body:
                match line:
                    case ast.AnnAssign(ast.Name("name"), value=ast.Constant(str(name))):
                        yield Entry(name, node.name, f"{package}.{path.stem}")


def named(entries: tuple[Entry, ...], name: str, *, key: str, what: str) -> Any:
    """Return the class of that name; raise, with the name that was meant, if there is none.

    Parameters
    ----------
    entries
        All that there are.
    name
        The one that is looked for.
    key, what
        What was set to it, and what it should be the name of.
    """
    for entry in entries:
        if entry.name == name:
            return entry.load()
    known = [entry.name for entry in entries]
    raise ParameterError(
        key, f"isn't the name of {what}", got=repr(name), fix=did_you_mean(name, known)
    )
