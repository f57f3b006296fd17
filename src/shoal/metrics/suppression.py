"""How many rows could not be published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

__all__ = ["Suppression"]


class Suppression:
    """How many of the decided rows were suppressed, and why.

    >>> suppression = Suppression()
    >>> suppression.add(n_decided=10, n_suppressed=3, reasons={"too few subjects": 2})
    >>> suppression.as_dict()
    {'count': 3, 'share': 0.3, 'reasons': {'too few subjects': 2}}
    """

    __slots__ = ("count", "n_decided", "reasons")

    def __init__(self) -> None:
        self.count = 0
        self.n_decided = 0
        self.reasons: Counter[str] = Counter()

    def add(
        self, n_decided: int, n_suppressed: int, reasons: Mapping[str, int] | None = None
    ) -> None:
        """Count decided rows, those of them that were suppressed, and these by reason."""
        self.n_decided += n_decided
        self.count += n_suppressed
        self.reasons.update(reasons or {})

    def merge(self, other: Suppression) -> None:
        """Count the rows of another run of the recipe too."""
        self.add(other.n_decided, other.count, other.reasons)

    @property
    def share(self) -> float | None:
        """The share of the decided rows; None if there is none."""
        return self.count / self.n_decided if self.n_decided else None

    def as_dict(self) -> dict[str, object]:
        """Count, share, and counts by reason, the most frequent first."""
        return {
            "count": self.count,
            "share": self.share,
            "reasons": dict(self.reasons.most_common()),
        }

    def state(self) -> dict[str, Any]:
        """Everything that is known, exactly, as values that JSON can carry."""
        return {"count": self.count, "decided": self.n_decided, "reasons": dict(self.reasons)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self.count = state["count"]
        self.n_decided = state["decided"]
        self.reasons = Counter(state["reasons"])
