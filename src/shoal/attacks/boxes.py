"""The different boxes of a release, and which of them cover a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.audit.labels import Side
from shoal.spec.hierarchy import Range
from shoal.spec.schema import Quasi

__all__ = ["Boxes", "Matches", "domain_of"]

#: How many comparisons are made at a time, so that memory is bounded.
_AT_ONCE = 250_000


@dataclass(frozen=True, slots=True, repr=False)
class Matches:
    """Pairs of a target and a box that may hold it.

    Parameters
    ----------
    target, box
        The positions of both, pair by pair, sorted by target.
    """

    target: NDArray[np.int64]
    box: NDArray[np.int64]


@dataclass(frozen=True, slots=True, repr=False)
class Boxes:
    """The different boxes of a release, as numbers and codes of leaves.

    Parameters
    ----------
    lo, hi
        The bounds of each box, by quasi attribute. A side that was published as missing is from
        minus infinity to infinity; one that can't be read is NaN, and covers nothing.
    of_row
        The box of each published row, in the order of the output; -1 for a suppressed row.
    n_rows
        How many rows each box has.
    width
        The share of its domain that each side covers.
    """

    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    of_row: NDArray[np.int64]
    n_rows: NDArray[np.int64]
    width: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        quasi: Sequence[Quasi],
        sides: Sequence[Side],
        labels: NDArray[np.int64],
        in_group: NDArray[np.bool_],
    ) -> Boxes:
        """Collect the boxes of published rows; ``labels`` are equal for rows of one box."""
        rows = np.flatnonzero(in_group)
        _, first, inverse = np.unique(labels[rows], return_index=True, return_inverse=True)
        of_row = np.full(len(labels), -1, dtype=np.int64)
        of_row[rows] = inverse.reshape(-1)
        chosen = rows[first]
        lo = np.empty((len(chosen), len(quasi)))
        hi, width = np.empty_like(lo), np.empty_like(lo)
        for d, (attribute, side) in enumerate(zip(quasi, sides, strict=True)):
            gap = side.gap[chosen]
            lo[:, d] = np.where(gap, -np.inf, side.lo[chosen])
            hi[:, d] = np.where(gap, np.inf, side.hi[chosen])
            begin, end, unit = domain_of(attribute)
            length = np.clip(hi[:, d], begin, end) - np.clip(lo[:, d], begin, end)
            width[:, d] = (length + unit) / (end - begin + unit)
        return cls(lo, hi, of_row, np.bincount(of_row[rows], minlength=len(chosen)), width)

    def __len__(self) -> int:
        return len(self.lo)

    def covering(
        self, points: NDArray[np.float64], known: NDArray[np.bool_] | None = None
    ) -> Matches:
        """Return all boxes that may hold each point.

        Parameters
        ----------
        points
            A row for each target, a column for each quasi attribute; what is NaN isn't known, and
            fits every side.
        known
            The same, whether the attacker knows the value; None: all that aren't NaN.
        """
        return self._matches(points, known, tightest=False)

    def tightest(
        self, points: NDArray[np.float64], known: NDArray[np.bool_] | None = None
    ) -> Matches:
        """Return for each point those of its covering boxes that are smallest.

        Whoever is equally likely anywhere in a box is likeliest in the smallest box that covers
        them. Its size is the volume over the attributes that the attacker knows.
        """
        return self._matches(points, known, tightest=True)

    def _matches(
        self, points: NDArray[np.float64], known: NDArray[np.bool_] | None, *, tightest: bool
    ) -> Matches:
        asked = ~np.isnan(points) if known is None else known & ~np.isnan(points)
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.log(np.nan_to_num(self.width, nan=1.0))
        step = max(1, _AT_ONCE // max(1, len(self)))
        targets, boxes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for begin in range(0, len(points), step):
            part = slice(begin, begin + step)
            found = self._covers(points[part], asked[part])
            if tightest and len(self):
                size = np.where(found, asked[part].astype(np.float64) @ sizes.T, np.inf)
                found &= size <= size.min(axis=1, keepdims=True) + 1e-9
            target, box = np.nonzero(found)
            targets.append(target + begin)
            boxes.append(box)
        return Matches(np.concatenate(targets), np.concatenate(boxes))

    def _covers(self, points: NDArray[np.float64], asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        covered = np.ones((len(points), len(self)), dtype=np.bool_)
        for d in range(points.shape[1]):
            value = points[:, d, None]
            with np.errstate(invalid="ignore"):
                inside = (self.lo[:, d] <= value) & (value <= self.hi[:, d])
            covered &= inside | ~asked[:, d, None]
        return covered


def domain_of(attribute: Quasi) -> tuple[float, float, float]:
    """Return the ends of a domain, and its smallest unit."""
    domain = attribute.sided
    if isinstance(domain, Range):
        unit = (domain.hi - domain.lo) * 1e-6 if domain.step is None else domain.step
        return domain.lo, domain.hi, unit
    return 0.0, float(len(domain) - 1), 1.0
