"""An experiment that varies one parameter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

__all__ = ["Axis"]

#: A frozen data class that says what is run.
Setting = TypeVar("Setting", bound=Any)


@dataclass(frozen=True)
class Axis(Generic[Setting]):
    """What is varied, and the settings along it."""

    name: str
    title: str
    x_label: str
    xs: tuple[float, ...]
    settings: tuple[Setting, ...]
    log: bool = False

    @classmethod
    def of(
        cls, usual: Setting, key: str, xs: tuple[float, ...],
        *, name: str, title: str, x_label: str, log: bool = False,
    ) -> Axis[Setting]:  # fmt: skip
        """The usual setting, but for one field of it."""
        settings = tuple(replace(usual, **{key: x}) for x in xs)
        return cls(name, title, x_label, xs, settings, log)

    @property
    def places(self) -> list[str]:
        """What each setting is called where the others are told from it."""
        return [f"{self.name} = {x:,}" for x in self.xs]
