"""Predicates over the original: which of them select exactly one person."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.boxes import domain_of
from shoal.attacks.setting import Setting

__all__ = ["isolates", "rarest_values"]


def isolates(
    setting: Setting,
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    secrets: NDArray[np.int64] | None = None,
    *,
    valued: int | None = None,
) -> NDArray[np.bool_]:
    """Return which predicates exactly one person of the original fulfils.

    A missing value may be any value of its domain, so it fits a side that is the whole domain or
    was published as missing. Where the policy says ``maybe``, it fits every side. A side without a
    label that can be read fits nothing else.

    Parameters
    ----------
    setting
        The original.
    lo, hi
        The box of each predicate.
    secrets
        The values of all sensitive attributes that it asks for; None: any.
    valued
        The quasi attribute that must have a value; None: each may lack one.
    """
    n_rows = setting.original.num_rows
    # The rows that each predicate selects, one bit for each.
    selected = np.full((len(lo), (n_rows + 7) // 8), 255, dtype=np.uint8)
    for d in range(lo.shape[1]):
        column = np.ascontiguousarray(setting.points[:, d])
        sides, of_side = np.unique(np.stack([lo[:, d], hi[:, d]], 1), axis=0, return_inverse=True)
        for side, where in _grouped(of_side.reshape(-1), len(sides)):
            low, high = sides[side]
            fits = (low <= column) & (column <= high)
            if d != valued and _fits_missing(setting, d, low, high):
                fits |= np.isnan(column)
            selected[where] &= np.packbits(fits)
    for j, each in enumerate(setting.secrets if secrets is not None else ()):
        assert secrets is not None
        values, of_value = np.unique(secrets[:, j], return_inverse=True)
        for value, where in _grouped(of_value.reshape(-1), len(values)):
            selected[where] &= np.packbits(each.original == values[value])
    return _has_one(setting, selected)


def _fits_missing(setting: Setting, d: int, low: float, high: float) -> bool:
    """Return whether somebody who lacks a quasi value may be meant by a side."""
    begin, end, _ = domain_of(setting.schema.quasi[d])
    is_whole = low <= begin and end <= high
    return setting.policy.missing == "maybe" or is_whole or bool(np.isnan(low) or np.isnan(high))


def _grouped(of_each: NDArray[np.int64], n: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each number with the places where it is."""
    order = np.argsort(of_each, kind="stable")
    cuts = np.searchsorted(of_each[order], np.arange(n + 1))
    for number in range(n):
        yield number, order[cuts[number] : cuts[number + 1]]


def _has_one(setting: Setting, selected: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return where all selected rows are of one person, and there are some."""
    n_rows, subjects = setting.original.num_rows, setting.subjects
    n_selected = np.bitwise_count(selected).sum(axis=1, dtype=np.int64)
    most = int(np.bincount(subjects).max(initial=0))
    found = np.zeros(len(selected), dtype=np.bool_)
    for i in np.flatnonzero((n_selected > 0) & (n_selected <= most)):
        people = subjects[np.unpackbits(selected[i], count=n_rows).astype(np.bool_)]
        found[i] = bool(np.all(people == people[0]))
    return found


def rarest_values(setting: Setting, boxes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each box the published row with the rarest combination of sensitive values."""
    of_row = setting.boxes.of_row
    rows = np.flatnonzero(of_row >= 0)
    keys = np.stack([of_row, *(each.published for each in setting.secrets)], axis=1)[rows]
    _, first, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
    # From the most frequent to the rarest, so that the rarest one stays.
    order = np.argsort(-counts, kind="stable")
    row_of = np.full(len(setting.boxes), -1, dtype=np.int64)
    row_of[of_row[rows[first[order]]]] = rows[first[order]]
    return row_of[boxes]
