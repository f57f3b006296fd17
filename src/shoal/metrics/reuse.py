"""How many rows were published in the box of an earlier group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Reuse"]


class Reuse:
    """The share of published rows that joined an earlier group.

    >>> reuse = Reuse()
    >>> reuse.add(n_published=8, n_reused=2)
    >>> reuse.as_dict()
    {'count': 2, 'share': 0.25}
    """

    __slots__ = ("count", "n_published")

    def __init__(self) -> None:
        self.count = 0
        self.n_published = 0

    def add(self, n_published: int, n_reused: int) -> None:
        """Count published rows, and those of them that joined an earlier group."""
        self.n_published += n_published
        self.count += n_reused

    def merge(self, other: Reuse) -> None:
        """Count the rows of another run of the recipe too."""
        self.add(other.n_published, other.count)

    @property
    def share(self) -> float | None:
        """The share of the published rows; None if there is none."""
        return self.count / self.n_published if self.n_published else None

    def as_dict(self) -> dict[str, float | None]:
        """Count and share."""
        return {"count": self.count, "share": self.share}

    def state(self) -> dict[str, Any]:
        """Everything that is known, exactly, as values that JSON can carry."""
        return {"count": self.count, "published": self.n_published}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self.count = state["count"]
        self.n_published = state["published"]
