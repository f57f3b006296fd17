"""Which function defines which criterion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from shoal.spec.criteria import Criterion
from shoal.spec.hierarchy import Domain
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["Definition", "Group", "broken", "defines", "examples"]


class Group(NamedTuple):
    """The rows of a group, and what they are measured against.

    ``values`` are the codes of one sensitive attribute, row by row, ``window`` those of the rows
    that the group is measured against, and ``domain`` is that of the attribute. All three are empty
    if a criterion isn't about sensitive attributes.
    """

    subjects: Sequence[int]
    values: Sequence[int] = ()
    window: Sequence[int] = ()
    domain: Domain | None = None


#: Tells whether a group keeps a criterion.
Definition: TypeAlias = Callable[[Any, Group], bool]
D = TypeVar("D", bound=Definition)

_DEFINITIONS: dict[type[Criterion], Definition] = {}
_EXAMPLES: list[Criterion] = []


def defines(kind: type[Criterion], drawn: Sequence[Criterion] = ()) -> Callable[[D], D]:
    """Register the decorated function as the definition of a criterion and of its subclasses.

    If a criterion has an ``attribute``, the function is asked about each sensitive attribute that
    it concerns. ``drawn`` are the criteria that `shoal.testing.strategies` draws, easy ones first.

    Raises
    ------
    ValueError
        If the criterion has a definition already.
    """

    def register(definition: D) -> D:
        if kind in _DEFINITIONS:
            raise ValueError(f"{kind.__name__} has a definition")
        _DEFINITIONS[kind] = definition
        _EXAMPLES.extend(drawn)
        return definition

    return register


def examples() -> list[Criterion]:
    """Return the criteria to draw from, in the order of their definitions."""
    return list(_EXAMPLES)


def broken(
    policy: Policy,
    schema: Schema,
    subjects: Sequence[int],
    sensitive: Sequence[Sequence[int]],
    window: Sequence[Sequence[int]] = (),
) -> str | None:
    """Return the criterion that rows, as one group, break; None if they keep the whole policy.

    ``sensitive`` has the codes of each row, ``window`` those of each row that the group is measured
    against.

    Raises
    ------
    TypeError
        If a criterion has no definition: it can't be called kept.

    >>> from shoal.spec.hierarchy import Range
    >>> from shoal.spec.policy import DistinctLDiversity, KAnonymity
    >>> from shoal.spec.schema import Quasi, Sensitive
    >>> schema = Schema("person", [Quasi("age", Range(0, 9))], [Sensitive("illness")])
    >>> policy = Policy(KAnonymity(2), DistinctLDiversity(2))
    >>> broken(policy, schema, [1, 1, 2], [[5], [6], [5]])
    >>> broken(policy, schema, [1, 2, 3], [[5], [5], [5]])
    'distinct l-diversity of illness'
    >>> broken(policy, schema, [1, 1, 1], [[5], [6], [7]])
    'k-anonymity'
    """
    for criterion in policy.criteria:
        holds = _definition_of(criterion)
        if not hasattr(criterion, "attribute"):
            if not holds(criterion, Group(subjects)):
                return criterion.name
            continue
        for j, attribute in enumerate(schema.sensitive):
            if criterion.attribute in (None, attribute.name):
                values, latest = ([row[j] for row in rows] for rows in (sensitive, window))
                if not holds(criterion, Group(subjects, values, latest, attribute.domain)):
                    return f"{criterion.name} of {attribute.name}"
    return None


def _definition_of(criterion: Criterion) -> Definition:
    for kind in type(criterion).__mro__:
        if kind in _DEFINITIONS:
            return _DEFINITIONS[kind]
    raise TypeError(f"{criterion.name} has no definition; give it one with `defines`")
