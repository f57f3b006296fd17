"""Who can keep a promise: a refusal names the anonymizers that wouldn't refuse."""

from __future__ import annotations

from shoal import algorithms
from shoal.engine.base import Anonymizer
from shoal.errors import UnsupportedError
from shoal.spec.policy import Policy

__all__ = ["check_support"]


def check_support(anonymizer: Anonymizer, policy: Policy) -> None:
    """Refuse what the anonymizer can't enforce, and name those that can.

    >>> from shoal.algorithms.fast import Fast
    >>> from shoal.spec.policy import Delay, EntropyLDiversity
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
        able = [name for name in algorithms.names() if _can(name, policy)]
        could = [name for name in algorithms.names() if _could(name, policy)]
        fix = "No anonymizer can"
        if able:
            fix = f"These can: {', '.join(able)}"
        elif could:
            fix = f"With another window or delay these can: {', '.join(could)}"
        raise UnsupportedError(error.problems[0].what, fix=fix) from None


def _can(name: str, policy: Policy) -> bool:
    try:
        algorithms.find(name)().check(policy)
    except UnsupportedError:
        return False
    return True


def _could(name: str, policy: Policy) -> bool:
    """Whether an anonymizer can keep the criteria, whatever else it needs."""
    return all(
        isinstance(criterion, algorithms.find(name).enforces) for criterion in policy.criteria
    )
