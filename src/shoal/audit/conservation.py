"""Conservation: every row of the input is accounted for exactly once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.evidence import Evidence
from shoal.audit.quarantine import unexplained
from shoal.audit.report import Figure, Verdict, decide
from shoal.audit.trace import (
    GROUP,
    HELD,
    OUTCOMES,
    QUARANTINED,
    REUSE,
    SUPPRESSED,
    Trace,
)

__all__ = ["check"]

#: No anonymizer holds more rows.
_MOST_HELD = 10_000_000


def check(evidence: Evidence) -> Verdict:
    """Count the rows of the input, of the trace and of the output against each other."""
    trace = evidence.trace
    if trace is None:
        needs = "what became of the rows can't be told without a trace"
        return decide("conservation", [], kept="", doubt=needs)
    held = _held(evidence, trace)
    flaws = [
        *_lines(trace, held),
        *_arrivals(trace, held),
        *_output(evidence, trace),
        *_input(evidence, trace, held),
    ]
    found = unexplained(evidence, trace)
    if found.n_good:
        flaws.append(f"{found.n_good:,} rows are called quarantined and nothing is wrong with them")
    doubts = []
    if len(held):
        doubts.append(
            f"{len(held):,} rows have no line in the trace: if the job was stopped without --drain "
            "it holds them, or hasn't read them; if it has ended, they are lost"
        )
    if found.n_doubtful:
        doubts.append(f"why {found.n_doubtful:,} rows are called quarantined can't be told")
    figures: dict[str, Figure] = {"n_in": len(trace), "n_out": evidence.n_rows}
    for code, name in enumerate(OUTCOMES):
        figures[f"n_{name}"] = int(np.count_nonzero(trace.outcome == code))
    figures["n_without_line"] = len(held)
    figures["n_unexplained"] = found.n_good + found.n_doubtful
    counts = ", ".join(f"{figures[f'n_{name}']:,} {name}" for name in OUTCOMES)
    kept = f"each of {len(trace):,} rows is accounted for once: {counts}"
    doubt = "; ".join(doubts) or None
    return decide("conservation", flaws, kept=kept, doubt=doubt, figures=figures)


def _held(evidence: Evidence, trace: Trace) -> NDArray[np.int64]:
    """Return the rows without a line that a stopped job may hold, or has yet to read."""
    known = np.unique(trace.row[trace.row >= 0])
    end = int(known[-1]) + 1 if len(known) else 0
    if not evidence.may_hold or end - len(known) > _MOST_HELD:
        return known[:0]
    absent = np.setdiff1d(np.arange(end), known)
    if evidence.original is not None:
        given = evidence.given_rows
        absent = np.union1d(absent, given[given >= end])
    delay = evidence.policy.delay
    if delay is None or delay.rows is None or trace.is_sharded:
        return absent
    # A bad row has a line as soon as it is read, so these are rows that arrived.
    valid = np.sort(trace.row[trace.outcome != QUARANTINED])
    arrived = np.searchsorted(valid, absent) + np.arange(len(absent))
    decided = trace.has(GROUP, REUSE, SUPPRESSED)
    reached = int(trace.published[decided].max(initial=-1))
    return absent[reached - arrived <= delay.rows]


def _lines(trace: Trace, held: NDArray[np.int64]) -> list[str]:
    flaws = []
    if n := int(np.count_nonzero(trace.outcome < 0)):
        flaws.append(f"{n:,} lines of the trace have no known outcome")
    if n := int(np.count_nonzero(trace.row < 0)):
        flaws.append(f"{n:,} lines of the trace have no row")
    twice, lost = _counted(trace.row[trace.row >= 0])
    if twice:
        flaws.append(f"{twice:,} rows have more than one line in the trace")
    if lost := lost - int(np.count_nonzero(held < trace.row.max(initial=-1))):
        flaws.append(f"{lost:,} rows have no line in the trace")
    return flaws


def _arrivals(trace: Trace, held: NDArray[np.int64]) -> list[str]:
    """Check that `arrived`, which the delay is measured by, counts the valid rows of a shard."""
    valid = trace.outcome != QUARANTINED
    order = np.lexsort((trace.row[valid], trace.shard[valid]))
    arrived, shard = trace.arrived[valid][order], trace.shard[valid][order]
    ahead = arrived - (np.arange(len(shard)) - np.searchsorted(shard, shard))
    if trace.is_sharded:
        # Which shard holds which rows isn't known.
        fits = (ahead >= 0) & (ahead <= len(held))
        fits[1:] &= (ahead[1:] >= ahead[:-1]) | (shard[1:] != shard[:-1])
    else:
        fits = ahead == np.searchsorted(held, trace.row[valid][order])
    wrong = int(np.count_nonzero(~fits))
    wrong += int(np.count_nonzero(trace.arrived[~valid] >= 0))
    flaws = []
    if wrong:
        where = " in their shard" if trace.has_shards else ""
        flaws.append(f"{wrong:,} lines have a wrong position of arrival{where}")
    if n := int(np.count_nonzero(shard < 0)):
        flaws.append(f"{n:,} rows that arrived have no shard")
    return flaws


def _output(evidence: Evidence, trace: Trace) -> list[str]:
    flaws = []
    shown = trace.seq >= 0
    if n := int(np.count_nonzero(trace.has(GROUP, REUSE) & ~shown)):
        flaws.append(f"{n:,} rows are called published but have no place in the output")
    if n := int(np.count_nonzero(trace.has(QUARANTINED, HELD) & shown)):
        flaws.append(f"{n:,} quarantined or held rows have a place in the output")
    seq = trace.seq[shown]
    twice, lost = _counted(seq)
    if twice:
        flaws.append(f"{twice:,} places in the output are those of several rows")
    if lost:
        flaws.append(f"{lost:,} places in the output are those of no row")
    if len(seq) != evidence.n_rows:
        flaws.append(f"the output has {evidence.n_rows:,} rows, the trace tells of {len(seq):,}")
    return flaws


def _input(evidence: Evidence, trace: Trace, held: NDArray[np.int64]) -> list[str]:
    flaws = []
    n_quarantined = int(np.count_nonzero(trace.outcome == QUARANTINED))
    if evidence.n_quarantined is not None and evidence.n_quarantined != n_quarantined:
        flaws.append(
            f"the quarantine has {evidence.n_quarantined:,} rows, "
            f"the trace tells of {n_quarantined:,}"
        )
    if evidence.original is None:
        return flaws
    n_original = int(evidence.original.num_rows)
    if evidence.original_rows is None:
        if n_original != len(trace) + len(held):
            flaws.append(f"the input has {n_original:,} rows, the trace {len(trace):,}")
        return flaws
    # Rows that couldn't be read aren't in the original, but in the quarantine.
    accounted = np.union1d(trace.row, held)
    if n := int(np.count_nonzero(~np.isin(evidence.original_rows, accounted))):
        flaws.append(f"{n:,} rows of the input have no line in the trace")
    unread = ~np.isin(trace.row, evidence.original_rows) & (trace.outcome != QUARANTINED)
    if n := int(np.count_nonzero(unread)):
        flaws.append(f"{n:,} lines of the trace are of rows that the input doesn't have")
    return flaws


def _counted(positions: NDArray[np.int64]) -> tuple[int, int]:
    """Return how many positions occur twice or more, and how many below the largest are missing."""
    found, counts = np.unique(positions, return_counts=True)
    lost = int(found[-1]) + 1 - len(found) if len(found) else 0
    return int(np.count_nonzero(counts > 1)), lost
