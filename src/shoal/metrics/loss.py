"""How much information the published rows have lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Loss"]


class Loss:
    """The average information loss, from 0 to 1, of published rows and of all decided rows.

    A suppressed row has lost everything: it counts as 1 in the second average.

    >>> loss = Loss()
    >>> loss.add(np.array([0.1, 0.3]), n_suppressed=2)
    >>> loss.as_dict()
    {'published': 0.2, 'with_suppressed': 0.6}
    """

    __slots__ = ("_n_published", "_n_suppressed", "_sum")

    def __init__(self) -> None:
        self._sum = 0.0
        self._n_published = 0
        self._n_suppressed = 0

    def add(self, loss: NDArray[np.float64], n_suppressed: int) -> None:
        """Count the losses of published rows, and some suppressed rows."""
        self._sum += float(loss.sum())
        self._n_published += len(loss)
        self._n_suppressed += n_suppressed

    def merge(self, other: Loss) -> None:
        """Count the rows of another run of the recipe too."""
        self._sum += other._sum
        self._n_published += other._n_published
        self._n_suppressed += other._n_suppressed

    @property
    def published(self) -> float | None:
        """The average over published rows; None if there is none."""
        return self._sum / self._n_published if self._n_published else None

    @property
    def with_suppressed(self) -> float | None:
        """The average over published rows and suppressed ones; None if there is none."""
        n = self._n_published + self._n_suppressed
        return (self._sum + self._n_suppressed) / n if n else None

    def as_dict(self) -> dict[str, float | None]:
        """Both averages."""
        return {"published": self.published, "with_suppressed": self.with_suppressed}

    def state(self) -> dict[str, Any]:
        """Everything that is known, exactly, as values that JSON can carry."""
        return {"sum": self._sum, "published": self._n_published, "suppressed": self._n_suppressed}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self._sum = state["sum"]
        self._n_published = state["published"]
        self._n_suppressed = state["suppressed"]
