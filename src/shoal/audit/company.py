"""Whether rows were suppressed that could have been published with others.

A row is suppressed where no group can be formed around it. If, at that moment, rows were held that
would have been a group with it, there was no reason. Of the rows that were decided at the same
moment only suppressed ones are taken to have been there: others may have left just before. And only
the latest arrivals are looked at. So not every needless suppression is found, but what is found is
needless.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.audit.columns import column, distinct_codes, take
from shoal.audit.evidence import Evidence
from shoal.audit.matching import matching
from shoal.audit.trace import HELD, QUARANTINED, SUPPRESSED, Trace
from shoal.spec.policy import DistinctLDiversity, KAnonymity

__all__ = ["Company", "company"]

#: How many of the latest arrivals are looked at, for each subject that a group needs.
_PER_SUBJECT = 4
#: At how many moments the values of those present are compared.
_MOST_MATCHED = 2000
#: How many cells are held in memory at once.
_CELLS = 4_000_000
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Company:
    """How many suppressed rows could be judged, and how many of them had enough company.

    ``is_certain`` says that every algorithm would have published those. Where values are to be
    diverse, some look for a group among the nearest rows only.
    """

    n_judged: int
    n_needless: int
    is_certain: bool


def company(evidence: Evidence, trace: Trace) -> Company:
    """Count the suppressed rows that would have been a group with rows that were held.

    Only promises of k and of distinct l are judged: others may be broken by a larger group.
    """
    criteria = evidence.policy.criteria
    if any(type(one) not in (KAnonymity, DistinctLDiversity) for one in criteria):
        return Company(0, 0, False)
    values = _sensitive(evidence, trace) if trace.has(SUPPRESSED).any() else None
    if values is None:
        return Company(0, 0, False)
    judged, needless = 0, 0
    arrived = (trace.arrived >= 0) & (trace.outcome != QUARANTINED)
    subjects = np.arange(len(trace)) if evidence.schema.each_row else evidence.people
    for shard in np.unique(trace.shard[arrived & trace.has(SUPPRESSED)]):
        lines = np.flatnonzero(arrived & (trace.shard == shard))
        lines = lines[np.argsort(trace.arrived[lines], kind="stable")]
        if not np.array_equal(trace.arrived[lines], np.arange(len(lines))):
            # A matter of conservation.
            continue
        suppressed = trace.outcome[lines] == SUPPRESSED
        until = np.where(trace.outcome[lines] == HELD, _NEVER, trace.published[lines])
        rows = np.flatnonzero(suppressed & (until >= 0))
        judged += len(rows)
        needless += _n_needless(
            evidence, rows, until, suppressed, subjects[lines], [v[lines] for v in values]
        )
    return Company(judged, needless, is_certain=not values)


def _sensitive(evidence: Evidence, trace: Trace) -> list[NDArray[np.int64]] | None:
    """Return the values, by line, of each attribute that is to be diverse; None if unknown."""
    names = _needed(evidence)
    if not names:
        return []
    if evidence.original is None:
        return None
    at = evidence.located(np.maximum(trace.row, 0))
    known = (at >= 0) & (trace.row >= 0)
    found = []
    for name in names:
        codes = np.full(len(trace), -1, dtype=np.int64)
        codes[known] = distinct_codes(take(column(evidence.original, name), at[known]))
        found.append(codes)
    return found


def _needed(evidence: Evidence) -> dict[str, int]:
    """Return how many different values each sensitive attribute needs, where any are promised."""
    needed: dict[str, int] = {}
    for criterion in evidence.policy.diversity:
        for attribute in evidence.schema.sensitive:
            if criterion.attribute in (None, attribute.name):
                needed[attribute.name] = max(needed.get(attribute.name, 1), criterion.needed)
    return needed


def _n_needless(
    evidence: Evidence,
    rows: NDArray[np.int64],
    until: NDArray[np.int64],
    suppressed: NDArray[np.bool_],
    subjects: NDArray[np.int64],
    values: list[NDArray[np.int64]],
) -> int:
    """Return how many of these rows of one shard, by arrival, had enough company."""
    needed = _needed(evidence)
    least = max(evidence.policy.k, *needed.values()) if needed else evidence.policy.k
    reach = _PER_SUBJECT * least
    width = min(reach, len(subjects))
    step = max(1, _CELLS // (width + 1))
    enough: list[NDArray[np.int64]] = []
    present_at: dict[int, NDArray[np.int64]] = {}
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        moment = until[some]
        # The row that caused the decision has arrived; on a tick the next one hasn't.
        latest = np.minimum(moment, len(subjects)) - 1
        others = latest[:, None] - np.arange(width)
        there = others >= 0
        others = np.maximum(others, 0)
        later = until[others] > moment[:, None]
        beside = (until[others] == moment[:, None]) & suppressed[others]
        there &= later | (beside & (others > some[:, None]))
        there &= others != some[:, None]
        who = np.where(there, subjects[others], -1)
        who = np.column_stack((who, subjects[some]))
        n_subjects = _n_different(who)
        good = np.flatnonzero(n_subjects >= evidence.policy.k)
        enough.append(some[good])
        if needed:
            for i in good[:_MOST_MATCHED]:
                present_at[int(some[i])] = np.append(others[i][there[i]], some[i])
    found = np.concatenate(enough) if enough else np.empty(0, dtype=np.int64)
    if not needed:
        return len(found)
    n = 0
    for present in list(present_at.values())[:_MOST_MATCHED]:
        n += all(
            matching(
                zip(subjects[present].tolist(), codes[present].tolist(), strict=True), enough=least
            )
            >= least
            for least, codes in zip(needed.values(), values, strict=True)
        )
    return n


def _n_different(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return by line how many different codes it has; -1 is none.

    >>> _n_different(np.array([[3, 3, -1], [1, 2, 3]])).tolist()
    [1, 3]
    """
    ordered = np.sort(codes, axis=1)
    new = np.ones(ordered.shape, dtype=np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return np.asarray(np.count_nonzero(new & (ordered >= 0), axis=1), dtype=np.int64)
