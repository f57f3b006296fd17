"""An attribute as a line, on which values and sides of boxes have places and lengths.

A category, or a number with a step, is a cell of length 1, so an exact value has a length as a
coarse one has. A number without a step is a point.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.spec.hierarchy import Domain, Hierarchy, Range

__all__ = ["Axis", "sensitive_axis", "sensitive_places"]

#: The code of a missing sensitive value.
MISSING = -1
#: All bits of a code except the sign.
_LOWER = np.int64(np.iinfo(np.int64).max)
#: Relative slack for multiples of a step such as 0.1, which no float holds exactly.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Axis:
    """One attribute as a line of cells, numbered from 0, or of points.

    Parameters
    ----------
    name
        The attribute.
    lowest, highest
        The first and the last place: numbers of cells, or the ends of a range without a step.
    unit
        The length of a value: 1 where places are cells, 0 where they are points.
    step
        The step of a range, from which the cells are made.
    origin
        How many steps the first cell lies from 0.

    >>> age = Axis.of("age", Range(17, 90, step=1))
    >>> age.places(np.array([17.0, 40.0])), age.length
    (array([ 0., 23.]), 74.0)
    """

    name: str
    lowest: float
    highest: float
    unit: float
    step: float | None = field(default=None, repr=False)
    origin: float = field(default=0.0, repr=False)

    @classmethod
    def of(cls, name: str, domain: Domain) -> Axis:
        """Return the line of a domain."""
        if isinstance(domain, Hierarchy):
            return cls.of_cells(name, len(domain))
        if domain.step is None:
            return cls(name, domain.lo, domain.hi, 0.0)
        first, last = _steps(np.array([domain.lo, domain.hi]), domain.step)
        return cls(name, 0.0, float(last - first), 1.0, domain.step, float(first))

    @classmethod
    def of_cells(cls, name: str, n_cells: int) -> Axis:
        """Return a line of a number of cells."""
        return cls(name, 0.0, float(n_cells - 1), 1.0)

    @property
    def length(self) -> float:
        """The length of the whole line: in cells, or in the unit of the attribute."""
        return self.highest - self.lowest + self.unit

    def places(self, values: Floats) -> Floats:
        """Return the places of numbers or codes of leaves; NaN and infinity stay as they are."""
        if self.step is None:
            return values
        return _steps(values, self.step) - self.origin

    def cut(self, most: int) -> Floats:
        """Return edges that cut the line into at most a number of intervals; cells stay whole.

        >>> Axis.of_cells("month", 12).cut(5)
        array([ 0.,  2.,  4.,  7.,  9., 12.])
        """
        if not self.unit:
            return np.linspace(self.lowest, self.highest, most + 1)
        n_cells = int(self.length)
        n = min(most, n_cells)
        return np.array([i * n_cells // n for i in range(n + 1)], np.float64)


def _steps(values: Floats, step: float) -> Floats:
    """Return how many whole steps numbers lie from 0."""
    steps = values / step
    nearest = np.round(steps)
    with np.errstate(invalid="ignore"):
        is_near = np.abs(steps - nearest) <= _SLACK * np.maximum(1.0, np.abs(steps))
    return np.where(is_near, nearest, np.floor(steps))


def sensitive_axis(name: str, domain: Domain | None, known: Ints) -> Axis:
    """Return the line of a sensitive attribute; that of an open domain has the known codes."""
    if domain is None:
        return Axis.of_cells(name, max(1, len(known)))
    return Axis.of(name, domain)


def sensitive_places(axis: Axis, domain: Domain | None, codes: Ints, known: Ints) -> Floats:
    """Return the places of the codes of sensitive values; NaN where there is no value.

    ``known`` are the sorted different codes of an open domain; others have no place.
    """
    nowhere: Bools = codes == MISSING
    if isinstance(domain, Range):
        # Codes are the bits of numbers; those of negative ones are inverted, to be in order.
        bits = np.where(codes < 0, codes ^ _LOWER, codes)
        return np.where(nowhere, np.nan, axis.places(bits.view(np.float64)))
    if isinstance(domain, Hierarchy):
        return np.where(nowhere, np.nan, codes.astype(np.float64))
    places = np.searchsorted(known, codes)
    nowhere = nowhere | (np.append(known, MISSING)[places] != codes)
    return np.where(nowhere, np.nan, places.astype(np.float64))
