"""Quarantined rows: whether something is wrong with each of them, by the original.

A run that quarantines good rows hides them, and its windows in rows extend over the others. So for
each such row a reason is looked for. Where parsers may differ, the row is doubtful.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.audit.columns import column, is_number, is_text, numbers, take
from shoal.audit.readings import EXACT, MOMENT, NUMBER, is_unclear, of_another_type
from shoal.audit.times import seconds
from shoal.audit.z.evidence import ZEvidence
from shoal.audit.z.trace import QUARANTINED, CellTrace
from shoal.audit.z.values import MAX_DEGREES
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import Grid, Open, Path

__all__ = ["Unexplained", "unexplained"]

Mask = NDArray[np.bool_]
#: The seconds between which moments have a year of four digits.
_CALENDAR = (-62_135_596_800.0, 253_402_300_800.0)


@dataclass(frozen=True, slots=True)
class Unexplained:
    """How many quarantined rows have nothing wrong with them, and how many are doubtful.

    >>> Unexplained(n_good=1, n_doubtful=0)
    Unexplained(n_good=1, n_doubtful=0)
    """

    n_good: int
    n_doubtful: int


def unexplained(cells: ZEvidence, trace: CellTrace) -> Unexplained:
    """Look for what is wrong with the quarantined rows that the original has."""
    numbered = np.unique(trace.row[trace.outcome == QUARANTINED])
    places = cells.places(numbered)
    numbered, places = numbered[places >= 0], places[places >= 0]
    # A row that is decided as well isn't accounted for here.
    only = ~np.isin(numbered, cells.rows.number)
    numbered, places = numbered[only], places[only]
    explained = np.zeros(len(places), dtype=np.bool_)
    doubtful = np.zeros(len(places), dtype=np.bool_)
    for bad, doubt in (
        _subject(cells, places),
        _time(cells, numbered, places),
        *_quasi(cells, places),
    ):
        explained |= bad
        doubtful |= doubt
    for name in cells.schema.payload:
        doubtful |= of_another_type(column(cells.original, name), places)
    return Unexplained(
        n_good=int(np.count_nonzero(~explained & ~doubtful)),
        n_doubtful=int(np.count_nonzero(~explained & doubtful)),
    )


def _subject(cells: ZEvidence, places: NDArray[np.int64]) -> tuple[Mask, Mask]:
    assert cells.schema.subject is not None
    bad = cells.subject_of_input[places] < 0
    array = take(column(cells.original, cells.schema.subject), places)
    if pa.types.is_floating(array.type):
        bad |= np.abs(numbers(array)) > EXACT
    return bad, np.zeros(len(places), dtype=np.bool_)


def _time(
    cells: ZEvidence, numbered: NDArray[np.int64], places: NDArray[np.int64]
) -> tuple[Mask, Mask]:
    """Return rows without a time or too late, and those whose time parsers may read differently."""
    if cells.schema.time is None:
        nothing = np.zeros(len(places), dtype=np.bool_)
        return nothing, nothing
    array = take(column(cells.original, cells.schema.time), places)
    time = seconds(array)
    bad = ~np.isfinite(time)
    if cells.time is not None and not is_number(array.type):
        bad |= (time < _CALENDAR[0]) | (time >= _CALENDAR[1])
    if cells.policy.lateness is not None:
        order = np.argsort(cells.rows.number)
        first = -np.inf if np.isnan(cells.since) else cells.since
        latest = np.fmax.accumulate(np.append(first, cells.times[order]))
        before = latest[np.searchsorted(cells.rows.number[order], numbered)]
        bad |= time < before - cells.policy.lateness
    # No file says how far a row was ahead of the machine's clock.
    has_limit = getattr(cells.policy, "ahead", None) is not None
    return bad, is_unclear(array, MOMENT, NUMBER) | has_limit


def _quasi(cells: ZEvidence, places: NDArray[np.int64]) -> list[tuple[Mask, Mask]]:
    """Return by attribute the rows with a missing value or one outside the domain."""
    found = []
    for attribute, ladders in zip(cells.schema.quasi, cells.ladders, strict=True):
        domain, lacks = attribute.domain, ladders.lacks[places]
        bad = ~lacks & (ladders.value[places] < 0)
        doubt = np.zeros(len(places), dtype=np.bool_)
        if cells.policy.missing == "quarantine":
            bad |= lacks
        for i, name in enumerate(attribute.columns):
            array = take(column(cells.original, name), places)
            if pa.types.is_floating(array.type) and not isinstance(domain, Open | Path):
                # Among numbers and categories what isn't a number is wrong, not missing.
                bad |= np.asarray(array.is_valid()) & np.isnan(numbers(array))
            if isinstance(domain, Grid):
                # One coordinate may be wrong where the other is missing.
                bad |= np.abs(numbers(array)) > MAX_DEGREES[i]
            if isinstance(domain, Grid | Range):
                doubt |= is_unclear(array, NUMBER)
            elif isinstance(domain, Hierarchy) and not is_text(array.type):
                doubt |= not pa.types.is_integer(array.type)
        found.append((bad, doubt))
    return found
