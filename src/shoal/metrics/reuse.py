"""How many rows were published in the box of an earlier group."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from shoal.metrics.base import REUSE, Batch, Metric, in_summary
from shoal.metrics.wording import percent

__all__ = ["Reuse"]


@in_summary
class Reuse(Metric):
    """The share of published rows that joined an earlier group, and how many left without company.

    ``alone`` counts rows that joined at an instant at which fewer rows left than a group needs.
    Anyone who knows when somebody came can tell which of these few is theirs.

    >>> reuse = Reuse()
    >>> reuse.add(n_published=8, n_reused=2)
    >>> reuse.as_dict()
    {'count': 2, 'share': 0.25, 'alone': 0}
    """

    __slots__ = ("count", "n_alone", "n_published")
    name: ClassVar[str] = "reuse"
    place: ClassVar[int] = 40
    counters: ClassVar[dict[str, str]] = {
        "count": "count", "alone": "n_alone", "published": "n_published",
    }  # fmt: skip

    def __init__(self) -> None:
        self.count = 0
        self.n_alone = 0
        self.n_published = 0

    def add_batch(self, batch: Batch) -> None:
        """Count a batch of decisions."""
        n_reused = int(np.count_nonzero(batch.outcome == REUSE))
        self.add(batch.n_published, n_reused, batch.n_alone)

    def add(self, n_published: int, n_reused: int, n_alone: int = 0) -> None:
        """Count published rows, those that joined an earlier group, and those that did so alone."""
        self.n_published += n_published
        self.count += n_reused
        self.n_alone += n_alone

    @property
    def share(self) -> float | None:
        """The share of the published rows; None if there are none."""
        return self.count / self.n_published if self.n_published else None

    def as_dict(self) -> dict[str, float | None]:
        """Return count and share, and how many left alone."""
        return {"count": self.count, "share": self.share, "alone": self.n_alone}

    def lines(self) -> list[str]:
        """Return count and share in words, and how many left alone."""
        if self.share is None:
            return []
        line = f"reuse: {self.count:,} rows, {percent(self.share)} of those published"
        if self.n_alone:
            line += (
                f"; {self.n_alone:,} left without enough company: anyone who knows when these "
                "people came can tell which row is theirs, or nearly so"
            )
        return [line]
