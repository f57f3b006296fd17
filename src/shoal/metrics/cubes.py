"""How far the cubes of the published data are from the true ones (thesis §3.5.2).

A cube counts rows by some quasi attributes, and by the sensitive one::

    SELECT A1, ..., A_level, COUNT(*) WHERE sensitive = value GROUP BY A1, ..., A_level

for each sensitive value. The cubes of a level are those over exactly that number of quasi
attributes. The difference of a true cube and one of the published data is the Kullback-Leibler
divergence of their shares of rows, where the rows of a box are spread evenly over it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.errors import ParameterError
from shoal.metrics.axes import Axis
from shoal.metrics.compared import Compared

__all__ = ["CubeDivergence", "cube_divergence"]

#: How many boxes are processed at a time, so that memory is bounded.
_BOXES = 20_000


@dataclass(frozen=True, slots=True)
class CubeDivergence:
    """The divergence of each cube of a level, in nats, by the names of its attributes."""

    by_attributes: Mapping[tuple[str, ...], float]

    @property
    def total(self) -> float:
        """Over all cells of all cubes of the level: the measure of the thesis."""
        return math.fsum(self.by_attributes.values())

    @property
    def mean(self) -> float:
        """For one cube: comparable where the number of quasi attributes differs."""
        return self.total / len(self.by_attributes)


class _Cut(NamedTuple):
    """The cells of one attribute: those of the original rows (-1: missing), and their edges."""

    cells: Ints
    edges: Floats


class _Boxes(NamedTuple):
    """Some boxes: by attribute the shares of their cells; rows by sensitive value."""

    shares: Sequence[Floats]
    n_rows: Floats


def cube_divergence(compared: Compared, *, level: int = 2, cells: int = 100) -> CubeDivergence:
    """Measure how far the cubes of a level are from the true ones; 0 if they are the same.

    The sum over the cells c of the original of a_c ln(a_c / b_c), where a_c and b_c are the shares
    of rows in the cell, true and as published. A suppressed row has no information: it is spread
    over all cells and all sensitive values alike. So every cell of the original has a part in
    the output, and b_c is 0 only if a box doesn't cover its rows, or a value isn't that of its row:
    the divergence is infinite then. A row that lacks a value isn't in the cubes of that attribute.

    Parameters
    ----------
    compared
        The input and the output.
    level
        How many quasi attributes a cube has (mu).
    cells
        Into how many intervals of about the same length an attribute is cut that has more values,
        and one that has no step, of which a box covers whole intervals. Categories are cut in the
        order of their hierarchy.

    >>> import pyarrow as pa
    >>> from shoal.spec.hierarchy import Range
    >>> from shoal.spec.schema import Quasi, Schema
    >>> schema = Schema(subject=None, quasi=[Quasi("age", Range(0, 3, step=1))])
    >>> original = pa.table({"age": [0, 0, 0, 1]})
    >>> published = pa.table({"age": ["[0, 1]"] * 4})
    >>> found = cube_divergence(Compared.from_tables(schema, original, published), level=1)
    >>> round(found.total, 4) == round(0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5), 4)
    True
    """
    n_quasi = len(compared.axes)
    for key, value, least, most in (("level", level, 1, n_quasi), ("cells", cells, 1, 10**6)):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            what = f"must be a whole number from {least} to {most}"
            raise ParameterError(key, what, got=repr(value))
    cuts = [_cut(axis, compared.values[:, d], cells) for d, axis in enumerate(compared.axes)]
    compared = _that_say_something(compared)
    secret, published_secret, n_secrets = _secrets(compared, cells)
    cubes = {
        attributes: _Cube(attributes, [cuts[d] for d in attributes], secret)
        for attributes in itertools.combinations(range(n_quasi), level)
    }
    n_suppressed = max(0, compared.n_rows - compared.n_published)
    for boxes in _boxes(compared, cuts, published_secret, n_secrets, n_suppressed):
        for cube in cubes.values():
            cube.add(boxes)
    names = [axis.name for axis in compared.axes]
    return CubeDivergence(
        {
            tuple(names[d] for d in attributes): cube.divergence()
            for attributes, cube in cubes.items()
        }
    )


class _Cube:
    """One GROUP BY: the cells that original rows lie in, and what is published of each.

    Cells are sorted, attribute after attribute, so cells with a common prefix are adjacent, and
    boxes that don't overlap the prefix are dropped once for all of them.
    """

    def __init__(self, attributes: Sequence[int], cuts: Sequence[_Cut], secret: Ints) -> None:
        # With long attributes last, there are few prefixes.
        order = sorted(range(len(attributes)), key=lambda d: len(cuts[d].edges))
        self._attributes = [attributes[d] for d in order]
        columns = np.stack([*(cuts[d].cells for d in order), secret], axis=1)
        columns = columns[(columns >= 0).all(axis=1)]
        self._cells, self._true = _different(columns)
        self._published = np.zeros(len(self._cells))
        self._n_published = 0.0

    def add(self, boxes: _Boxes) -> None:
        """Spread the rows of boxes over the cells."""
        has_value = np.ones(len(boxes.n_rows), np.bool_)
        for d in self._attributes:
            has_value &= boxes.shares[d].any(axis=1)
        everything = np.flatnonzero(has_value)
        self._n_published += float(boxes.n_rows[everything].sum())
        if len(self._cells):
            self._descend(boxes, 0, len(self._cells), 0, everything, np.ones(len(everything)))

    def _descend(
        self, boxes: _Boxes, begin: int, end: int, depth: int, alive: Ints, covered: Floats
    ) -> None:
        """Visit the cells with one prefix, and the boxes that overlap it."""
        shares = boxes.shares[self._attributes[depth]]
        column = self._cells[begin:end, depth]
        cuts = np.flatnonzero(column[1:] != column[:-1]) + 1
        first = np.concatenate(([0], cuts))
        values = column[first]
        if depth + 1 < len(self._attributes):
            last = np.append(cuts, end - begin)
            for value, low, high in zip(values, begin + first, begin + last, strict=True):
                part = covered * shares[alive, value]
                reached = np.flatnonzero(part)
                self._descend(boxes, low, high, depth + 1, alive[reached], part[reached])
            return
        # All last values and sensitive values of this prefix at once.
        parts = shares[np.ix_(alive, values)]
        found = (parts * covered[:, None]).T @ boxes.n_rows[alive]
        which = np.searchsorted(values, column)
        self._published[begin:end] += found[which, self._cells[begin:end, depth + 1]]

    def divergence(self) -> float:
        """Return the divergence, summed over the cells of the original."""
        if not len(self._cells):
            return 0.0
        if not self._published.all():
            return math.inf
        true = self._true / self._true.sum()
        published = self._published / self._n_published
        return float(true @ np.log(true / published))


def _that_say_something(compared: Compared) -> Compared:
    """Return the comparison without published rows that are at the root in all attributes."""
    whole = np.ones(len(compared.lo), np.bool_)
    for d, axis in enumerate(compared.axes):
        whole &= (compared.lo[:, d] == axis.lowest) & (compared.hi[:, d] == axis.highest)
    says = ~(whole[compared.boxes] & np.isnan(compared.published_secrets))
    return replace(
        compared,
        boxes=compared.boxes[says],
        published_secrets=compared.published_secrets[says],
    )


def _different(columns: Ints) -> tuple[Ints, Floats]:
    """Return the different rows, sorted, and how often each occurs."""
    joint = np.zeros(len(columns), np.int64)
    for column in columns.T:
        # Numbered again after each column, combinations never overflow.
        wide = joint * (int(column.max(initial=0)) + 1) + column
        joint = np.unique(wide, return_inverse=True)[1].reshape(-1)
    _, first, n_rows = np.unique(joint, return_index=True, return_counts=True)
    return columns[first], n_rows.astype(np.float64)


def _cut(axis: Axis, places: Floats, cells: int) -> _Cut:
    edges = axis.cut(cells)
    return _Cut(_cells_of(edges, places), edges)


def _cells_of(edges: Floats, places: Floats) -> Ints:
    """Return the cell of each place, -1 for none; the last cell holds its upper end too."""
    found = np.minimum(np.searchsorted(edges, places, side="right") - 1, len(edges) - 2)
    return np.where(np.isnan(places), -1, found)


def _secrets(compared: Compared, cells: int) -> tuple[Ints, Ints, int]:
    """Return the cells of sensitive values, original and published; a missing one has its own."""
    if compared.sensitive is None:
        return np.zeros(compared.n_rows, np.int64), np.zeros(compared.n_published, np.int64), 1
    edges = compared.sensitive.cut(cells)
    before = _cells_of(edges, compared.secrets)
    after = _cells_of(edges, compared.published_secrets)
    # Only values that occur share in what is spread.
    known = np.unique(np.concatenate([before, after]))
    return np.searchsorted(known, before), np.searchsorted(known, after), max(1, len(known))


def _boxes(
    compared: Compared, cuts: Sequence[_Cut], secret: Ints, n_secrets: int, n_suppressed: int
) -> Iterator[_Boxes]:
    """Yield all boxes, some at a time, and one over everything for the suppressed rows."""
    n_boxes = len(compared.lo)
    for begin in range(0, n_boxes, _BOXES):
        end = min(n_boxes, begin + _BOXES)
        mine: Bools = (compared.boxes >= begin) & (compared.boxes < end)
        at = (compared.boxes[mine] - begin) * n_secrets + secret[mine]
        n_rows = np.bincount(at, minlength=(end - begin) * n_secrets).astype(np.float64)
        shares = [
            _shares(cut.edges, compared.lo[begin:end, d], compared.hi[begin:end, d], axis.unit)
            for d, (cut, axis) in enumerate(zip(cuts, compared.axes, strict=True))
        ]
        yield _Boxes(shares, n_rows.reshape(-1, n_secrets))
    if n_suppressed:
        whole = [
            _shares(cut.edges, np.array([axis.lowest]), np.array([axis.highest]), axis.unit)
            for cut, axis in zip(cuts, compared.axes, strict=True)
        ]
        yield _Boxes(whole, np.full((1, n_secrets), n_suppressed / n_secrets))


def _shares(edges: Floats, lo: Floats, hi: Floats, unit: float) -> Floats:
    """Return the share of each side that lies in each cell; none of an empty side."""
    if not unit:
        # A side covers whole intervals: else the row at its upper end may lie outside.
        empty = lo > hi
        lo = np.where(empty, np.inf, _cells_of(edges, lo))
        hi = np.where(empty, -np.inf, _cells_of(edges, hi))
        edges = np.arange(len(edges), dtype=np.float64)
    length = hi - lo + 1
    covered = np.minimum(hi[:, None] + 1, edges[1:]) - np.maximum(lo[:, None], edges[:-1])
    np.maximum(covered, 0.0, out=covered)
    covered *= np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)[:, None]
    return covered
