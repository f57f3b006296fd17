"""How much information the published rows have lost."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.metrics.base import Batch, Metric, in_summary

__all__ = ["Loss"]


@in_summary
class Loss(Metric):
    """The average information loss, from 0 to 1, of published rows and of all decided rows.

    A suppressed row has lost everything: it counts as 1 in the second average.

    >>> loss = Loss()
    >>> loss.add(np.array([0.1, 0.3]), n_suppressed=2)
    >>> loss.as_dict()
    {'published': 0.2, 'with_suppressed': 0.6}
    """

    __slots__ = ("_n_published", "_n_suppressed", "_sum")
    name: ClassVar[str] = "loss"
    place: ClassVar[int] = 10
    counters: ClassVar[dict[str, str]] = {
        "sum": "_sum", "published": "_n_published", "suppressed": "_n_suppressed"
    }  # fmt: skip

    def __init__(self) -> None:
        self._sum = 0.0
        self._n_published = 0
        self._n_suppressed = 0

    def add_batch(self, batch: Batch) -> None:
        """Count a batch of decisions."""
        self.add(batch.loss[batch.is_published], batch.n_suppressed)

    def add(self, loss: NDArray[np.float64], n_suppressed: int) -> None:
        """Count the losses of published rows, and a number of suppressed rows."""
        self._sum += float(loss.sum())
        self._n_published += len(loss)
        self._n_suppressed += n_suppressed

    @property
    def published(self) -> float | None:
        """The average over published rows; None if there are none."""
        return self._sum / self._n_published if self._n_published else None

    @property
    def with_suppressed(self) -> float | None:
        """The average over published rows and suppressed ones; None if there are none."""
        n = self._n_published + self._n_suppressed
        return (self._sum + self._n_suppressed) / n if n else None

    def as_dict(self) -> dict[str, float | None]:
        """Return both averages."""
        return {"published": self.published, "with_suppressed": self.with_suppressed}

    def lines(self) -> list[str]:
        """Return both averages in words."""
        if self.with_suppressed is None:
            return []
        of_published = "no published rows"
        if self.published is not None:
            of_published = f"{self.published:.3f} of published rows"
        return [f"loss: {of_published}, {self.with_suppressed:.3f} with suppressed rows as 1"]
