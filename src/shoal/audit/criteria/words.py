"""How the checkers of criteria put their counts into words."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.audit.evidence import Crowds

__all__ = ["below", "plural", "some"]

_SHOWN = 3


def plural(n: int, kind: str) -> str:
    """A count with its noun.

    >>> plural(1, "group"), plural(1200, "box")
    ('1 group', '1,200 boxes')
    """
    ending = "" if n == 1 else "es" if kind.endswith("x") else "s"
    return f"{n:,} {kind}{ending}"


def below(crowds: Crowds, numbers: Sequence[int], n_crowds: int) -> str:
    """Say how many crowds fail, and which groups; the number of a box would say nothing."""
    text = some(crowds, numbers, n_crowds)
    if crowds.kind == "group":
        return f"{text} had when released"
    return f"{text} {'has' if len(numbers) == 1 else 'have'}"


def some(crowds: Crowds, numbers: Sequence[int], n_crowds: int) -> str:
    """How many crowds of how many, and which groups they are."""
    text = f"{len(numbers):,} of {plural(n_crowds, crowds.kind)}"
    if crowds.kind == "group":
        shown = ", ".join(str(number) for number in numbers[:_SHOWN])
        text += f" ({shown}{', …' if len(numbers) > _SHOWN else ''})"
    return text
