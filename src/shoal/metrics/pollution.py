"""How many values are missing that weren't missing before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ParameterError

__all__ = ["Pollution"]

_MOST = 63


class Pollution:
    """The missing pollution rate of published rows (IDEA, Definition 9).

    It is (missing cells as published - missing cells in the input) / (quasi attributes × rows). A
    published cell counts as missing if it is null, and, where a gap is taken for the root of its
    hierarchy (``missing = "extended"``), if it stands at the root because somebody in its group has
    no value there. Suppressed rows aren't published, and don't count on either side.

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

    def merge(self, other: Pollution) -> None:
        """Count the rows of another run of the recipe too.

        Raises
        ------
        ParameterError
            If it has another number of quasi attributes.
        """
        if other._n_quasi != self._n_quasi:
            what = f"must be that of the other run, {other._n_quasi}"
            raise ParameterError("Pollution.n_quasi", what, got=self._n_quasi)
        self._n_before += other._n_before
        self._n_after += other._n_after
        self._n_rows += other._n_rows

    @property
    def rate(self) -> float | None:
        """The missing pollution rate; None if there is no row."""
        n_cells = self._n_quasi * self._n_rows
        return (self._n_after - self._n_before) / n_cells if n_cells else None

    def as_dict(self) -> dict[str, float | None]:
        """The shares of cells missing before and after, and the rate: their difference."""
        n_cells = self._n_quasi * self._n_rows
        return {
            "before": self._n_before / n_cells if n_cells else None,
            "after": self._n_after / n_cells if n_cells else None,
            "rate": self.rate,
        }

    def state(self) -> dict[str, Any]:
        """Everything that is known, exactly, as values that JSON can carry."""
        return {"before": self._n_before, "after": self._n_after, "rows": self._n_rows}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self._n_before = state["before"]
        self._n_after = state["after"]
        self._n_rows = state["rows"]


def _n_bits(masks: NDArray[np.int64]) -> int:
    """How many bits are set in all numbers together (NumPy counts them itself only from 2.0 on)."""
    byte_ranges = np.ascontiguousarray(masks, dtype=np.int64).view(np.uint8)
    return int(np.unpackbits(byte_ranges).sum())
