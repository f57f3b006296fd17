"""Find the anonymizers of this package by name, and those that can enforce a policy.

A public class with a ``name`` in a file of this folder is an anonymizer; nothing is listed by hand.
The files are scanned, not imported, so that asking for the names compiles and loads nothing.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from shoal.errors import ParameterError, UnsupportedError, did_you_mean

if TYPE_CHECKING:
    from shoal.engine.base import Anonymizer
    from shoal.spec.policy import Policy

__all__ = ["DEFAULT", "Entry", "check_support", "default_for", "entries", "find", "names"]

#: The anonymizer that is taken where none is named: for streams, for whole tables, and for values.
DEFAULT, TABLE_DEFAULT, VALUE_DEFAULT = "tide", "tide-table", "z-anonymity"


class Entry(NamedTuple):
    """An anonymizer: its name in a job, its class, and the module of that, not yet imported."""

    name: str
    class_name: str
    module: str

    def load(self) -> type[Anonymizer]:
        """Import the module and return the class."""
        found: type[Anonymizer] = getattr(importlib.import_module(self.module), self.class_name)
        return found


@cache
def entries() -> tuple[Entry, ...]:
    """Return all anonymizers, ordered by name."""
    return tuple(sorted(e for path in Path(__file__).parent.glob("*.py") for e in _scan(path)))


def _scan(path: Path) -> Iterator[Entry]:
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for line in node.body:
                match line:
                    case ast.AnnAssign(ast.Name("name"), value=ast.Constant(str(name))):
                        yield Entry(name, node.name, f"{__package__}.{path.stem}")


def names() -> tuple[str, ...]:
    """Return the names of all anonymizers, in alphabetical order."""
    return tuple(entry.name for entry in entries())


def find(name: str) -> type[Anonymizer]:
    """Return the anonymizer of that name.

    >>> find("castle")().clusters
    50
    """
    for entry in entries():
        if entry.name == name:
            return entry.load()
    raise ParameterError(
        "algorithm.name", "isn't the name of an anonymizer", got=repr(name),
        fix=did_you_mean(name, names()),
    )  # fmt: skip


def default_for(policy: Policy) -> str:
    """Return the name of the anonymizer that is taken where none is named.

    >>> from shoal.spec.policy import Delay, KAnonymity, Policy
    >>> default_for(Policy(KAnonymity(10), delay=Delay(rows=1000)))
    'tide'
    >>> default_for(Policy(KAnonymity(10), window="all"))
    'tide-table'
    """
    if policy.z:
        return VALUE_DEFAULT
    return TABLE_DEFAULT if policy.window == "all" else DEFAULT


def check_support(anonymizer: Anonymizer, policy: Policy) -> None:
    """Raise if the anonymizer can't enforce the policy, and name those that can.

    >>> from shoal.algorithms import Fast
    >>> from shoal.spec.policy import Delay, EntropyLDiversity, Policy
    >>> check_support(Fast(), Policy(EntropyLDiversity(3), delay=Delay(rows=100)))
    Traceback (most recent call last):
    ...
    shoal.errors.UnsupportedError: algorithm: 'fast' can't enforce entropy l-diversity. ...
    """
    try:
        anonymizer.check(policy)
    except UnsupportedError as error:
        if error.problems[0].fix is not None:
            raise
        able = [name for name in names() if _can(name, policy)]
        could = [name for name in names() if _could(name, policy)]
        fix = "No anonymizer can"
        if able:
            fix = f"These can: {', '.join(able)}"
        elif could:
            fix = f"With another window or delay these can: {', '.join(could)}"
        raise UnsupportedError(error.problems[0].what, fix=fix) from None


def _can(name: str, policy: Policy) -> bool:
    try:
        find(name)().check(policy)
    except UnsupportedError:
        return False
    return True


def _could(name: str, policy: Policy) -> bool:
    """Whether an anonymizer can enforce the criteria, given another window or delay."""
    return all(isinstance(criterion, find(name).enforces) for criterion in policy.criteria)
