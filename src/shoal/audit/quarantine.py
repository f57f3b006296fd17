"""Quarantined rows: whether something is wrong with each of them, by the original.

A run that quarantines good rows hides them. So for each such row a reason is looked for. Where
parsers may differ, the row is doubtful. (Under z-anonymity `shoal.audit.z.quarantine` does this.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.audit.columns import (
    Array,
    canonical_text,
    column,
    encoded,
    is_missing,
    is_text,
    numbers,
    take,
)
from shoal.audit.coordinates import coordinates
from shoal.audit.evidence import Evidence
from shoal.audit.readings import EXACT, MOMENT, NUMBER, is_unclear, of_another_type
from shoal.audit.times import seconds
from shoal.audit.trace import QUARANTINED, Trace
from shoal.spec.hierarchy import Domain, Hierarchy, Range

__all__ = ["Unexplained", "unexplained"]

Mask = NDArray[np.bool_]
#: Which rows have something wrong with them, and of which that isn't certain.
Judged = tuple[Mask, Mask]


@dataclass(frozen=True, slots=True)
class Unexplained:
    """How many quarantined rows have nothing wrong with them, and how many are doubtful."""

    n_good: int
    n_doubtful: int


def unexplained(evidence: Evidence, trace: Trace) -> Unexplained:
    """Look for what is wrong with the quarantined rows that the original has."""
    if evidence.original is None:
        return Unexplained(0, 0)
    lines = np.flatnonzero((trace.outcome == QUARANTINED) & (trace.row >= 0))
    places = evidence.located(trace.row[lines])
    lines, places = lines[places >= 0], places[places >= 0]
    explained, doubtful = (np.zeros(len(places), dtype=np.bool_) for _ in range(2))
    if not len(places):
        return Unexplained(0, 0)
    for bad, doubt in (
        _subject(evidence, places),
        _time(evidence, trace, lines, places),
        *_quasi(evidence, places),
        *_sensitive(evidence, places),
    ):
        explained |= bad
        doubtful |= doubt
    for name in evidence.schema.payload:
        doubtful |= of_another_type(column(evidence.original, name), places)
    return Unexplained(
        n_good=int(np.count_nonzero(~explained & ~doubtful)),
        n_doubtful=int(np.count_nonzero(~explained & doubtful)),
    )


def _nothing(places: NDArray[np.int64]) -> Mask:
    return np.zeros(len(places), dtype=np.bool_)


def _subject(evidence: Evidence, places: NDArray[np.int64]) -> Judged:
    if evidence.schema.subject is None:
        return _nothing(places), _nothing(places)
    array = take(column(evidence.original, evidence.schema.subject), places)
    indices, values = encoded(array)
    bad = np.array([canonical_text(value) == "" for value in values], dtype=np.bool_)[indices]
    if pa.types.is_floating(array.type):
        bad |= np.abs(numbers(array)) > EXACT
    return bad, _nothing(places)


def _time(
    evidence: Evidence, trace: Trace, lines: NDArray[np.int64], places: NDArray[np.int64]
) -> Judged:
    """Return rows without a time or too late, and those whose time parsers may read differently."""
    if evidence.schema.time is None:
        return _nothing(places), _nothing(places)
    array = take(column(evidence.original, evidence.schema.time), places)
    time = seconds(array)
    bad = ~np.isfinite(time)
    if evidence.policy.lateness is not None:
        # Shards learn of each other's times, but not at once; by which a row was late isn't known.
        bad |= time < evidence.latest_time(trace.row[lines], "left") - evidence.policy.lateness
    # No file says how far a row was ahead of the machine's clock.
    has_limit = evidence.policy.ahead is not None
    return bad, is_unclear(array, MOMENT, NUMBER) | has_limit


def _quasi(evidence: Evidence, places: NDArray[np.int64]) -> list[Judged]:
    """Return by attribute the rows with a missing value or one outside the domain."""
    found = []
    for attribute in evidence.schema.quasi:
        array = take(column(evidence.original, attribute.name), places)
        is_time = attribute.name == evidence.schema.time
        value = coordinates(array, attribute.sided, is_time=is_time)
        bad, doubt = _in_domain(array, value, attribute.sided)
        if evidence.policy.missing == "quarantine":
            bad |= is_missing(array)
        found.append((bad, doubt & (not is_time)))
    return found


def _sensitive(evidence: Evidence, places: NDArray[np.int64]) -> list[Judged]:
    """Return by attribute the rows with a value outside its domain, or without a needed one."""
    found = []
    needed = evidence.policy.in_place(evidence.schema)
    compared = evidence.policy.compared(evidence.schema)
    for attribute in evidence.schema.sensitive:
        array = take(column(evidence.original, attribute.name), places)
        bad, doubt = _nothing(places), _nothing(places)
        if attribute.domain is not None:
            bad, doubt = _in_domain(array, coordinates(array, attribute.domain), attribute.domain)
        missing = is_missing(array)
        if pa.types.is_floating(array.type):
            value = numbers(array)
            missing |= np.isnan(value)
            # An infinity can't be published as what it is.
            bad = (bad & ~missing) | np.isinf(value)
        if attribute.name in needed:
            bad |= missing
        if attribute.name in compared and isinstance(attribute.domain, Range):
            # Of a value that is finer than numbers are, it isn't known how it was counted.
            is_float = is_text(array.type) or pa.types.is_floating(array.type)
            doubt |= np.full(len(array), not is_float)
        found.append((bad, doubt))
    return found


def _in_domain(array: Array, value: NDArray[np.float64], domain: Domain) -> Judged:
    """Return which values are outside of a domain, and which may be; a missing one isn't."""
    missing = is_missing(array)
    if isinstance(domain, Hierarchy):
        is_plain = is_text(array.type) or pa.types.is_integer(array.type)
        return np.isnan(value) & ~missing, np.full(len(array), not is_plain)
    with np.errstate(invalid="ignore"):
        inside = (value >= domain.lo) & (value <= domain.hi)
    return ~inside & ~missing, is_unclear(array, NUMBER)
