"""How many rows were published in the box of an earlier group."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from shoal.metrics.base import REUSE, Batch, Metric, in_summary
from shoal.metrics.wording import percent

__all__ = ["Reuse"]


@in_summary
class Reuse(Metric):
    """The share of published rows that joined an earlier group.

    >>> reuse = Reuse()
    >>> reuse.add(n_published=8, n_reused=2)
    >>> reuse.as_dict()
    {'count': 2, 'share': 0.25}
    """

    __slots__ = ("count", "n_published")
    name: ClassVar[str] = "reuse"
    place: ClassVar[int] = 40
    counters: ClassVar[dict[str, str]] = {"count": "count", "published": "n_published"}

    def __init__(self) -> None:
        self.count = 0
        self.n_published = 0

    def add_batch(self, batch: Batch) -> None:
        """Count a batch of decisions."""
        self.add(batch.n_published, int(np.count_nonzero(batch.outcome == REUSE)))

    def add(self, n_published: int, n_reused: int) -> None:
        """Count published rows, and those of them that joined an earlier group."""
        self.n_published += n_published
        self.count += n_reused

    @property
    def share(self) -> float | None:
        """The share of the published rows; None if there are none."""
        return self.count / self.n_published if self.n_published else None

    def as_dict(self) -> dict[str, float | None]:
        """Return count and share."""
        return {"count": self.count, "share": self.share}

    def lines(self) -> list[str]:
        """Return count and share in words."""
        if self.share is None:
            return []
        return [f"reuse: {self.count:,} rows, {percent(self.share)} of those published"]
