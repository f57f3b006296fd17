"""Pseudonyms: one for each subject and period, and nothing that links two periods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.columns import canonical_text, distinct_codes, encoded, mask, take
from shoal.audit.report import Verdict, decide
from shoal.audit.z.evidence import ZEvidence
from shoal.audit.z.trace import CellTrace

__all__ = ["check"]


def check(cells: ZEvidence) -> Verdict | None:
    """Check who has which pseudonym in which period, if pseudonyms are published."""
    if not cells.pseudonym:
        return None
    trace, array = cells.trace, cells.shown("pseudonym")
    if trace is None or array is None:
        needs = "whose pseudonyms these are needs a trace"
        lacks = "there is no column of pseudonyms"
        return decide("pseudonyms", [], kept="", doubt=needs if trace is None else lacks)
    rows = np.flatnonzero((cells.seq >= 0) & cells.is_published.any(axis=1))
    shown = take(array, cells.seq[rows])
    flaws = []
    if n := int(np.count_nonzero(mask(shown.is_null()))):
        flaws.append(f"{n:,} rows have no pseudonym")
    which, words = encoded(shown)
    people = {canonical_text(subject) for subject in encoded(trace.subject)[1]} - {""}
    is_clear = np.array([canonical_text(word) in people for word in words], dtype=np.bool_)
    if n := int(np.count_nonzero(is_clear[which])):
        flaws.append(f"in {n:,} rows the pseudonym is what a subject is called")
    subject = distinct_codes(take(trace.subject, cells.rows.first[rows]))
    if cells.original is not None and cells.doubt is None:
        # One person may be written in several ways in the trace: as 0 and as -0.
        subject = cells.subjects[rows]
    period, doubt = _periods(cells, trace, rows)
    n_periods = 0
    if period is not None:
        n_periods = len(np.unique(period))
        flaws += _mixed(subject, which, period)
    return decide(
        "pseudonyms",
        flaws,
        kept=f"each of {len(words):,} pseudonyms is of one subject in one of {n_periods:,} periods",
        doubt=doubt,
        figures={"n_pseudonyms": len(words), "n_periods": n_periods},
    )


def _mixed(
    subject: NDArray[np.int64], which: NDArray[np.int64], period: NDArray[np.int64]
) -> list[str]:
    """Return what is wrong, given the subject, pseudonym and period of each row."""
    used = np.unique(np.stack([period, subject, which]), axis=1)
    found = {
        "subjects have more than one pseudonym in a period": used[:2],
        "pseudonyms are those of several subjects": np.unique(used[1:], axis=1)[1:],
        "pseudonyms are used in more than one period": np.unique(used[::2], axis=1)[1:],
    }
    flaws = []
    for what, keys in found.items():
        _, n_each = np.unique(keys, axis=1, return_counts=True)
        if n := int(np.count_nonzero(n_each > 1)):
            flaws.append(f"{n:,} {what}")
    return flaws


def _periods(
    cells: ZEvidence, trace: CellTrace, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64] | None, str | None]:
    """Return the period of each row, or why it isn't known."""
    if cells.rotate is None:
        return None, "when pseudonyms change isn't known without rotate"
    if cells.window.seconds is None:
        clock = trace.arrived[cells.rows.first[rows]].astype(np.float64)
    elif cells.original is not None:
        clock = cells.clock[rows]
    else:
        clock = trace.arrived_s[cells.rows.first[rows]]
    if not np.isfinite(clock).all():
        return None, "when pseudonyms were given isn't known: rows have no time"
    return np.floor(clock / cells.rotate).astype(np.int64), None
