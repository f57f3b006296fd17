"""The cost of a published row: lost information, growing with the delay."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.errors import ParameterError
from shoal.metrics.trace_lines import decided_lines, numbers

__all__ = ["Cost"]

_LARGEST = sys.float_info.max


class Cost:
    """The average cost of a row: its loss × (1 + alpha) to the power of how long it was held.

    That is Definition 7 of FAST, and Definition 3 of Zhou et al. (EDBT 2009) save for one thing:
    their loss of a row is the sum over its quasi attributes, not the average. With equal weights
    theirs is therefore this one with ``scale`` = the number of quasi attributes, of a run with
    ``loss = "uncertainty"``: ``published`` is their cost(T), and ``loss`` their loss(T), which is
    what the same rows lose without the delay. A suppressed row has lost everything: it counts with
    a loss of 1 in ``with_suppressed``.

    Parameters
    ----------
    alpha
        The decay: how much the cost grows with each unit of time: 0.02 is 2 %. The unit is that of
        the waits, rows or seconds.
    scale
        What each loss is multiplied by.

    A cost beyond the largest float stays there.

    >>> cost = Cost(alpha=0.5)
    >>> cost.add(np.array([0.1, 0.2]), np.array([0, 2]), suppressed=np.array([1]))
    >>> print({name: round(value, 3) for name, value in cost.as_dict().items()})
    {'loss': 0.15, 'published': 0.275, 'with_suppressed': 0.683}
    """

    __slots__ = (
        "_factor", "_loss", "_n_published", "_n_suppressed", "_of_published", "_of_suppressed",
        "_scale",
    )  # fmt: skip

    def __init__(self, alpha: float = 0.02, *, scale: float = 1.0) -> None:
        for key, value, low in (("Cost.alpha", alpha, 0.0), ("Cost.scale", scale, 0.0)):
            if not (np.isfinite(value) and value >= low):
                what = f"must be a finite number of at least {low:g}"
                raise ParameterError(key, what, got=repr(value))
        self._factor = 1.0 + alpha
        self._scale = scale
        self._loss = 0.0
        self._of_published = 0.0
        self._of_suppressed = 0.0
        self._n_published = 0
        self._n_suppressed = 0

    @classmethod
    def from_trace(
        cls,
        trace: pa.Table,
        *,
        alpha: float = 0.02,
        scale: float = 1.0,
        unit: Literal["rows", "seconds"] = "rows",
    ) -> Cost:
        """Count loss and cost of a run from its trace, with waits in rows or in seconds.

        Rows whose seconds aren't known aren't counted.
        """
        ending = "" if unit == "rows" else "_s"
        lines = decided_lines(trace, "loss", f"arrived{ending}", f"published{ending}")
        waited = numbers(lines, f"published{ending}") - numbers(lines, f"arrived{ending}")
        known = ~np.isnan(waited)
        is_suppressed = np.asarray(lines.column("outcome").to_numpy() == "suppressed")
        cost = cls(alpha, scale=scale)
        published = known & ~is_suppressed
        loss = numbers(lines, "loss")
        cost.add(loss[published], waited[published], suppressed=waited[known & is_suppressed])
        return cost

    def add(
        self,
        loss: NDArray[np.float64],
        waited: NDArray[Any],
        *,
        suppressed: NDArray[Any] | None = None,
    ) -> None:
        """Count the losses and waits of published rows, and the waits of suppressed ones."""
        self._loss += float((self._scale * loss).sum())
        self._of_published = self._more(self._of_published, loss, waited)
        self._n_published += len(loss)
        if suppressed is not None:
            everything = np.ones(len(suppressed))
            self._of_suppressed = self._more(self._of_suppressed, everything, suppressed)
            self._n_suppressed += len(suppressed)

    def _more(self, total: float, loss: NDArray[np.float64], waited: NDArray[Any]) -> float:
        with np.errstate(over="ignore"):
            grown = np.power(self._factor, waited.astype(np.float64))
            # A loss of 0 costs 0, even where the other factor overflows.
            found = np.minimum(grown, _LARGEST) * (self._scale * loss)
            return min(total + float(found.sum()), _LARGEST)

    @property
    def loss(self) -> float | None:
        """The average loss of published rows, without the delay; None if there are none."""
        return self._loss / self._n_published if self._n_published else None

    @property
    def published(self) -> float | None:
        """The average cost of published rows; None if there are none."""
        return self._of_published / self._n_published if self._n_published else None

    @property
    def with_suppressed(self) -> float | None:
        """The average cost of published rows and suppressed ones; None if there are none."""
        n = self._n_published + self._n_suppressed
        return min(self._of_published + self._of_suppressed, _LARGEST) / n if n else None

    def as_dict(self) -> dict[str, float | None]:
        """Return all averages."""
        return {
            "loss": self.loss,
            "published": self.published,
            "with_suppressed": self.with_suppressed,
        }

    def state(self) -> dict[str, Any]:
        """Return all counts, exactly, as values that JSON can carry."""
        return {
            "loss": self._loss,
            "of_published": self._of_published,
            "of_suppressed": self._of_suppressed,
            "published": self._n_published,
            "suppressed": self._n_suppressed,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace all counts by those of a state."""
        self._loss = state["loss"]
        self._of_published = state["of_published"]
        self._of_suppressed = state["of_suppressed"]
        self._n_published = state["published"]
        self._n_suppressed = state["suppressed"]
