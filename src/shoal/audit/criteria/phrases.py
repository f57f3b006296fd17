"""Phrases of the reports: counts of boxes and groups."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.audit.evidence import EquivalenceClasses

__all__ = ["below", "plural", "some"]

_SHOWN = 3


def plural(n: int, kind: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "group"), plural(1200, "box")
    ('1 group', '1,200 boxes')
    """
    ending = "" if n == 1 else "es" if kind.endswith("x") else "s"
    return f"{n:,} {kind}{ending}"


def below(classes: EquivalenceClasses, numbers: Sequence[int], n_classes: int) -> str:
    """Return how many classes fail, and which groups; boxes have no numbers in a trace."""
    text = some(classes, numbers, n_classes)
    if classes.kind == "group":
        return f"{text} had when released"
    return f"{text} {'has' if len(numbers) == 1 else 'have'}"


def some(classes: EquivalenceClasses, numbers: Sequence[int], n_classes: int) -> str:
    """Return how many classes of how many, and which groups they are."""
    text = f"{len(numbers):,} of {plural(n_classes, classes.kind)}"
    if classes.kind == "group":
        shown = ", ".join(str(number) for number in numbers[:_SHOWN])
        text += f" ({shown}{', …' if len(numbers) > _SHOWN else ''})"
    return text
