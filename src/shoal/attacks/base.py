"""What an attack is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting

__all__ = ["Attack"]


class Attack(ABC):
    """One way to attack a release.

    A subclass is one file of this package; `shoal.attacks.registry` finds it by its ``name``. Its
    docstring says what the attacker knows, what they do, and what bound the promise gives.
    """

    name: ClassVar[str]
    #: Whether the trace is needed to tell a success from a failure.
    needs_trace: ClassVar[bool] = False
    #: Whether the same attack on people who aren't in the stream means anything.
    has_control: ClassVar[bool] = True

    def misfit(self, setting: Setting) -> str | None:
        """Return why the attack can't be made on such a release, or None. By default: z."""
        if setting.policy.per_value:
            return "under z-anonymity nothing is published in boxes"
        return None

    @abstractmethod
    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Make the attack; yield a result for each grade of knowledge."""
