"""How many values are missing as published that weren't missing in the input."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ParameterError
from shoal.metrics.base import Counters
from shoal.metrics.wording import percent

__all__ = ["Pollution"]

_MOST = 63


class Pollution(Counters):
    """The missing pollution rate of published rows (IDEA, Definition 9).

    It is (missing cells as published - missing cells in the input) / (quasi attributes × rows). A
    published cell counts as missing if it is null, and, where a gap is taken for the root of its
    hierarchy (``missing = "extended"``), if it stands at the root because a row of its group has no
    value there. Suppressed rows aren't published, and don't count on either side.

    Which cells of a row are missing is a whole number: bit d stands for quasi attribute d.

    Parameters
    ----------
    n_quasi
        How many quasi attributes there are, at most 63.

    >>> pollution = Pollution(n_quasi=2)
    >>> gaps = np.array([0b01, 0b00, 0b00])
    >>> pollution.add(gaps, gaps)  # as published, only the gaps of the row itself
    >>> pollution.rate
    0.0
    >>> pollution.add(gaps, np.array([0b01, 0b01, 0b01]))  # all three in one group with the gap
    >>> round(pollution.rate, 3)
    0.167
    """

    __slots__ = ("_n_after", "_n_before", "_n_quasi", "_n_rows")
    place: ClassVar[int] = 32
    counters: ClassVar[dict[str, str]] = {
        "before": "_n_before", "after": "_n_after", "rows": "_n_rows"
    }  # fmt: skip

    def __init__(self, n_quasi: int) -> None:
        if not 1 <= n_quasi <= _MOST:
            raise ParameterError("Pollution.n_quasi", f"must be from 1 to {_MOST}", got=n_quasi)
        self._n_quasi = n_quasi
        self._n_before = 0
        self._n_after = 0
        self._n_rows = 0

    def add(self, gaps: NDArray[np.int64], missing: NDArray[np.int64]) -> None:
        """Count published rows: what each lacked in the input, and what it lacks as published.

        With an engine's decisions, the second is ``gaps | box_gaps[boxes]`` where gaps are taken
        for the root, and ``gaps`` alone where they stay gaps.
        """
        self._n_before += _n_bits(gaps)
        self._n_after += _n_bits(missing)
        self._n_rows += len(gaps)

    def merge(self, other: Self) -> None:
        """Add the counts of another run of the same anonymizer.

        Raises
        ------
        ParameterError
            If it has another number of quasi attributes.
        """
        if other._n_quasi != self._n_quasi:
            what = f"must be that of the other run, {other._n_quasi}"
            raise ParameterError("Pollution.n_quasi", what, got=self._n_quasi)
        super().merge(other)

    @property
    def rate(self) -> float | None:
        """The missing pollution rate; None if there is no row."""
        n_cells = self._n_quasi * self._n_rows
        return (self._n_after - self._n_before) / n_cells if n_cells else None

    def as_dict(self) -> dict[str, float | None]:
        """Return the shares of cells missing before and after, and the rate: their difference."""
        n_cells = self._n_quasi * self._n_rows
        return {
            "before": self._n_before / n_cells if n_cells else None,
            "after": self._n_after / n_cells if n_cells else None,
            "rate": self.rate,
        }

    def lines(self) -> list[str]:
        """Return the shares of missing cells in words."""
        if self.rate is None:
            return []
        found = self.as_dict()
        return [
            f"missing: {percent(found['before'])} of the quasi values of published rows, "
            f"{percent(found['after'])} as published"
        ]


def _n_bits(masks: NDArray[np.int64]) -> int:
    """Return how many bits are set in all numbers (NumPy has a function only from 2.0 on)."""
    as_bytes = np.ascontiguousarray(masks, dtype=np.int64).view(np.uint8)
    return int(np.unpackbits(as_bytes).sum())
