"""Find the anonymizers of this package by name, and those that can enforce a policy.

A public class with a ``name`` in a file of this folder is an anonymizer; nothing is listed by hand.
The files are scanned, not imported, so that asking for the names compiles and loads nothing.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import UnsupportedError
from shoal.scan import Entry, named, scan

if TYPE_CHECKING:
    from shoal.engine.base import Anonymizer
    from shoal.spec.policy import Policy

__all__ = ["DEFAULT", "Entry", "check_support", "default_for", "entries", "find", "names"]

#: The anonymizer that is taken where none is named: for streams, for whole tables, and for values.
DEFAULT, TABLE_DEFAULT, VALUE_DEFAULT = "tide", "tide-table", "z-anonymity"


@cache
def entries() -> tuple[Entry, ...]:
    """Return all anonymizers, ordered by name."""
    return scan(__package__, Path(__file__).parent)


def names() -> tuple[str, ...]:
    """Return the names of all anonymizers, in alphabetical order."""
    return tuple(entry.name for entry in entries())


def find(name: str) -> type[Anonymizer]:
    """Return the anonymizer of that name.

    >>> find("castle")().clusters
    50
    """
    found: type[Anonymizer] = named(entries(), name, key="algorithm.name", what="an anonymizer")
    return found


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
