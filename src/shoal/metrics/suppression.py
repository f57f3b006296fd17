"""How many rows could not be published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

from shoal.metrics.base import Batch, Metric, in_summary
from shoal.metrics.wording import percent

__all__ = ["Suppression"]


@in_summary
class Suppression(Metric):
    """How many of the decided rows were suppressed, and why.

    >>> suppression = Suppression()
    >>> suppression.add(n_decided=10, n_suppressed=3, reasons={"too few subjects": 2})
    >>> suppression.as_dict()
    {'count': 3, 'share': 0.3, 'reasons': {'too few subjects': 2}}
    """

    __slots__ = ("count", "n_decided", "reasons")
    name: ClassVar[str] = "suppression"
    place: ClassVar[int] = 50
    counters: ClassVar[dict[str, str]] = {
        "count": "count", "decided": "n_decided", "reasons": "reasons"
    }  # fmt: skip

    def __init__(self) -> None:
        self.count = 0
        self.n_decided = 0
        self.reasons: Counter[str] = Counter()

    def add_batch(self, batch: Batch) -> None:
        """Count a batch of decisions."""
        self.add(len(batch.outcome), batch.n_suppressed, batch.reasons)

    def add(
        self, n_decided: int, n_suppressed: int, reasons: Mapping[str, int] | None = None
    ) -> None:
        """Count decided rows, those of them that were suppressed, and these by reason."""
        self.n_decided += n_decided
        self.count += n_suppressed
        self.reasons.update(reasons or {})

    @property
    def share(self) -> float | None:
        """The share of the decided rows; None if there are none."""
        return self.count / self.n_decided if self.n_decided else None

    def as_dict(self) -> dict[str, object]:
        """Return count, share, and counts by reason, the most frequent first."""
        return {
            "count": self.count,
            "share": self.share,
            "reasons": dict(self.reasons.most_common()),
        }

    def lines(self) -> list[str]:
        """Return count, share and reasons in words."""
        if self.share is None:
            return []
        why = "".join(f"; {n:,} {why}" for why, n in self.reasons.most_common())
        share = f"{percent(self.share)} of those decided"
        return [f"suppression: {self.count:,} rows, {share}{why}"]
