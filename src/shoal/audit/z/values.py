"""The original values of one attribute, each with its ladder of labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.audit.columns import (
    Array,
    canonical_text,
    column,
    encoded,
    is_bytes,
    is_missing,
    is_text,
    numbers,
    visible_text,
)
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import AnyDomain, Grid, level_labels, n_levels
from shoal.spec.schema import Quasi

__all__ = ["MAX_DEGREES", "Ladders", "read_ladders", "texts"]

#: Whole numbers up to here are exact as fractions.
_EXACT = 2.0**53
#: How many degrees latitudes and longitudes go up to.
MAX_DEGREES = (90.0, 180.0)


@dataclass(frozen=True, slots=True, repr=False)
class Ladders:
    """The values of an attribute, row by row, and the nodes that each can be published at.

    Parameters
    ----------
    value
        A number for the value of each row; -1 where it has none, or none of the domain.
    lacks
        Which rows have no value at all.
    nodes
        For each value its nodes from fine to coarse. A node is a label below its coarser labels.
    parents
        For each node the next coarser one, which has a lower number; -1 above the coarsest.
    labels
        Of each node.
    """

    value: NDArray[np.int64]
    lacks: NDArray[np.bool_]
    nodes: NDArray[np.int64]
    parents: list[int]
    labels: list[str]


def read_ladders(attribute: Quasi, table: pa.Table) -> Ladders:
    """Read an attribute of the original, whose columns must be there."""
    domain = attribute.domain
    arrays: list[Array] = [column(table, name) for name in attribute.columns]
    lacks = np.zeros(table.num_rows, dtype=np.bool_)
    for array in arrays:
        lacks |= is_missing(array)
        if pa.types.is_floating(array.type):
            lacks |= np.isnan(numbers(array))
    if isinstance(domain, Grid | Range):
        found = np.stack([numbers(array) for array in arrays], axis=1)
        good = np.isfinite(found).all(axis=1)
        if isinstance(domain, Range):
            good &= (found[:, 0] >= domain.lo) & (found[:, 0] <= domain.hi)
        else:
            good &= (np.abs(found) <= MAX_DEGREES).all(axis=1)
        value = np.full(table.num_rows, -1, dtype=np.int64)
        different, value[good] = _different(found[good])
        if isinstance(domain, Range):
            return _climb(domain, value, lacks, (number for (number,) in different))
        return _climb(domain, value, lacks, ((lat, lon) for lat, lon in different))
    indices, words = texts(arrays[0], as_written=isinstance(domain, Hierarchy))
    known = [bool(word) for word in words]
    if isinstance(domain, Hierarchy):
        known = [domain.code(word) is not None for word in words]
    else:
        # Text without a visible character is missing.
        lacks |= ~np.array(known, dtype=np.bool_)[indices]
    kept = [word for word, is_known in zip(words, known, strict=True) if is_known]
    numbered = {word: i for i, word in enumerate(dict.fromkeys(kept))}
    value = np.array([numbered.get(word, -1) for word in words], dtype=np.int64)[indices]
    return _climb(domain, value, lacks, numbered)


def _different(found: NDArray[np.float64]) -> tuple[list[list[float]], NDArray[np.int64]]:
    """Return the different rows of numbers, and for each row which of them it is."""
    order = np.lexsort(found.T)
    ordered = found[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    which = np.empty(len(order), dtype=np.int64)
    which[order] = np.cumsum(begins) - 1
    return ordered[begins].tolist(), which


def _climb(
    domain: AnyDomain,
    value: NDArray[np.int64],
    lacks: NDArray[np.bool_],
    different: Iterable[str | float | tuple[float, float]],
) -> Ladders:
    numbered: dict[tuple[int, str], int] = {}
    parents: list[int] = []
    labels: list[str] = []
    nodes = []
    for one in different:
        above, climbed = -1, []
        for label in reversed(level_labels(domain, one)):
            node = numbered.setdefault((above, label), len(numbered))
            if node == len(parents):
                parents.append(above)
                labels.append(label)
            climbed.append(node)
            above = node
        nodes.append(climbed[::-1])
    table = np.array(nodes, dtype=np.int64).reshape(len(nodes), n_levels(domain))
    return Ladders(value, lacks, table, parents, labels)


def texts(array: Array, *, as_written: bool = False) -> tuple[NDArray[np.int64], list[str]]:
    """Return the text of each value, and the texts: one for all ways to write it; "" for none.

    ``as_written`` only trims text.

    >>> texts(pa.array([7.0, 0.5, 7.0, None]))[1]
    ['7', '0.5', '']
    >>> texts(pa.array([" 7.0"]))[1], texts(pa.array([" 7.0"]), as_written=True)[1]
    (['7.0'], ['7.0'])
    """
    if as_written and is_text(array.type):
        indices, found = encoded(pc.utf8_trim_whitespace(array))
        return indices, ["" if text is None else text for text in found]
    indices, values = encoded(array)
    kind = array.type
    if is_text(kind):
        return indices, [visible_text(value) for value in values]
    if is_bytes(kind):
        return indices, [canonical_text(value) for value in values]
    if pa.types.is_floating(kind):
        values = [value if value is None else float(value) + 0.0 for value in values]
        kind = pa.float64()
    # Arrow and Python write dates, booleans and small fractions in different ways.
    words = pa.array(values, kind).cast(pa.large_string()).to_pylist()
    return indices, [
        canonical_text(value) if _is_whole(value) else visible_text(word)
        for value, word in zip(values, words, strict=True)
    ]


def _is_whole(value: object) -> bool:
    """Return whether a value is a float that is a whole number or NaN."""
    return isinstance(value, float) and (
        value != value or (value.is_integer() and abs(value) <= _EXACT)
    )
