"""Which function checks which criterion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict
from shoal.spec.criteria import Criterion

__all__ = ["Checker", "checker_of", "checks"]

#: Judges a criterion by the evidence: one verdict, or one for each attribute that it concerns.
Checker: TypeAlias = Callable[[Evidence, Any], list[Verdict]]
C = TypeVar("C", bound=Checker)

_CHECKERS: dict[type[Criterion], Checker] = {}


def checks(criterion: type[Criterion]) -> Callable[[C], C]:
    """Register the decorated function as the checker of a criterion.

    The exact class: a checker may not know what a subclass promises beyond its base.

    Raises
    ------
    ValueError
        If the criterion has a checker already: no import may replace a judge.
    """

    def register(checker: C) -> C:
        if criterion in _CHECKERS:
            raise ValueError(f"{criterion.__name__} has a checker")
        _CHECKERS[criterion] = checker
        return checker

    return register


def checker_of(criterion: Criterion) -> Checker | None:
    """Return the checker of a criterion, or None if nobody has registered one."""
    return _CHECKERS.get(type(criterion))
