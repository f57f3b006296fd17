"""Read the published labels of one quasi attribute as sides of boxes, and check them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.audit.columns import (
    Array,
    codes,
    column,
    combined_codes,
    encoded,
    is_number,
    is_text,
    mask,
    numbers,
)
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.schema import Quasi

__all__ = ["Numeric", "Side", "public_columns", "read_side"]

Numeric = Literal["range", "bounds", "midpoint"]
Gap: TypeAlias = NDArray[np.bool_]

_RANGE = re.compile(r"\[([^\s,\[\]]+), ([^\s,\[\]]+)\]")
# Relative slack for multiples of a step such as 0.1, which no float holds exactly.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True, repr=False)
class Side:
    """What the output says about one quasi attribute, row by row.

    Parameters
    ----------
    name
        The attribute.
    labels
        Equal numbers for rows that an outsider can't tell apart by this attribute.
    lo, hi
        The bounds, as numbers or as codes of leaves; NaN where the label can't be read.
        For a midpoint the widest interval around it that the range allows.
    root
        Whether the label is the root of the hierarchy or the whole range.
    gap
        Whether there is no label, and none is needed.
    flaws
        What is wrong with the labels, in words with counts.
    """

    name: str
    labels: NDArray[np.int64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    root: NDArray[np.bool_]
    gap: NDArray[np.bool_]
    flaws: Sequence[str]


def public_columns(attribute: Quasi, numeric: Numeric) -> tuple[str, ...]:
    """Return the columns that a quasi attribute is published in.

    >>> public_columns(Quasi("age", Range(17, 90)), "bounds")
    ('age_min', 'age_max')
    """
    if isinstance(attribute.domain, Range) and numeric == "bounds":
        return f"{attribute.name}_min", f"{attribute.name}_max"
    return (attribute.name,)


def read_side(
    table: pa.Table, attribute: Quasi, numeric: Numeric, *, with_gaps: bool = False
) -> Side | None:
    """Read the labels of an attribute; None if a column isn't there.

    With gaps, a row may have no label at all.
    """
    found: list[Array] = [column(table, name) for name in public_columns(attribute, numeric)]
    if any(array is None for array in found):
        return None
    gap = np.full(table.num_rows, with_gaps)
    for i, array in enumerate(found):
        gap &= mask(array.is_null())
        # A column without any value has no type of its own in a text file.
        if with_gaps and pa.types.is_null(array.type):
            found[i] = array.cast(pa.large_string())
    if isinstance(attribute.sided, Hierarchy):
        return _read_nodes(attribute.name, attribute.sided, gap, found[0])
    if numeric == "range":
        return _read_ranges(attribute.name, attribute.sided, gap, found[0])
    if numeric == "bounds":
        return _read_bounds(attribute.name, attribute.sided, gap, found[0], found[1])
    return _read_midpoints(attribute.name, attribute.sided, gap, found[0])


def _read_nodes(name: str, tree: Hierarchy, gap: Gap, array: Array) -> Side:
    if not is_text(array.type):
        return _unreadable(name, array, "isn't text")
    indices, labels = encoded(array)
    nodes = [None if label is None else tree.node(label) for label in labels]
    node = np.array([-1 if n is None else n for n in nodes], dtype=np.int64)[indices]
    lo = np.append(np.array(tree.lows, dtype=np.float64), np.nan)[node]
    hi = np.append(np.array(tree.highs, dtype=np.float64), np.nan)[node]
    flaws = _counted(name, [("no node of the hierarchy", (node < 0) & ~gap)])
    # A root with a single child covers no more than the child does.
    return Side(name, indices, lo, hi, (lo == 0) & (hi == len(tree) - 1), gap, flaws)


def _read_ranges(name: str, domain: Range, gap: Gap, array: Array) -> Side:
    if not is_text(array.type):
        return _unreadable(name, array, "isn't text")
    indices, texts = encoded(array)
    bounds = np.full((2, len(texts)), np.nan)
    odd = np.zeros(len(texts), dtype=np.bool_)
    for code, text in enumerate(texts):
        parts = _RANGE.fullmatch(text) if text is not None else None
        if parts is None:
            continue
        try:
            bounds[:, code] = float(parts[1]), float(parts[2])
        except ValueError:
            continue
        # Two ways to write one number would let an outsider distinguish rows of one box.
        odd[code] = not all(_is_plain(part) for part in parts.groups())
    lo, hi = bounds[:, indices]
    flaws = [
        *_counted(name, [("no range such as [1, 2]", (np.isnan(lo) | np.isnan(hi)) & ~gap)]),
        *_counted(name, [("a range with an unusual way to write a number", odd[indices])]),
        *_bound_flaws(name, domain, lo, hi),
    ]
    return Side(name, indices, lo, hi, (lo == domain.lo) & (hi == domain.hi), gap, flaws)


def _is_plain(text: str) -> bool:
    number = float(text)
    if not np.isfinite(number):
        return False
    if number.is_integer():
        return text == str(int(number)) or (abs(number) >= 1e15 and text == repr(number))
    return text == repr(number)


def _read_bounds(name: str, domain: Range, gap: Gap, low: Array, high: Array) -> Side:
    for array in (low, high):
        if not (is_number(array.type) or is_text(array.type)):
            return _unreadable(name, array, "isn't a number")
    lo, hi = numbers(low), numbers(high)
    labels = combined_codes(codes(low), codes(high))
    flaws = [
        *_counted(name, [("no bounds", (np.isnan(lo) | np.isnan(hi)) & ~gap)]),
        *_bound_flaws(name, domain, lo, hi),
    ]
    return Side(name, labels, lo, hi, (lo == domain.lo) & (hi == domain.hi), gap, flaws)


def _read_midpoints(name: str, domain: Range, gap: Gap, array: Array) -> Side:
    if not (is_number(array.type) or is_text(array.type)):
        return _unreadable(name, array, "isn't a number")
    middle = numbers(array)
    slack = _SLACK * (domain.hi - domain.lo)
    reach = np.minimum(middle - domain.lo, domain.hi - middle)
    on_step = _on_step(domain, 2 * middle) | (2 * middle == domain.lo + domain.hi)
    for end in (domain.lo, domain.hi):
        on_step |= _on_step(domain, 2 * middle - end)
    flaws = _counted(
        name,
        [
            ("no midpoint", np.isnan(middle) & ~gap),
            ("a midpoint outside the range", reach < -slack),
            ("a midpoint that isn't between multiples of the step", ~on_step & ~np.isnan(middle)),
        ],
    )
    root = np.abs(middle - (domain.lo + domain.hi) / 2) <= slack
    lo, hi = middle - reach - slack, middle + reach + slack
    return Side(name, codes(array), lo, hi, root, gap, flaws)


def _bound_flaws(
    name: str, domain: Range, lo: NDArray[np.float64], hi: NDArray[np.float64]
) -> list[str]:
    off = np.zeros(len(lo), dtype=np.bool_)
    for bound in (lo, hi):
        end = (bound == domain.lo) | (bound == domain.hi) | np.isnan(bound)
        off |= ~end & ~_on_step(domain, bound)
    return _counted(
        name,
        [
            ("a range that is upside down", lo > hi),
            ("a bound outside the range", (lo < domain.lo) | (hi > domain.hi)),
            ("a bound that isn't a multiple of the step", off),
        ],
    )


def _on_step(domain: Range, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    if domain.step is None:
        return np.ones(len(values), dtype=np.bool_)
    steps = values / domain.step
    with np.errstate(invalid="ignore"):
        near = np.abs(steps - np.round(steps)) <= _SLACK * np.maximum(1.0, np.abs(steps))
    return np.asarray(near, dtype=np.bool_)


def _counted(name: str, found: list[tuple[str, NDArray[np.bool_]]]) -> list[str]:
    return [
        f"column {name} has {what} in {n:,} rows"
        for what, where in found
        if (n := int(np.count_nonzero(where)))
    ]


def _unreadable(name: str, array: Array, what: str) -> Side:
    nothing = np.full(len(array), np.nan)
    nowhere = np.zeros(len(array), dtype=np.bool_)
    return Side(name, codes(array), nothing, nothing, nowhere, nowhere, [f"column {name} {what}"])
